"""Place buffers in one piece of memory, so that buffers with disjoint lifetimes share bytes.

Buffers that live at the same time never overlap. The best placement is NP-hard to find. So buffers
are placed one after the other, each at the lowest offset that is free during its whole lifetime, in
several orders. Large buffers first is the first order that is tried.

A kernel never writes over its input, though an elementwise kernel could. The arguments of compiled
functions are `noalias`, and a call whose output overlaps another argument is refused. `refcomp show
MODEL.onnx --stage memory` prints what writing in place would gain.

Reference: Y. Pisarchyk and J. Lee, "Efficient Memory Management for Deep Neural Net Inference",
2020 (greedy by size).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def plan_memory(requests: Sequence[Request]) -> MemoryPlan:
    """Return a plan in which all offsets are multiples of ALIGNMENT.

    It is the smallest of the plans of several orders. The search ends at the first plan of the
    least size that is possible.
    """
    least = least_memory(requests)
    best: MemoryPlan | None = None
    for order in _ORDERS:
        plan = plan_in_order(requests, order)
        if best is None or plan.total < best.total:
            best = plan
        if best.total == least:
            break
    assert best is not None
    return best


# The keys by which buffers are sorted. By size is mostly best, and is tried first.
_ORDERS: tuple[Callable[[Request], tuple[int, ...]], ...] = (
    lambda request: (-request.size,),
    lambda request: (request.first - request.last, -request.size),  # long lives first
    lambda request: ((request.first - request.last - 1) * request.size,),
    lambda request: (request.first, -request.size),
    lambda request: (-request.last, -request.size),
)


def least_memory(requests: Sequence[Request]) -> int:
    """Return the largest sum of the sizes of buffers that are in use at one step, in bytes.

    No plan is smaller. Sizes are rounded up to ALIGNMENT.
    """
    # The sum only grows at the first step of a buffer.
    steps = {request.first for request in requests}
    live = (
        sum(_rounded(r.size) for r in requests if r.first <= step <= r.last)
        for step in steps
    )
    return max(live, default=0)


def plan_in_order(
    requests: Sequence[Request], order: Callable[[Request], tuple[int, ...]]
) -> MemoryPlan:
    """Return the plan in which buffers are placed in the order of a key."""
    placed: list[tuple[int, int, Request]] = []  # (begin, end, request)
    offsets = [0] * len(requests)
    for index in sorted(range(len(requests)), key=lambda k: order(requests[k])):
        request = requests[index]
        offset = _lowest_gap(request, placed)
        offsets[index] = offset
        placed.append((offset, offset + _rounded(request.size), request))
    return MemoryPlan(tuple(offsets), max((end for _, end, _ in placed), default=0))


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
