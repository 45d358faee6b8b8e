"""The wait states that must separate two instructions where a GPU does not wait by itself.

    v_mfma_f32_4x4x1_16b_f32 a[0:3], v0, v1, 0
    s_nop 3
    v_accvgpr_read_b32 v2, a0               4 wait states later: not sooner

On CDNA each instruction is one wait state, and `s_nop` is as many as it says. RDNA3 waits by itself
except for a few pairs, and counts vector instructions. A result of its transcendental unit is ready
sooner in three cases: after another memory access, after a wait for it, or after two more results
of the unit.

Each table maps pairs, in the words of the manuals, to the distance that they require.

Not covered are defects of single GPUs:

- gfx90a: products of f64 between a result and its store;
- gfx1100: masks and EXEC in waves of 64 lanes, v_cmpx before v_permlane, the end of a kernel.

Sources: AMD's "CDNA2" and "CDNA3 Instruction Set Architecture", sections on manually inserted wait
states and on matrix arithmetic; LLVM's GCNHazardRecognizer, and SISchedule.td for the passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from refcomp.emulator.code.assembly import EXEC, NAMED, VCC, Instruction, Operand
from refcomp.emulator.generations.wait_counters import (
    is_direct_load,
    numbers_of_operands,
)
from refcomp.emulator.instructions.matrix.layouts import Product, product_of
from refcomp.emulator.instructions.vector.dpp import is_dpp
from refcomp.emulator.machine.observation import kind_of_access

# Registers, numbered as in `Registers.dirty`. What has no number there has a name.
Places = frozenset[int | str]

_M0 = frozenset({NAMED["m0"].first})
_READS_M0 = "s_movrel, s_sendmsg or a load to LDS reads M0"
_MASK = frozenset({EXEC, EXEC + 1})
_VCC = frozenset({VCC, VCC + 1})
_DOUBLES: Places = frozenset({"the unit of f64"})
_TRANS = re.compile(r"v_(exp|log|rcp|rcp_iflag|rsq|sqrt|sin|cos)_(f16|f32|f64)$")
_TWO_RESULTS = re.compile(r"v_\w+_co(_ci)?_u32$|v_(mad_[iu]64|div_scale_|swap_)")
_ACCUMULATES = re.compile(r"v_(pk_)?(fmac|mac)_")
_PACKED = ("v_pk_", "v_dot", "v_fma_mix", "v_mad_mix")
_VECTOR_MEMORY = ("global_", "flat_", "scratch_", "buffer_", "tbuffer_")
_WIDE = re.compile(r"_store_(dwordx[34]|format_xyzw?|b96|b128)$")
_LANE = re.compile(r"v_(readlane|readfirstlane|writelane)_b32$")
_MODE = re.compile(r"hwreg\((\w+)")
_SETTLED = re.compile(r"va_vdst\(0\)|depctr 0x0?[0-9a-f]{3}$")
# A transcendental result is ready after more than this many other instructions of its unit.
MAX_TRANS = 1


class HazardPair(NamedTuple):
    """Two instructions that wait states must separate."""

    first: str  # such as "VALU writes SGPR"
    second: str  # such as "VMEM reads SGPR"


class HazardUse(NamedTuple):
    """An instruction as one side of a `HazardPair`."""

    name: str  # a `first` or a `second`
    places: Places


Uses = Iterator[HazardUse]


class ClockTicks(NamedTuple):
    """The amounts by which an instruction advances the clocks of its wave."""

    states: int  # wait states, or vector instructions where the table counts these
    trans: int  # instructions of the transcendental unit


@dataclass(frozen=True, slots=True)
class Footprint:
    """An instruction as far as hazards matter."""

    as_first: tuple[HazardUse, ...]
    as_second: tuple[HazardUse, ...]
    ticks: ClockTicks


@dataclass(frozen=True, slots=True, eq=False)
class StateTable:
    """The wait states that a GPU requires."""

    # Wait states, or vector instructions, between the two instructions of a pair.
    required: Mapping[HazardPair, int]
    # Returns the name of a matrix product in this table.
    product_name: Callable[[Product], str]
    # Vector instructions are counted, not wait states.
    counts_vectors: bool = False
    # The second of a pair -> all its firsts.
    firsts: Mapping[str, tuple[str, ...]] = field(init=False)

    def __post_init__(self) -> None:
        firsts: dict[str, tuple[str, ...]] = {}
        for pair in self.required:
            firsts[pair.second] = (*firsts.get(pair.second, ()), pair.first)
        object.__setattr__(self, "firsts", firsts)

    @property
    def unit(self) -> str:
        """The unit of `required`, for messages."""
        return "vector instructions" if self.counts_vectors else "wait states"

    def remedy(self, first: str) -> str:
        """Return the instruction to insert after the first of a pair."""
        if not self.counts_vectors:
            return "s_nop"
        return "v_nop" if first.startswith("WMMA") else "s_waitcnt_depctr 0xfff"

    def footprint(self, instruction: Instruction) -> Footprint:
        """Return the uses of an instruction that this table contains."""
        known = {pair.first for pair in self.required}
        as_first: list[HazardUse] = []
        as_second: list[HazardUse] = []
        for half in (instruction, instruction.second):
            if half is None:
                continue
            for use in _first_uses(half, self):
                if use.name in known and use.places:
                    as_first.append(use)
            for use in _second_uses(half, self):
                if use.name in self.firsts and use.places:
                    as_second.append(use)
        return Footprint(tuple(as_first), tuple(as_second), self._ticks(instruction))

    def _ticks(self, instruction: Instruction) -> ClockTicks:
        name = instruction.mnemonic
        if not self.counts_vectors:
            states = int(instruction.operands[0].text, 0) + 1 if name == "s_nop" else 1
            return ClockTicks(states, 0)
        is_wait = name == "s_waitcnt_depctr" and _SETTLED.search(instruction.text)
        if is_wait or name.startswith((*_VECTOR_MEMORY, "ds_")):
            return ClockTicks(0, MAX_TRANS + 1)
        return ClockTicks(int(name.startswith("v_")), int(bool(_TRANS.match(name))))


# Instructions as the first of a pair.


def _first_uses(instruction: Instruction, table: StateTable) -> Uses:
    name = instruction.mnemonic
    if name.startswith("v_"):
        yield from _first_vector_uses(instruction, table)
    elif name.startswith("s_setreg"):
        yield HazardUse("s_setreg writes", _mode(instruction))
    elif name.startswith("s_") and not name.startswith(("s_cmp", "s_bitcmp")):
        yield HazardUse("SALU writes M0", _numbers(instruction.operands[:1]) & _M0)
    elif name.startswith(_VECTOR_MEMORY):
        yield HazardUse("wide store reads VGPR", _wide_store_data(instruction))


def _first_vector_uses(instruction: Instruction, table: StateTable) -> Uses:
    name = instruction.mnemonic
    results = _results(instruction)
    vector = _vectors(results)
    scalar = _scalars(results)
    if (product := product_of(name)) is not None:
        kind = table.product_name(product)
        yield HazardUse(f"{kind} writes VGPR", vector)
        yield HazardUse(f"{kind} reads SrcC", _vectors(instruction.operands[3:4]))
        if product.sum == "f64":
            yield HazardUse("DGEMM runs", _DOUBLES)
        return
    if name.startswith("v_wmma_"):
        yield HazardUse("WMMA writes VGPR", vector)
        return
    yield HazardUse(
        "dot writes VGPR" if name.startswith("v_dot") else "VALU writes VGPR", vector
    )
    if name.startswith("v_cmpx_"):
        scalar |= _MASK
    yield HazardUse("VALU writes SGPR", scalar)
    if _TRANS.match(name):
        yield HazardUse("trans writes VGPR", vector)
    if _writes_half(instruction):
        yield HazardUse("VALU writes half a VGPR", vector)


def _results(instruction: Instruction) -> tuple[Operand, ...]:
    """Return the operands that a vector instruction writes."""
    name = instruction.mnemonic
    operands = instruction.operands
    # A comparison without a scalar destination writes EXEC alone.
    if name.startswith("v_cmpx_") and operands[0].file != "s":
        return ()
    return operands[: 2 if _TWO_RESULTS.match(name) else 1]


def _writes_half(instruction: Instruction) -> bool:
    modifiers = instruction.modifiers
    if "dst_sel" in modifiers:
        return modifiers["dst_sel"] != "DWORD"
    chosen = re.findall(r"[01]", modifiers.get("op_sel", ""))
    is_packed = instruction.mnemonic.startswith(_PACKED)
    return (
        len(chosen) == len(instruction.operands)
        and not is_packed
        and chosen[-1:] == ["1"]
    )


def _wide_store_data(instruction: Instruction) -> Places:
    """Return the registers of a store's data if these are more than 8 bytes."""
    name = instruction.mnemonic
    operands = instruction.operands
    if not _WIDE.search(name) or not kind_of_access(name).is_store:
        return frozenset()
    if name.startswith(("buffer_", "tbuffer_")):
        # Buffer stores are safe if a register holds their offset.
        return _vectors(operands[:1]) if operands[3].file != "s" else frozenset()
    return _vectors(operands[1:2])


