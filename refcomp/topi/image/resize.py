"""Resizing of tensors of any rank: nearest, linear and cubic, in all variants of ONNX.

Reference: ONNX Resize; TVM, topi.image.resize1d, resize2d and resize3d.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.te.extents import extents
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.image.positions import (
    COORDINATES,
    ROUNDINGS,
    as_fraction,
    positions_of,
)
from refcomp.topi.image.resampling import MODES, Resampling, resample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, normalize_axis, require_constant

# Layout -> the first spatial axis.
_LAYOUTS = {"NCW": 2, "NWC": 1, "NCHW": 2, "NHWC": 1, "NCDHW": 2, "NDHWC": 1}


def resize(
    data: Tensor,
    *,
    axes: Sequence[int],
    sizes: Sequence[int] = (),
    scales: Sequence[float] = (),
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    cubic_coefficient: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
    roi: Sequence[float] = (),
    extrapolation_value: float = 0.0,
) -> Tensor:
    """Resize a tensor along any axes, by interpolation or by copying the nearest element.

    Along each axis, element x of the result is at a position p in the input. `coordinates` chooses
    p. Here n is the extent, m the extent of the result, and s the scale:

        half_pixel              (x + 0.5) / s - 0.5
        half_pixel_symmetric    n / 2 * (1 - m / (s * n)) + (x + 0.5) / s - 0.5
        pytorch_half_pixel      as half_pixel, and 0 if m is 1
        align_corners           x * (n - 1) / (m - 1), and 0 if m is 1
        asymmetric              x / s
        tf_half_pixel_for_nn    (x + 0.5) / s
        tf_crop_and_resize      from begin * (n - 1) to end * (n - 1), in equal steps

    The mode nearest takes the element to which `rounding` moves p. The other modes sum neighbours
    with weights that a kernel has at their distances d from p:

        linear    1 - d, for d < 1
        cubic     (a + 2) d^3 - (a + 3) d^2 + 1, for d <= 1
                  a d^3 - 5 a d^2 + 8 a d - 4 a, for 1 < d < 2

    Neighbours are the elements from floor(p) - r + 1 to floor(p) + r, where r is 1 for linear and 2
    for cubic. Outside of the input, its first or last element stands. Each neighbour counts, even
    with the weight 0: its NaN or infinity makes NaN. An axis on which each p is x stays as it is.
    Extents of 0 are allowed for other axes than those of `axes`.

    Args:
        data: a tensor of any rank. The mode nearest takes any dtype, others take floats. Extents
            along `axes` are constant and at least 1.
        axes: the axes to resize, each once.
        sizes: m, the extent of the result for each axis, at least 1. Without `scales`, s is m / n.
        scales: s, a factor above 0 for each axis. Without `sizes`, m is floor(s * n). It is read as
            the nearest fraction whose divisor is at most 4096, as are the numbers of `roi`.
        mode: nearest, linear or cubic.
        coordinates: a word of the first table.
        rounding: for the mode nearest: round_prefer_floor, round_prefer_ceil, floor or ceil. The
            first two round to the nearest integer, and down or up from the middle.
        cubic_coefficient: a. It is rounded to the dtype of the weights: f64 for f64, else f32.
        exclude_outside: True if elements outside of the input have the weight 0. The weights are
            then divided by their sum.
        antialias: True if the kernel is stretched by 1 / s where s < 1: d becomes d * s, and r is
            the least integer that is not below r / s. The weights are then divided by their sum.
        roi: for tf_crop_and_resize: the begin of each axis, then the end of each; 0 is the first
            element, and 1 the last. By default, the whole input.
        extrapolation_value: the result where p is outside of the input, in tf_crop_and_resize.

    Returns:
        A tensor of the dtype of `data`. Interpolation computes f16 and bf16 in f32.

    Raises:
        UserError: an argument is not as described.

    Reference: ONNX Resize, opset 19.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.resize(A, axes=(0,), sizes=(8,), mode="linear")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([0, 4, 8, 12], "float32")}))
        [ 0.  1.  3.  5.  7.  9. 11. 12.]
    """
    options = Resampling(
        operator="resize",
        mode=mode,
        coordinates=coordinates,
        rounding=rounding,
        cubic_coefficient=cubic_coefficient,
        exclude_outside=exclude_outside,
        antialias=antialias,
        extrapolation_value=extrapolation_value,
    )
    return resize_axes(data, options, axes=axes, sizes=sizes, scales=scales, roi=roi)


def resize_axes(
    data: Tensor,
    options: Resampling,
    *,
    axes: Sequence[int],
    sizes: Sequence[int] = (),
    scales: Sequence[float] = (),
    roi: Sequence[float] = (),
) -> Tensor:
    """Return `data` resized along `axes`, for all operators that resize (see `resize`)."""
    options.check(data)
    places = _check_axes(data, options.operator, axes, sizes, scales, roi)
    given = [
        require_constant(extents(data)[place], "a resized extent") for place in places
    ]
    if any(extent < 1 for extent in given):
        raise UserError(
            f"{options.operator} cannot take elements from an axis of extent 0",
            remedy="give a tensor with elements along each of `axes`",
            earlier=[data.declaration()],
        )
    counts, factors = _counts_and_scales(given, sizes, scales, options.operator)
    bounds = list(roi) or [0.0] * len(places) + [1.0] * len(places)
    positions = {
        place: positions_of(
            options.coordinates,
            size=given[k],
            count=counts[k],
            scale=factors[k],
            begin=bounds[k],
            end=bounds[len(places) + k],
        )
        for k, place in enumerate(places)
    }
    return resample(data, positions, options)


def _check_axes(
    data: Tensor,
    operator: str,
    axes: Sequence[int],
    sizes: Sequence[int],
    scales: Sequence[float],
    roi: Sequence[float],
) -> list[int]:
    """Return the axes, counted from 0. Raise UserError if they or the sizes are ill-formed."""
    places = [normalize_axis(axis, data.ndim, operator) for axis in axes]
    if len(set(places)) < len(places):
        raise UserError(
            f"{operator} cannot resize an axis twice: {tuple(axes)}",
            remedy="name each axis once",
        )
    if not sizes and not scales and places:
        raise UserError(
            f"{operator} needs sizes or scales", remedy="give one of them, or both"
        )
    for wanted in filter(None, (tuple(sizes), tuple(scales))):
        if len(wanted) != len(places) or any(number <= 0 for number in wanted):
            raise UserError(
                f"{operator} cannot resize {len(places)} axes by {wanted}",
                remedy="give a number above 0 for each axis",
            )
    if roi and len(roi) != 2 * len(places):
        raise UserError(
            f"{operator} cannot crop {len(places)} axes by {len(roi)} numbers",
            remedy="give the begin of each axis, then the end of each",
        )
    return places


def _counts_and_scales(
    given: Sequence[int],
    sizes: Sequence[int],
    scales: Sequence[float],
    operator: str = "resize",
) -> tuple[list[int], list[Fraction]]:
    """Return the extents of the result, and the factors from the extents `given`."""
    factors = [as_fraction(scale) for scale in scales]
    if sizes:
        exact = [Fraction(m, n) for m, n in zip(sizes, given, strict=True)]
        return list(sizes), factors or exact
    counts = [math.floor(n * s) for n, s in zip(given, factors, strict=True)]
    if any(count < 1 for count in counts):
        raise UserError(
            f"{operator} cannot make extents of {given} by the scales {tuple(scales)}",
            why="an extent of the result would be 0",
            remedy="give greater scales",
        )
    return counts, factors


def _sample_options(draws: Draws) -> dict[str, object]:
    return {
        "mode": draws.choice(MODES),
        "coordinates": draws.choice(COORDINATES),
        "rounding": draws.choice(ROUNDINGS),
        "cubic_coefficient": draws.choice((-0.75, -0.5, -0.6)),
    }


def _sample_resize(draws: Draws) -> Sample:
    options = _sample_options(draws)
    shape = draws.shape(1, 3, least=1)
    order = draws.order(len(shape))
    axes = order[: draws.integer(1, min(2, len(order)))]
    if len(axes) < len(shape):
        other = next(axis for axis in order if axis not in axes)
        shape = (*shape[:other], draws.extent(0), *shape[other + 1 :])
    given = draws.integer(1, 3)
    if given & 1:
        options["sizes"] = tuple(draws.integer(1, 7) for _ in axes)
    if given & 2:
        options["scales"] = tuple(
            draws.choice((0.6, 1.0, 1.2, 1.5, 0.75, 2.0)) for _ in axes
        )
        shape = tuple(max(n, 2) if k in axes else n for k, n in enumerate(shape))
    if draws.flag():
        begins = [draws.choice((0.0, 0.25, 0.3, -0.2)) for _ in axes]
        ends = [draws.choice((1.0, 0.75, 0.7, 1.2)) for _ in axes]
        options["roi"] = (*begins, *ends)
    options["axes"] = axes
    options["exclude_outside"] = draws.flag()
    options["antialias"] = draws.flag()
    options["extrapolation_value"] = 7.0
    is_moved = options["mode"] == "nearest"
    dtype = draws.number_dtype() if is_moved else draws.float_dtype()
    return Sample((draws.array(shape, dtype),), options)


@meaning_of(resize, sample=_sample_resize)
def resize_numpy(
    data: Array,
    *,
    axes: Sequence[int],
    sizes: Sequence[int] = (),
    scales: Sequence[float] = (),
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    cubic_coefficient: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
    roi: Sequence[float] = (),
    extrapolation_value: float = 0.0,
) -> Array:
    places = [axis % data.ndim for axis in axes]
    given = [data.shape[place] for place in places]
    counts, factors = _counts_and_scales(given, sizes, scales)
    bounds = list(roi) or [0] * len(places) + [1] * len(places)
    result = data if mode == "nearest" else data.astype(np.float64)
    weights_dtype = np.float64 if data.dtype == np.float64 else np.float32
    coefficient = float(weights_dtype(cubic_coefficient))
    is_outside = np.zeros((1,) * data.ndim, np.bool_)
    for k in sorted(range(len(places)), key=lambda k: places[k]):
        place = places[k]
        corners = (bounds[k], bounds[len(places) + k])
        positions = [
            _position(x, coordinates, given[k], counts[k], factors[k], corners)
            for x in range(counts[k])
        ]
        outside = [not 0 <= p <= given[k] - 1 for p in positions]
        is_outside = is_outside | _along(np.array(outside), place, data.ndim)
        if mode == "nearest":
            chosen = [_round(p, rounding) for p in positions]
            result = result.take(chosen, axis=place, mode="clip")
        elif positions != list(range(given[k])):
            stretch = min(factors[k], Fraction(1)) if antialias else Fraction(1)
            neighbours, distances = _neighbours(positions, mode, stretch)
            weights = _kernel_numpy(distances, mode, coefficient)
            if exclude_outside:
                weights[(neighbours < 0) | (neighbours >= given[k])] = 0
            if exclude_outside or antialias:
                weights /= weights.sum(axis=1, keepdims=True)
            terms = [
                result.take(neighbour, axis=place, mode="clip")
                * _along(weight, place, data.ndim)
                for neighbour, weight in zip(neighbours.T, weights.T, strict=True)
            ]
            result = np.asarray(sum(terms))
    result = result.astype(data.dtype)
    if coordinates == "tf_crop_and_resize":
        result = np.where(is_outside, data.dtype.type(extrapolation_value), result)
    return np.asarray(result)


def _along(vector: Array, axis: int, rank: int) -> Array:
    """Return a vector as an array of `rank` whose other extents are 1."""
    shape = [1] * rank
    shape[axis] = len(vector)
    return vector.reshape(shape)


def _position(
    x: int,
    coordinates: str,
    n: int,
    m: int,
    s: Fraction,
    corners: Sequence[float],
) -> Fraction:
    """Return the position of element x by the table of `resize`, n, m and s as there."""
    half = Fraction(1, 2)
    begin, end = (as_fraction(corner) * (n - 1) for corner in corners)
    centre = (x + half) / s - half
    along = Fraction(x, max(m - 1, 1))
    table = {
        "half_pixel": centre,
        "half_pixel_symmetric": n * half * (1 - m / (s * n)) + centre,
        "pytorch_half_pixel": centre if m > 1 else Fraction(0),
        "align_corners": along * (n - 1),
        "asymmetric": x / s,
        "tf_half_pixel_for_nn": (x + half) / s,
        "tf_crop_and_resize": begin + along * (end - begin),
    }
    if coordinates == "tf_crop_and_resize" and m == 1:
        return (begin + end) * half
    return table[coordinates]


def _round(position: Fraction, rounding: str) -> int:
    half = Fraction(1, 2)
    table = {
        "round_prefer_floor": math.ceil(position - half),
        "round_prefer_ceil": math.floor(position + half),
        "floor": math.floor(position),
        "ceil": math.ceil(position),
    }
    return table[rounding]


def _neighbours(
    positions: Sequence[Fraction], mode: str, stretch: Fraction
) -> tuple[Array, Array]:
    """Return the neighbours of each position, and their distances in the kernel."""
    reach = math.ceil({"linear": 1, "cubic": 2}[mode] / stretch)
    neighbours = []
    distances = []
    for position in positions:
        first = math.floor(position) - reach + 1
        row = range(first, first + 2 * reach)
        neighbours.append(list(row))
        # An exact fraction until here.
        distances.append([float(abs(n - position) * stretch) for n in row])
    return np.array(neighbours), np.array(distances)


def _kernel_numpy(d: Array, mode: str, a: float) -> Array:
    if mode == "linear":
        return np.asarray(np.maximum(1 - d, 0))
    near = np.polyval([a + 2, -(a + 3), 0, 1], d)
    far = np.polyval([a, -5 * a, 8 * a, -4 * a], d)
    return np.where(d <= 1, near, np.where(d < 2, far, 0))
