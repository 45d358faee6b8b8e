"""The different values of a tensor: unique."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.search.bisection import bisect
from refcomp.topi.search.compaction import set_positions
from refcomp.topi.search.comparison import is_less
from refcomp.topi.search.flat_index import flat
from refcomp.topi.search.ordering import sorted_order, take_along
from refcomp.topi.shapes import Array


def unique(data: Tensor, *, is_sorted: bool = True) -> list[Tensor]:
    """Return the different elements of a tensor, and where and how often they occur.

    All elements are taken in row-major order. NaN equals NaN and is greater than all numbers. Zeros
    of both signs are equal, and the first one is returned. The cost is that of `sort`.

    Args:
        data: numbers of any shape.
        is_sorted: True for ascending values, False for the order of their first occurrence.

    Returns:
        Five tensors. All but the third end in zeros from the count on.

        - the values, of the dtype of `data`, in a tensor of one dimension with room for all
          elements;
        - for each value the position of its first occurrence, i64;
        - for each element the number of its value, i64;
        - for each value the number of its occurrences, i64;
        - the count of values, an i64 tensor of shape (1,).

    Raises:
        UserError: `data` is not a tensor.

    Reference: ONNX Unique without an axis; TVM, topi.unique; numpy.unique.

    Example::

        >>> A = rc.placeholder((5,), "int32", name="A")
        >>> U = rc.topi.unique(A, is_sorted=False)
        >>> for found in rc.oracle.evaluate(U, {A: np.array([3, 1, 3, 2, 1], "int32")}):
        ...     print(found)
        [3 1 2 0 0]
        [0 1 3 0 0]
        [0 1 0 2 1]
        [2 2 1 0 0]
        [3]
    """
    require_tensor(data, "unique")
    elements = flat(data)
    groups = _sorted_groups(elements)
    if not is_sorted:
        groups = _by_first_occurrence(elements, groups)
    return [
        groups.values,
        groups.firsts,
        groups.inverse,
        groups.sizes,
        groups.count,
    ]


@dataclass(frozen=True, slots=True)
class _Groups:
    """The groups of equal elements; see the results of `unique`."""

    values: Tensor
    firsts: Tensor
    inverse: Tensor
    sizes: Tensor
    count: Tensor


def _sorted_groups(elements: Tensor) -> _Groups:
    order = sorted_order(elements, 0, is_ascend=True)
    keys = take_along(elements, order, 0, "keys")
    size = as_dim(elements.shape[0])

    def is_head(k: Expr) -> Expr:
        is_greater = is_less(keys[maths.maximum(k - 1, 0)], keys[k])
        return maths.any(k == 0, is_greater).astype("int32")

    heads = compute(elements.shape, is_head, name="heads", tag=INJECTIVE)
    starts, count = set_positions(heads)

    def size_of(k: Expr) -> Expr:
        following = starts[maths.minimum(k + 1, size - 1)]
        return maths.select(k + 1 < count[0], following, size) - starts[k]

    def first_of(k: Expr) -> Expr:
        # The order is stable: the first of equal elements has the lowest position.
        return order[starts[k]].astype("int64")

    values = _counted(elements, lambda k: keys[starts[k]], count, "values")
    return _Groups(
        values=values,
        firsts=_counted(elements, first_of, count, "firsts"),
        inverse=bisect(values, elements, right=False, length=count, name="inverse"),
        sizes=_counted(elements, size_of, count, "sizes"),
        count=count,
    )


def _by_first_occurrence(elements: Tensor, groups: _Groups) -> _Groups:
    def first_like(i: Expr) -> Expr:
        return groups.firsts[groups.inverse[i]]

    firsts = compute(elements.shape, first_like, name="first_like", tag=INJECTIVE)

    def is_first(i: Expr) -> Expr:
        return (firsts[i] == i).astype("int32")

    flags = compute(elements.shape, is_first, name="is_first", tag=INJECTIVE)
    places, count = set_positions(flags)

    def size_of(k: Expr) -> Expr:
        return groups.sizes[groups.inverse[places[k]]]

    return _Groups(
        values=_counted(elements, lambda k: elements[places[k]], count, "values"),
        firsts=_counted(elements, lambda k: places[k], count, "firsts"),
        inverse=bisect(places, firsts, right=False, length=count, name="inverse"),
        sizes=_counted(elements, size_of, count, "sizes"),
        count=count,
    )


def _counted(
    elements: Tensor, value: Callable[[Expr], Expr], count: Tensor, name: str
) -> Tensor:
    """Return a tensor of value(k) for each k below the count, and 0 behind it."""

    def element(k: Expr) -> Expr:
        found = value(k)
        return maths.select(k < count[0], found, const(0, found.dtype))

    return compute(elements.shape, element, name=name, tag=INJECTIVE)


def _sample_unique(draws: Draws) -> Sample:
    data = draws.array(draws.shape(0, 3), draws.number_dtype())
    if draws.flag():  # few different values
        with np.errstate(invalid="ignore"):
            data = data % np.asarray(3, data.dtype)
    return Sample((data,), {"is_sorted": draws.flag()})


@meaning_of(unique, pattern="opaque", sample=_sample_unique)
def unique_numpy(data: Array, *, is_sorted: bool = True) -> list[Array]:
    values, firsts, inverse, sizes = np.unique(
        data, return_index=True, return_inverse=True, return_counts=True
    )
    inverse = inverse.ravel()
    if not is_sorted:
        order = np.argsort(firsts)
        values = values[order]
        firsts = firsts[order]
        sizes = sizes[order]
        inverse = np.argsort(order)[inverse]

    def padded(found: Array, dtype: type[np.generic] | None = None) -> Array:
        room: Array = np.zeros(data.size, dtype or found.dtype)
        room[: len(found)] = found
        return room

    return [
        padded(values),
        padded(firsts, np.int64),
        inverse.astype(np.int64),
        padded(sizes, np.int64),
        np.array([len(values)], np.int64),
    ]
