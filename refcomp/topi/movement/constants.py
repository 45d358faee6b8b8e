"""Operators whose elements are one value, or follow from their index: full, arange, eye and others.

Most take no tensors: a graph computes such a node from its attributes. Others take a tensor, of
which only the shape and the dtype count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from refcomp.foundation.dtype import F32, I64, DType, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import Extent, extents, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import DTypeLike, Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array


def full(
    *, shape: Sequence[int], fill_value: int | float, dtype: DTypeLike = "float32"
) -> Tensor:
    """Return a tensor whose elements are all one value.

    Args:
        shape: the extents, >= 0.
        fill_value: the value. It must be one of the dtype; a float is rounded to it.
        dtype: the dtype of the result.

    Raises:
        UserError: an extent is negative, or the value is not one of the dtype.

    Reference: numpy.full; TVM topi.full.

    Example::

        >>> print(*rc.oracle.evaluate([rc.topi.full(shape=(2, 2), fill_value=3, dtype="int8")], {}))
        [[3 3]
         [3 3]]
    """
    return _filled(_checked_shape(shape, "full"), fill_value, as_dtype(dtype), "full")


def _filled(
    shape: Sequence[Extent], value: int | float, dtype: DType, name: str
) -> Tensor:
    element = const(value, dtype)
    return compute(shape, lambda *_: element, name=name, tag=INJECTIVE)


def _checked_shape(shape: Sequence[int], operator: str) -> tuple[int, ...]:
    if any(extent < 0 for extent in shape):
        raise UserError(
            f"{operator} cannot make the shape {tuple(shape)}",
            remedy="give extents >= 0",
        )
    return tuple(shape)


def _any_dtype(draws: Draws) -> str:
    return draws.choice((draws.number_dtype(), draws.number_dtype(), "bool"))


def _sample_full(draws: Draws) -> Sample:
    dtype = _any_dtype(draws)
    values: tuple[int | float, ...] = (0, 1)
    if "float" in dtype:
        values = (-0.0, math.nan, math.inf, 0.1, -3)
    return Sample(
        (),
        {"shape": draws.shape(), "fill_value": draws.choice(values), "dtype": dtype},
    )


@meaning_of(full, sample=_sample_full, pattern="injective")
def full_numpy(
    *, shape: Sequence[int], fill_value: int | float, dtype: DTypeLike = "float32"
) -> Array:
    return np.full(shape, fill_value, to_numpy(as_dtype(dtype)))


def zeros(*, shape: Sequence[int], dtype: DTypeLike = "float32") -> Tensor:
    """Return a tensor of zeros, or of False.

    Args:
        shape: the extents, >= 0.
        dtype: the dtype of the result.

    Raises:
        UserError: an extent is negative.

    Reference: numpy.zeros.

    Example::

        >>> print(*rc.oracle.evaluate([rc.topi.zeros(shape=(3,), dtype="int32")], {}))
        [0 0 0]
    """
    return _filled(_checked_shape(shape, "zeros"), 0, as_dtype(dtype), "zeros")


def ones(*, shape: Sequence[int], dtype: DTypeLike = "float32") -> Tensor:
    """Return a tensor of ones, or of True.

    Args:
        shape: the extents, >= 0.
        dtype: the dtype of the result.

    Raises:
        UserError: an extent is negative.

    Reference: numpy.ones.

    Example::

        >>> print(*rc.oracle.evaluate([rc.topi.ones(shape=(3,), dtype="int32")], {}))
        [1 1 1]
    """
    return _filled(_checked_shape(shape, "ones"), 1, as_dtype(dtype), "ones")


def _sample_shape(draws: Draws) -> Sample:
    return Sample((), {"shape": draws.shape(), "dtype": _any_dtype(draws)})


@meaning_of(zeros, sample=_sample_shape, pattern="injective")
def zeros_numpy(*, shape: Sequence[int], dtype: DTypeLike = "float32") -> Array:
    return np.zeros(shape, to_numpy(as_dtype(dtype)))


@meaning_of(ones, sample=_sample_shape, pattern="injective")
def ones_numpy(*, shape: Sequence[int], dtype: DTypeLike = "float32") -> Array:
    return np.ones(shape, to_numpy(as_dtype(dtype)))


def full_like(data: Tensor, *, fill_value: int | float) -> Tensor:
    """Return a tensor of the shape and dtype of another, whose elements are all one value.

    Args:
        data: a tensor of any dtype, whose elements are not read.
        fill_value: the value. It must be one of the dtype; a float is rounded to it.

    Raises:
        UserError: the value is not one of the dtype.

    Reference: numpy.full_like; TVM topi.full_like.

    Example::

        >>> A = rc.placeholder((2,), "int32", name="A")
        >>> print(*rc.oracle.evaluate([rc.topi.full_like(A, fill_value=7)], {}))
        [7 7]
    """
    require_tensor(data, "full_like")
    return _filled(extents(data), fill_value, data.dtype, "full_like")


def zeros_like(data: Tensor) -> Tensor:
    """Return zeros in the shape and dtype of another tensor.

    Args:
        data: a tensor of any dtype, whose elements are not read.

    Reference: numpy.zeros_like.

    Example::

        >>> A = rc.placeholder((2,), "int32", name="A")
        >>> print(*rc.oracle.evaluate([rc.topi.zeros_like(A)], {}))
        [0 0]
    """
    require_tensor(data, "zeros_like")
    return _filled(extents(data), 0, data.dtype, "zeros_like")


def ones_like(data: Tensor) -> Tensor:
    """Return ones in the shape and dtype of another tensor.

    Args:
        data: a tensor of any dtype, whose elements are not read.

    Reference: numpy.ones_like.

    Example::

        >>> A = rc.placeholder((2,), "int32", name="A")
        >>> print(*rc.oracle.evaluate([rc.topi.ones_like(A)], {}))
        [1 1]
    """
    require_tensor(data, "ones_like")
    return _filled(extents(data), 1, data.dtype, "ones_like")


def _sample_like(draws: Draws) -> Sample:
    return Sample((draws.array(draws.shape(), _any_dtype(draws)),))


def _sample_full_like(draws: Draws) -> Sample:
    return Sample(_sample_like(draws).operands, {"fill_value": draws.choice((0, 1))})


@meaning_of(full_like, sample=_sample_full_like, pattern="injective")
def full_like_numpy(data: Array, *, fill_value: int | float) -> Array:
    return np.full_like(data, fill_value)


@meaning_of(zeros_like, sample=_sample_like, pattern="injective")
def zeros_like_numpy(data: Array) -> Array:
    return np.zeros_like(data)


@meaning_of(ones_like, sample=_sample_like, pattern="injective")
def ones_like_numpy(data: Array) -> Array:
    return np.ones_like(data)


def arange(
    *,
    start: int | float = 0,
    stop: int | float,
    step: int | float = 1,
    dtype: DTypeLike = "int32",
) -> Tensor:
    """Return start, start + step, ... before stop.

    There are ceil((stop - start) / step) elements, or none if that is negative. Element i is
    start + i * step, where start and step are rounded to the dtype first.

    Args:
        start: the first element.
        stop: the bound, which is not an element.
        step: the difference of neighbours, not 0.
        dtype: the dtype of the result, of integers or floats. All elements must fit in it.

    Raises:
        UserError: the step is 0, a number is not finite, the dtype is bool, or an integer element
            does not fit.

    Reference: numpy.arange; ONNX Range.

    Example::

        >>> B = rc.topi.arange(start=6, stop=0, step=-2)
        >>> print(*rc.oracle.evaluate([B], {}))
        [6 4 2]
    """
    kind = as_dtype(dtype)
    is_finite = all(math.isfinite(number) for number in (start, stop, step))
    if not is_finite or step == 0 or kind.is_bool:
        raise UserError(
            f"arange cannot go from {start} to {stop} by {step} in {kind}",
            remedy="give finite numbers, a step other than 0, and a dtype of numbers",
        )
    count = max(0, math.ceil((stop - start) / step))
    if not kind.is_float:
        # The first and the last element must fit; the others lie between.
        for number in (start, start + max(0, count - 1) * step):
            const(number, kind)
    wide = _wide(kind)
    rounded = kind if kind.is_float else wide
    first = const(start, rounded).astype(wide)
    stride = const(step, rounded).astype(wide)

    def element(i: Expr) -> Expr:
        return (first + i.astype(wide) * stride).astype(kind)

    return compute((count,), element, name="arange", tag=INJECTIVE)


def _wide(dtype: DType) -> DType:
    """Return the dtype in which a number is computed from an index: f16 holds few indices."""
    if not dtype.is_float:
        return I64
    return F32 if dtype.bits == 16 else dtype


def _sample_arange(draws: Draws) -> Sample:
    dtype = draws.number_dtype()
    step: float = draws.choice((1, 2, 3, -1))
    start = draws.integer(20, 40)
    stop: float = start + draws.integer(-4, 12) * (1 if step > 0 else -1)
    if "float" in dtype and draws.flag():
        step = draws.choice((0.5, 0.1, -0.3))
        stop = start + step * draws.integer(0, 9)
    attributes = {"start": start, "stop": stop, "step": step, "dtype": dtype}
    return Sample((), attributes)


@meaning_of(arange, sample=_sample_arange, pattern="injective")
def arange_numpy(
    *,
    start: int | float = 0,
    stop: int | float,
    step: int | float = 1,
    dtype: DTypeLike = "int32",
) -> Array:
    kind = to_numpy(as_dtype(dtype))
    places = np.arange(start, stop, step)
    if as_dtype(dtype).is_float:
        rounded = (np.float64(kind.type(number)) for number in (start, step))
        first, stride = rounded
        places = first + np.arange(len(places)) * stride
    return places.astype(kind)


def linspace(
    *,
    start: int | float,
    stop: int | float,
    num: int,
    endpoint: bool = True,
    dtype: DTypeLike = "float32",
) -> Tensor:
    """Return numbers from start to stop at equal distances.

    Element i is start * (1 - t) + stop * t. Here t is i / (num - 1), or i / num without the end
    point. Both bounds are rounded to the dtype first.

    Args:
        start: the first element, finite.
        stop: the last element, finite.
        num: the number of elements, >= 0. A single element is `start`.
        endpoint: False to leave out `stop`.
        dtype: the dtype of the result, of floats.

    Raises:
        UserError: the number is negative, a bound is not finite, or the dtype is not of floats.

    Reference: numpy.linspace.

    Example::

        >>> print(*rc.oracle.evaluate([rc.topi.linspace(start=0, stop=1, num=5)], {}))
        [0.   0.25 0.5  0.75 1.  ]
    """
    kind = as_dtype(dtype)
    is_finite = math.isfinite(start) and math.isfinite(stop)
    if not kind.is_float or num < 0 or not is_finite:
        raise UserError(
            f"linspace cannot make {num} elements from {start} to {stop} in {kind}",
            remedy="give finite bounds, a number >= 0 and a dtype of floats",
        )
    wide = _wide(kind)
    first = const(start, kind).astype(wide)
    last = const(stop, kind).astype(wide)
    steps = max(1, num - endpoint)

    def element(i: Expr) -> Expr:
        parts = const(steps, wide)
        after = (steps - i).astype(wide) / parts
        before = i.astype(wide) / parts
        return (first * after + last * before).astype(kind)

    return compute((num,), element, name="linspace", tag=INJECTIVE)


def _sample_linspace(draws: Draws) -> Sample:
    attributes = {
        "start": draws.number(-4, 4),
        "stop": draws.number(-4, 4),
        "num": draws.integer(0, 8),
        "endpoint": draws.flag(),
        "dtype": draws.float_dtype(),
    }
    return Sample((), attributes)


@meaning_of(linspace, sample=_sample_linspace, pattern="injective")
def linspace_numpy(
    *,
    start: int | float,
    stop: int | float,
    num: int,
    endpoint: bool = True,
    dtype: DTypeLike = "float32",
) -> Array:
    kind = to_numpy(as_dtype(dtype))
    first = np.float64(kind.type(start))
    last = np.float64(kind.type(stop))
    # numpy.linspace rounds otherwise, which shows in f64.
    steps = max(1, num - endpoint)
    places = np.arange(num)
    parts = first * ((steps - places) / steps) + last * (places / steps)
    return np.asarray(parts, kind)


def eye(
    *, n: int, m: int | None = None, k: int = 0, dtype: DTypeLike = "float32"
) -> Tensor:
    """Return a matrix with ones on a diagonal, and zeros elsewhere.

    Args:
        n: the number of rows, >= 0.
        m: the number of columns, >= 0; as `n` if it is not given.
        k: the diagonal: column - row of its elements.
        dtype: the dtype of the result.

    Raises:
        UserError: a number of rows or columns is negative.

    Reference: numpy.eye; ONNX EyeLike.

    Example::

        >>> print(*rc.oracle.evaluate([rc.topi.eye(n=2, m=3, k=1, dtype="int32")], {}))
        [[0 1 0]
         [0 0 1]]
    """
    kind = as_dtype(dtype)
    shape = _checked_shape((n, n if m is None else m), "eye")
    diagonal = as_dim(k)

    def element(i: Expr, j: Expr) -> Expr:
        is_one = (j - i).equal(diagonal)
        return maths.select(is_one, const(1, kind), const(0, kind))

    return compute(shape, element, name="eye", tag=INJECTIVE)


def _sample_eye(draws: Draws) -> Sample:
    attributes = {
        "n": draws.extent(0),
        "k": draws.integer(-4, 4),
        "dtype": _any_dtype(draws),
    }
    if draws.flag():
        attributes["m"] = draws.extent(0)
    return Sample((), attributes)


@meaning_of(eye, sample=_sample_eye, pattern="injective")
def eye_numpy(
    *, n: int, m: int | None = None, k: int = 0, dtype: DTypeLike = "float32"
) -> Array:
    return np.eye(n, m, k, to_numpy(as_dtype(dtype)))
