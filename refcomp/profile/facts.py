"""What is known of a kernel that is to be advised on: its accesses by kind, and whose loops they
stand in.

Indices are read from the text of the loop IR, where lets are written out; what they do not say is
not guessed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from refcomp.driver.kernel_resources import KernelResources
from refcomp.emulator.observers.counting import (
    InstructionCounts,
    KernelCounts,
    MemoryTraffic,
)
from refcomp.profile.bound import Bound
from refcomp.profile.listing import LineOrigin, Listing, loop_line

_BUFFER = re.compile(r"([\w.]+)@?\[")
_INDEX = re.compile(r"@\[([^\[\]]*)\]")
_LET = re.compile(r"let ([\w.]+): \w+ = (.*) \{$")
_THREADS = {"threadIdx.x", "threadIdx.y", "threadIdx.z"}


@dataclass(frozen=True, slots=True)
class RuleInputs:
    """What rules look at."""

    counts: KernelCounts
    listing: Listing
    resources: KernelResources | None
    bound: Bound | None


def alike(facts: RuleInputs, space: str) -> list[tuple[int, str, MemoryTraffic]]:
    """The accesses of one kind added up, and the line of the loop IR that makes most of them, or
    else the instruction.

    Of one kind are those of one statement whose lanes lie alike; statements that have the same
    buffers, such as those of an unrolled loop, are one. Without lines each stands for itself.
    """
    found: defaultdict[tuple[object, ...], list[InstructionCounts]] = defaultdict(list)
    for one in facts.counts.accesses(space):
        access, text = one.access, facts.listing.loop_ir(loop_line(one))
        if access is not None:
            buffers = (*_BUFFER.findall(text),) if text else one.instruction.number
            how = access.is_store, access.is_atomic, access.size, access.stride
            found[buffers, *how].append(one)
    return [_kind(rows) for rows in found.values()]


def _kind(rows: list[InstructionCounts]) -> tuple[int, str, MemoryTraffic]:
    most = max(rows, key=lambda one: one.waves)
    line = loop_line(most)
    which = "" if line else f"{most.instruction.text}: "
    return line, which, _sum([one.access for one in rows if one.access])


def _sum(accesses: list[MemoryTraffic]) -> MemoryTraffic:
    first = accesses[0]
    total = MemoryTraffic(first.space, first.size, first.is_store, first.is_atomic)
    total.stride = first.stride
    for access in accesses:
        for name in (
            "waves",
            "lanes",
            "bytes",
            "transactions",
            "least",
            "clocks",
            "conflicts",
        ):
            setattr(total, name, getattr(total, name) + getattr(access, name))
    return total


def loop_of_lanes(facts: RuleInputs, line: int) -> LineOrigin | None:
    """The loop around a line that lanes side by side run over, if a primitive made it."""
    return _loop_over(facts, line, {"threadIdx.x"})


def closest_loop(
    facts: RuleInputs, line: int, access: MemoryTraffic
) -> LineOrigin | None:
    """The loop over threads by which the elements that lanes lie `stride` apart in are one apart;
    None where the index does not say it."""
    lanes = f"threadIdx.x * {access.stride // access.size}"
    around = map(facts.listing.loop_ir, facts.listing.around(line) if line else ())
    lets = {found[1]: found[2] for text in around if (found := _LET.match(text))}
    indices = [
        _terms(index, lets) for index in _INDEX.findall(facts.listing.loop_ir(line))
    ]
    beside = [_THREADS.intersection(terms) for terms in indices if lanes in terms]
    return _loop_over(facts, line, beside[0]) if beside else None


def _terms(index: str, lets: Mapping[str, str]) -> list[str]:
    """What an index is the sum of, names of the lets around it written out."""
    terms = index.split(" + ")
    return [
        t
        for term in terms
        for t in (_terms(lets[term], lets) if term in lets else [term])
    ]


def _loop_over(facts: RuleInputs, line: int, threads: set[str]) -> LineOrigin | None:
    """The innermost loop around a line that one of the `threads` has, if a primitive made it."""
    for number in facts.listing.around(line) if line else ():
        text, origin = facts.listing.loop_ir(number), facts.listing.origins.get(number)
        tag = text.rpartition(")")[2].removesuffix("{").strip()
        if tag in threads and origin and origin.axis:
            return origin
    return None
