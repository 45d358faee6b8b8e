"""Prints reads and writes of memory: each shape of index, masked or not, by its own macro.

An index of stride 1 is one access of a whole vector, one of another constant stride goes lane by
lane, any other is a gather or scatter. bool is a byte in memory and one bit as a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from refcomp.codegen.alignment import divisor_of
from refcomp.codegen.llvm.expressions import convert_between, is_nonzero
from refcomp.codegen.llvm.function import LlvmFunction
from refcomp.foundation.dtype import BOOL, I64, DType
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import Expr
from refcomp.ir.stmt import Prefetch, Store

_BYTE = DType("uint", 8)
LEAST_ALIGNMENT = 16  # bytes, of arrays in the memory of a group or a thread of a GPU


@dataclass(frozen=True, slots=True)
class LaneAddresses:
    """Where lanes lie: `stored` is the dtype in memory, `dtype` that of the index; the rest are
    operands and types, and the number of the address space."""

    stored: DType
    element: str
    type: str
    address: str
    space: int
    dtype: DType
    index_type: str
    index: str
    alignment: int

    @property
    def parts(self) -> tuple[str | int, ...]:
        """What every macro of an access takes."""
        return (self.address, self.space, self.index_type, self.index, self.alignment)


def print_store(out: LlvmFunction, store: Store) -> None:
    """Prints a Store; value and index are evaluated before anything is written."""
    value = out.value(store.value)
    if store.buffer.dtype.is_bool:
        dtype = store.value.dtype
        value = _widen(out, value, dtype, _BYTE.with_lanes(dtype.lanes))
    _STORES[_case(store.index, store.predicate)](out, store, value)


def print_prefetch(out: LlvmFunction, hint: Prefetch) -> None:
    """Prints a Prefetch."""
    place = place_of(out, hint.buffer, hint.indices[0], 1)
    out.module.declarations.add(
        "prefetch", lambda: out.say.declare_prefetch(place.space)
    )
    *parts, _alignment = place.parts
    out.emit(out.say.prefetch(out.fresh(), place.element, *parts))


def _load(out: LlvmFunction, load: Load) -> str:
    result = _LOADS[_case(load.index, load.predicate)](out, load)
    if load.buffer.dtype.is_bool:
        return is_nonzero(out, result, _BYTE.with_lanes(load.dtype.lanes))
    return result


def _case(index: Expr, predicate: Expr | None) -> str:
    """Which macro: the index's shape, and whether it is masked."""
    masked = "" if predicate is None else " masked"
    if index.dtype.lanes == 1:
        return "scalar" + masked
    if isinstance(index, ir.Ramp):
        stride = as_constant(index.stride)
        if stride == 1:
            return "contiguous" + masked
        if stride is not None and predicate is None:
            return "strided"
    return "anywhere" + masked


def place_of(
    out: LlvmFunction, buffer: Buffer, index: Expr, lanes: int
) -> LaneAddresses:
    """Prints `index`; where that lies in `buffer`."""
    stored = (_BYTE if buffer.dtype.is_bool else buffer.dtype).with_lanes(lanes)
    dtype, operand = index.dtype, out.value(index)
    if dtype.kind == "uint" and dtype.bits < I64.bits:
        # An index is read as signed.
        wide = I64.with_lanes(dtype.lanes)
        dtype, operand = wide, _widen(out, operand, dtype, wide)
    return LaneAddresses(
        stored,
        out.module.type_of(stored.element),
        out.module.type_of(stored),
        out.name_of(buffer),
        out.module.space_of(buffer),
        dtype,
        out.module.type_of(dtype),
        operand,
        _alignment(out, buffer, index) if lanes > 1 else stored.bytes,
    )


def _alignment(out: LlvmFunction, buffer: Buffer, index: Expr) -> int:
    """How far the address of a vector is aligned: as an element, and in memory that a kernel has
    made itself as far as is known of the index."""
    size = buffer.dtype.bytes
    if not out.module.gpu or buffer.scope == "global":
        return size
    return min(size * divisor_of(index, out.divisors), LEAST_ALIGNMENT)


def _widen(out: LlvmFunction, operand: str, source: DType, target: DType) -> str:
    opcode = out.module.tables["cast"]["uint_widen"]
    return convert_between(out, opcode, operand, source, target)


def _first_index(index: Expr) -> Expr:
    return index.base if isinstance(index, ir.Ramp) else index


def _mask(out: LlvmFunction, predicate: Expr | None, lanes: int) -> tuple[str, str]:
    dtype = BOOL.with_lanes(lanes)
    operand = (
        out.module.constant(1, dtype) if predicate is None else out.value(predicate)
    )
    return out.module.type_of(dtype), operand


