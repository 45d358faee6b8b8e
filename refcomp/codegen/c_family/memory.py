"""Prints reads and writes of memory as C: each shape of index, masked or not.

An index of stride 1 is one access of a whole vector, which needs no more alignment than one element
has; any other goes lane by lane, and so does a masked one, as C has no masked access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from refcomp.codegen.c_family.conversions import from_memory, to_memory
from refcomp.codegen.c_family.expressions import print_ring
from refcomp.codegen.c_family.function import CExpr, CFunction
from refcomp.foundation.dtype import DType
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import Expr
from refcomp.ir.stmt import Store


@dataclass(frozen=True, slots=True)
class _Lane:
    """Where one lane lies, and whether it is accessed (None: it is)."""

    place: CExpr
    is_on: CExpr | None


def _load(out: CFunction, load: Load) -> CExpr:
    if load.predicate is None and _is_together(load.index):
        return from_memory(out, _together(out, load.buffer, load.index), load.dtype)
    zero = out.module.literal(0, out.module.memory_dtype(load.buffer.dtype))
    lanes = [
        lane.place if lane.is_on is None else out.choice(lane.is_on, lane.place, zero)
        for lane in _lanes(out, load.buffer, load.index, load.predicate)
    ]
    stored = out.module.memory_dtype(load.dtype)
    whole = (
        out.narrowed(lanes[0], stored)
        if stored.lanes == 1
        else out.vector(stored, lanes)
    )
    return from_memory(out, whole, load.dtype)


def print_store(out: CFunction, store: Store) -> None:
    """Prints a Store; value and index are evaluated before anything is written."""
    dtype = store.value.dtype
    value = to_memory(out, out.value(store.value), dtype)
    if store.predicate is None and _is_together(store.index):
        _store_together(out, store, value)
        return
    stored = out.module.memory_dtype(dtype)
    if dtype.lanes > 1:
        value = out.atom(value, stored)
    lanes = list(_lanes(out, store.buffer, store.index, store.predicate))
    for number, lane in enumerate(lanes):
        part = value if dtype.lanes == 1 else out.lane(value, number)
        if lane.is_on is None:
            out.emit(out.say.assign(lane.place.text, part.text))
        else:
            out.emit(out.say.assign_where(lane.is_on.text, lane.place.text, part.text))


def _is_together(index: Expr) -> bool:
    return index.dtype.lanes == 1 or (
        isinstance(index, ir.Ramp) and as_constant(index.stride) == 1
    )


def _together(out: CFunction, buffer: Buffer, index: Expr) -> CExpr:
    place = element(out, buffer, _first_index(index))
    if index.dtype.lanes == 1:
        return place
    text = out.say.load_lanes(index.dtype.lanes, out.say.address(place.text))
    return out.compound(text, place)


def _store_together(out: CFunction, store: Store, value: CExpr) -> None:
    place, lanes = (
        element(out, store.buffer, _first_index(store.index)),
        store.index.dtype.lanes,
    )
    if lanes == 1:
        out.emit(out.say.assign(place.text, value.text))
        return
    text = out.say.store_lanes(lanes, out.say.address(place.text), value.text)
    out.emit(out.say.evaluate(text))


def element(out: CFunction, buffer: Buffer, index: Expr) -> CExpr:
    """The element of `buffer` at a scalar index."""
    return _element(out, buffer, _subscript(out, index))


def _element(out: CFunction, buffer: Buffer, subscript: CExpr) -> CExpr:
    text = out.say.element(out.name_of(buffer).text, subscript.text)
    return out.compound(text, subscript)


def _subscript(out: CFunction, index: Expr) -> CExpr:
    # Any other width has to be widened by its sign.
    return print_ring(out, index) if index.dtype.bits == 64 else out.value(index)


def _first_index(index: Expr) -> Expr:
    return index.base if isinstance(index, ir.Ramp) else index


def _lanes(
    out: CFunction, buffer: Buffer, index: Expr, predicate: Expr | None
) -> Iterator[_Lane]:
    count = index.dtype.lanes
    mask = None if predicate is None else out.value(predicate)
    if predicate is not None and mask is not None and count > 1:
        mask = out.atom(mask, predicate.dtype)
    subscripts = _subscripts(out, index)
    for number, subscript in enumerate(subscripts):
        is_on = mask if mask is None or count == 1 else out.lane(mask, number)
        yield _Lane(_element(out, buffer, subscript), is_on)


def _subscripts(out: CFunction, index: Expr) -> list[CExpr]:
    if index.dtype.lanes == 1:
        return [_subscript(out, index)]
    stride = as_constant(index.stride) if isinstance(index, ir.Ramp) else None
    if isinstance(index, ir.Ramp) and stride is not None:
        base = out.atom(out.value(index.base), index.base.dtype)
        return [
            _past(out, base, k * int(stride), index.base.dtype)
            for k in range(index.lanes)
        ]
    whole = out.atom(out.value(index), index.dtype)
    return [out.lane(whole, number) for number in range(index.dtype.lanes)]


def _past(out: CFunction, base: CExpr, distance: int, dtype: DType) -> CExpr:
    if distance == 0:
        return base
    operator = "Add" if distance > 0 else "Sub"
    return out.infix(operator, base, out.module.literal(abs(distance), dtype))


READS: dict[type[Any], Callable[[CFunction, Any], CExpr]] = {Load: _load}
