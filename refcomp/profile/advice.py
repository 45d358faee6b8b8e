"""What to change in a schedule, read off the counts of a kernel.

Each rule says what was counted, where, and which primitive helps. Rules ask for a part of the whole
before they speak, so that a short prologue is not blamed. The greatest part comes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from refcomp.emulator.observers.counting import MemoryTraffic
from refcomp.emulator.observers.counting.banks import BANK_BYTES, BANKS
from refcomp.emulator.observers.counting.mnemonics import (
    BRANCH,
    FMA,
    MFMA,
    SALU,
    SCRATCH,
    VALU,
    WAIT,
)
from refcomp.profile.bound import (
    CACHE_LIMIT,
    MATRIX_LIMIT,
    MEMORY_LIMIT,
    SCALAR_LIMIT,
    SHARED_LIMIT,
    Bound,
)
from refcomp.profile.facts import RuleInputs, alike, closest_loop, loop_of_lanes

_WIDE = 16  # bytes that a lane moves at once at most
_FEW_WAVES = 2  # of a SIMD, that can hardly hide how long memory takes


@dataclass(frozen=True, slots=True)
class Advice:
    """`what` was counted and what to do; `line` is that of the loop IR, 0 for the whole kernel;
    `part` of the kind of work that it is about."""

    what: str
    remedy: str
    line: int = 0
    part: float = 1.0


def advise(facts: RuleInputs) -> tuple[Advice, ...]:
    """All that the rules say."""
    found = [advice for rule in _RULES for advice in rule(facts)]
    return tuple(sorted(found, key=lambda advice: -advice.part))


# Global memory.


def _uncoalesced(facts: RuleInputs) -> Iterator[Advice]:
    whole = sum(access.transactions for *_, access in alike(facts, "global"))
    for line, which, access in alike(facts, "global"):
        part = access.transactions / whole if whole else 0
        if access.transactions <= 1.5 * access.least or part < 0.1 or access.is_atomic:
            continue
        efficiency = access.bytes / (access.transactions * facts.counts.segment)
        yield Advice(
            f"{which}{access.transactions} transactions where {access.least} would do: "
            f"{efficiency:.0%} of what is moved is asked for; lanes are {access.stride} bytes "
            "apart",
            _closer_lanes(facts, line, access),
            line,
            part,
        )


def _closer_lanes(facts: RuleInputs, line: int, access: MemoryTraffic) -> str:
    if access.stride == access.size:  # some lanes, but then there is a gap
        row = access.bytes // access.transactions
        return (
            f"rows of {row} bytes lie apart: let those that lanes take be longer, up to "
            f"{facts.counts.segment} bytes (split the last axis of the array by a larger factor)"
        )
    return (
        f"let lanes side by side take elements side by side: {_lanes_of(facts, line, access)}; or "
        "bring a tile to shared memory by cache_read"
    )


def _lanes_of(facts: RuleInputs, line: int, access: MemoryTraffic) -> str:
    """Which loop the lanes run over, and which one they should."""
    loop, closest = loop_of_lanes(facts, line), closest_loop(facts, line, access)
    told = f"they run over {loop.axis} of {loop.stage}; " if loop else ""
    if loop and closest:
        return f"{told}bind {closest.axis} to threadIdx.x instead (reorder, bind)"
    return f"{told}bind the loop over the last axis of the array to threadIdx.x (reorder, bind)"


def _narrow(facts: RuleInputs) -> Iterator[Advice]:
    if _part_of_memory(facts.bound) < 0.1:
        return
    whole = sum(access.waves for *_, access in alike(facts, "global"))
    for line, which, access in alike(facts, "global"):
        is_dense = (
            access.transactions <= 1.5 * access.least and access.stride == access.size
        )
        part = access.waves / whole if whole else 0
        if access.size < _WIDE and is_dense and part >= 0.25 and not access.is_atomic:
            lanes, loop = _WIDE // access.size, loop_of_lanes(facts, line)
            axis = (
                f"{loop.axis} of {loop.stage}"
                if loop
                else "the loop over the last axis"
            )
            does = "stores" if access.is_store else "loads"
            yield Advice(
                f"{which}{access.waves} {does} of {access.size} bytes a lane, side by side",
                f"let a thread take {_WIDE} bytes at once: split {axis} once more, by {lanes}, "
                "and vectorize the inner part",
                line,
                part / 2,
            )


def _part_of_memory(bound: Bound | None) -> float:
    """Of the time that the limit takes, what moving data takes at least."""
    if bound is None or not bound.seconds[bound.limit]:
        return 1.0
    return (
        max(bound.seconds[CACHE_LIMIT], bound.seconds[MEMORY_LIMIT])
        / bound.seconds[bound.limit]
    )


def _atomics(facts: RuleInputs) -> Iterator[Advice]:
    for line, which, access in alike(facts, "global"):
        if (
            access.is_atomic
            and access.bytes > access.transactions * facts.counts.segment
        ):
            yield Advice(
                f"{which}{access.lanes} updates of memory, many of the same elements",
                "let each group or thread sum up for itself first: rfactor, or atomics on a "
                "shared buffer",
                line,
                0.5,
            )


# Shared memory.


def _conflicts(facts: RuleInputs) -> Iterator[Advice]:
    whole = sum(access.clocks for *_, access in alike(facts, "shared"))
    for line, which, access in alike(facts, "shared"):
        part = access.conflicts / whole if whole else 0
        if part < 0.05:
            continue
        does = (
            "updates" if access.is_atomic else "writes" if access.is_store else "reads"
        )
        yield Advice(
            f"{which}{does} of shared memory wait {access.conflicts} of {access.clocks} clocks for "
            f"banks that other lanes ask, too (lanes are {access.stride} bytes apart)",
            "let each lane count for itself first"
            if access.is_atomic
            else f"let rows begin in other banks: {_padding(facts, line, access)}; or let lanes "
            "side by side take elements side by side",
            line,
            part,
        )


_ALLOCATION = re.compile(r"alloc ([\w.]+): ([a-z]+)(\d+)\[(\d+(?:, \d+)*)\] shared")


def _padding(facts: RuleInputs, line: int, access: MemoryTraffic) -> str:
    """The call of storage_align for the buffer that a line accesses."""
    text = facts.listing.loop_ir(line)
    for number in facts.listing.around(line) if line else ():
        found = _ALLOCATION.search(facts.listing.loop_ir(number))
        if found and f"{found[1]}@[" in text and "," in found[4]:
            size = max(1, int(found[3]) // 8)
            factor, offset = BANKS * BANK_BYTES // size, max(1, access.size // size)
            axis = f"s[{found[1]}].op.axis[{found[4].count(',') - 1}]"
            return f"s[{found[1]}].storage_align({axis}, {factor}, {offset})"
    return "storage_align of the cached stage, by its last but one axis"


# Instructions.


def _few_multiplications(facts: RuleInputs) -> Iterator[Advice]:
    by_class = facts.counts.by_class()
    useful = by_class.get(FMA, 0) + by_class.get(MFMA, 0)
    others = by_class.get(VALU, 0)
    if not useful or useful >= 0.5 * (useful + others):
        return
    yield Advice(
        f"{useful} of {useful + others} vector instructions multiply and add",
        "unroll the innermost loops, so that indices become constants; give a thread a tile of "
        "elements, so that what it reads serves several of them",
        part=1 - useful / (useful + others),
    )


def _uncontracted(facts: RuleInputs) -> Iterator[Advice]:
    names = {one.instruction.mnemonic for one in facts.counts.instructions}
    has = [
        any(_is_float(name, operation) for name in names)
        for operation in ("mul", "add")
    ]
    if all(has) and not facts.counts.fmas:
        yield Advice(
            "products and sums are instructions of their own",
            "build with build_options(contract=True), which lets a * b + c be rounded once",
            part=0.6,
        )


def _is_float(name: str, operation: str) -> bool:
    return name.startswith((f"v_{operation}_f", f"v_pk_{operation}_f"))


def _overhead(facts: RuleInputs) -> Iterator[Advice]:
    by_class = facts.counts.by_class()
    whole = sum(by_class.values())
    idle = sum(by_class.get(kind, 0) for kind in (SALU, BRANCH, WAIT))
    is_limit = facts.bound is not None and facts.bound.limit == SCALAR_LIMIT
    if (is_limit or idle > 0.6 * whole) and facts.counts.fmas:
        yield Advice(
            f"{idle} of {whole} instructions count loops, branch and wait",
            "unroll the innermost loops, or split them by larger factors",
            part=0.4,
        )


def _inactive(facts: RuleInputs) -> Iterator[Advice]:
    active = facts.counts.active_lanes
    if active < 0.75:
        lanes = facts.counts.wave_lanes
        yield Advice(
            f"{active:.0%} of the lanes of vector instructions are active",
            f"let groups be multiples of {lanes} threads and split by factors that divide, so that "
            "no guard turns lanes off",
            part=1 - active,
        )


def _scratch(facts: RuleInputs) -> Iterator[Advice]:
    by_class = facts.counts.by_class()
    if ran := by_class.get(SCRATCH, 0):
        yield Advice(
            f"{ran} accesses to a lane's own memory: values that found no register",
            "unroll the loops whose variable chooses among local elements, or let a thread keep "
            "fewer of them",
            part=0.95,
        )


# The card.


def _occupancy(facts: RuleInputs) -> Iterator[Advice]:
    resources = facts.resources
    if resources is None or not 0 < resources.waves <= _FEW_WAVES:
        return
    remedies = {
        "vector registers": "let a thread keep fewer elements: split by smaller factors",
        "shared memory": "smaller tiles in shared memory",
        "barriers": "more threads in a group",
        "whole groups": "smaller groups, of which more fit beside each other",
    }
    yield Advice(
        f"{resources.waves} waves a SIMD at a time (estimate), for want of {resources.limit}",
        remedies.get(resources.limit, "smaller groups"),
        part=0.3,
    )


def _few_groups(facts: RuleInputs) -> Iterator[Advice]:
    bound = facts.bound
    if bound is None:
        return
    simds = bound.card.units * bound.card.unit.simds
    if bound.simds >= 0.75 * simds:
        return
    are_small = bound.units >= 0.75 * bound.card.units
    yield Advice(
        f"{bound.units:.0f} of {bound.card.units} compute units of the {bound.card.name} work on "
        f"average, {bound.simds:.0f} of their {simds} SIMDs (estimate)",
        f"more threads in a group: {bound.card.unit.simds} waves of {facts.counts.wave_lanes}, one "
        "for each SIMD"
        if are_small
        else "more, smaller groups: smaller tiles, or rfactor of a long reduction; larger inputs "
        "will do, too",
        part=0.2,
    )


# What is the limit, what part of it the advice is about, and what helps.
_LIMITS = {
    SHARED_LIMIT: (
        *("shared memory", 0.9),
        "let a thread use what it reads more often: more elements a thread (split, vthread), "
        "operands in registers (cache_read to local), vectors of 16 bytes",
    ),
    CACHE_LIMIT: (
        *("the L1 cache", 0.8),
        "let groups share what they read: tiles in shared memory (cache_read), larger ones",
    ),
    MEMORY_LIMIT: (
        *("memory", 0.8),
        "compute more in one kernel (compute_at, fused operators): each byte is read once already",
    ),
}


def _limit(facts: RuleInputs) -> Iterator[Advice]:
    bound = facts.bound
    if bound and bound.limit in _LIMITS and facts.counts.fmas:
        where, part, remedy = _LIMITS[bound.limit]
        told = f"multiply-adds alone take {bound.useful:.0%} of it"
        yield Advice(f"{where} is the limit (estimate): {told}", remedy, part=part)


def _unused_matrix_cores(facts: RuleInputs) -> Iterator[Advice]:
    by_class, bound = facts.counts.by_class(), facts.bound
    halves = [
        o
        for o in facts.counts.instructions
        if o.kind == FMA and "_f16" in o.instruction.text
    ]
    if bound and halves and MFMA not in by_class and bound.limit != MATRIX_LIMIT:
        yield Advice(
            "products of f16 by vector instructions",
            "tensorize the tile: matrix instructions do several times as many",
            part=0.7,
        )


_RULES: tuple[Callable[[RuleInputs], Iterator[Advice]], ...] = (
    *(_uncoalesced, _narrow, _atomics, _conflicts, _few_multiplications),
    *(_uncontracted, _overhead),
    *(_inactive, _scratch, _occupancy, _few_groups, _limit, _unused_matrix_cores),
)
