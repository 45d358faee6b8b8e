"""Rules that derive advice on a kernel's schedule from its counts.

The advice of a rule names the count, the place, and the primitive that helps. A rule has a
threshold: it ignores a small part of the whole, such as a short prologue. The largest part comes
first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from refcomp.emulator.observers.counting import MemoryTraffic
from refcomp.emulator.observers.counting.banks import BANK_BYTES, BANKS
from refcomp.foundation.counted import counted
from refcomp.profile.facts import RuleInputs, alike, closest_loop, loop_of_lanes
from refcomp.profile.limit import Limit
from refcomp.profile.occupancy import waves_of_simd

_MAX_VECTOR_BYTES = 16  # that a lane moves at once
_HALF = re.compile(r"[._]f16")
_FEW_WAVES = 2  # waves of a SIMD that can hardly hide the latency of memory


@dataclass(frozen=True, slots=True)
class Advice:
    """An observation with its remedy."""

    what: str  # was counted
    remedy: str
    line: int = 0  # of the loop IR; 0 for the whole kernel
    part: float = 1.0  # of the kind of work that it is about


def advise(facts: RuleInputs) -> tuple[Advice, ...]:
    """Return the advice of all rules, the largest part first."""
    found = [advice for rule in _RULES for advice in rule(facts)]
    return tuple(sorted(found, key=lambda advice: -advice.part))


# Global memory.


def _uncoalesced(facts: RuleInputs) -> Iterator[Advice]:
    words = facts.counts.isa.words
    kinds = alike(facts, "global")
    whole = sum(kind.access.transactions for kind in kinds)
    for line, instruction, access in kinds:
        part = access.transactions / whole if whole else 0
        if _is_coalesced(access) or part < 0.1 or access.is_atomic:
            continue
        efficiency = access.bytes / (access.transactions * facts.counts.segment)
        moved = counted(access.transactions, words.transaction)
        yield Advice(
            f"{instruction}{moved} where {access.least} would do: {efficiency:.0%} of the moved "
            f"bytes are used; lanes are {counted(access.stride, 'byte')} apart",
            _closer_lanes(facts, line, access),
            line,
            part,
        )


def _is_coalesced(access: MemoryTraffic) -> bool:
    return access.transactions <= 1.5 * access.least


def _closer_lanes(facts: RuleInputs, line: int, access: MemoryTraffic) -> str:
    """Return the remedy: the loop over which the lanes should run."""
    if access.stride == access.size:  # some lanes are dense, and then there is a gap
        row = access.bytes // access.transactions
        return (
            f"rows of {counted(row, 'byte')} have gaps between them: let lanes access longer rows, "
            f"up to {facts.counts.segment} bytes (split the last axis of the array by a larger "
            "factor)"
        )
    loop = loop_of_lanes(facts, line)
    closest = closest_loop(facts, line, access)
    now = f"they run over {loop.axis} of {loop.stage}; " if loop else ""
    bind = "bind the loop over the last axis of the array to threadIdx.x"
    if loop and closest:
        bind = f"bind {closest.axis} to threadIdx.x instead"
    return (
        f"let adjacent lanes access adjacent elements: {now}{bind} (reorder, bind); or copy a "
        "tile to shared memory by cache_read"
    )


def _narrow(facts: RuleInputs) -> Iterator[Advice]:
    bound = facts.bound
    if bound and bound.seconds[bound.limit]:
        moving = max(bound.seconds[Limit.CACHE], bound.seconds[Limit.MEMORY])
        if moving < 0.1 * bound.seconds[bound.limit]:
            return
    kinds = alike(facts, "global")
    whole = sum(kind.access.waves for kind in kinds)
    for line, instruction, access in kinds:
        is_dense = _is_coalesced(access) and access.stride == access.size
        part = access.waves / whole if whole else 0
        is_narrow = access.size < _MAX_VECTOR_BYTES and is_dense
        if not is_narrow or part < 0.25 or access.is_atomic:
            continue
        loop = loop_of_lanes(facts, line)
        axis = f"{loop.axis} of {loop.stage}" if loop else "the loop over the last axis"
        did = counted(access.waves, "store" if access.is_store else "load")
        yield Advice(
            f"{instruction}{did} of {counted(access.size, 'byte')} a lane, of adjacent elements",
            f"let a thread move {_MAX_VECTOR_BYTES} bytes at once: split {axis} once more, by "
            f"{_MAX_VECTOR_BYTES // access.size}, and vectorize the inner part",
            line,
            part / 2,
        )


def _atomics(facts: RuleInputs) -> Iterator[Advice]:
    group = facts.counts.isa.words.group
    for line, instruction, access in alike(facts, "global"):
        moved = access.transactions * facts.counts.segment
        if access.is_atomic and access.lanes * access.size > moved:
            updates = counted(access.lanes, "update")
            yield Advice(
                f"{instruction}{updates} of memory, many of the same elements",
                f"let each {group} or thread compute a partial sum first: rfactor, or atomics on a "
                "shared buffer",
                line,
                0.5,
            )


# Shared memory.


def _conflicts(facts: RuleInputs) -> Iterator[Advice]:
    kinds = alike(facts, "shared")
    whole = sum(kind.access.clocks for kind in kinds)
    for line, instruction, access in kinds:
        part = access.conflicts / whole if whole else 0
        if part < 0.05:
            continue
        remedy = (
            f"let rows begin in different banks: {_padding(facts, line, access)}; or let adjacent "
            "lanes access adjacent elements"
        )
        does = "writes" if access.is_store else "reads"
        if access.is_atomic:
            does = "updates"
            remedy = "let each lane update a copy of its own first"
        yield Advice(
            f"{instruction}{does} of shared memory wait {access.conflicts} of {access.clocks} "
            "clocks for banks that other lanes access, too (lanes are "
            f"{counted(access.stride, 'byte')} apart)",
            remedy,
            line,
            part,
        )


_ALLOCATION = re.compile(r"alloc ([\w.]+): ([a-z]+)(\d+)\[(\d+(?:, \d+)*)\] shared")


def _padding(facts: RuleInputs, line: int, access: MemoryTraffic) -> str:
    """Return the call of storage_align for the buffer that a line accesses."""
    text = facts.listing.loop_ir(line)
    for number in facts.listing.around(line) if line else ():
        found = _ALLOCATION.search(facts.listing.loop_ir(number))
        if found is None:
            continue
        name, _kind, bits, dims = found.groups()
        if f"{name}@[" in text and "," in dims:
            size = max(1, int(bits) // 8)
            factor = BANKS * BANK_BYTES // size
            offset = max(1, access.size // size)
            axis = f"s[{name}].op.axis[{dims.count(',') - 1}]"
            return f"s[{name}].storage_align({axis}, {factor}, {offset})"
    return "storage_align of the cached stage, by its last but one axis"


# Instructions.


def _few_multiplications(facts: RuleInputs) -> Iterator[Advice]:
    isa = facts.counts.isa
    by_class = facts.counts.by_class()
    useful = by_class.get(isa.multiply, 0) + by_class.get(isa.matrix, 0)
    whole = useful + sum(by_class.get(kind, 0) for kind in isa.arithmetic)
    if useful and useful < 0.5 * whole:
        yield Advice(
            f"multiply-adds: {useful} of {counted(whole, 'vector instruction')}",
            "unroll the innermost loops, so that indices become constants; give a thread a tile "
            "of elements, so that it uses each value that it reads several times",
            part=1 - useful / whole,
        )


def _uncontracted(facts: RuleInputs) -> Iterator[Advice]:
    isa = facts.counts.isa
    names = {one.instruction.mnemonic for one in facts.counts.instructions}
    has_mul = any(isa.product.match(name) for name in names)
    has_add = any(isa.sum.match(name) for name in names)
    if has_mul and has_add and not facts.counts.fmas:
        yield Advice(
            "products and sums are separate instructions",
            "build with build_options(contract=True), which lets a * b + c be rounded once; "
            "`refcomp emulate` has --contract",
            part=0.6,
        )


def _overhead(facts: RuleInputs) -> Iterator[Advice]:
    by_class = facts.counts.by_class()
    whole = sum(by_class.values())
    idle = sum(by_class.get(kind, 0) for kind in facts.counts.isa.overhead)
    is_limit = facts.bound is not None and facts.bound.limit == Limit.SCALAR
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
        group = facts.counts.isa.words.group
        yield Advice(
            f"{active:.0%} of the lanes of vector instructions are active",
            f"let {group}s be multiples of {lanes} threads and split by factors that divide, so "
            "that no guard turns lanes off",
            part=1 - active,
        )


def _scratch(facts: RuleInputs) -> Iterator[Advice]:
    if ran := facts.counts.by_class().get(facts.counts.isa.spilled, 0):
        yield Advice(
            f"{counted(ran, 'access')} to a lane's own memory: values that do not fit in registers",
            "unroll the loops whose variable chooses among local elements, or let a thread keep "
            "fewer of them",
            part=0.95,
        )


# The card.


def _occupancy(facts: RuleInputs) -> Iterator[Advice]:
    resources = facts.resources
    if resources is None:
        return
    waves = waves_of_simd(resources)
    if not 0 < waves <= _FEW_WAVES:
        return
    words = facts.counts.isa.words
    fewer_elements = "let a thread keep fewer elements: split by smaller factors"
    remedies = {
        "vector registers": fewer_elements,
        "registers": fewer_elements,
        "shared memory": "smaller tiles in shared memory",
        "barriers": f"more threads in a {words.group}",
        "whole groups": f"smaller {words.group}s, of which more fit at a time",
    }
    name = words.wave if waves == 1 else f"{words.wave}s"
    yield Advice(
        f"{waves:g} {name} a {words.simd} at a time (estimate), limited by {resources.limit}",
        remedies.get(resources.limit, f"smaller {words.group}s"),
        part=0.3,
    )


def _few_groups(facts: RuleInputs) -> Iterator[Advice]:
    bound = facts.bound
    if bound is None:
        return
    card = bound.card
    words = facts.counts.isa.words
    simds = card.units * card.unit.simds
    if bound.simds >= 0.75 * simds:
        return
    remedy = (
        f"more, smaller {words.group}s: smaller tiles, or rfactor of a long reduction; larger "
        "inputs help, too"
    )
    if bound.units >= 0.75 * card.units:
        remedy = (
            f"more threads in a {words.group}: {card.unit.simds} {words.wave}s of "
            f"{facts.counts.wave_lanes}, one for each {words.simd}"
        )
    yield Advice(
        f"{words.unit}s of the {card.name} at work: {bound.units:.0f} of {card.units} on average, "
        f"{words.simd}s: {bound.simds:.0f} of {simds} (estimate)",
        remedy,
        part=0.2,
    )


# Limit -> its name in advice, the part of the advice, and the remedy for a `group`.
_LIMITS = {
    Limit.SHARED: (
        "shared memory",
        0.9,
        "let a thread use each value that it reads more often: more elements a thread (split, "
        "vthread), operands in registers (cache_read to local), vectors of 16 bytes",
    ),
    Limit.BANKS: (
        "shared memory",
        0.9,
        "let a thread use each value that it reads more often: more elements a thread (split, "
        "vthread), operands in registers (cache_read to local), vectors of 16 bytes, ldmatrix",
    ),
    Limit.CACHE: (
        "the L1 cache",
        0.8,
        "let the threads of a {group} share what they read: tiles in shared memory (cache_read), "
        "or larger tiles",
    ),
    Limit.MEMORY: (
        "memory",
        0.8,
        "compute more in one kernel (compute_at, fused operators): each byte is read once already",
    ),
}


def _limit(facts: RuleInputs) -> Iterator[Advice]:
    bound = facts.bound
    if bound and bound.limit in _LIMITS and facts.counts.fmas:
        where, part, remedy = _LIMITS[bound.limit]
        what = f"{where} is the limit (estimate): multiply-adds alone take {bound.useful:.0%} of it"
        group = facts.counts.isa.words.group
        yield Advice(what, remedy.format(group=group), part=part)


def _unused_matrix_cores(facts: RuleInputs) -> Iterator[Advice]:
    bound = facts.bound
    if bound is None or bound.limit in (Limit.MATRIX, Limit.TENSOR):
        return
    isa = facts.counts.isa
    has_halves = any(
        one.kind == isa.multiply and _HALF.search(one.instruction.mnemonic)
        for one in facts.counts.instructions
    )
    if has_halves and isa.matrix not in facts.counts.by_class():
        yield Advice(
            "products of f16 by vector instructions",
            "tensorize the tile: matrix instructions compute several times as many",
            part=0.7,
        )


_RULES: tuple[Callable[[RuleInputs], Iterator[Advice]], ...] = (
    _uncoalesced,
    _narrow,
    _atomics,
    _conflicts,
    _few_multiplications,
    _uncontracted,
    _overhead,
    _inactive,
    _scratch,
    _occupancy,
    _few_groups,
    _limit,
    _unused_matrix_cores,
)