# Reads.


def _load_together(out: LlvmFunction, load: Load) -> str:
    place = place_of(out, load.buffer, _first_index(load.index), load.dtype.lanes)
    result = out.fresh()
    out.emit(out.say.load(result, place.element, place.type, *place.parts))
    return result


def _load_guarded(out: LlvmFunction, load: Load) -> str:
    assert load.predicate is not None
    predicate, place = (
        out.value(load.predicate),
        place_of(out, load.buffer, load.index, 1),
    )
    result, zero = out.fresh(), out.module.constant(0, place.stored)
    macro, number = out.say.load_guarded, out.number()
    out.emit(macro(result, number, place.element, *place.parts, predicate, zero))
    return result


def _load_masked(out: LlvmFunction, load: Load) -> str:
    lanes = load.dtype.lanes
    mask_type, mask = _mask(out, load.predicate, lanes)
    place, result = (
        place_of(out, load.buffer, _first_index(load.index), lanes),
        out.fresh(),
    )
    suffix, zero = (
        out.module.suffix_of(place.stored),
        out.module.constant(0, place.stored),
    )
    declare = out.say.declare_load_masked
    out.module.declarations.add(
        ("load", suffix, place.space),
        lambda: declare(place.type, suffix, mask_type, place.space),
    )
    macro = out.say.load_masked
    out.emit(
        macro(
            result,
            place.element,
            place.type,
            suffix,
            *place.parts,
            mask_type,
            mask,
            zero,
        )
    )
    return result


def _load_strided(out: LlvmFunction, load: Load) -> str:
    assert isinstance(load.index, ir.Ramp)
    lanes, stride = load.dtype.lanes, as_constant(load.index.stride)
    place, result = place_of(out, load.buffer, load.index.base, lanes), out.fresh()
    names = [out.say.unset(), *(f"{result}.to{k}" for k in range(lanes - 1)), result]
    steps = [(k, k * int(stride or 0), names[k], names[k + 1]) for k in range(lanes)]
    out.emit(
        out.say.load_strided(result, place.element, place.type, *place.parts, steps)
    )
    return result


def _load_anywhere(out: LlvmFunction, load: Load) -> str:
    return (_load_lanes if _is_private(out, load.buffer) else _gather)(out, load)


def _is_private(out: LlvmFunction, buffer: Buffer) -> bool:
    """Whether each thread of a GPU has its own: Note [Vectors of pointers to private memory]."""
    return bool(out.module.gpu) and buffer.scope == "local"


def _lane(out: LlvmFunction, operand: str, dtype: DType, number: int) -> str:
    result = out.fresh()
    out.emit(out.say.get_lane(result, out.module.type_of(dtype), operand, number))
    return result


def _parts_of_lane(
    out: LlvmFunction, place: LaneAddresses, number: int
) -> tuple[str | int, ...]:
    index, type_ = _lane(out, place.index, place.dtype, number), place.dtype.element
    return replace(place, index_type=out.module.type_of(type_), index=index).parts


def _load_lanes(out: LlvmFunction, load: Load) -> str:
    lanes, predicate = load.dtype.lanes, load.predicate
    mask = None if predicate is None else out.value(predicate)
    place = place_of(out, load.buffer, load.index, lanes)
    whole: str = out.say.unset()
    zero = out.module.constant(0, place.stored.element)
    for number in range(lanes):
        result, parts = out.fresh(), _parts_of_lane(out, place, number)
        if mask is None:
            out.emit(out.say.load(result, place.element, place.element, *parts))
        else:
            is_on = _lane(out, mask, BOOL.with_lanes(lanes), number)
            macro, own = out.say.load_guarded, out.number()
            out.emit(macro(result, own, place.element, *parts, is_on, zero))
        before, whole = whole, out.fresh()
        out.emit(
            out.say.put_lane(whole, place.type, before, place.element, result, number)
        )
    return whole


def _gather(out: LlvmFunction, load: Load) -> str:
    lanes = load.dtype.lanes
    mask_type, mask = _mask(out, load.predicate, lanes)
    place, result = place_of(out, load.buffer, load.index, lanes), out.fresh()
    suffix, zero = (
        out.module.suffix_of(place.stored),
        out.module.constant(0, place.stored),
    )
    declare = out.say.declare_gather
    out.module.declarations.add(
        ("gather", suffix, place.space),
        lambda: declare(place.type, suffix, lanes, mask_type, place.space),
    )
    parts = (place.element, place.type, suffix, lanes, *place.parts)
    out.emit(out.say.gather(result, *parts, mask_type, mask, zero))
    return result


