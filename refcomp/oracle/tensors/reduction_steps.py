"""The iterations of a reduction in order, each for all elements of a tensor at once.

The range of an axis may depend on the element. Then iteration number k of the axis is the k-th one
of each element that has so many.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np

from refcomp.ir.expr import Expr, Var
from refcomp.oracle.tensors.arrays import Array
from refcomp.te.reducer import Reduce


class Evaluable(Protocol):
    """Elements of a tensor, at which expressions have values."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the elements."""

    def binding(self, values: Mapping[Var, Array]) -> Self:
        """Return the same elements with more variables."""

    def named(self, name: str) -> Self:
        """Return the same elements under another name, for messages."""

    def where(self, chosen: Array) -> Self:
        """Return the elements at which `chosen` is True, in one row."""


E = TypeVar("E", bound=Evaluable)


@dataclass(frozen=True, eq=False, slots=True)
class ReductionStep:
    """One iteration of a reduction, for all elements at once."""

    values: dict[Var, Array]  # of the axes
    inside: Array | None  # the elements that have this iteration; None: all

    def spread(self, found: Array, shape: tuple[int, ...]) -> Array:
        """Return what was found for the elements inside as an array of all; 0 at others."""
        if self.inside is None:
            return np.broadcast_to(found, shape)
        return _spread(found, self.inside)


def _spread(found: Array, inside: Array) -> Array:
    whole = np.zeros(inside.shape, found.dtype)
    whole[inside] = found
    return whole


def reduction_steps(
    reduce: Reduce, elements: E, evaluate: Callable[[E, Expr], Array]
) -> Iterator[ReductionStep]:
    """Yield the iterations of a reduction, in order.

    Args:
        reduce: the reduction.
        elements: the elements of the result.
        evaluate: returns the values of an integer expression at elements.
    """
    if reduce.ranges:
        inside = np.ones(elements.shape, np.bool_)
        yield from _dependent_steps(reduce, elements, evaluate, {}, inside)
        return
    ranges = []
    for axis in reduce.axes:
        place = elements.named(f"the range of axis {axis.name}")
        begin = int(evaluate(place, axis.minimum))
        end = begin + max(0, int(evaluate(place, axis.extent)))
        ranges.append(np.arange(begin, end, dtype=np.int64))
    variables = [axis.var for axis in reduce.axes]
    for position in itertools.product(*ranges):
        values = dict(zip(variables, map(np.asarray, position), strict=True))
        yield ReductionStep(values, None)


def _dependent_steps(
    reduce: Reduce,
    elements: E,
    evaluate: Callable[[E, Expr], Array],
    outer: dict[Var, Array],
    inside: Array,
) -> Iterator[ReductionStep]:
    """Yield the iterations of the axes behind those of `outer`, for the elements `inside`."""
    if len(outer) == len(reduce.axes):
        yield ReductionStep(outer, inside)
        return
    if not inside.any():
        return
    axis = reduce.axes[len(outer)]
    known = reduce.range_of(axis)
    # A bound may be read at an index that exists only for the elements inside.
    place = elements.named(f"the range of axis {axis.name}")
    here = place.binding(outer).where(inside)
    begin = _spread(evaluate(here, known.minimum), inside)
    extent = _spread(evaluate(here, known.extent), inside)
    for number in range(int(extent.max())):
        values = {**outer, axis.var: begin + number}
        has_number = inside & (extent > number)
        yield from _dependent_steps(reduce, elements, evaluate, values, has_number)
