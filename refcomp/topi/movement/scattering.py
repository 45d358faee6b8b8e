"""Updates at places that are read from tensors: the common part of all scatter operators.

A `Scatter` says for each update where it goes. Updates are applied in their order: of several at
one place the last one counts, or all are combined with the element. A line holds all elements to
which one update may go.

Short lines are computed for each element at once: a reduction over all updates finds those that go
there. Long lines are computed in the order of the updates, by one parallel loop over the lines. n
elements and m updates then take n + m steps instead of n * m.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.ir import builder
from refcomp.ir.builder import BufferPointer, IRBuilder
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent, extents
from refcomp.te.externs import extern
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import ExprLike, IterVar, Tensor, as_dim
from refcomp.topi.search.flat_index import index_at
from refcomp.topi.tags import REDUCTION

# The most pairs of an element and an update of a line that are compared.
MOST_COMPARED = 1 << 16
REDUCTIONS = ("none", "add", "mul", "min", "max")

_REDUCERS = {
    "add": reducer.sum,
    "mul": reducer.prod,
    "min": reducer.min,
    "max": reducer.max,
}


class Readable(Protocol):
    """A tensor, or the memory of one in an extern operation."""

    def __getitem__(self, indices: tuple[ExprLike, ...]) -> Expr:
        """Return the element at an index."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """The updates of a tensor, and the places to which they go.

    Attributes:
        operator: the name of the operator, for stages.
        data: the tensor that is updated.
        updates: the values that are written or combined.
        indices: the tensors from which places are read.
        axes: the axes of `data` along which an update moves. The others number the lines.
        count: the number of updates of a line.
        coordinate: takes what `indices` can be read from, the number of an axis among `axes`, the
            number of an update and the index of an element of the line. Returns the update's
            coordinate along the axis; a negative one counts from the end.
        source: takes the number of an update and the index of an element of the line. Returns the
            index of the update in `updates`.
        reduction: how an update is combined with the element: one of REDUCTIONS.
    """

    operator: str
    data: Tensor
    updates: Tensor
    indices: tuple[Tensor, ...]
    axes: tuple[int, ...]
    count: Extent
    coordinate: Callable[[Sequence[Readable], int, Expr, Sequence[Expr]], Expr]
    source: Callable[[Expr, Sequence[Expr]], tuple[Expr, ...]]
    reduction: str

    def result(self) -> Tensor:
        """Return the updated tensor."""
        sizes = extents(self.data)
        known = [size for size in (*sizes, self.count) if isinstance(size, int)]
        if len(known) == len(sizes) + 1 and 0 not in known:
            line = prod(known[axis] for axis in self.axes)
            if line * known[-1] > MOST_COMPARED:
                return self._in_order(known[:-1], known[-1])
        return self._at_once()

    def _at_once(self) -> Tensor:
        """Return the result as computes, which find the updates of each element."""
        j = reduce_axis(self.count, "j")
        if self.reduction == "none":
            return self._latest(j)

        def combined(*index: Expr) -> Expr:
            value = self.updates[self.source(j.var, index)]
            goes_here = self._goes_to(j.var, index)
            return _REDUCERS[self.reduction](value, axis=j, where=goes_here)

        part = compute(self.data.shape, combined, name="updates", tag=REDUCTION)
        return compute(
            self.data.shape,
            lambda *index: self._merged(self.data[index], part[index]),
            name=self.operator,
            tag=INJECTIVE,
        )

    def _latest(self, j: IterVar) -> Tensor:
        """Return each element, or the last update that goes to its place."""

        def latest_number(*index: Expr) -> Expr:
            # Counted from 1, so that 0 is none. Without updates, the maximum is negative.
            number = (j.var + 1).astype("int32")
            goes_here = self._goes_to(j.var, index)
            return reducer.max(maths.select(goes_here, number, 0), axis=j)

        latest = compute(self.data.shape, latest_number, name="latest", tag=REDUCTION)

        def element(*index: Expr) -> Expr:
            number = latest[index].astype("int64")
            # In range also for those who know only that the number is an integer.
            last = maths.minimum(number - 1, as_dim(self.count) - 1)
            update = self.updates[self.source(maths.maximum(last, 0), index)]
            return maths.if_then_else(number > 0, update, self.data[index])

        return compute(self.data.shape, element, name=self.operator, tag=INJECTIVE)

    def _goes_to(self, number: Expr, index: Sequence[Expr]) -> Expr:
        """Return the condition that an update goes to the element at `index`."""
        sizes = self.data.shape
        conditions: list[Expr] = [const(True)]
        for place, axis in enumerate(self.axes):
            found = self.coordinate(self.indices, place, number, index)
            from_end = found + sizes[axis]
            conditions.append(maths.any(found == index[axis], from_end == index[axis]))
        return maths.all(*conditions)

    def _merged(self, element: Expr, update: Expr) -> Expr:
        match self.reduction:
            case "add":
                return element + update
            case "mul":
                return element * update
            case "min":
                return maths.minimum(element, update)
            case "max":
                return maths.maximum(element, update)
        return update

    def _in_order(self, sizes: Sequence[int], count: int) -> Tensor:
        """Return the result as an extern, which applies the updates of a line in order."""

        def statement(ins: Sequence[BufferView], outs: Sequence[BufferView]) -> Stmt:
            ib = builder.create()
            data, updates, *indices = (ib.buffer_ptr(view) for view in ins)
            out = ib.buffer_ptr(outs[0])
            with ib.for_range(0, prod(sizes), name="place", for_type="parallel") as p:
                out[p] = data[p]
            lines = [k for k in range(len(sizes)) if k not in self.axes]
            extent = prod(sizes[axis] for axis in lines)
            with ib.for_range(0, extent, name="line", for_type="parallel") as line:
                # An update moves along the other axes: its coordinates there do not matter.
                index: list[Expr] = [line] * len(sizes)
                parts = index_at(line, [sizes[axis] for axis in lines])
                for axis, part in zip(lines, parts, strict=True):
                    index[axis] = part
                with ib.for_range(0, count, name="j") as j:
                    self._apply(ib, j, index, updates, indices, out)
            return ib.get()

        result: Tensor = extern(
            self.data.shape,
            [self.data, self.updates, *self.indices],
            statement,
            name=self.operator,
            dtype=self.data.dtype,
        )
        return result

    def _apply(
        self,
        ib: IRBuilder,
        number: Expr,
        index: Sequence[Expr],
        updates: BufferPointer,
        indices: Sequence[BufferPointer],
        out: BufferPointer,
    ) -> None:
        """Apply one update of the line of `index`, unless its place does not exist."""
        target = list(index)
        conditions: list[Expr] = [const(True)]
        for place, axis in enumerate(self.axes):
            size = self.data.shape[axis]
            found = ib.let("found", self.coordinate(indices, place, number, index))
            target[axis] = ib.let("at", maths.select(found < 0, found + size, found))
            conditions += [target[axis] >= 0, target[axis] < size]
        with ib.if_scope(maths.all(*conditions)):
            update = updates[self.source(number, index)]
            out[tuple(target)] = self._merged(out[tuple(target)], update)


def check_reduction(reduction: str, data: Tensor, operator: str) -> None:
    """Raise UserError for an unknown reduction, or one of bools."""
    if reduction not in REDUCTIONS:
        raise UserError(
            f"{operator} has no reduction {reduction!r}",
            remedy=advise(reduction, REDUCTIONS, f"use one of {', '.join(REDUCTIONS)}"),
        )
    if data.dtype.is_bool and reduction != "none":
        raise UserError(
            f"{operator} cannot combine bools by {reduction}",
            remedy='convert them first: x[i].astype("int32")',
            earlier=[data.declaration()],
        )
