"""Operators that only move elements: reshape, flatten, transpose, concatenate, split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr, IntImm, Mul
from refcomp.ir.promotion import as_expr
from refcomp.te import maths
from refcomp.te.operation import compute
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.shapes import (
    Array,
    Extent,
    extents,
    is_same,
    normalize_axis,
    product,
    require_constant,
    require_extent,
    require_tensor,
)
from refcomp.topi.tags import INJECTIVE


def reshape(data: Tensor, *, shape: Sequence[int]) -> Tensor:
    """The same elements in row-major order in another shape.

    In `shape`, 0 stands for the input's extent at that place and one -1 for what is left.
    """
    given = extents(data)
    return _reshape_to(data, _resolve(given, shape), "reshape")


def reshape_numpy(data: Array, *, shape: Sequence[int]) -> Array:
    kept = [data.shape[k] if dim == 0 else dim for k, dim in enumerate(shape)]
    if -1 in kept and not data.size:
        # numpy cannot infer -1 from an array without elements.
        known = [
            data.shape[k]
            for k, dim in enumerate(shape)
            if dim == 0 and data.shape[k] == 0
        ]
        given = list(data.shape)
        for extent in known:
            given.remove(extent)
        others = [dim for k, dim in enumerate(kept) if dim != -1 and shape[k] != 0]
        left = int(np.prod(given)) // max(1, int(np.prod(others)))
        kept[kept.index(-1)] = left
    return data.reshape(kept).copy()


def _resolve(given: Sequence[Extent], shape: Sequence[int]) -> list[Extent]:
    if any(dim < -1 for dim in shape) or list(shape).count(-1) > 1:
        raise UserError(
            f"reshape: {tuple(shape)} is not a shape",
            remedy="use numbers >= 0 and at most one -1",
        )
    if any(dim == 0 and k >= len(given) for k, dim in enumerate(shape)):
        raise UserError(
            f"reshape: a 0 in {tuple(shape)} stands for no extent of the input"
        )
    kept: list[Extent] = [given[k] if dim == 0 else dim for k, dim in enumerate(shape)]
    if -1 in shape:
        place = list(shape).index(-1)
        kept[place] = _quotient(given, [*kept[:place], *kept[place + 1 :]])
    _require_same_size(given, kept)
    return kept


def _factors(shape: Sequence[Extent]) -> tuple[int, Counter[Expr]]:
    """The constant and the symbolic factors of the product of `shape`."""
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
    """Return the product of `whole` divided by that of `part`, which must divide it."""
    a, symbols = _factors(whole)
    b, others = _factors(part)
    if others - symbols or not b or a % b:
        raise UserError("reshape: the extent for -1 would not be an integer")
    return product([*(symbols - others).elements(), a // b])


def _require_same_size(given: Sequence[Extent], wanted: Sequence[Extent]) -> None:
    if 0 in given and 0 in wanted:
        return
    if _factors(given) != _factors(wanted):
        raise UserError(
            f"reshape: a shape of {_shown(given)} elements does not become one of {_shown(wanted)}"
        )


def _shown(shape: Sequence[Extent]) -> str:
    return " * ".join(
        str(e) if isinstance(e, int) else getattr(e, "name", "?") for e in shape
    )


def _reshape_to(data: Tensor, shape: Sequence[Extent], name: str) -> Tensor:
    given = extents(data)
    # Leading extents that stay need no arithmetic: the batch, as a rule.
    same = 0
    while same < min(len(given), len(shape)) and is_same(given[same], shape[same]):
        same += 1

    def element(*index: Expr) -> Expr:
        position = _linear(index[same:], shape[same:])
        return data[(*index[:same], *_unravel(position, given[same:]))]

    result: Tensor = compute(shape, element, name=name, tag=INJECTIVE)
    return result


def _linear(index: Sequence[Expr], shape: Sequence[Extent]) -> Expr:
    position = as_dim(0)
    for i, extent in zip(index, shape, strict=True):
        if not (isinstance(extent, int) and extent == 1):
            position = position * extent + i
    return position


def _unravel(position: Expr, shape: Sequence[Extent]) -> list[Expr]:
    index: list[Expr] = []
    for k, extent in enumerate(shape):
        if isinstance(extent, int) and extent == 1:
            index.append(as_dim(0))
            continue
        inner = product(shape[k + 1 :])
        outer = (
            position if is_same(inner, 1) else maths.floordiv(position, as_dim(inner))
        )
        leads = all(is_same(e, 1) for e in shape[:k])
        index.append(outer if leads else maths.floormod(outer, as_dim(extent)))
    return index


def flatten(data: Tensor, *, axis: int = 1) -> Tensor:
    """A matrix: the extents before `axis` multiplied, then those from it on."""
    require_tensor(data, "flatten")
    if not -data.ndim <= axis <= data.ndim:
        raise UserError(
            f"flatten: axis {axis} is out of range for {data.ndim} dimensions"
        )
    place = axis + data.ndim if axis < 0 else axis
    sizes = extents(data)
    return _reshape_to(
        data, (product(sizes[:place]), product(sizes[place:])), "flatten"
    )


def flatten_numpy(data: Array, *, axis: int = 1) -> Array:
    place = axis + data.ndim if axis < 0 else axis
    rows = int(np.prod(data.shape[:place]))
    return data.reshape(rows, int(np.prod(data.shape[place:]))).copy()


def transpose(data: Tensor, *, axes: Sequence[int]) -> Tensor:
    """Permute the axes: axis k of the result is axis axes[k] of the input."""
    if sorted(axes) != list(range(data.ndim)):
        raise UserError(
            f"transpose: {tuple(axes)} is not a permutation of the axes of {data.ndim} dimensions"
        )
    places = [list(axes).index(k) for k in range(data.ndim)]
    result: Tensor = compute(
        tuple(data.shape[a] for a in axes),
        lambda *index: data[tuple(index[place] for place in places)],
        name="transpose",
        tag=INJECTIVE,
    )
    return result


def transpose_numpy(data: Array, *, axes: Sequence[int]) -> Array:
    return np.ascontiguousarray(data.transpose(*axes))


def concatenate(*tensors: Tensor, axis: int) -> Tensor:
    """The tensors one after the other along `axis`, where their extents are constant."""
    first = tensors[0]
    place = normalize_axis(axis, first.ndim, "concatenate")
    for k, other in enumerate(tensors):
        _check_part(first, other, place, f"operand {k}")
    sizes = [
        require_constant(extents(t)[place], "concatenate: the joined extent")
        for t in tensors
    ]
    ends = list(accumulate(sizes))
    shape = (*extents(first)[:place], ends[-1], *extents(first)[place + 1 :])

    def element(*index: Expr) -> Expr:
        i = index[place]
        parts = [
            t[(*index[:place], i - (e - s), *index[place + 1 :])]
            for t, s, e in zip(tensors, sizes, ends, strict=True)
            if s
        ]
        bounds = [end for size, end in zip(sizes, ends, strict=True) if size]
        value = as_expr(parts[-1]) if parts else first[index]
        for part, end in zip(reversed(parts[:-1]), reversed(bounds[:-1]), strict=True):
            value = maths.if_then_else(i < end, part, value)
        return value

    result: Tensor = compute(shape, element, name="concatenate", tag=INJECTIVE)
    return result


def _check_part(first: Tensor, other: Tensor, place: int, what: str) -> None:
    if other.dtype != first.dtype or other.ndim != first.ndim:
        raise UserError(
            f"concatenate: {what} is {other.dtype} of {other.ndim} dimensions "
            f"beside {first.dtype} of {first.ndim}"
        )
    for k, (a, b) in enumerate(zip(extents(other), extents(first), strict=True)):
        if k != place:
            require_extent(a, b, "concatenate", f"extent {k} of {what}")


def concatenate_numpy(*arrays: Array, axis: int) -> Array:
    return np.concatenate(arrays, axis=axis)


def split(data: Tensor, *, axis: int, sizes: Sequence[int]) -> list[Tensor]:
    """Parts of the given sizes, one after the other along `axis`, whose extent is their sum."""
    place = normalize_axis(axis, data.ndim, "split")
    if not sizes or any(size < 0 for size in sizes):
        raise UserError(
            f"split: sizes {tuple(sizes)}", remedy="give one or more numbers >= 0"
        )
    require_extent(
        extents(data)[place], sum(sizes), "split", f"the extent of axis {axis}"
    )
    starts = accumulate(sizes, initial=0)
    return [
        _part(data, place, start, size)
        for start, size in zip(starts, sizes, strict=False)
    ]


def _part(data: Tensor, place: int, start: int, size: int) -> Tensor:
    shape = (*extents(data)[:place], size, *extents(data)[place + 1 :])

    def element(*index: Expr) -> Expr:
        return data[(*index[:place], index[place] + start, *index[place + 1 :])]

    part: Tensor = compute(shape, element, name="split", tag=INJECTIVE)
    return part


def split_numpy(data: Array, *, axis: int, sizes: Sequence[int]) -> list[Array]:
    return [
        part.copy() for part in np.split(data, list(accumulate(sizes))[:-1], axis=axis)
    ]
