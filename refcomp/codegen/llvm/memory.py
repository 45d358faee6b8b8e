"""Print reads and writes of memory: a macro for each shape of index, masked or not.

An index of stride 1 is one access of a whole vector. On the host, a read of stride 2 is two reads
of whole vectors, from which a shuffle takes every other element. An index of another constant
stride goes lane by lane. Any other index is a gather or a scatter. A bool is a byte in memory and
one bit as a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from refcomp.arith.alignment import divisor_of
from refcomp.codegen.llvm.expressions import is_nonzero
from refcomp.codegen.llvm.function import ExpressionPrinters, LlvmFunction, TypedValue
from refcomp.foundation.dtype import BOOL, I64, DType
from refcomp.ir import expr as ir
from refcomp.ir.buffer import LOCAL, Buffer, Load
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import Expr
from refcomp.ir.stmt import Prefetch, Store

_BYTE = DType("uint", 8)
# Of the vectors of AVX2, the first instruction set with masked reads.
_MASKED_BITS = 256
MIN_ALIGNMENT = 16  # bytes, of arrays in the shared or private memory of a GPU


@dataclass(frozen=True, slots=True)
class AccessPlace:
    """The place of an access in memory, as the macros of templates/llvm/memory.j2 take it."""

    stored: DType  # in memory, with the lanes of the access
    element: str  # type of one lane in memory
    type: str  # type of all lanes in memory
    suffix: str  # the same in the name of an intrinsic
    address: str  # of the buffer
    pointer: str  # type of the address
    space: int  # number of the address space
    index_dtype: DType
    index_type: str
    index: str  # of the first lane, or of each lane, in elements
    alignment: int  # bytes, of the address of the first lane

    @property
    def lanes(self) -> int:
        """Return how many lanes are accessed."""
        return self.stored.lanes


@dataclass(frozen=True, slots=True)
class _StridedLane:
    """One lane of an access with a constant stride."""

    number: int
    distance: int  # from the first lane, in elements
    before: str = ""  # the vector before this lane is read into it
    after: str = ""  # the vector after


def print_store(out: LlvmFunction, store: Store) -> None:
    """Print a Store; value and index are evaluated before anything is written."""
    value = out.value(store.value)
    if store.buffer.dtype.is_bool:
        dtype = store.value.dtype
        value = _widen(out, value, dtype, _BYTE.with_lanes(dtype.lanes))
    _STORES[_shape(store)](out, store, value)


def print_prefetch(out: LlvmFunction, hint: Prefetch) -> None:
    """Print a Prefetch."""
    place = place_of(out, hint.buffer, hint.indices[0], 1)
    out.declare("prefetch", out.say.declare_prefetch, place=place)
    out.instruction(out.say.prefetch, place=place)


def _load(out: LlvmFunction, load: Load) -> str:
    result = _LOADS[_shape(load)](out, load)
    if load.buffer.dtype.is_bool:
        return is_nonzero(out, result, _BYTE.with_lanes(load.dtype.lanes))
    return result


_Shape = Literal["scalar", "guarded", "contiguous", "masked", "strided", "anywhere"]


def _shape(access: Load | Store) -> _Shape:
    """Return the shape of the access's index, and whether it is masked."""
    index = access.index
    is_masked = access.predicate is not None
    if index.dtype.lanes == 1:
        return "guarded" if is_masked else "scalar"
    if isinstance(index, ir.Ramp):
        stride = as_constant(index.stride)
        if stride == 1:
            return "masked" if is_masked else "contiguous"
        if stride is not None and not is_masked:
            return "strided"
    return "anywhere"


def place_of(out: LlvmFunction, buffer: Buffer, index: Expr, lanes: int) -> AccessPlace:
    """Print `index`. Return the place of `lanes` elements there in `buffer`."""
    element = _BYTE if buffer.dtype.is_bool else buffer.dtype
    stored = element.with_lanes(lanes)
    space = out.module.space_of(buffer)
    dtype = index.dtype
    operand = out.value(index)
    if dtype.kind == "uint" and dtype.bits < I64.bits:
        # getelementptr reads an index as signed.
        wide = I64.with_lanes(dtype.lanes)
        operand = _widen(out, operand, dtype, wide)
        dtype = wide
    return AccessPlace(
        stored=stored,
        element=out.type_of(element),
        type=out.type_of(stored),
        suffix=out.module.suffix_of(stored),
        address=out.name_of(buffer),
        pointer=out.module.pointer_to(space),
        space=space,
        index_dtype=dtype,
        index_type=out.type_of(dtype),
        index=operand,
        alignment=_alignment(out, buffer, index) if lanes > 1 else stored.bytes,
    )


def _alignment(out: LlvmFunction, buffer: Buffer, index: Expr) -> int:
    """Return the known alignment of a vector's address, in bytes.

    It is the alignment of an element, unless the buffer has a greater known alignment. Such buffers
    are shared and private arrays of a kernel, and arguments that `align_arguments` aligned.
    """
    size = buffer.dtype.bytes
    if not out.module.gpu:
        return size
    begin = MIN_ALIGNMENT
    if buffer.scope == "global":
        begin = max(buffer.alignment, size)
    return min(size * divisor_of(index, out.divisors), begin, MIN_ALIGNMENT)


