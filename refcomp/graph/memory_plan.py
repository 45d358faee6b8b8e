"""Place buffers in one piece of memory, so that buffers with disjoint lifetimes share bytes.

Buffers that live at the same time never overlap. The best placement is NP-hard to find. So large
buffers are placed first, each at the lowest offset that is free during its whole lifetime.

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


def plan_memory(requests: Sequence[Request]) -> MemoryPlan:
    """Return a plan in which all offsets are multiples of ALIGNMENT."""
    placed: list[tuple[int, int, Request]] = []  # (begin, end, request)
    offsets = [0] * len(requests)
    for index in sorted(range(len(requests)), key=lambda k: -requests[k].size):
        request = requests[index]
        offset = _lowest_gap(request, placed)
        offsets[index] = offset
        placed.append((offset, offset + _rounded(request.size), request))
    return MemoryPlan(tuple(offsets), max((end for _, end, _ in placed), default=0))


def _rounded(size: int) -> int:
    # An empty buffer gets a place too, so that its address is not that of another buffer.
    return max(1, -(-size // ALIGNMENT)) * ALIGNMENT


def _lowest_gap(request: Request, placed: Sequence[tuple[int, int, Request]]) -> int:
    busy = sorted(
        (begin, end)
        for begin, end, other in placed
        if request.first <= other.last and other.first <= request.last
    )
    # Busy ranges may overlap each other: buffers that do not live at the same time share bytes.
    offset = 0
    for begin, end in busy:
        if begin - offset >= _rounded(request.size):
            break
        offset = max(offset, end)
    return offset
