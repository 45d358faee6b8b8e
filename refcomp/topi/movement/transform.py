"""Operators that only move elements: reshape, flatten, transpose, concatenate, split.

They take tensors of any dtype, with or without elements, and keep each element to the bit, NaNs
included. Reference: the ONNX operators Reshape, Flatten, Transpose, Concat and Split.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr, IntImm, Mul
from refcomp.te import maths
from refcomp.te.extents import Extent, extents, is_same, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    product,
    replace_entry,
    require_constant,
)


def reshape(data: Tensor, *, shape: Sequence[int]) -> Tensor:
    """Return the same elements, in row-major order, in another shape.

    Args:
        data: a tensor of any rank.
        shape: the extents of the result. 0 stands for the extent of `data` at the same position, as
            in ONNX with allowzero = 0. One extent may be -1: it follows from the number of
            elements.

    Raises:
        UserError: `shape` is ill-formed, or has another number of elements than `data`. Symbolic
            extents must be the same factors.

    Reference: ONNX Reshape.

    Example::

        >>> A = rc.placeholder((2, 3), "int32", name="A")
        >>> B = rc.topi.reshape(A, shape=(3, -1))
        >>> print(*rc.oracle.evaluate([B], {A: np.arange(6, dtype="int32").reshape(2, 3)}))
        [[0 1]
         [2 3]
         [4 5]]
    """
    return reshape_to(data, _resolve(extents(data), shape), "reshape")


def _sample_reshape(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 4), draws.number_dtype())
    first = data.shape[0]
    rest = math.prod(data.shape[1:])
    wanted = draws.choice(
        ((-1,), (0, rest), (rest, first), (first, 1, rest), (0, 1, -1))
    )
    if not data.size:  # -1 cannot be inferred
        wanted = (*data.shape, 1)
    return Sample((data,), {"shape": wanted})


@meaning_of(reshape, sample=_sample_reshape, pattern="injective")
def reshape_numpy(data: Array, *, shape: Sequence[int]) -> Array:
    wanted = [data.shape[k] if dim == 0 else dim for k, dim in enumerate(shape)]
    if -1 in wanted and not data.size:
        # numpy cannot infer -1 from an array without elements. Extents that 0 keeps cancel here,
        # as symbols do in `_quotient`, so an extent of 0 leaves the others to divide.
        kept = {k for k, dim in enumerate(shape) if dim == 0}
        whole = [extent for k, extent in enumerate(data.shape) if k not in kept]
        part = [dim for dim in shape if dim > 0]
        wanted[wanted.index(-1)] = math.prod(whole) // math.prod(part)
    return data.reshape(wanted).copy()


def _resolve(given: Sequence[Extent], shape: Sequence[int]) -> list[Extent]:
    """Return the extents for which `shape` stands (see `reshape`)."""
    if any(dim < -1 for dim in shape) or list(shape).count(-1) > 1:
        raise UserError(
            f"reshape cannot make the shape {tuple(shape)}",
            remedy="use numbers >= 0 and at most one -1",
        )
    if any(dim == 0 and k >= len(given) for k, dim in enumerate(shape)):
        raise UserError(
            f"reshape cannot keep an extent for each 0 of {tuple(shape)}",
            why=f"a 0 keeps the input's extent at its place; the input has {len(given)}",
            remedy="give a number in its place",
        )
    kept: list[Extent] = [given[k] if dim == 0 else dim for k, dim in enumerate(shape)]
    if -1 in shape:
        place = list(shape).index(-1)
        kept[place] = _quotient(given, [*kept[:place], *kept[place + 1 :]])
    _require_same_size(given, kept)
    return kept


def _factors(shape: Sequence[Extent]) -> tuple[int, Counter[Expr]]:
    """Return the constant factor of the product of `shape`, and how often each symbol occurs."""
    constant = 1
    symbols = Counter[Expr]()
    pending = list(shape)
    while pending:
        match pending.pop():
            case int(value) | IntImm(value=value):
                constant *= value
            case Mul(a=a, b=b):
                pending += [a, b]
            case symbol:
                symbols[symbol] += 1
    return constant, symbols


def _quotient(whole: Sequence[Extent], part: Sequence[Extent]) -> Extent:
    """Return the product of `whole` divided by the product of `part`."""
    a, symbols = _factors(whole)
    b, divisors = _factors(part)
    if divisors - symbols or not b or a % b:
        raise UserError(
            "reshape cannot find an integer extent for -1",
            why=f"{_shown(whole)} elements do not divide by the other extents",
            remedy="choose extents whose product divides the number of elements",
        )
    remaining = symbols - divisors
    return product([*remaining.elements(), a // b])


def _require_same_size(given: Sequence[Extent], wanted: Sequence[Extent]) -> None:
    if 0 in given and 0 in wanted:  # no elements, whatever the other extents are
        return
    if _factors(given) != _factors(wanted):
        raise UserError(
            f"reshape cannot make {_shown(wanted)} elements of {_shown(given)}",
            remedy="give extents with the same product, or one -1",
        )


def _shown(shape: Sequence[Extent]) -> str:
    return " * ".join(str(getattr(extent, "name", extent)) for extent in shape)


def reshape_to(data: Tensor, shape: Sequence[Extent], name: str) -> Tensor:
    parts = _reshape_parts(extents(data), shape)

    def element(*index: Expr) -> Expr:
        rest = list(index)
        places: list[Expr] = []
        for given, wanted in parts:
            own = rest[: len(wanted)]
            is_kept = len(given) == len(wanted) == 1
            places += own if is_kept else _unravel(_linear(own, wanted), given)
            del rest[: len(wanted)]
        return data[tuple(places)]

    return compute(shape, element, name=name, tag=INJECTIVE)


def _reshape_parts(
    given: Sequence[Extent], wanted: Sequence[Extent]
) -> list[tuple[Sequence[Extent], Sequence[Extent]]]:
    """Divide two shapes into the shortest parts with equally many elements each.

    An axis that stays, such as the batch, is a part of its own: its index needs no quotient. So
    do not all axes behind one that is divided. A symbolic extent that does not stay begins the
    last part, and so does an extent of 0.
    """
    parts: list[tuple[Sequence[Extent], Sequence[Extent]]] = []
    left, right = list(given), list(wanted)
    while left and right:
        counts = _equal_counts(left, right)
        if counts is None:
            break
        mine, other = counts
        parts.append((left[:mine], right[:other]))
        del left[:mine], right[:other]
    return [*parts, (left, right)]


def _equal_counts(
    given: Sequence[Extent], wanted: Sequence[Extent]
) -> tuple[int, int] | None:
    """Return the numbers of leading extents of both shapes with the same product, or None."""
    if is_same(given[0], wanted[0]):
        return 1, 1
    sizes = (given, wanted)
    counts = [0, 0]
    products = [1, 1]
    while min(counts) == 0 or products[0] != products[1]:
        shorter = int(products[0] > products[1]) if min(counts) else counts.index(0)
        if counts[shorter] == len(sizes[shorter]):
            return None
        extent = sizes[shorter][counts[shorter]]
        if not isinstance(extent, int) or extent == 0:
            return None
        products[shorter] *= extent
        counts[shorter] += 1
    return counts[0], counts[1]


def _linear(index: Sequence[Expr], shape: Sequence[Extent]) -> Expr:
    """Return the row-major position of `index` in a tensor of `shape`."""
    position = as_dim(0)
    for i, extent in zip(index, shape, strict=True):
        if not is_same(extent, 1):
            position = position * extent + i
    return position


def _unravel(position: Expr, shape: Sequence[Extent]) -> list[Expr]:
    """Return the index of the row-major `position`: the inverse of `_linear`."""
    index: list[Expr] = []
    is_first = True  # of the extents that are not 1: its quotient is in range already
    for k, extent in enumerate(shape):
        if is_same(extent, 1):
            index.append(as_dim(0))
            continue
        # Elements from one index along this axis to the next.
        stride = product(shape[k + 1 :])
        quotient = position
        if not is_same(stride, 1):
            quotient = maths.floordiv(position, as_dim(stride))
        if not is_first:
            quotient = maths.floormod(quotient, as_dim(extent))
        index.append(quotient)
        is_first = False
    return index


def flatten(data: Tensor, *, axis: int = 1) -> Tensor:
    """Return the same elements, in row-major order, as a matrix.

    Args:
        data: a tensor of any rank.
        axis: the first axis that goes to the columns, -rank ... rank. The axes before it go to the
            rows. The product of no extents is 1.

    Raises:
        UserError: `data` is not a tensor, or the axis is out of range.

    Reference: ONNX Flatten.

    Example::

        >>> A = rc.placeholder((2, 2, 2), "int32", name="A")
        >>> B = rc.topi.flatten(A)
        >>> print(*rc.oracle.evaluate([B], {A: np.arange(8, dtype="int32").reshape(2, 2, 2)}))
        [[0 1 2 3]
         [4 5 6 7]]
    """
    require_tensor(data, "flatten")
    if not -data.ndim <= axis <= data.ndim:
        raise UserError(
            f"flatten: axis {axis} is out of range for {data.ndim} dimensions",
            remedy=f"use {-data.ndim} to {data.ndim}",
        )
    place = axis + data.ndim if axis < 0 else axis
    sizes = extents(data)
    shape = (product(sizes[:place]), product(sizes[place:]))
    return reshape_to(data, shape, "flatten")


def _sample_flatten(draws: Draws) -> Sample:
    data = draws.array(draws.shape(0, 4), draws.number_dtype())
    return Sample((data,), {"axis": draws.integer(-data.ndim, data.ndim)})


@meaning_of(flatten, sample=_sample_flatten, pattern="injective")
def flatten_numpy(data: Array, *, axis: int = 1) -> Array:
    place = axis + data.ndim if axis < 0 else axis
    rows = math.prod(data.shape[:place])
    columns = math.prod(data.shape[place:])
    return data.reshape(rows, columns).copy()


def transpose(data: Tensor, *, axes: Sequence[int]) -> Tensor:
    """Return `data` with permuted axes: axis k of the result is axis axes[k] of `data`.

    Args:
        data: a tensor of any rank.
        axes: each axis of `data` once, from 0.

    Raises:
        UserError: `axes` is not a permutation of 0, ..., rank - 1.

    Reference: numpy.transpose; ONNX Transpose.

    Example::

        >>> A = rc.placeholder((2, 3), "int32", name="A")
        >>> B = rc.topi.transpose(A, axes=(1, 0))
        >>> print(*rc.oracle.evaluate([B], {A: np.arange(6, dtype="int32").reshape(2, 3)}))
        [[0 3]
         [1 4]
         [2 5]]
    """
    if sorted(axes) != list(range(data.ndim)):
        raise UserError(
            f"transpose cannot order {data.ndim} axes by {tuple(axes)}",
            remedy=f"name each of 0 to {data.ndim - 1} once",
        )
    # The inverse permutation: axis k of the input is axis places[k] of the result.
    places = [list(axes).index(k) for k in range(data.ndim)]
    return compute(
        tuple(data.shape[axis] for axis in axes),
        lambda *index: data[tuple(index[place] for place in places)],
        name="transpose",
        tag=INJECTIVE,
    )


def _sample_transpose(draws: Draws) -> Sample:
    data = draws.array(draws.shape(0, 4), draws.number_dtype())
    return Sample((data,), {"axes": draws.order(data.ndim)})


@meaning_of(transpose, sample=_sample_transpose, pattern="injective")
def transpose_numpy(data: Array, *, axes: Sequence[int]) -> Array:
    return data.transpose(*axes)


def concatenate(*tensors: Tensor, axis: int) -> Tensor:
    """Return the tensors one after the other along `axis`.

    Args:
        *tensors: one or more tensors of one dtype and rank. Their extents along `axis` are
            constant; all other extents are equal.
        axis: the axis along which they are joined; -1 is the last one.

    Raises:
        UserError: a dtype, rank or extent does not fit, or the axis does not exist.

    Reference: numpy.concatenate; ONNX Concat.

    Example::

        >>> A, B = rc.placeholder((2,), "int32", name="A"), rc.placeholder((3,), "int32", name="B")
        >>> C = rc.topi.concatenate(A, B, axis=0)
        >>> a, b = np.array([1, 2], "int32"), np.array([3, 4, 5], "int32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [1 2 3 4 5]
    """
    if not tensors:
        raise UserError(
            "concatenate is applied to no tensors", remedy="pass at least one"
        )
    for tensor in tensors:
        require_tensor(tensor, "concatenate")
    first = tensors[0]
    place = normalize_axis(axis, first.ndim, "concatenate")
    for k, other in enumerate(tensors):
        _check_part(first, other, place, f"operand {k}")
    end = 0
    parts = []  # (tensor, begin, end) along the axis, without those that have no elements
    for tensor in tensors:
        size = extents(tensor)[place]
        begin = end
        end += require_constant(size, "concatenate: the joined extent")
        if end > begin:
            parts.append((tensor, begin, end))
    shape = replace_entry(extents(first), place, end)

    def element(*index: Expr) -> Expr:
        i = index[place]
        value: Expr | None = None
        # From the last part on: each earlier one is chosen below its end.
        for tensor, begin, end in reversed(parts):
            read = tensor[replace_entry(index, place, i - begin)]
            value = read if value is None else maths.if_then_else(i < end, read, value)
        return first[index] if value is None else value

    return compute(shape, element, name="concatenate", tag=INJECTIVE)


def _check_part(first: Tensor, other: Tensor, place: int, what: str) -> None:
    if other.dtype != first.dtype or other.ndim != first.ndim:
        raise UserError(
            f"concatenate cannot join {other.dtype} of {other.ndim} dimensions ({what}) "
            f"to {first.dtype} of {first.ndim}",
            remedy="convert or reshape one of them first",
        )
    for k, (a, b) in enumerate(zip(extents(other), extents(first), strict=True)):
        if k != place:
            require_extent(a, b, "concatenate", f"extent {k} of {what}")


def _sample_concatenate(draws: Draws) -> Sample:
    shape = draws.shape(1, 4)
    place = draws.integer(0, len(shape) - 1)
    sizes = [draws.extent(0) for _ in range(draws.integer(1, 3))]
    dtype = draws.number_dtype()
    parts = [draws.array(replace_entry(shape, place, size), dtype) for size in sizes]
    return Sample(tuple(parts), {"axis": place - draws.choice((0, len(shape)))})


# An anchor, since each element of a fused reader would choose among all parts.
@meaning_of(concatenate, sample=_sample_concatenate)
def concatenate_numpy(*arrays: Array, axis: int) -> Array:
    return np.concatenate(arrays, axis=axis)


def split(data: Tensor, *, axis: int, sizes: Sequence[int]) -> list[Tensor]:
    """Return consecutive parts of `data` along `axis`.

    Args:
        data: a tensor whose extent along `axis` is constant.
        axis: the axis that is divided; -1 is the last one.
        sizes: the extents of the parts along the axis, which add up to the extent of `data`.

    Raises:
        UserError: the sizes are negative or do not add up, or the axis does not exist.

    Reference: ONNX Split.

    Example::

        >>> A = rc.placeholder((5,), "int32", name="A")
        >>> parts = rc.topi.split(A, axis=0, sizes=(2, 3))
        >>> print(*rc.oracle.evaluate(parts, {A: np.arange(5, dtype="int32")}))
        [0 1] [2 3 4]
    """
    place = normalize_axis(axis, data.ndim, "split")
    if not sizes or any(size < 0 for size in sizes):
        raise UserError(
            f"split cannot make parts of the sizes {tuple(sizes)}",
            remedy="give one or more numbers >= 0",
        )
    require_extent(
        extents(data)[place], sum(sizes), "split", f"the extent of axis {axis}"
    )
    ends = accumulate(sizes)
    parts = zip(ends, sizes, strict=True)
    return [_part(data, place, end - size, size) for end, size in parts]


def _part(data: Tensor, place: int, start: int, size: int) -> Tensor:
    shape = replace_entry(extents(data), place, size)

    def element(*index: Expr) -> Expr:
        return data[replace_entry(index, place, index[place] + start)]

    return compute(shape, element, name="split", tag=INJECTIVE)


def _sample_split(draws: Draws) -> Sample:
    sizes = tuple(draws.extent(0) for _ in range(draws.integer(1, 3)))
    shape = draws.shape(1, 4)
    place = draws.integer(0, len(shape) - 1)
    data = draws.array(replace_entry(shape, place, sum(sizes)), draws.number_dtype())
    return Sample(
        (data,), {"axis": place - draws.choice((0, len(shape))), "sizes": sizes}
    )


# An anchor, since a fused kernel has only one output.
@meaning_of(split, pattern="opaque", sample=_sample_split)
def split_numpy(data: Array, *, axis: int, sizes: Sequence[int]) -> list[Array]:
    *ends, _ = accumulate(sizes)
    return [part.copy() for part in np.split(data, ends, axis=axis)]
