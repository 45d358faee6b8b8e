"""Discrete Fourier transforms: direct, fast, of real signals, in two dimensions.

Complex numbers have a last axis of extent 2: real and imaginary part. `refcomp.topi.signal.stages`
explains the stages of a transform.

Reference: the ONNX operator DFT; numpy.fft.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import Extent, extents
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    replace_entry,
    require_constant,
    require_float,
)
from refcomp.topi.signal.stages import (
    Part,
    as_state,
    check_length,
    complex_numpy,
    factors_of,
    parts_numpy,
    transform,
    transform_numpy,
    wide_dtype,
)


def dft(
    data: Tensor,
    *,
    axis: int = -2,
    dft_length: int | None = None,
    inverse: bool = False,
    onesided: bool = False,
) -> Tensor:
    """Return the discrete Fourier transform along `axis`, as a direct sum.

        result[k] = sum over j < N of data[j] * exp(-2i * pi * j * k / N)

    The inverse has the opposite sign, and is divided by N. The sums need N * N products: `fft` is
    faster for composite N. They are computed in f32, or in f64 for f64. A NaN or an infinity makes
    all results along the axis NaN.

    Args:
        data: floats, whose last extent is 1 for real numbers or 2 for complex ones.
        axis: the axis of the transform, which is not the last one and has a constant extent.
        dft_length: the length N; the extent of the axis by default. A longer signal is cut off, a
            shorter one is continued by zeros.
        inverse: True for the inverse transform.
        onesided: True if only results 0 to N // 2 are wanted. For real signals the others are their
            conjugates.

    Returns:
        A tensor of the dtype of `data`, with N or N // 2 + 1 elements along the axis, and a last
        extent of 2.

    Raises:
        UserError: `data` does not hold floats, its last extent is not 1 or 2, the axis does not
            exist or is the last one, its extent is symbolic, N is less than 1, or `onesided` is
            asked for with complex numbers or the inverse.

    Reference: ONNX DFT, since opset 20.

    Example::

        >>> A = rc.placeholder((4, 1), name="A")
        >>> B = rc.topi.dft(A, axis=0)
        >>> (b,) = rc.oracle.evaluate([B], {A: np.array([[1], [0], [0], [0]], "float32")})
        >>> print(b[:, 0], abs(b[:, 1]).max())
        [1. 1. 1. 1.] 0.0
    """
    place, size = _complex_axis(data, axis, "dft", least=1)
    length = check_length(size if dft_length is None else dft_length, "dft")
    is_real = extents(data)[-1] == 1
    if onesided and (inverse or not is_real):
        raise UserError(
            "dft gives one side only of a real signal, and not of the inverse",
            remedy="leave out onesided, or apply rc.topi.irfft",
        )
    count = length // 2 + 1 if onesided else length
    return _transformed(
        data,
        place,
        size=size,
        factors=[length],
        count=count,
        inverse=inverse,
        name="dft",
    )


def _complex_axis(
    data: Tensor, axis: int, operator: str, *, least: int = 2
) -> tuple[int, int]:
    """Return the axis, counted from 0, and its extent.

    Raise UserError if `data` is not a tensor of floats with real and imaginary parts, or if the
    axis is theirs. With `least` 1, the imaginary part may be left out.
    """
    require_float(data, operator)
    sizes = extents(data)
    allowed = (1, 2) if least == 1 else (2,)
    if data.ndim < 2 or not isinstance(sizes[-1], int) or sizes[-1] not in allowed:
        shown = " or ".join(map(str, allowed))
        raise UserError(
            f"{operator} takes two or more dimensions, of which the last has extent {shown}",
            why="it holds the real and the imaginary part",
            remedy="reshape the signal, or use rc.topi.rfft for a real one",
            earlier=[data.declaration()],
        )
    place = normalize_axis(axis, data.ndim, operator)
    if place == data.ndim - 1:
        raise UserError(
            f"{operator} cannot transform axis {axis}",
            why="the last axis holds the real and the imaginary part",
            remedy="name another axis",
        )
    return place, require_constant(sizes[place], f"{operator}: extent {place}")


def _parts(data: Tensor) -> Part:
    """Return the function that reads the parts of the complex or real numbers of `data`."""
    wide = wide_dtype(data.dtype)
    is_real = extents(data)[-1] == 1

    def part(index: tuple[Expr, ...], side: Expr) -> Expr:
        if not is_real:
            return data[(*index, side)].astype(wide)
        value = data[(*index, as_dim(0))].astype(wide)
        return maths.select(side == 0, value, const(0.0, wide))

    return part


def _transformed(
    data: Tensor,
    place: int,
    *,
    size: int,
    factors: Sequence[int],
    count: int,
    inverse: bool,
    name: str,
) -> Tensor:
    """Return the first `count` results of a transform, with real and imaginary parts."""
    length = int(np.prod(factors))
    shape = extents(data)[:-1]
    start = as_state(_parts(data), shape, place, size=size, length=length)
    state = transform(start, place, factors, inverse=inverse)

    def element(*index: Expr) -> Expr:
        value = state[(*index[:place], as_dim(0), *index[place:])]
        return (value / length if inverse else value).astype(data.dtype)

    whole = (*replace_entry(shape, place, count), 2)
    return compute(whole, element, name=name, tag=INJECTIVE)


def _sample_shape(draws: Draws) -> tuple[int, ...]:
    """Return a shape without an axis of extent 0 to transform: the first of 12 at most."""
    length = draws.choice((1, 2, 3, 4, 5, 6, 8, 12))
    return (length, *draws.shape(0, 1))


def _sample_length(draws: Draws, size: int) -> int | None:
    return draws.choice((None, size, draws.integer(1, 9)))


def _sample_dft(draws: Draws) -> Sample:
    parts = draws.integer(1, 2)
    data = draws.array((*_sample_shape(draws), parts), draws.float_dtype())
    inverse = draws.flag()
    attributes = {
        "axis": draws.choice((0, -data.ndim)),
        "dft_length": _sample_length(draws, data.shape[0]),
        "inverse": inverse,
        "onesided": parts == 1 and not inverse and draws.flag(),
    }
    return Sample((data,), attributes)


@meaning_of(dft, sample=_sample_dft)
def dft_numpy(
    data: Array,
    *,
    axis: int = -2,
    dft_length: int | None = None,
    inverse: bool = False,
    onesided: bool = False,
) -> Array:
    place = axis % data.ndim
    length = data.shape[place] if dft_length is None else dft_length
    result = transform_numpy(complex_numpy(data), place, length, inverse)
    if onesided:
        result = np.take(result, range(length // 2 + 1), axis=place)
    return parts_numpy(result, data.dtype)


def fft(data: Tensor, *, axis: int = -2, length: int | None = None) -> Tensor:
    """Return the discrete Fourier transform along `axis`, as a fast transform.

    There is a compute for each factor r of the length N: 4 as often as possible, then 2, 3 and
    greater primes. It needs N * r products. They are computed in f32, or in f64 for f64. A NaN or
    an infinity makes all results along the axis NaN.

    Args:
        data: floats, whose last extent is 2: real and imaginary part.
        axis: the axis of the transform, which is not the last one and has a constant extent.
        length: the length N; the extent of the axis by default. A longer signal is cut off, a
            shorter one is continued by zeros.

    Returns:
        A tensor of the dtype of `data`, with N elements along the axis.

    Raises:
        UserError: `data` does not hold floats, its last extent is not 2, the axis does not exist or
            is the last one, its extent is symbolic, or N is less than 1.

    Reference: J. W. Cooley and J. W. Tukey, 1965; numpy.fft.fft.

    Example::

        >>> A = rc.placeholder((4, 2), name="A")
        >>> B = rc.topi.fft(A)
        >>> ones = np.array([[1, 0]] * 4, "float32")
        >>> print(rc.oracle.evaluate([B], {A: ones})[0][:, 0])
        [4. 0. 0. 0.]
    """
    return _fast(data, axis, length, inverse=False, name="fft")


def _fast(
    data: Tensor, axis: int, length: int | None, *, inverse: bool, name: str
) -> Tensor:
    place, size = _complex_axis(data, axis, name)
    whole = check_length(size if length is None else length, name)
    return _transformed(
        data,
        place,
        size=size,
        factors=factors_of(whole),
        count=whole,
        inverse=inverse,
        name=name,
    )


def _sample_fft(draws: Draws) -> Sample:
    data = draws.array((*_sample_shape(draws), 2), draws.float_dtype())
    length = _sample_length(draws, data.shape[0])
    return Sample((data,), {"axis": 0, "length": length})


@meaning_of(fft, sample=_sample_fft)
def fft_numpy(data: Array, *, axis: int = -2, length: int | None = None) -> Array:
    return dft_numpy(data, axis=axis, dft_length=length)


def ifft(data: Tensor, *, axis: int = -2, length: int | None = None) -> Tensor:
    """Return the inverse discrete Fourier transform along `axis`, as a fast transform.

        result[j] = 1 / N * sum over k < N of data[k] * exp(2i * pi * j * k / N)

    It is computed as `fft` is. A NaN or an infinity makes all results along the axis NaN.

    Args:
        data: floats, whose last extent is 2: real and imaginary part.
        axis: the axis of the transform, which is not the last one and has a constant extent.
        length: the length N; the extent of the axis by default. A longer signal is cut off, a
            shorter one is continued by zeros.

    Returns:
        A tensor of the dtype of `data`, with N elements along the axis.

    Raises:
        UserError: `data` does not hold floats, its last extent is not 2, the axis does not exist or
            is the last one, its extent is symbolic, or N is less than 1.

    Reference: numpy.fft.ifft.

    Example::

        >>> A = rc.placeholder((4, 2), name="A")
        >>> B = rc.topi.ifft(A)
        >>> ones = np.array([[1, 0]] * 4, "float32")
        >>> print(rc.oracle.evaluate([B], {A: ones})[0][:, 0])
        [1. 0. 0. 0.]
    """
    return _fast(data, axis, length, inverse=True, name="ifft")


@meaning_of(ifft, sample=_sample_fft)
def ifft_numpy(data: Array, *, axis: int = -2, length: int | None = None) -> Array:
    return dft_numpy(data, axis=axis, dft_length=length, inverse=True)


def rfft(data: Tensor, *, axis: int = -1, length: int | None = None) -> Tensor:
    """Return results 0 to N // 2 of the Fourier transform of a real signal along `axis`.

    The other results are their conjugates. It is computed as `fft` is. A NaN or an infinity makes
    all results along the axis NaN.

    Args:
        data: floats of any shape, without real and imaginary parts.
        axis: the axis of the transform, of a constant extent.
        length: the length N; the extent of the axis by default. A longer signal is cut off, a
            shorter one is continued by zeros.

    Returns:
        A tensor of the dtype of `data`, with N // 2 + 1 elements along the axis, and one more axis
        of extent 2: real and imaginary part.

    Raises:
        UserError: `data` does not hold floats, the axis does not exist, its extent is symbolic, or
            N is less than 1.

    Reference: numpy.fft.rfft.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.rfft(A)
        >>> print(rc.oracle.evaluate([B], {A: np.ones(4, "float32")})[0][:, 0])
        [4. 0. 0.]
    """
    require_float(data, "rfft")
    place = normalize_axis(axis, data.ndim, "rfft")
    size = require_constant(extents(data)[place], f"rfft: extent {place}")
    whole = check_length(size if length is None else length, "rfft")
    return _transformed(
        _with_part(data),
        place,
        size=size,
        factors=factors_of(whole),
        count=whole // 2 + 1,
        inverse=False,
        name="rfft",
    )


def _with_part(data: Tensor) -> Tensor:
    """Return `data` with a last axis of extent 1."""
    shape: tuple[Extent, ...] = (*extents(data), 1)
    return compute(shape, lambda *index: data[index[:-1]], name="real", tag=INJECTIVE)


def _sample_rfft(draws: Draws) -> Sample:
    data = draws.array(_sample_shape(draws), draws.float_dtype())
    length = _sample_length(draws, data.shape[0])
    return Sample((data,), {"axis": 0, "length": length})


@meaning_of(rfft, sample=_sample_rfft)
def rfft_numpy(data: Array, *, axis: int = -1, length: int | None = None) -> Array:
    place = axis % data.ndim
    return dft_numpy(data[..., None], axis=place, dft_length=length, onesided=True)


def irfft(data: Tensor, *, axis: int = -2, length: int | None = None) -> Tensor:
    """Return the real signal whose Fourier transform begins with `data` along `axis`.

    Result k > N // 2 of the transform is taken to be the conjugate of result N - k. The imaginary
    parts of result 0, and of result N / 2 for an even N, are ignored. It is computed as `fft` is. A
    NaN or an infinity that is not ignored makes the whole signal NaN.

    Args:
        data: floats, whose last extent is 2: real and imaginary part.
        axis: the axis of the transform, which is not the last one and has a constant extent.
        length: the length N of the signal; 2 * (extent - 1) by default. Missing results are 0.

    Returns:
        A tensor of the dtype of `data`, without its last axis, with N elements along the axis.

    Raises:
        UserError: `data` does not hold floats, its last extent is not 2, the axis does not exist or
            is the last one, its extent is symbolic, or N is less than 1.

    Reference: numpy.fft.irfft.

    Example::

        >>> A = rc.placeholder((3, 2), name="A")
        >>> B = rc.topi.irfft(A)
        >>> a = np.array([[4, 0], [0, 0], [0, 0]], "float32")
        >>> print(*rc.oracle.evaluate([B], {A: a}))
        [1. 1. 1. 1.]
    """
    place, size = _complex_axis(data, axis, "irfft")
    whole = check_length(2 * (size - 1) if length is None else length, "irfft")
    shape = extents(data)[:-1]
    wide = wide_dtype(data.dtype)
    known = min(size, whole // 2 + 1)

    def part(index: tuple[Expr, ...], side: Expr) -> Expr:
        k = index[place]
        is_mirrored = k > whole // 2
        source = maths.select(is_mirrored, whole - k, k)
        zero = const(0.0, wide)
        # The index is in range where the element exists.
        inside = maths.minimum(source, known - 1)
        value = data[(*replace_entry(index, place, inside), side)].astype(wide)
        value = maths.select(maths.all(is_mirrored, side == 1), -value, value)
        is_real = maths.all(side == 1, maths.any(source == 0, source * 2 == whole))
        is_zero = maths.any(is_real, source >= known)
        return maths.select(is_zero, zero, value)

    start = as_state(part, shape, place, size=whole, length=whole)
    state = transform(start, place, factors_of(whole), inverse=True)

    def element(*index: Expr) -> Expr:
        value = state[(*index[:place], as_dim(0), *index[place:], as_dim(0))]
        return (value / whole).astype(data.dtype)

    result_shape = replace_entry(shape, place, whole)
    return compute(result_shape, element, name="irfft", tag=INJECTIVE)


def _sample_irfft(draws: Draws) -> Sample:
    data = draws.array((*_sample_shape(draws), 2), draws.float_dtype())
    length = _sample_length(draws, data.shape[0])
    if data.shape[0] == 1 and length is None:
        length = 1
    return Sample((data,), {"axis": 0, "length": length})


@meaning_of(irfft, sample=_sample_irfft)
def irfft_numpy(data: Array, *, axis: int = -2, length: int | None = None) -> Array:
    place = axis % data.ndim
    numbers = np.moveaxis(complex_numpy(data), place, -1)
    whole = 2 * (numbers.shape[-1] - 1) if length is None else length
    half = numbers[..., : whole // 2 + 1].copy()
    missing = whole // 2 + 1 - half.shape[-1]
    half = np.pad(half, [(0, 0)] * (half.ndim - 1) + [(0, missing)])
    half[..., 0].imag = 0
    if whole % 2 == 0:
        half[..., -1].imag = 0
    mirrored = np.conj(half[..., 1 : whole - whole // 2])[..., ::-1]
    full = np.concatenate([half, mirrored], axis=-1)
    result = transform_numpy(full, full.ndim - 1, whole, inverse=True).real
    with np.errstate(over="ignore"):
        return np.moveaxis(result, -1, place).astype(data.dtype)


def fft2d(data: Tensor, *, axes: tuple[int, int] = (-3, -2)) -> Tensor:
    """Return the discrete Fourier transform along two axes, as two fast transforms.

    A NaN or an infinity makes all results of its plane NaN. Between both transforms, the numbers
    are rounded to the dtype of `data`.

    Args:
        data: floats, whose last extent is 2: real and imaginary part.
        axes: two different axes of constant extents, neither of which is the last one.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats, its last extent is not 2, an axis does not exist, is
            the last one or named twice, or has a symbolic extent or no elements.

    Reference: numpy.fft.fft2.

    Example::

        >>> A = rc.placeholder((2, 2, 2), name="A")
        >>> B = rc.topi.fft2d(A)
        >>> print(rc.oracle.evaluate([B], {A: np.ones((2, 2, 2), "float32")})[0][..., 0])
        [[4. 0.]
         [0. 0.]]
    """
    return _in_two_dimensions(data, axes, inverse=False, name="fft2d")


def _in_two_dimensions(
    data: Tensor, axes: tuple[int, int], *, inverse: bool, name: str
) -> Tensor:
    first, second = (_complex_axis(data, axis, name)[0] for axis in axes)
    if first == second:
        raise UserError(
            f"{name} cannot transform axis {first} twice",
            remedy="name two different axes",
        )
    rows = _fast(data, second, None, inverse=inverse, name=name)
    return _fast(rows, first, None, inverse=inverse, name=name)


def _sample_fft2d(draws: Draws) -> Sample:
    lengths = tuple(draws.choice((1, 2, 3, 4, 6)) for _ in range(2))
    batch = draws.shape(0, 1)
    data = draws.array((*batch, *lengths, 2), draws.float_dtype())
    return Sample((data,), {"axes": draws.choice(((-3, -2), (-2, -3)))})


@meaning_of(fft2d, sample=_sample_fft2d)
def fft2d_numpy(data: Array, *, axes: tuple[int, int] = (-3, -2)) -> Array:
    return _plane_numpy(data, axes, inverse=False)


def _plane_numpy(data: Array, axes: tuple[int, int], inverse: bool) -> Array:
    result = complex_numpy(data)
    for axis in axes:
        place = axis % data.ndim
        result = transform_numpy(result, place, data.shape[place], inverse)
    return parts_numpy(result, data.dtype)


def ifft2d(data: Tensor, *, axes: tuple[int, int] = (-3, -2)) -> Tensor:
    """Return the inverse discrete Fourier transform along two axes, as two fast transforms.

    A NaN or an infinity makes all results of its plane NaN. Between both transforms, the numbers
    are rounded to the dtype of `data`.

    Args:
        data: floats, whose last extent is 2: real and imaginary part.
        axes: two different axes of constant extents, neither of which is the last one.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats, its last extent is not 2, an axis does not exist, is
            the last one or named twice, or has a symbolic extent or no elements.

    Reference: numpy.fft.ifft2.

    Example::

        >>> A = rc.placeholder((2, 2, 2), name="A")
        >>> B = rc.topi.ifft2d(A)
        >>> print(rc.oracle.evaluate([B], {A: np.ones((2, 2, 2), "float32")})[0][..., 0])
        [[1. 0.]
         [0. 0.]]
    """
    return _in_two_dimensions(data, axes, inverse=True, name="ifft2d")


@meaning_of(ifft2d, sample=_sample_fft2d)
def ifft2d_numpy(data: Array, *, axes: tuple[int, int] = (-3, -2)) -> Array:
    return _plane_numpy(data, axes, inverse=True)