# Instructions as the second of a pair.


def _second_uses(instruction: Instruction, table: StateTable) -> Uses:
    name = instruction.mnemonic
    operands = instruction.operands
    if name.startswith("v_"):
        yield from _second_vector_uses(instruction, table)
    elif name.startswith((*_VECTOR_MEMORY, "ds_")):
        is_direct = is_direct_load(instruction)
        is_load = kind_of_access(name).is_load and not is_direct
        read = operands[1:] if is_load else operands
        yield HazardUse("memory reads VGPR", _vectors(read))
        if is_load:
            yield HazardUse("memory writes VGPR", _vectors(operands[:1]))
        if not name.startswith("ds_"):
            yield HazardUse("VMEM reads SGPR", _scalars(read))
        if is_direct:
            yield HazardUse(_READS_M0, _M0)
    elif name.startswith(("s_movrel", "s_sendmsg")):
        yield HazardUse(_READS_M0, _M0)
    elif name.startswith(("s_getreg", "s_setreg")):
        yield HazardUse(f"s_{name[2]}etreg follows", _mode(instruction))


def _second_vector_uses(instruction: Instruction, table: StateTable) -> Uses:
    name = instruction.mnemonic
    if (product := product_of(name)) is not None:
        yield from _second_product_uses(instruction, table.product_name(product))
        return
    results = _results(instruction)
    sources = instruction.operands[len(results) :]
    read = _vectors(sources)
    if name.startswith("v_wmma_"):
        yield HazardUse("WMMA reads SrcAB", _vectors(instruction.operands[1:3]))
    if name.startswith("v_dot"):
        yield HazardUse("dot adds to VGPR", _vectors((*results, *sources[2:])))
        read = _vectors(sources[:2])
    else:
        yield HazardUse("VALU writes VGPR", _vectors(results))
    if _ACCUMULATES.match(name):
        read |= _vectors(results)
    yield HazardUse(
        "trans reads VGPR" if _TRANS.match(name) else "VALU reads VGPR", read
    )
    yield HazardUse("VALU reads SGPR", _scalars(sources))
    yield from _rare_second_uses(instruction, read)


