"""Vector instructions as something to run: a row of the table bound to an instruction's operands.

What comes out is a function of the waves: it reads the sources, computes, writes active lanes, and
tells which bits are undefined. Output modifiers (clamp, a part of the register) are applied
on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import VCC, Instruction, Operand
from refcomp.emulator.code.modifiers import flags_of
from refcomp.emulator.instructions.modes import in_mode
from refcomp.emulator.instructions.operation import PackedSemantics, Semantics
from refcomp.emulator.instructions.output_modifiers import with_modifiers
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
from refcomp.emulator.machine.waves import Run
from refcomp.foundation.errors import Unsupported

_VCC = Operand("vcc", "s", VCC, 2)


def bind_vector(instruction: Instruction, row: Semantics) -> Run:
    """The instruction, ready to run."""
    if not is_dpp(instruction):
        return _bind(instruction, row)
    run, on_zero = (
        _bind(instruction, row, first) for first in (moved_source, zero_source)
    )
    results = zip(instruction.operands, row.results, strict=False)
    masks = tuple(operand.index for operand, kind in results if kind == "mask")
    return with_dpp(run, on_zero, instruction, masks)


def _bind(instruction: Instruction, row: Semantics, first_of: Any = None) -> Run:
    row = in_mode(instruction, _in_lanes(row, instruction.lanes))
    results = instruction.operands[: len(row.results)]
    sources = _sources(instruction, row)
    sources[:1] = [first_of(sources[0], instruction)] if first_of else sources[:1]
    function = with_modifiers(instruction, row)
    writes = [
        _writer(instruction, row, o, k)
        for o, k in zip(results, row.results, strict=True)
    ]
    is_single = len(writes) == 1
    watched = frozenset().union(*(source.numbers for source in sources))
    # Who writes a part of a register tells of the rest, too.
    is_whole = (
        not row.keeps_high and instruction.modifiers.get("dst_sel", "DWORD") == "DWORD"
    )
    defined = (
        frozenset().union(*map(numbers_of, results, row.results)) if is_whole else ()
    )
    first = writes[0]
    place = _place_to_compute_in(instruction, row, function)

    def run(waves: Registers) -> None:
        values = [source.value(waves) for source in sources]
        if place is not None and waves.writes_all and waves.dirty.isdisjoint(watched):
            function(*values, out=waves.values.typed[place.kind][place.register])
            waves.define(defined)
            return
        result = function(*values)
        if waves.dirty and not waves.dirty.isdisjoint(watched):
            shadows = _spread(row, sources, waves)
        else:
            shadows = None
        if is_single:
            first(waves, result, shadows and shadows[0])
        else:
            for number, write in enumerate(writes):
                write(waves, result[number], shadows and shadows[number])
        if shadows is None:
            waves.define(defined)

    return run


class _DirectResult(NamedTuple):
    """Where numpy may write a result to without a detour. A tuple, since it is looked at whenever
    the instruction runs."""

    # Number of the vector register.
    register: int
    # Type of the result, a key of `File.typed`.
    kind: str


def _place_to_compute_in(
    instruction: Instruction, row: Semantics, function: Any
) -> _DirectResult | None:
    is_whole = not row.keeps_high and "dst_sel" not in instruction.modifiers
    if not isinstance(function, np.ufunc) or len(row.results) != 1 or not is_whole:
        return None
    (kind,) = row.results
    if kind in MASKS or bits_of(kind) != 32:
        return None
    return _DirectResult(vector_index(instruction.operands[0]), kind)


def _in_lanes(row: Semantics, lanes: int) -> Semantics:
    """The row with its masks as wide as the waves."""
    kind = mask_kind(lanes)
    return replace(
        row,
        results=tuple(kind if k == "mask" else k for k in row.results),
        sources=tuple(kind if k == "mask" else k for k in row.sources),
    )


def _sources(instruction: Instruction, row: Semantics) -> list[OperandSource]:
    operands = list(instruction.operands[len(row.results) :])
    for name in row.implicit:
        operands.append(_VCC if name == "vcc" else instruction.operands[0])
    kinds = [*row.sources]
    for name in row.implicit:
        kinds.append(mask_kind(instruction.lanes) if name == "vcc" else row.results[0])
    if len(operands) != len(kinds):
        raise Unsupported(
            f"{instruction.mnemonic} has {len(operands)} sources here, not {len(kinds)}",
            where=str(instruction),
        )
    return [
        vector_source(operand, kind, instruction.modifiers, position)
        for position, (operand, kind) in enumerate(zip(operands, kinds, strict=True))
    ]


def _spread(
    row: Semantics, sources: Sequence[OperandSource], waves: Registers
) -> list[Any]:
    """The shadow of each result."""
    shadows = [source.shadow(waves) for source in sources]
    if row.spread is not None:
        found = row.spread(*shadows, *(source.bits(waves) for source in sources))
        return [found] if len(row.results) == 1 else list(found)
    undefined = np.zeros((1, 1), np.bool_)
    for shadow in shadows:
        undefined = undefined | (shadow != 0)
    return [_filled(kind, undefined) for kind in row.results]


def _filled(kind: str, undefined: Array) -> Array:
    """All bits of a value of that type, where it is undefined."""
    if kind in MASKS:
        return undefined
    unsigned: Any = {16: np.uint16, 32: np.uint32, 64: np.uint64}[bits_of(kind)]
    return np.where(undefined, ~unsigned(0), unsigned(0))


# What becomes of a result.


_Write = Callable[[Registers, Any, Any], None]


def _writer(
    instruction: Instruction, row: Semantics, operand: Operand, kind: str
) -> _Write:
    if kind in MASKS:
        return mask_writer(operand)
    index = vector_index(operand)
    place = instruction.modifiers.get("dst_sel", "DWORD")
    if place != "DWORD":
        unused = instruction.modifiers.get("dst_unused", "UNUSED_PAD")
        return _part_writer(index, kind, SDWA_SELECTIONS[place], unused)
    if row.keeps_high:
        is_high = instruction.modifiers.get("op_sel", "").rstrip("]").endswith("1")
        is_high &= len(instruction.modifiers.get("op_sel", "").split(",")) > len(
            row.sources
        )
        start = 16 if is_high or operand.is_high else 0
        return _part_writer(index, kind, BitField(start, 16), "UNUSED_PRESERVE")
    return whole_writer(index, kind)


def whole_writer(index: int, kind: str) -> _Write:
    """Writes a vector register, or two, and what is undefined of them."""

    def write(waves: Registers, value: Array, shadow: Array) -> None:
        waves.write_vector(index, kind, value)
        if shadow is not None:
            write_vector_shadow(waves, index, kind, shadow)

    return write


def write_vector_shadow(waves: Registers, index: int, kind: str, shadow: Array) -> None:
    """Which bits of what was just written are undefined."""
    number = FIRST_VECTOR + index
    if bits_of(kind) == 64:
        for offset, half in enumerate(split(np.asarray(shadow, np.uint64))):
            waves.set_shadow(number + offset, half)
    else:
        waves.set_shadow(number, np.asarray(shadow).astype(np.uint32))


def _part_writer(index: int, kind: str, place: BitField, unused: str) -> _Write:
    """Writes some bits of a register; the others keep their values, become 0 or the sign."""
    start, width = map(np.uint32, place)
    field = np.uint32(((1 << place.width) - 1) << place.start)

    def placed(waves: Registers, bits: Array, file: File) -> Array:
        moved = (np.asarray(bits).astype(np.uint32) << start) & field
        if unused == "UNUSED_PRESERVE":
            return moved | (file.vector(index, "u32", waves.rows) & ~field)
        if unused == "UNUSED_SEXT":
            shift = np.uint32(32) - start - width
            filled = ((moved << shift).view(np.int32) >> shift.astype(np.int32)).view(
                np.uint32
            )
            return filled & ~np.uint32((1 << int(start)) - 1)
        return moved

    def write(waves: Registers, value: Array, shadow: Array) -> None:
        old = waves.shadow and placed(
            waves, 0 if shadow is None else shadow, waves.shadow
        )
        waves.write_vector(
            index, "u32", placed(waves, as_bits(value, kind), waves.values)
        )
        if waves.shadow is not None:
            waves.set_shadow(FIRST_VECTOR + index, old)

    return write


def mask_writer(operand: Operand) -> _Write:
    """Writes a bit for each lane to one or two scalar registers; 0 of lanes that are not active."""
    index = operand.index

    def write(waves: Registers, value: Array, shadow: Array) -> None:
        waves.write_scalar(index, waves.mask_bits, _packed(waves, value))
        if shadow is not None:
            bits = _packed(waves, shadow)
            for offset, word in enumerate(
                split(bits) if waves.lanes == 64 else (bits,)
            ):
                waves.set_shadow(index + offset, word)

    return write


def _packed(waves: Registers, value: Array) -> Array:
    wanted = np.broadcast_to(np.asarray(value, np.bool_), (waves.count(), waves.lanes))
    return bits_of_mask(wanted & waves.mask)


# Packed instructions: the same on both halves.


def bind_packed(instruction: Instruction, packed: PackedSemantics) -> Run:
    """An instruction whose operands are pairs."""
    row = packed.half
    chosen = _selections(instruction, len(row.sources))
    low, high = _half_sources(instruction, row, chosen)
    operand = instruction.operands[0]
    index, is_wide = vector_index(operand), bits_of(packed.kind) == 32
    row = in_mode(instruction, row)
    function = with_modifiers(instruction, row)
    row = replace(row, implicit=())
    watched = frozenset().union(*(s.numbers for s in (*low, *high)))
    defined = frozenset(FIRST_VECTOR + index + n for n in range(2 if is_wide else 1))

    def run(waves: Registers) -> None:
        halves = [function(*(s.value(waves) for s in side)) for side in (low, high)]
        is_clean = not waves.dirty or waves.dirty.isdisjoint(watched)
        shadows = (
            None if is_clean else [_spread(row, side, waves)[0] for side in (low, high)]
        )
        _write_halves(waves, index, halves, is_wide, None)
        if shadows is None:
            waves.define(defined)
        else:
            _write_halves(waves, index, shadows, is_wide, FIRST_VECTOR + index)

    return run


def _write_halves(
    waves: Registers,
    index: int,
    halves: Sequence[Any],
    is_wide: bool,
    shadow: int | None,
) -> None:
    bits = [np.asarray(half).view(f"u{np.asarray(half).itemsize}") for half in halves]
    if not is_wide:
        bits = [bits[0].astype(np.uint32) | bits[1].astype(np.uint32) << np.uint32(16)]
    for offset, value in enumerate(bits):
        if shadow is None:
            waves.write_vector(index + offset, "u32", value)
        else:
            waves.set_shadow(shadow + offset, value)


def _selections(instruction: Instruction, count: int) -> dict[str, list[bool]]:
    usual = {"op_sel": False, "op_sel_hi": True, "neg_lo": False, "neg_hi": False}
    return {
        name: flags_of(instruction.modifiers, name, count, usual=flag)
        for name, flag in usual.items()
    }


def _half_sources(
    instruction: Instruction, row: Semantics, chosen: dict[str, list[bool]]
) -> list[list[OperandSource]]:
    operands = [
        *instruction.operands[1:],
        *(instruction.operands[0] for _ in row.implicit),
    ]
    kinds = [*row.sources, *(row.results[0] for _ in row.implicit)]
    return [
        [
            half_source(
                operand,
                kind,
                half=int((*chosen[select], *[high] * 3)[n]),
                is_negative=(*chosen[negate], *[False] * 3)[n],
            )
            for n, (operand, kind) in enumerate(zip(operands, kinds, strict=True))
        ]
        for select, negate, high in (
            ("op_sel", "neg_lo", False),
            ("op_sel_hi", "neg_hi", True),
        )
    ]