def _widen(out: LlvmFunction, operand: str, source: DType, target: DType) -> str:
    return out.convert(out.tables["cast"]["uint_widen"], operand, source, target)


def _vector_place(out: LlvmFunction, access: Load | Store) -> AccessPlace:
    """Return the place of one scalar, or of lanes side by side."""
    index = access.index
    first = index.base if isinstance(index, ir.Ramp) else index
    return place_of(out, access.buffer, first, index.dtype.lanes)


def _mask(out: LlvmFunction, predicate: Expr | None, lanes: int) -> TypedValue:
    dtype = BOOL.with_lanes(lanes)
    if predicate is None:
        return TypedValue(out.type_of(dtype), out.constant(1, dtype))
    return TypedValue(out.type_of(dtype), out.value(predicate))


# Reads.


def _load_unmasked(out: LlvmFunction, load: Load) -> str:
    place = _vector_place(out, load)
    if load.buffer.scope != LOCAL and _fills_part_of_register(out, place):
        return _load_part(out, place)
    return out.instruction(out.say.load, place=place)


def _fills_part_of_register(out: LlvmFunction, place: AccessPlace) -> bool:
    """Return True if the number of lanes is not a power of 2, and a mask can leave some out.

    From AVX2 on, a masked read of 32 or 64 bits a lane is one instruction.
    """
    is_power = place.lanes & (place.lanes - 1) == 0
    has_masks = out.module.vector_bits >= _MASKED_BITS
    return has_masks and not is_power and place.stored.bits in (32, 64)


def _load_part(out: LlvmFunction, place: AccessPlace) -> str:
    """Print a read of some lanes of a register, which LLVM alone would read in several parts."""
    whole = 1 << place.lanes.bit_length()
    stored = place.stored.with_lanes(whole)
    wide = replace(
        place,
        stored=stored,
        type=out.type_of(stored),
        suffix=out.module.suffix_of(stored),
    )
    mask = TypedValue(out.type_of(BOOL.with_lanes(whole)), "")
    key = ("load", wide.suffix, wide.space)
    out.declare(key, out.say.declare_load_masked, place=wide, mask=mask)
    zero = out.constant(0, stored)
    return out.instruction(
        out.say.load_part, place=wide, lanes=place.lanes, mask=mask, zero=zero
    )


def _load_guarded(out: LlvmFunction, load: Load) -> str:
    assert load.predicate is not None
    predicate = out.value(load.predicate)
    place = _vector_place(out, load)
    result = out.fresh()
    _emit_guarded(out, result, place, predicate)
    return result


def _emit_guarded(
    out: LlvmFunction, result: str, place: AccessPlace, predicate: str
) -> None:
    """Emit the load of one element, which is 0 if the predicate does not hold."""
    text = out.say.load_guarded(
        result=result,
        id=out.number(),
        place=place,
        predicate=predicate,
        zero=out.constant(0, place.stored),
    )
    out.emit(text)


def _load_masked(out: LlvmFunction, load: Load) -> str:
    mask = _mask(out, load.predicate, load.dtype.lanes)
    place = _vector_place(out, load)
    key = ("load", place.suffix, place.space)
    out.declare(key, out.say.declare_load_masked, place=place, mask=mask)
    zero = out.constant(0, place.stored)
    return out.instruction(out.say.load_masked, place=place, mask=mask, zero=zero)


def _load_strided(out: LlvmFunction, load: Load) -> str:
    assert isinstance(load.index, ir.Ramp)
    stride = int(as_constant(load.index.stride) or 0)
    place = _vector_place(out, load)
    if stride == 2 and not out.module.gpu:
        return _load_every_other(out, place)
    result = out.fresh()
    partial = [f"{result}.to{number}" for number in range(place.lanes - 1)]
    names = [out.say.unset(), *partial, result]
    lanes = [
        _StridedLane(number, number * stride, names[number], names[number + 1])
        for number in range(place.lanes)
    ]
    out.emit(out.say.load_strided(result=result, place=place, lanes=lanes))
    return result


def _load_every_other(out: LlvmFunction, place: AccessPlace) -> str:
    """Print a read of stride 2 as two whole vectors.

    The second vector begins one element early, so that it ends at the last element that is read: no
    memory behind that is touched.
    """
    lanes = place.lanes
    second = lanes - 1
    chosen = [
        2 * lane if 2 * lane < lanes else lanes + 2 * lane - second
        for lane in range(lanes)
    ]
    return out.instruction(
        out.say.load_every_other, place=place, second=second, chosen=chosen
    )


def _load_anywhere(out: LlvmFunction, load: Load) -> str:
    if _is_private(out, load.buffer):
        return _load_lanes(out, load)
    mask = _mask(out, load.predicate, load.dtype.lanes)
    place = place_of(out, load.buffer, load.index, load.dtype.lanes)
    key = ("gather", place.suffix, place.space)
    out.declare(key, out.say.declare_gather, place=place, mask=mask)
    zero = out.constant(0, place.stored)
    return out.instruction(out.say.gather, place=place, mask=mask, zero=zero)