def _rare_second_uses(instruction: Instruction, read: Places) -> Uses:
    """Yield the uses of which each concerns only a few vector instructions."""
    name = instruction.mnemonic
    if is_dpp(instruction):
        yield HazardUse("DPP reads VGPR", read)
        yield HazardUse("DPP runs by EXEC", _MASK)
    if name.startswith("v_div_fmas"):
        yield HazardUse("v_div_fmas reads VCC", _VCC)
    if _LANE.match(name):
        yield HazardUse("lane is chosen by SGPR", _scalars(instruction.operands[2:3]))
        yield HazardUse("v_readlane reads VGPR", read)
        yield HazardUse("v_readlane or v_writelane runs by EXEC", _MASK)
    if name.startswith(("v_fma_f64", "v_fmac_f64")):
        yield HazardUse("FMA of f64 runs", _DOUBLES)


def _second_product_uses(instruction: Instruction, kind: str) -> Uses:
    _, a, b, c = instruction.operands
    yield HazardUse("MFMA reads SrcA", _vectors((a,)))
    yield HazardUse("MFMA reads SrcB", _vectors((b,)))
    yield HazardUse(f"{kind.split()[1]} reads SrcC", _vectors((c,)))
    yield HazardUse("MFMA writes VGPR", _vectors(instruction.operands[:1]))
    yield HazardUse("MFMA runs by EXEC", _MASK)