# Writes.


def _store_together(out: LlvmFunction, store: Store, value: str) -> None:
    place = place_of(
        out, store.buffer, _first_index(store.index), store.index.dtype.lanes
    )
    out.emit(out.say.store(out.fresh(), place.element, place.type, *place.parts, value))


def _store_guarded(out: LlvmFunction, store: Store, value: str) -> None:
    assert store.predicate is not None
    predicate, place = (
        out.value(store.predicate),
        place_of(out, store.buffer, store.index, 1),
    )
    macro, number = out.say.store_guarded, out.number()
    out.emit(macro(out.fresh(), number, place.element, *place.parts, predicate, value))


def _store_masked(out: LlvmFunction, store: Store, value: str) -> None:
    lanes = store.index.dtype.lanes
    mask_type, mask = _mask(out, store.predicate, lanes)
    place = place_of(out, store.buffer, _first_index(store.index), lanes)
    suffix, declare = out.module.suffix_of(place.stored), out.say.declare_store_masked
    out.module.declarations.add(
        ("store", suffix, place.space),
        lambda: declare(place.type, suffix, mask_type, place.space),
    )
    parts = (place.element, place.type, suffix, *place.parts)
    out.emit(out.say.store_masked(out.fresh(), *parts, mask_type, mask, value))


def _store_strided(out: LlvmFunction, store: Store, value: str) -> None:
    assert isinstance(store.index, ir.Ramp)
    lanes, stride = store.index.lanes, as_constant(store.index.stride)
    place = place_of(out, store.buffer, store.index.base, lanes)
    steps = [(k, k * int(stride or 0)) for k in range(lanes)]
    parts = (place.element, place.type, *place.parts)
    out.emit(out.say.store_strided(out.fresh(), *parts, steps, value))


def _store_anywhere(out: LlvmFunction, store: Store, value: str) -> None:
    (_store_lanes if _is_private(out, store.buffer) else _scatter)(out, store, value)


def _store_lanes(out: LlvmFunction, store: Store, value: str) -> None:
    lanes, predicate = store.index.dtype.lanes, store.predicate
    mask = None if predicate is None else out.value(predicate)
    place = place_of(out, store.buffer, store.index, lanes)
    for number in range(lanes):
        parts = _parts_of_lane(out, place, number)
        own = _lane(out, value, place.stored, number)
        if mask is None:
            out.emit(
                out.say.store(out.fresh(), place.element, place.element, *parts, own)
            )
        else:
            is_on = _lane(out, mask, BOOL.with_lanes(lanes), number)
            macro = out.say.store_guarded
            out.emit(
                macro(out.fresh(), out.number(), place.element, *parts, is_on, own)
            )


def _scatter(out: LlvmFunction, store: Store, value: str) -> None:
    lanes = store.index.dtype.lanes
    mask_type, mask = _mask(out, store.predicate, lanes)
    place = place_of(out, store.buffer, store.index, lanes)
    suffix, declare = out.module.suffix_of(place.stored), out.say.declare_scatter
    out.module.declarations.add(
        ("scatter", suffix, place.space),
        lambda: declare(place.type, suffix, lanes, mask_type, place.space),
    )
    parts = (place.element, place.type, suffix, lanes, *place.parts)
    out.emit(out.say.scatter(out.fresh(), *parts, mask_type, mask, value))


_LOADS: dict[str, Callable[[LlvmFunction, Load], str]] = {
    "scalar": _load_together,
    "scalar masked": _load_guarded,
    "contiguous": _load_together,
    "contiguous masked": _load_masked,
    "strided": _load_strided,
    "anywhere": _load_anywhere,
    "anywhere masked": _load_anywhere,
}
_STORES: dict[str, Callable[[LlvmFunction, Store, str], None]] = {
    "scalar": _store_together,
    "scalar masked": _store_guarded,
    "contiguous": _store_together,
    "contiguous masked": _store_masked,
    "strided": _store_strided,
    "anywhere": _store_anywhere,
    "anywhere masked": _store_anywhere,
}

READS: dict[type[Any], Callable[[LlvmFunction, Any], str]] = {Load: _load}


# Note [Vectors of pointers to private memory]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# LLVM's back end for AMD GPUs moves arrays of a thread's own to the memory of its group, and does
# not see that a gather or a scatter uses them, as what these take is no pointer, but a vector of
# pointers: they stay behind, and access private memory that is none. So lanes go one by one, which
# the back end would make of them anyway.
