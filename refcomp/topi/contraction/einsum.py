"""Sums of products along named axes: einsum and tensordot, and the outer product.

Integers wrap on overflow, and an empty sum is 0. A NaN, or an infinity that is multiplied by 0,
makes each sum in which it stands NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import reducer
from refcomp.te.extents import Extent, extents, is_same, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import ExprLike, Tensor
from refcomp.topi.contraction.einsum_equation import parse_equation
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import accumulator_of
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    require_number,
    require_one_dtype,
    widen,
)
from refcomp.topi.tags import REDUCTION


def einsum(*operands: Tensor, equation: str) -> Tensor:
    """Multiply tensors and sum the products along axes, as Einstein's notation says.

    Each letter of `equation` names an axis. Elements with equal indices are multiplied, and sums go
    over the letters that the result lacks. A letter twice in one operand takes its diagonal. `...`
    stands for further axes, which broadcast. Without `->`, the result has the broadcast axes, then
    all letters that occur once in alphabetical order. Spaces do not count.

    Products are taken from left to right. All operands are read in one nest of loops; for a long
    chain, several calls with two operands each take fewer steps.

    Args:
        *operands: one or more tensors of one numeric dtype.
        equation: the axes of the operands, such as `"ij,jk->ik"`.

    Raises:
        UserError: the equation is ill-formed, does not fit the ranks, or equal letters have
            different extents.

    Reference: numpy.einsum; ONNX Einsum.

    Example::

        >>> A, B = rc.placeholder((2, 2), name="A"), rc.placeholder((2, 2), name="B")
        >>> C = rc.topi.einsum(A, B, equation="ij,kj->ik")
        >>> a, b = np.array([[1, 2], [3, 4]], "float32"), np.eye(2, dtype="float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [[1. 2.]
         [3. 4.]]
    """
    _check_operands(operands, "einsum")
    ranks = [operand.ndim for operand in operands]
    terms, result = parse_equation(equation, ranks)
    return _sum_products(operands, terms, result, "einsum")


def _check_operands(operands: Sequence[Tensor], operator: str) -> None:
    if not operands:
        raise UserError(
            f"{operator} has no operands", remedy="give one or more tensors"
        )
    for operand in operands:
        require_number(operand, operator)
    require_one_dtype(operator, *operands)


def _sum_products(
    operands: Sequence[Tensor],
    terms: Sequence[Sequence[str]],
    result: Sequence[str],
    name: str,
) -> Tensor:
    """Return the sums of products of operands whose axes have labels.

    Args:
        operands: the tensors.
        terms: the labels of the axes of each of them.
        result: the labels of the result.
        name: the name of the operator.
    """
    sizes = _extents_of_labels(operands, terms, name)
    summed = [label for label in sizes if label not in result]
    axes = {
        label: reduce_axis(sizes[label], f"k{number}")
        for number, label in enumerate(summed)
    }
    dtype = operands[0].dtype
    wide = accumulator_of(dtype)

    def element(*index: Expr) -> Expr:
        places: dict[str, Expr] = dict(zip(result, index, strict=True))
        for label, axis in axes.items():
            places[label] = axis.var
        value: Expr | None = None
        for operand, labels in zip(operands, terms, strict=True):
            own: list[ExprLike] = []
            for label, size in zip(labels, extents(operand), strict=True):
                # Only axes of `...` broadcast.
                is_repeated = label.startswith(".") and is_same(size, 1)
                own.append(0 if is_repeated else places[label])
            factor = operand[tuple(own)].astype(wide)
            value = factor if value is None else value * factor
        assert value is not None
        if axes:
            return reducer.sum(value, axis=list(axes.values()))
        return value.astype(dtype)

    shape = [sizes[label] for label in result]
    if not axes:
        return compute(shape, element, name=name, tag=INJECTIVE)
    total = compute(shape, element, name=name, tag=REDUCTION)
    if wide == dtype:
        return total
    return compute(
        shape, lambda *index: total[index].astype(dtype), name=name, tag=INJECTIVE
    )


def _extents_of_labels(
    operands: Sequence[Tensor], terms: Sequence[Sequence[str]], name: str
) -> dict[str, Extent]:
    """Return the extent of each label, in order of first appearance."""
    sizes: dict[str, Extent] = {}
    for operand, labels in zip(operands, terms, strict=True):
        for label, size in zip(labels, extents(operand), strict=True):
            known = sizes.setdefault(label, size)
            if label.startswith(".") and (is_same(known, 1) or is_same(size, 1)):
                sizes[label] = size if is_same(known, 1) else known
                continue
            what = f"the extent of {label!r} in {operand.name}"
            require_extent(size, known, name, what, tensors=[operand])
    return sizes


_EQUATIONS = (
    "ij,jk->ik",
    "ij,jk",
    "ii->i",
    "ii",
    "ij->ji",
    "i,j->ij",
    "ij,ij->",
    "...ij,...jk->...ik",
    "...i,i",
    "ij,jk,kl->il",
    "bij,bj->bi",
    "iij->j",
    " i j , j -> i ",
    ",i->i",
    "...->...",
)


def _sample_einsum(draws: Draws) -> Sample:
    equation = draws.choice(_EQUATIONS)
    sizes = {label: min(3, draws.extent(0)) for label in "bijkl"}
    outer = draws.shape(0, 2, 1)
    dtype = draws.number_dtype()
    operands = []
    for term in equation.partition("->")[0].replace(" ", "").split(","):
        shape = [sizes[label] for label in term if label != "."]
        if "." in term:
            broadcast = [draws.choice((1, extent)) for extent in outer]
            shape = [*broadcast[draws.integer(0, len(outer)) :], *shape]
        operands.append(draws.array(shape, dtype))
    return Sample(tuple(operands), {"equation": equation})


@meaning_of(einsum, sample=_sample_einsum)
def einsum_numpy(*arrays: Array, equation: str) -> Array:
    wide = [widen(array) for array in arrays]
    return np.asarray(np.einsum(equation, *wide), arrays[0].dtype)


def outer(a: Tensor, b: Tensor) -> Tensor:
    """Multiply each element of one vector by each of another.

    Args:
        a: [n] of any numeric dtype.
        b: [m] of the dtype of `a`.

    Returns:
        A tensor [n, m]: element (i, j) is a[i] * b[j].

    Raises:
        UserError: an operand is not a vector of numbers, or the dtypes differ.

    Reference: numpy.outer.

    Example::

        >>> A, B = rc.placeholder((2,), name="A"), rc.placeholder((2,), name="B")
        >>> a, b = np.array([1, 2], "float32"), np.array([3, 4], "float32")
        >>> print(*rc.oracle.evaluate([rc.topi.outer(A, B)], {A: a, B: b}))
        [[3. 4.]
         [6. 8.]]
    """
    _check_operands((a, b), "outer")
    for operand in (a, b):
        if operand.ndim != 1:
            raise UserError(
                f"outer takes vectors, not a tensor of {operand.ndim} dimensions",
                remedy="flatten it first",
                earlier=[operand.declaration()],
            )
    return _sum_products((a, b), ("i", "j"), "ij", "outer")


def _sample_outer(draws: Draws) -> Sample:
    dtype = draws.number_dtype()
    vectors = [draws.array((draws.extent(0),), dtype) for _ in range(2)]
    return Sample(tuple(vectors))


@meaning_of(outer, sample=_sample_outer, pattern="injective")
def outer_numpy(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.outer(widen(a), widen(b)), a.dtype)


def tensordot(
    a: Tensor, b: Tensor, *, axes_a: Sequence[int], axes_b: Sequence[int]
) -> Tensor:
    """Sum products of two tensors along pairs of axes.

    Args:
        a: a tensor of any numeric dtype.
        b: a tensor of the dtype of `a`.
        axes_a: the summed axes of `a`.
        axes_b: the axis of `b` that is paired with each of them, of the same extent.

    Returns:
        A tensor of the remaining axes of `a`, then those of `b`.

    Raises:
        UserError: an axis does not exist or is named twice, the lists or extents differ, or the
            dtypes do.

    Reference: numpy.tensordot; TVM topi.tensordot.

    Example::

        >>> A, B = rc.placeholder((2, 3), name="A"), rc.placeholder((3,), name="B")
        >>> C = rc.topi.tensordot(A, B, axes_a=[1], axes_b=[0])
        >>> a = np.arange(6, dtype="float32").reshape(2, 3)
        >>> print(*rc.oracle.evaluate([C], {A: a, B: np.ones(3, "float32")}))
        [ 3. 12.]
    """
    _check_operands((a, b), "tensordot")
    first = [normalize_axis(axis, a.ndim, "tensordot") for axis in axes_a]
    second = [normalize_axis(axis, b.ndim, "tensordot") for axis in axes_b]
    is_repeated = len({*first}) < len(first) or len({*second}) < len(second)
    if len(first) != len(second) or is_repeated:
        raise UserError(
            f"tensordot cannot pair the axes {tuple(axes_a)} with {tuple(axes_b)}",
            remedy="name each axis once, with one of b for each one of a",
        )
    labels_a = [f"a{place}" for place in range(a.ndim)]
    labels_b = [f"b{place}" for place in range(b.ndim)]
    for left, right in zip(first, second, strict=True):
        labels_b[right] = labels_a[left]
    summed = {labels_a[place] for place in first}
    result = [label for label in [*labels_a, *labels_b] if label not in summed]
    return _sum_products((a, b), (labels_a, labels_b), result, "tensordot")


def _sample_tensordot(draws: Draws) -> Sample:
    dtype = draws.number_dtype()
    shape = draws.shape(0, 3)
    order = draws.order(len(shape))
    count = draws.integer(0, len(shape))
    axes_a = order[:count]
    paired = [shape[axis] for axis in axes_a]
    rest = draws.shape(0, 1)
    b = draws.array((*rest, *paired), dtype)
    axes_b = tuple(range(len(rest), b.ndim))
    return Sample((draws.array(shape, dtype), b), {"axes_a": axes_a, "axes_b": axes_b})


@meaning_of(tensordot, sample=_sample_tensordot)
def tensordot_numpy(
    a: Array, b: Array, *, axes_a: Sequence[int], axes_b: Sequence[int]
) -> Array:
    axes = (tuple(axes_a), tuple(axes_b))
    return np.asarray(np.tensordot(widen(a), widen(b), axes), a.dtype)