def _numbers(operands: tuple[Operand, ...]) -> Places:
    return frozenset(numbers_of_operands(operands))


def _vectors(operands: tuple[Operand, ...]) -> Places:
    return _numbers(tuple(one for one in operands if one.file in "va"))


def _scalars(operands: tuple[Operand, ...]) -> Places:
    return _numbers(tuple(one for one in operands if one.file == "s"))


def _mode(instruction: Instruction) -> Places:
    return frozenset(_MODE.findall(instruction.text))


# The tables.

_READ = ("VALU reads VGPR", "trans reads VGPR", "dot adds to VGPR")
_TOUCHED = (*_READ, "VALU writes VGPR")
_WRITTEN = ("VALU writes VGPR", "dot adds to VGPR", "memory writes VGPR")
_OVERWRITTEN = ("VALU writes VGPR", "MFMA writes VGPR")
_FACTORS = ("MFMA reads SrcA", "MFMA reads SrcB")

_Required = dict[HazardPair, int]


def _after(first: str, seconds: tuple[str, ...], count: int) -> _Required:
    return {HazardPair(first, second): count for second in seconds}


def _after_doubles(rows: int, vector: int, memory: int, c: int) -> _Required:
    """Return what f64 products of `rows` rows require: distances to each kind of use."""
    first = f"{rows}x{rows} DGEMM writes VGPR"
    return {
        **_after(first, (*_TOUCHED, *_FACTORS, "memory writes VGPR"), vector),
        **_after(first, ("memory reads VGPR",), memory),
        **_after(first, ("DGEMM reads SrcC",), c),
    }


_CDNA: _Required = {
    **_after("VALU writes SGPR", ("VMEM reads SGPR", "DPP runs by EXEC"), 5),
    **_after("VALU writes SGPR", ("lane is chosen by SGPR", "v_div_fmas reads VCC"), 4),
    **_after("VALU writes SGPR", ("MFMA runs by EXEC",), 4),
    **_after("VALU writes VGPR", ("DPP reads VGPR", *_FACTORS), 2),
    **_after("VALU writes VGPR", ("XDL reads SrcC", "DGEMM reads SrcC"), 2),
    **_after("dot writes VGPR", (*_TOUCHED[:2], *_TOUCHED[3:]), 3),
    **_after("dot writes VGPR", ("memory reads VGPR", "memory writes VGPR"), 3),
    **_after("SALU writes M0", (_READS_M0,), 1),
    **_after("s_setreg writes", ("s_getreg follows", "s_setreg follows"), 2),
    **_after("DGEMM runs", ("FMA of f64 runs",), 2),
    **_after_doubles(4, vector=6, memory=9, c=4),
    **_after_doubles(16, vector=11, memory=18, c=9),
    # Products that accumulate in place need no wait, except for the shortest.
    HazardPair("16x16 DGEMM writes VGPR", "DGEMM reads the same SrcC"): 0,
}


