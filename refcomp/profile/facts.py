"""The input of the rules for advice: accesses by kind, and the loops around them.

Indices are read from the text of the loop IR, with lets written out. Nothing is guessed: a loop
that the text does not show is unknown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from refcomp.driver.amd_resources import AmdResources
from refcomp.driver.nvidia_resources import NvidiaResources
from refcomp.emulator.machine.observation import AddressSpace
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
_SUMS = ("waves", "lanes", "bytes", "transactions", "least", "clocks", "conflicts")


@dataclass(frozen=True, slots=True)
class RuleInputs:
    """The input of all rules, for one kernel."""

    counts: KernelCounts
    listing: Listing
    resources: AmdResources | NvidiaResources | None  # None if they are unknown
    bound: Bound | None  # None if no card is known


class AlikeAccesses(NamedTuple):
    """Accesses of one kind."""

    line: int  # the line of the loop IR that makes most of the accesses; 0 if it is not known
    instruction: str  # the text of the instruction if no line is known, else ''
    access: MemoryTraffic  # the sum of the accesses


def alike(facts: RuleInputs, space: AddressSpace) -> list[AlikeAccesses]:
    """Return the accesses to `space`, with those of one kind added up.

    Accesses are of one kind if the same statement makes them with the same layout of lanes.
    Statements on the same buffers, such as those of an unrolled loop, count as one statement. If no
    line of the loop IR is known, each instruction is a kind of its own.
    """
    kinds: defaultdict[tuple[object, ...], list[InstructionCounts]] = defaultdict(list)
    for one in facts.counts.accesses(space):
        access = one.access
        if access is not None:
            text = facts.listing.loop_ir(loop_line(one))
            where = tuple(_BUFFER.findall(text)) if text else one.instruction.number
            how = (access.is_store, access.is_atomic, access.size, access.stride)
            kinds[where, how].append(one)
    found = []
    for rows in kinds.values():
        main = max(rows, key=lambda one: one.waves)
        line = loop_line(main)
        instruction = "" if line else f"{main.instruction.text}: "
        accesses = [one.access for one in rows if one.access]
        sums = {name: sum(getattr(a, name) for a in accesses) for name in _SUMS}
        total = replace(accesses[0], **sums)
        found.append(AlikeAccesses(line, instruction, total))
    return found


def loop_of_lanes(facts: RuleInputs, line: int) -> LineOrigin | None:
    """Return the loop around a line over which adjacent lanes run, if a primitive made it."""
    return _loop_over(facts, line, {"threadIdx.x"})


def closest_loop(
    facts: RuleInputs, line: int, access: MemoryTraffic
) -> LineOrigin | None:
    """Return the loop over threads whose consecutive iterations access adjacent elements.

    Return None if the index does not show such a loop. `access` has the stride of the lanes.
    """
    lanes = f"threadIdx.x * {access.stride // access.size}"
    lets = {}
    for number in facts.listing.around(line) if line else ():
        if found := _LET.match(facts.listing.loop_ir(number)):
            lets[found[1]] = found[2]
    for index in _INDEX.findall(facts.listing.loop_ir(line)):
        terms = _terms(index, lets)
        if lanes in terms:
            return _loop_over(facts, line, _THREADS.intersection(terms))
    return None


def _terms(index: str, lets: Mapping[str, str]) -> list[str]:
    """Return an index as the terms of a sum, with the names of `lets` written out."""
    terms = []
    for term in index.split(" + "):
        terms += _terms(lets[term], lets) if term in lets else [term]
    return terms


def _loop_over(facts: RuleInputs, line: int, threads: set[str]) -> LineOrigin | None:
    """Return the innermost loop around a line over one of `threads`, if a primitive made it."""
    for number in facts.listing.around(line) if line else ():
        text = facts.listing.loop_ir(number)
        origin = facts.listing.origins.get(number)
        tag = text.rpartition(")")[2].removesuffix("{").strip()
        if tag in threads and origin and origin.axis:
            return origin
    return None
