"""Where in one piece of memory each buffer lies, so that buffers share what they use in turn.

Buffers that live at the same time never overlap. Large ones are placed first, each at the lowest
offset that is free during its whole life.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Bytes: no vector straddles two cache lines, and no two buffers share one.
ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Request:
    """A buffer of `size` bytes, in use from step `first` to step `last`, both included."""

    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The offset of each buffer, in the order of the requests, and the bytes needed in all."""

    offsets: tuple[int, ...]
    total: int


def plan_memory(requests: Sequence[Request]) -> MemoryPlan:
    """Offsets that are multiples of ALIGNMENT for all requests."""
    placed: list[tuple[int, int, Request]] = []  # begin, end, whose
    offsets = [0] * len(requests)
    for index in sorted(range(len(requests)), key=lambda k: -requests[k].size):
        request = requests[index]
        offset = _lowest_gap(request, placed)
        offsets[index] = offset
        placed.append((offset, offset + _rounded(request.size), request))
    return MemoryPlan(tuple(offsets), max((end for _, end, _ in placed), default=0))


def _rounded(size: int) -> int:
    # An empty buffer gets a place too: its address must not be that of another.
    return max(1, -(-size // ALIGNMENT)) * ALIGNMENT


def _lowest_gap(request: Request, placed: Sequence[tuple[int, int, Request]]) -> int:
    busy = sorted(
        (begin, end)
        for begin, end, other in placed
        if request.first <= other.last and other.first <= request.last
    )
    offset = 0
    for begin, end in busy:
        if begin - offset >= _rounded(request.size):
            break
        offset = max(offset, end)
    return offset