def _after_product(
    kind: str, passes: int, touched: int, c: Mapping[str, int], same: int
) -> _Required:
    """Return what a matrix product requires.

    Args:
        kind: of the product, "XDL" or "SMFMA".
        passes: how long it takes.
        touched: distance to other uses of its sums.
        c: distance to products that add to some of its sums, by their kind.
        same: distance to products that add to all of them.
    """
    first = f"{passes}-pass {kind} writes VGPR"
    memory = ("memory reads VGPR", "memory writes VGPR")
    return {
        **_after(first, (*_TOUCHED, *memory, *_FACTORS), touched),
        **{
            HazardPair(first, f"{reader} reads SrcC"): count
            for reader, count in c.items()
        },
        **{HazardPair(first, f"{reader} reads the same SrcC"): same for reader in c},
    }


def _cdna2_name(product: Product) -> str:
    if product.sum == "f64":
        return f"{product.rows}x{product.rows} DGEMM"
    return f"{max(2, product.rows // 2)}-pass XDL"


def _cdna2() -> _Required:
    found = {
        **_CDNA,
        **_after("wide store reads VGPR", ("VALU writes VGPR", "MFMA writes VGPR"), 1),
    }
    for passes in (2, 8, 16):
        c = {"XDL": passes, "DGEMM": passes + 1}
        found |= _after_product("XDL", passes, passes + 3, c, same=0)
        found |= _after(f"{passes}-pass XDL reads SrcC", _WRITTEN, passes - 1)
    return found


def _cdna3_name(product: Product) -> str:
    """Name a product: f32 by f32 has a unit of its own.

    A single block of a narrower type takes half the passes.
    """
    if product.sum == "f64":
        return f"{product.rows}x{product.rows} DGEMM"
    is_xdl = product.elements.a != "f32"
    is_quick = is_xdl and product.blocks == 1
    passes = max(2, product.rows // (4 if is_quick else 2))
    return f"{passes}-pass {'XDL' if is_xdl else 'SMFMA'}"


def _cdna3() -> _Required:
    found = {
        **_CDNA,
        **_after("wide store reads VGPR", _OVERWRITTEN, 2),
        **_after("trans writes VGPR", ("VALU reads VGPR", "dot adds to VGPR"), 1),
        **_after("VALU writes half a VGPR", _READ, 1),
        **_after("VALU writes SGPR", ("VALU reads SGPR",), 2),
        **_after("VALU writes SGPR", ("v_readlane or v_writelane runs by EXEC",), 4),
        **_after("VALU writes VGPR", ("v_readlane reads VGPR",), 1),
        HazardPair("VALU writes VGPR", "SMFMA reads SrcC"): 2,
        HazardPair("4x4 DGEMM writes VGPR", "SMFMA reads SrcC"): 4,
        HazardPair("16x16 DGEMM writes VGPR", "SMFMA reads SrcC"): 9,
    }
    for passes in (2, 4, 8, 16):
        same = 2 if passes == 2 else 0
        c = dict.fromkeys(("XDL", "SMFMA", "DGEMM"), passes + 1)
        found |= _after_product("XDL", passes, passes + 3, c, same)
        found |= _after(f"{passes}-pass XDL reads SrcC", _WRITTEN, passes - 1)
        if passes != 4:
            c = {"XDL": 0, "SMFMA": passes, "DGEMM": passes}
            found |= _after_product("SMFMA", passes, passes + 2, c, same)
    return found


GFX90A_STATES = StateTable(_cdna2(), _cdna2_name)
GFX942_STATES = StateTable(_cdna3(), _cdna3_name)
GFX11_STATES = StateTable(
    {
        **_after("trans writes VGPR", _READ, 6),
        HazardPair("WMMA writes VGPR", "WMMA reads SrcAB"): 1,
    },
    _cdna3_name,
    counts_vectors=True,
)