def _is_private(out: LlvmFunction, buffer: Buffer) -> bool:
    """Return True for a GPU thread's own memory: Note [Vectors of pointers to private memory]."""
    return bool(out.module.gpu) and buffer.scope == "local"


def _lane(out: LlvmFunction, operand: str, dtype: DType, number: int) -> str:
    type_ = out.type_of(dtype)
    return out.instruction(out.say.get_lane, type=type_, value=operand, lane=number)


def _lane_place(out: LlvmFunction, place: AccessPlace, number: int) -> AccessPlace:
    return replace(
        place,
        stored=place.stored.element,
        type=place.element,
        index_type=out.type_of(place.index_dtype.element),
        index=_lane(out, place.index, place.index_dtype, number),
    )


def _load_lanes(out: LlvmFunction, load: Load) -> str:
    mask = None if load.predicate is None else out.value(load.predicate)
    place = place_of(out, load.buffer, load.index, load.dtype.lanes)
    whole = out.say.unset()
    for number in range(place.lanes):
        result = out.fresh()
        lane = _lane_place(out, place, number)
        if mask is None:
            out.emit(out.say.load(result=result, place=lane))
        else:
            is_on = _lane(out, mask, BOOL.with_lanes(place.lanes), number)
            _emit_guarded(out, result, lane, is_on)
        whole = out.instruction(
            out.say.put_lane,
            type=place.type,
            vector=whole,
            element=place.element,
            value=result,
            lane=number,
        )
    return whole


# Writes.


def _store_unmasked(out: LlvmFunction, store: Store, value: str) -> None:
    out.instruction(out.say.store, place=_vector_place(out, store), value=value)


def _store_guarded(out: LlvmFunction, store: Store, value: str) -> None:
    assert store.predicate is not None
    predicate = out.value(store.predicate)
    out.instruction(
        out.say.store_guarded,
        place=_vector_place(out, store),
        id=out.number(),
        predicate=predicate,
        value=value,
    )


def _store_masked(out: LlvmFunction, store: Store, value: str) -> None:
    mask = _mask(out, store.predicate, store.index.dtype.lanes)
    place = _vector_place(out, store)
    key = ("store", place.suffix, place.space)
    out.declare(key, out.say.declare_store_masked, place=place, mask=mask)
    out.instruction(out.say.store_masked, place=place, mask=mask, value=value)


def _store_strided(out: LlvmFunction, store: Store, value: str) -> None:
    assert isinstance(store.index, ir.Ramp)
    stride = int(as_constant(store.index.stride) or 0)
    place = _vector_place(out, store)
    lanes = [_StridedLane(number, number * stride) for number in range(place.lanes)]
    out.instruction(out.say.store_strided, place=place, lanes=lanes, value=value)


def _store_anywhere(out: LlvmFunction, store: Store, value: str) -> None:
    if _is_private(out, store.buffer):
        _store_lanes(out, store, value)
        return
    lanes = store.index.dtype.lanes
    mask = _mask(out, store.predicate, lanes)
    place = place_of(out, store.buffer, store.index, lanes)
    key = ("scatter", place.suffix, place.space)
    out.declare(key, out.say.declare_scatter, place=place, mask=mask)
    out.instruction(out.say.scatter, place=place, mask=mask, value=value)


def _store_lanes(out: LlvmFunction, store: Store, value: str) -> None:
    mask = None if store.predicate is None else out.value(store.predicate)
    place = place_of(out, store.buffer, store.index, store.index.dtype.lanes)
    for number in range(place.lanes):
        lane = _lane_place(out, place, number)
        own = _lane(out, value, place.stored, number)
        if mask is None:
            out.instruction(out.say.store, place=lane, value=own)
            continue
        is_on = _lane(out, mask, BOOL.with_lanes(place.lanes), number)
        out.emit(
            out.say.store_guarded(
                result=out.fresh(),
                id=out.number(),
                place=lane,
                predicate=is_on,
                value=own,
            )
        )


_LOADS: dict[_Shape, Callable[[LlvmFunction, Load], str]] = {
    "scalar": _load_unmasked,
    "guarded": _load_guarded,
    "contiguous": _load_unmasked,
    "masked": _load_masked,
    "strided": _load_strided,
    "anywhere": _load_anywhere,
}
_STORES: dict[_Shape, Callable[[LlvmFunction, Store, str], None]] = {
    "scalar": _store_unmasked,
    "guarded": _store_guarded,
    "contiguous": _store_unmasked,
    "masked": _store_masked,
    "strided": _store_strided,
    "anywhere": _store_anywhere,
}

READS: ExpressionPrinters = {Load: _load}


# Note [Vectors of pointers to private memory]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# LLVM's back end for AMD GPUs moves private arrays to shared memory. It does not see that a gather
# or a scatter uses an array, since these take a vector of pointers, not a pointer. Such an access
# stays behind, and reads private memory where the array no longer lies. So lanes go one by one; the
# back end would split the access into lanes anyway.
