"""Window functions, and the weights of mel filters.

Reference: F. J. Harris, "On the Use of Windows for Harmonic Analysis with the Discrete Fourier
Transform", Proceedings of the IEEE 66, 1978; the ONNX operators HannWindow, HammingWindow,
BlackmanWindow and MelWeightMatrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from refcomp.foundation.dtype import F64, DType, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array
from refcomp.topi.tags import SHARED

# Coefficients of a window in powers of sin(pi * n / period) ** 2. They stand for the cosines of the
# literature, but do not cancel near the ends of the window.
_HANN = (0.0, 1.0)
_HAMMING = (4 / 46, 42 / 46)  # 25 / 46 - 21 / 46 * cos(2 * pi * n / period)
_BLACKMAN = (0.0, 0.36, 0.64)  # 0.42 - 0.5 * cos(...) + 0.08 * cos(2 * ...)


def _float_dtype(dtype: DTypeLike, operator: str) -> DType:
    kind = as_dtype(dtype)
    if not kind.is_float or kind.lanes > 1:
        raise UserError(
            f"{operator} cannot return {kind}",
            remedy="use a float dtype: float16, bfloat16, float32 or float64",
        )
    return kind


def _window(
    size: int,
    periodic: bool,
    dtype: DTypeLike,
    value: Callable[[Expr, int], Expr],
    name: str,
) -> Tensor:
    """Return value(n, period) for each n < size: an f64, rounded to the dtype.

    n is counted from the nearer end, so that the window is symmetric to the bit.
    """
    kind = _float_dtype(dtype, name)
    if size < 0:
        raise UserError(f"{name} cannot have {size} elements", remedy="use 0 or more")
    period = size if periodic else size - 1

    def element(n: Expr) -> Expr:
        if period < 1:  # a symmetric window of one element
            return const(1.0, kind)
        return value(maths.minimum(n, period - n), period).astype(kind)

    return compute((size,), element, name=name, tag=INJECTIVE)


def _cosine_window(
    size: int,
    periodic: bool,
    dtype: DTypeLike,
    weights: tuple[float, ...],
    name: str,
) -> Tensor:
    def value(n: Expr, period: int) -> Expr:
        sine = maths.sin(n.astype(F64) * (math.pi / period))
        square = sine * sine
        total = const(weights[-1], F64)
        for weight in reversed(weights[:-1]):
            total = total * square
            if weight:
                total = total + weight
        return total

    return _window(size, periodic, dtype, value, name)


def _cosine_window_numpy(
    size: int, periodic: bool, dtype: DTypeLike, weights: tuple[float, ...]
) -> Array:
    kind = to_numpy(as_dtype(dtype))
    period = size if periodic else size - 1
    if period < 1:
        return np.ones(size, kind)
    n = np.arange(size)
    n = np.minimum(n, period - n).astype(np.longdouble)
    square = (1 - np.cos(2 * np.longdouble(_PI) * n / period)) / 2
    total = sum(weight * square**power for power, weight in enumerate(weights))
    return np.asarray(total, np.longdouble).astype(np.float64).astype(kind)


_PI = "3.14159265358979323846264338327950288"


def _sample_window(draws: Draws) -> Sample:
    attributes = {
        "size": draws.choice((0, 1, 2, draws.integer(3, 40))),
        "periodic": draws.flag(),
        "dtype": draws.choice(("float32", "float64", "float16")),
    }
    return Sample((), attributes)


def hann_window(
    *, size: int, periodic: bool = True, dtype: DTypeLike = "float32"
) -> Tensor:
    """Return the Hann window: sin(pi * n / P) ** 2 for n = 0, ..., size - 1.

    The period P is `size`, or size - 1 for a symmetric window, which ends as it begins. A symmetric
    window of one element is 1. It is computed in f64 and rounded to the dtype.

    Args:
        size: the number of elements.
        periodic: True for a window whose repetition is periodic, for spectra; False for a symmetric
            one, for filters.
        dtype: the float dtype of the result.

    Returns:
        A tensor [size].

    Raises:
        UserError: the size is negative, or the dtype is not a float.

    Reference: ONNX HannWindow; numpy.hanning, which is symmetric.

    Example::

        >>> W = rc.topi.hann_window(size=4)
        >>> print(rc.oracle.evaluate([W], {})[0].round(4))
        [0.  0.5 1.  0.5]
    """
    return _cosine_window(size, periodic, dtype, _HANN, "hann_window")


@meaning_of(hann_window, sample=_sample_window)
def hann_window_numpy(
    *, size: int, periodic: bool = True, dtype: DTypeLike = "float32"
) -> Array:
    return _cosine_window_numpy(size, periodic, dtype, _HANN)


def hamming_window(
    *, size: int, periodic: bool = True, dtype: DTypeLike = "float32"
) -> Tensor:
    """Return the Hamming window: 25/46 - 21/46 * cos(2 * pi * n / P) for n = 0, ..., size - 1.

    The period P is `size`, or size - 1 for a symmetric window, which ends as it begins. A symmetric
    window of one element is 1. It is computed in f64 and rounded to the dtype.

    Args:
        size: the number of elements.
        periodic: True for a window whose repetition is periodic, for spectra; False for a symmetric
            one, for filters.
        dtype: the float dtype of the result.

    Returns:
        A tensor [size].

    Raises:
        UserError: the size is negative, or the dtype is not a float.

    Reference: ONNX HammingWindow. numpy.hamming has the rounded coefficients 0.54 and 0.46.

    Example::

        >>> W = rc.topi.hamming_window(size=4)
        >>> print(rc.oracle.evaluate([W], {})[0].round(4))
        [0.087  0.5435 1.     0.5435]
    """
    return _cosine_window(size, periodic, dtype, _HAMMING, "hamming_window")


@meaning_of(hamming_window, sample=_sample_window)
def hamming_window_numpy(
    *, size: int, periodic: bool = True, dtype: DTypeLike = "float32"
) -> Array:
    return _cosine_window_numpy(size, periodic, dtype, _HAMMING)


def blackman_window(
    *, size: int, periodic: bool = True, dtype: DTypeLike = "float32"
) -> Tensor:
    """Return the Blackman window: 0.42 - 0.5 * cos(a) + 0.08 * cos(2 * a), a = 2 * pi * n / P.

    The period P is `size`, or size - 1 for a symmetric window, which ends as it begins. A symmetric
    window of one element is 1. It is computed in f64 and rounded to the dtype.

    Args:
        size: the number of elements.
        periodic: True for a window whose repetition is periodic, for spectra; False for a symmetric
            one, for filters.
        dtype: the float dtype of the result.

    Returns:
        A tensor [size].

    Raises:
        UserError: the size is negative, or the dtype is not a float.

    Reference: ONNX BlackmanWindow; numpy.blackman, which is symmetric.

    Example::

        >>> W = rc.topi.blackman_window(size=4)
        >>> print(rc.oracle.evaluate([W], {})[0].round(4))
        [0.   0.34 1.   0.34]
    """
    return _cosine_window(size, periodic, dtype, _BLACKMAN, "blackman_window")


@meaning_of(blackman_window, sample=_sample_window)
def blackman_window_numpy(
    *, size: int, periodic: bool = True, dtype: DTypeLike = "float32"
) -> Array:
    return _cosine_window_numpy(size, periodic, dtype, _BLACKMAN)


def bartlett_window(
    *, size: int, periodic: bool = True, dtype: DTypeLike = "float32"
) -> Tensor:
    """Return the triangular window of Bartlett: 1 - abs(2 * n / P - 1) for n = 0, ..., size - 1.

    The period P is `size`, or size - 1 for a symmetric window, which ends as it begins. A symmetric
    window of one element is 1. It is computed in f64 and rounded to the dtype.

    Args:
        size: the number of elements.
        periodic: True for a window whose repetition is periodic, for spectra; False for a symmetric
            one, for filters.
        dtype: the float dtype of the result.

    Returns:
        A tensor [size].

    Raises:
        UserError: the size is negative, or the dtype is not a float.

    Reference: numpy.bartlett, which is symmetric; torch.bartlett_window.

    Example::

        >>> W = rc.topi.bartlett_window(size=4)
        >>> print(*rc.oracle.evaluate([W], {}))
        [0.  0.5 1.  0.5]
    """

    def value(n: Expr, period: int) -> Expr:
        return (n * 2).astype(F64) / period

    return _window(size, periodic, dtype, value, "bartlett_window")


@meaning_of(bartlett_window, sample=_sample_window)
def bartlett_window_numpy(
    *, size: int, periodic: bool = True, dtype: DTypeLike = "float32"
) -> Array:
    kind = to_numpy(as_dtype(dtype))
    period = size if periodic else size - 1
    if period < 1:
        return np.ones(size, kind)
    n = np.arange(size)
    return (np.minimum(n, period - n) * 2 / period).astype(kind)


def mel_weight_matrix(
    *,
    num_mel_bins: int,
    dft_length: int,
    sample_rate: int,
    lower_edge_hertz: float,
    upper_edge_hertz: float,
    dtype: DTypeLike = "float32",
) -> Tensor:
    """Return the weights of triangular filters, which are spaced evenly in mel.

        mel(f) = 2595 * log10(1 + f / 700)
        bin(f) = floor((dft_length + 1) * f / sample_rate)

    The edges are num_mel_bins + 2 frequencies from the lower to the upper one, at equal steps in
    mel. Filter b rises from 0 at bin(edge b) to 1 at bin(edge b + 1), and falls to 0 at bin(edge b
    + 2). If two bins coincide, that side has no elements but the peak.

    Args:
        num_mel_bins: the number of filters, at least 1.
        dft_length: the length of the transform whose results are weighted.
        sample_rate: samples of the signal per second.
        lower_edge_hertz: the lowest frequency in hertz, at least 0.
        upper_edge_hertz: the highest frequency in hertz.
        dtype: the float dtype of the result. It is computed in f64.

    Returns:
        A tensor [dft_length // 2 + 1, num_mel_bins].

    Raises:
        UserError: a number is too small, the edges are not in order, or the dtype is not a float.

    Reference: ONNX MelWeightMatrix; S. S. Stevens, J. Volkmann and E. B. Newman, "A Scale for the
    Measurement of the Psychological Magnitude Pitch", 1937.

    Example::

        >>> M = rc.topi.mel_weight_matrix(
        ...     num_mel_bins=2, dft_length=8, sample_rate=8000,
        ...     lower_edge_hertz=0.0, upper_edge_hertz=4000.0)
        >>> print(*rc.oracle.evaluate([M], {}))
        [[1.  0. ]
         [0.5 0.5]
         [0.  1. ]
         [0.  0.5]
         [0.  0. ]]
    """
    kind = _float_dtype(dtype, "mel_weight_matrix")
    if min(num_mel_bins, dft_length, sample_rate) < 1:
        raise UserError(
            f"mel_weight_matrix cannot have {num_mel_bins} filters, a transform of "
            f"{dft_length} and {sample_rate} samples per second",
            remedy="use numbers >= 1",
        )
    if not 0 <= lower_edge_hertz <= upper_edge_hertz < math.inf:
        raise UserError(
            f"mel_weight_matrix cannot have edges at {lower_edge_hertz} and "
            f"{upper_edge_hertz} hertz",
            remedy="give 0 <= lower edge <= upper edge",
        )
    bins = _mel_bins(
        num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz
    )
    # A table of constants. The bins are rounded on the host, so that all targets agree on them.
    edges = compute((len(bins),), lambda i: _entry(bins, i), name="edges", tag=SHARED)

    def element(frequency: Expr, band: Expr) -> Expr:
        low = edges[band]
        peak = edges[band + 1]
        high = edges[band + 2]
        rise = (frequency - low).astype(F64) / (peak - low).astype(F64)
        fall = (high - frequency).astype(F64) / (high - peak).astype(F64)
        is_rising = maths.all(low <= frequency, frequency < peak)
        is_falling = maths.all(peak < frequency, frequency < high)
        beside = maths.select(is_falling, fall, 0.0)
        away = maths.select(is_rising, rise, beside)
        return maths.select(frequency == peak, 1.0, away).astype(kind)

    shape = (dft_length // 2 + 1, num_mel_bins)
    return compute(shape, element, name="mel_weight_matrix", tag=INJECTIVE)


def _entry(values: list[int], index: Expr) -> Expr:
    """Return values[index] by a binary search, so that the expression is shallow."""
    if len(values) == 1:
        return const(values[0], index.dtype)
    half = len(values) // 2
    lower = _entry(values[:half], index)
    upper = _entry(values[half:], index - half)
    return maths.select(index < half, lower, upper)


def _mel_bins(
    count: int, dft_length: int, sample_rate: int, lower: float, upper: float
) -> list[int]:
    """Return the bins of the count + 2 edges."""
    low, high = (2595 * math.log10(1 + edge / 700) for edge in (lower, upper))
    step = (high - low) / (count + 1)
    bins = []
    for place in range(count + 2):
        hertz = 700 * (10 ** ((low + place * step) / 2595) - 1)
        if place in (0, count + 1):  # without the error of the logarithm
            hertz = upper if place else lower
        bins.append(math.floor((dft_length + 1) * hertz / sample_rate))
    return bins


def _sample_mel_weight_matrix(draws: Draws) -> Sample:
    lower = draws.number(0, 500)
    attributes = {
        "num_mel_bins": draws.integer(1, 8),
        "dft_length": draws.choice((1, 16, draws.integer(2, 40))),
        "sample_rate": draws.choice((8000, 16000)),
        "lower_edge_hertz": lower,
        "upper_edge_hertz": lower + draws.number(0, 4000),
        "dtype": draws.choice(("float32", "float64", "float16")),
    }
    return Sample((), attributes)


@meaning_of(mel_weight_matrix, sample=_sample_mel_weight_matrix)
def mel_weight_matrix_numpy(
    *,
    num_mel_bins: int,
    dft_length: int,
    sample_rate: int,
    lower_edge_hertz: float,
    upper_edge_hertz: float,
    dtype: DTypeLike = "float32",
) -> Array:
    ends = (1 + lower_edge_hertz / 700, 1 + upper_edge_hertz / 700)
    hertz = 700 * (np.geomspace(*ends, num_mel_bins + 2) - 1)
    hertz[0] = lower_edge_hertz
    hertz[-1] = upper_edge_hertz
    bins = np.floor((dft_length + 1) * hertz / sample_rate).astype(int)
    result = np.zeros((dft_length // 2 + 1, num_mel_bins))
    for band in range(num_mel_bins):
        low, peak, high = bins[band : band + 3]
        for frequency in range(len(result)):
            if frequency == peak:
                result[frequency, band] = 1
            elif low <= frequency < peak:
                result[frequency, band] = (frequency - low) / (peak - low)
            elif peak < frequency < high:
                result[frequency, band] = (high - frequency) / (high - peak)
    return result.astype(to_numpy(as_dtype(dtype)))
