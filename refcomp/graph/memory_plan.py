"""Place buffers in one piece of memory, so that buffers with disjoint lifetimes share bytes.

Buffers that live at the same time never overlap. The best placement is NP-hard to find. So buffers
are placed one after the other, each at the lowest offset that is free during its whole lifetime.
Large buffers come first. If more memory is taken than ever lives at once, other orders are tried.

Reference: Y. Pisarchyk and J. Lee, "Efficient Memory Management for Deep Neural Net Inference",
2020 (greedy by size).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Bytes. No vector crosses a cache line, and no two buffers share one.
ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Request:
    """A buffer that is in use from step `first` to step `last`, both included."""

    size: int  # bytes
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The places of all buffers."""

    offsets: tuple[int, ...]  # bytes, in the order of the requests
    total: int  # bytes of the whole piece


# Orders that are tried after the first. Each costs a millisecond for a hundred buffers.
_MAX_TRIALS = 64


def plan_memory(requests: Sequence[Request]) -> MemoryPlan:
    """Return a plan in which all offsets are multiples of ALIGNMENT."""
    least = least_memory(requests)
    order = sorted(range(len(requests)), key=lambda k: -requests[k].size)
    best = _placed_in(order, requests)
    plan = best
    for _ in range(_MAX_TRIALS):
        if best.total <= least:
            break
        # Whatever ends at the top was placed too late: it goes first.
        top = next(k for k in order if _end(plan, requests, k) == plan.total)
        if top == order[0]:
            # It lies on buffers that were placed later, or alone: these go before it.
            below = [k for k in order[1:] if _overlap(requests[k], requests[top])]
            if not below:
                break
            top = max(below, key=lambda k: _end(plan, requests, k))
        order = [top, *(k for k in order if k != top)]
        plan = _placed_in(order, requests)
        best = min(best, plan, key=lambda one: one.total)
    return best


def least_memory(requests: Sequence[Request]) -> int:
    """Return the bytes of the largest set of buffers that live at once: no plan needs less."""
    changes: dict[int, int] = {}  # by step
    for request in requests:
        size = _rounded(request.size)
        changes[request.first] = changes.get(request.first, 0) + size
        changes[request.last + 1] = changes.get(request.last + 1, 0) - size
    most = live = 0
    for step in sorted(changes):
        live += changes[step]
        most = max(most, live)
    return most


def _placed_in(order: Sequence[int], requests: Sequence[Request]) -> MemoryPlan:
    """Return the plan that places the requests in this order."""
    placed: list[tuple[int, int, Request]] = []  # (begin, end, request)
    offsets = [0] * len(requests)
    for index in order:
        request = requests[index]
        offset = _lowest_gap(request, placed)
        offsets[index] = offset
        placed.append((offset, offset + _rounded(request.size), request))
    return MemoryPlan(tuple(offsets), max((end for _, end, _ in placed), default=0))


def _end(plan: MemoryPlan, requests: Sequence[Request], index: int) -> int:
    return plan.offsets[index] + _rounded(requests[index].size)


def _overlap(one: Request, other: Request) -> bool:
    """Return True if two buffers live at the same time."""
    return one.first <= other.last and other.first <= one.last


def _rounded(size: int) -> int:
    # An empty buffer gets a place too, so that its address is not that of another buffer.
    return max(1, -(-size // ALIGNMENT)) * ALIGNMENT


def _lowest_gap(request: Request, placed: Sequence[tuple[int, int, Request]]) -> int:
    busy = sorted(
        (begin, end) for begin, end, other in placed if _overlap(request, other)
    )
    # Busy ranges may overlap each other: buffers that do not live at the same time share bytes.
    offset = 0
    for begin, end in busy:
        if begin - offset >= _rounded(request.size):
            break
        offset = max(offset, end)
    return offset
