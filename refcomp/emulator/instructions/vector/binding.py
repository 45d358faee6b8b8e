"""Binding of vector instructions: from a row of the table and operands to a function of waves.

The function reads the sources, computes, writes the active lanes, and marks which bits are
undefined. Output modifiers (clamp, a part of the register) are applied on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from refcomp.emulator.code.assembly import VCC, Instruction, Operand
from refcomp.emulator.code.modifiers import flags_of
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions.modes import in_mode
from refcomp.emulator.instructions.operation import Function, PackedSemantics, Semantics
from refcomp.emulator.instructions.output_modifiers import with_modifiers
from refcomp.emulator.instructions.spreads import all_bits, any_undefined
from refcomp.emulator.instructions.vector.dpp import (
    is_dpp,
    moved_source,
    with_dpp,
    zero_source,
)
from refcomp.emulator.machine.arrays import (
    MASKS,
    Array,
    as_bits,
    bits_of,
    bits_of_mask,
    mask_kind,
    split,
)
from refcomp.emulator.machine.registers import FIRST_VECTOR, File, Registers
from refcomp.emulator.machine.sources import (
    SDWA_SELECTIONS,
    BitField,
    OperandSource,
    half_source,
    numbers_of,
    vector_index,
    vector_source,
)
from refcomp.emulator.machine.waves import Run, Waves
from refcomp.foundation.counted import counted

_VCC = Operand("vcc", "s", VCC, 2)

# Writes a result, and its shadow unless that is None.
Writer: TypeAlias = Callable[[Registers, Array, Array | None], None]
_ChangeSource: TypeAlias = Callable[[OperandSource, Instruction], OperandSource]


def bind_vector(instruction: Instruction, row: Semantics) -> Run:
    """Bind the row to the operands of a vector instruction."""
    if not is_dpp(instruction):
        return _bind(instruction, row)
    run = _bind(instruction, row, moved_source)
    on_zero = _bind(instruction, row, zero_source)
    results = zip(instruction.operands, row.results, strict=False)
    masks = tuple(operand.index for operand, kind in results if kind == "mask")
    return with_dpp(run, on_zero, instruction, masks)


def _bind(
    instruction: Instruction, row: Semantics, change: _ChangeSource | None = None
) -> Run:
    """Bind the row; `change` replaces the first source."""
    row = in_mode(instruction, _in_lanes(row, instruction.lanes))
    sources = _sources(instruction, row)
    if change is not None:
        sources[0] = change(sources[0], instruction)
    function = with_modifiers(instruction, row)
    results = instruction.operands[: len(row.results)]
    typed_results = zip(results, row.results, strict=True)
    writes = [
        _writer(instruction, row, operand, kind) for operand, kind in typed_results
    ]
    first = writes[0]
    is_single = len(writes) == 1
    watched = frozenset[int]().union(*(source.numbers for source in sources))
    # A writer of a part of a register marks the rest, too.
    defined = frozenset[int]()
    if not row.keeps_high and instruction.modifiers.get("dst_sel", "DWORD") == "DWORD":
        defined = defined.union(*map(numbers_of, results, row.results))
    direct = _direct_result(instruction, row, function)

    def run(waves: Waves) -> None:
        values = [source.value(waves) for source in sources]
        if direct is not None and waves.writes_all and waves.dirty.isdisjoint(watched):
            function(*values, out=waves.values.typed[direct.kind][direct.register])
            waves.define(defined)
            return
        result = function(*values)
        shadows = None
        if waves.dirty and not waves.dirty.isdisjoint(watched):
            shadows = _spread(row, sources, waves)
        if is_single:
            first(waves, result, None if shadows is None else shadows[0])
        else:
            for number, write in enumerate(writes):
                shadow = None if shadows is None else shadows[number]
                write(waves, result[number], shadow)
        if shadows is None:
            waves.define(defined)

    return run


class _DirectResult(NamedTuple):
    """A register that numpy may write the result to.

    A tuple, since it is looked at whenever the instruction runs.
    """

    register: int  # number of the vector register
    kind: str  # type of the result, a key of `File.typed`


def _direct_result(
    instruction: Instruction, row: Semantics, function: Function
) -> _DirectResult | None:
    if row.keeps_high or "dst_sel" in instruction.modifiers:
        return None
    if not isinstance(function, np.ufunc) or len(row.results) != 1:
        return None
    (kind,) = row.results
    if kind in MASKS or bits_of(kind) != 32:
        return None
    return _DirectResult(vector_index(instruction.operands[0]), kind)


def _in_lanes(row: Semantics, lanes: int) -> Semantics:
    """Return the row with its masks as wide as the waves."""
    kind = mask_kind(lanes)
    return replace(
        row,
        results=tuple(kind if k == "mask" else k for k in row.results),
        sources=tuple(kind if k == "mask" else k for k in row.sources),
    )


def _sources(instruction: Instruction, row: Semantics) -> list[OperandSource]:
    operands = list(instruction.operands[len(row.results) :])
    kinds = list(row.sources)
    for name in row.implicit:
        if name == "vcc":
            operands.append(_VCC)
            kinds.append(mask_kind(instruction.lanes))
        else:
            operands.append(instruction.operands[0])
            kinds.append(row.results[0])
    if len(operands) != len(kinds):
        raise not_emulated(
            f"{counted(len(operands), 'source')} of {instruction.mnemonic}, which has {len(kinds)}",
            instruction,
        )
    return [
        vector_source(operand, kind, instruction.modifiers, position)
        for position, (operand, kind) in enumerate(zip(operands, kinds, strict=True))
    ]


def _spread(
    row: Semantics, sources: Sequence[OperandSource], waves: Registers
) -> list[Array]:
    """Return the shadow of each result."""
    shadows = [source.shadow(waves) for source in sources]
    if row.spread is not None:
        found = row.spread(*shadows, *(source.bits(waves) for source in sources))
        return [found] if len(row.results) == 1 else list(found)
    undefined = any_undefined(shadows)
    return [
        undefined if kind in MASKS else all_bits(kind, undefined)
        for kind in row.results
    ]


# Writers of results.


def _writer(
    instruction: Instruction, row: Semantics, operand: Operand, kind: str
) -> Writer:
    if kind in MASKS:
        return mask_writer(operand)
    index = vector_index(operand)
    modifiers = instruction.modifiers
    selected = modifiers.get("dst_sel", "DWORD")
    if selected != "DWORD":
        unused = modifiers.get("dst_unused", "UNUSED_PAD")
        return _part_writer(index, kind, SDWA_SELECTIONS[selected], unused)
    if row.keeps_high:
        # op_sel has a flag for each source, and then one for the result.
        flags = modifiers.get("op_sel", "").split(",")
        is_high = len(flags) > len(row.sources) and flags[-1].rstrip("]").endswith("1")
        start = 16 if is_high or operand.is_high else 0
        return _part_writer(index, kind, BitField(start, 16), "UNUSED_PRESERVE")
    return whole_writer(index, kind)


def whole_writer(index: int, kind: str) -> Writer:
    """Return what writes a vector register, or two."""

    def write(waves: Registers, value: Array, shadow: Array | None) -> None:
        waves.write_vector(index, kind, value)
        if shadow is not None:
            write_vector_shadow(waves, index, kind, shadow)

    return write


def write_vector_shadow(
    waves: Registers, index: int, kind: str, shadow: npt.ArrayLike
) -> None:
    """Mark bits of a vector register that was just written, or of two, as undefined."""
    number = FIRST_VECTOR + index
    if bits_of(kind) == 64:
        for offset, half in enumerate(split(np.asarray(shadow, np.uint64))):
            waves.set_shadow(number + offset, half)
    else:
        waves.set_shadow(number, np.asarray(shadow).astype(np.uint32))


def _part_writer(index: int, kind: str, place: BitField, unused: str) -> Writer:
    """Return what writes some bits of a register.

    `unused` is dst_unused: the other bits keep their values, become 0 or the sign.
    """
    start = np.uint32(place.start)
    field = np.uint32(((1 << place.width) - 1) << place.start)
    to_top = np.uint32(32 - place.start - place.width)
    from_start = np.uint32(~((1 << place.start) - 1) & 0xFFFFFFFF)

    def placed(waves: Registers, bits: npt.ArrayLike, file: File) -> Array:
        moved = (np.asarray(bits).astype(np.uint32) << start) & field
        if unused == "UNUSED_PRESERVE":
            return moved | (file.vector(index, "u32", waves.rows) & ~field)
        if unused == "UNUSED_SEXT":
            filled = (moved << to_top).view(np.int32) >> to_top.astype(np.int32)
            return filled.view(np.uint32) & from_start
        return moved

    def write(waves: Registers, value: Array, shadow: Array | None) -> None:
        if waves.shadow is None:
            waves.write_vector(
                index, "u32", placed(waves, as_bits(value, kind), waves.values)
            )
            return
        undefined = placed(waves, 0 if shadow is None else shadow, waves.shadow)
        waves.write_vector(
            index, "u32", placed(waves, as_bits(value, kind), waves.values)
        )
        waves.set_shadow(FIRST_VECTOR + index, undefined)

    return write


def mask_writer(operand: Operand) -> Writer:
    """Return what writes a bit for each lane to scalar registers; 0 for inactive lanes."""
    index = operand.index

    def packed(waves: Registers, value: Array) -> Array:
        shape = waves.count(), waves.lanes
        wanted = np.broadcast_to(np.asarray(value, np.bool_), shape)
        return bits_of_mask(wanted & waves.mask)

    def write(waves: Registers, value: Array, shadow: Array | None) -> None:
        waves.write_scalar(index, waves.mask_bits, packed(waves, value))
        if shadow is None:
            return
        bits = packed(waves, shadow)
        for offset, word in enumerate(split(bits) if waves.lanes == 64 else (bits,)):
            waves.set_shadow(index + offset, word)

    return write


# Packed instructions: the same on both halves.


def bind_packed(instruction: Instruction, packed: PackedSemantics) -> Run:
    """Bind an instruction whose operands are pairs."""
    row = packed.half
    low = _half_sources(instruction, row, is_high=False)
    high = _half_sources(instruction, row, is_high=True)
    index = vector_index(instruction.operands[0])
    is_wide = bits_of(packed.kind) == 32
    row = in_mode(instruction, row)
    function = with_modifiers(instruction, row)
    watched = frozenset[int]().union(*(source.numbers for source in (*low, *high)))
    defined = frozenset(FIRST_VECTOR + index + n for n in range(2 if is_wide else 1))

    def run(waves: Waves) -> None:
        halves = [function(*(s.value(waves) for s in side)) for side in (low, high)]
        shadows = None
        if waves.dirty and not waves.dirty.isdisjoint(watched):
            shadows = [_spread(row, side, waves)[0] for side in (low, high)]
        for offset, value in enumerate(_register_words(halves, is_wide)):
            waves.write_vector(index + offset, "u32", value)
        if shadows is None:
            waves.define(defined)
            return
        for offset, value in enumerate(_register_words(shadows, is_wide)):
            waves.set_shadow(FIRST_VECTOR + index + offset, value)

    return run


def _register_words(halves: Sequence[Array], is_wide: bool) -> list[Array]:
    """Return two registers of 32 bits each, or one of 16 bits each."""
    arrays = [np.asarray(half) for half in halves]
    low, high = (array.view(f"u{array.itemsize}") for array in arrays)
    if is_wide:
        return [low, high]
    return [low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)]


def _half_sources(
    instruction: Instruction, row: Semantics, *, is_high: bool
) -> list[OperandSource]:
    """Return the sources of the lower or the upper half of the result."""
    count = len(row.sources)
    modifiers = instruction.modifiers
    halves = flags_of(
        modifiers, "op_sel_hi" if is_high else "op_sel", count, usual=is_high
    )
    signs = flags_of(modifiers, "neg_hi" if is_high else "neg_lo", count, usual=False)
    # Implicit sources are the old value of the result.
    extra = len(row.implicit)
    operands = [*instruction.operands[1:], *[instruction.operands[0]] * extra]
    kinds = [*row.sources, *[row.results[0]] * extra]
    halves = [*halves, *[is_high] * extra]
    signs = [*signs, *[False] * extra]
    return [
        half_source(operand, kind, half=int(halves[n]), is_negative=signs[n])
        for n, (operand, kind) in enumerate(zip(operands, kinds, strict=True))
    ]
