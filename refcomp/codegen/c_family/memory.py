"""Print reads and writes of memory as C: each shape of index, masked or not.

An index of stride 1 is one access of a whole vector. Its macro gets the known alignment of the
first lane, from which a dialect decides how wide the accesses of the hardware are. Any other index
goes lane by lane. So does a masked access, as C has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from refcomp.arith.alignment import divisor_of
from refcomp.codegen.c_family.conversions import from_memory, to_memory
from refcomp.codegen.c_family.expressions import print_wrapping
from refcomp.codegen.c_family.function import CExpr, CFunction, ExpressionPrinters
from refcomp.foundation.dtype import DType
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import Expr
from refcomp.ir.stmt import Store

# Bytes at whose multiples shared and local arrays begin. No access of a GPU is wider.
WIDEST_ACCESS = 16


@dataclass(frozen=True, slots=True)
class _Lane:
    """One lane of an access."""

    place: CExpr  # the element of the buffer
    is_on: CExpr | None  # whether it is accessed; None: it is


def _load(out: CFunction, load: Load) -> CExpr:
    stored = out.module.memory_dtype(load.dtype)
    if load.predicate is None and _is_contiguous(load.index):
        whole = element(out, load.buffer, _first_index(load.index))
        if stored.lanes > 1:
            whole = out.compound(
                out.say.load_lanes,
                lanes=stored.lanes,
                place=whole,
                alignment=alignment_of(out, load.buffer, load.index),
                size=stored.element.bytes,
            )
        return from_memory(out, whole, load.dtype)
    zero = out.literal(0, stored.element)
    values = [
        lane.place if lane.is_on is None else out.choice(lane.is_on, lane.place, zero)
        for lane in _lanes(out, load)
    ]
    if stored.lanes == 1:
        return from_memory(out, out.narrowed(values[0], stored), load.dtype)
    return from_memory(out, out.vector(stored, values), load.dtype)


def print_store(out: CFunction, store: Store) -> None:
    """Print a Store; value and index are evaluated before anything is written."""
    dtype = store.value.dtype
    value = to_memory(out, out.value(store.value), dtype)
    if store.predicate is None and _is_contiguous(store.index):
        place = element(out, store.buffer, _first_index(store.index))
        if dtype.lanes == 1:
            out.emit(out.say.assign(place=place, value=value))
        else:
            text = out.say.store_lanes(
                lanes=dtype.lanes,
                place=place,
                value=value,
                alignment=alignment_of(out, store.buffer, store.index),
                size=store.buffer.dtype.bytes,
            )
            out.emit(out.say.evaluate(value=text))
        return
    if dtype.lanes > 1:
        value = out.atom(value, out.module.memory_dtype(dtype))
    for number, lane in enumerate(list(_lanes(out, store))):
        part = value if dtype.lanes == 1 else out.lane(value, number)
        if lane.is_on is None:
            out.emit(out.say.assign(place=lane.place, value=part))
        else:
            out.emit(
                out.say.assign_where(
                    condition=lane.is_on,
                    place=lane.place,
                    value=part,
                )
            )


def alignment_of(out: CFunction, buffer: Buffer, index: Expr) -> int:
    """Return the known alignment of the first lane of an access at `index`, in bytes.

    It is a power of two, at most that of the widest access, and at most that of all lanes.
    """
    size = buffer.dtype.bytes
    begin = max(buffer.alignment, size)
    if buffer.scope != "global":
        begin = max(buffer.alignment, WIDEST_ACCESS)
    known = min(begin, size * divisor_of(index, out.divisors))
    return min(known, WIDEST_ACCESS, size * index.dtype.lanes)


def element(out: CFunction, buffer: Buffer, index: Expr) -> CExpr:
    """Return the element of `buffer` at a scalar index."""
    return _element(out, buffer, _subscript(out, index))


def _element(out: CFunction, buffer: Buffer, subscript: CExpr) -> CExpr:
    pointer = out.name_of(buffer)
    return out.compound(out.say.element, pointer=pointer, index=subscript)


def _subscript(out: CFunction, index: Expr) -> CExpr:
    # An index of 64 bits is never negative. Any other width has to be widened by its sign.
    return print_wrapping(out, index) if index.dtype.bits == 64 else out.value(index)


def _is_contiguous(index: Expr) -> bool:
    is_scalar = index.dtype.lanes == 1
    return is_scalar or (isinstance(index, ir.Ramp) and as_constant(index.stride) == 1)


def _first_index(index: Expr) -> Expr:
    return index.base if isinstance(index, ir.Ramp) else index


def _lanes(out: CFunction, access: Load | Store) -> Iterator[_Lane]:
    index = access.index
    predicate = access.predicate
    if predicate is None:
        for subscript in _subscripts(out, index):
            yield _Lane(_element(out, access.buffer, subscript), None)
        return
    mask = out.value(predicate)
    if index.dtype.lanes > 1:
        mask = out.atom(mask, predicate.dtype)
    for number, subscript in enumerate(_subscripts(out, index)):
        is_on = mask if index.dtype.lanes == 1 else out.lane(mask, number)
        yield _Lane(_element(out, access.buffer, subscript), is_on)


def _subscripts(out: CFunction, index: Expr) -> list[CExpr]:
    """Return the subscript of each lane."""
    if index.dtype.lanes == 1:
        return [_subscript(out, index)]
    stride = as_constant(index.stride) if isinstance(index, ir.Ramp) else None
    if isinstance(index, ir.Ramp) and stride is not None:
        dtype = index.base.dtype
        base = out.atom(out.value(index.base), dtype)
        distances = [number * int(stride) for number in range(index.lanes)]
        return [_past(out, base, distance, dtype) for distance in distances]
    whole = out.atom(out.value(index), index.dtype)
    return [out.lane(whole, number) for number in range(index.dtype.lanes)]


def _past(
    out: CFunction,
    base: CExpr,
    distance: int,
    dtype: DType,
) -> CExpr:
    if distance == 0:
        return base
    operator = "Add" if distance > 0 else "Sub"
    return out.infix(operator, base, out.literal(abs(distance), dtype))


READS: ExpressionPrinters = {Load: _load}
