"""Resizing of images in a layout, and upsampling by factors, as special cases of `resize`.

Reference: TVM, topi.image.resize1d, resize2d and resize3d, topi.nn.upsampling and upsampling3d.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.image.positions import COORDINATES, ROUNDINGS, require_choice
from refcomp.topi.image.resampling import MODES, Resampling
from refcomp.topi.image.resize import resize_axes, resize_numpy
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_rank

_PLANES = {"nearest_neighbor": "nearest", "bilinear": "linear", "bicubic": "cubic"}
_CUBES = {"nearest_neighbor": "nearest", "trilinear": "linear"}


def image_axes(layout: str, spatial: str, operator: str) -> tuple[int, ...]:
    """Return the spatial axes of a layout: first or last but for the channels.

    Args:
        layout: such as NCHW.
        spatial: the spatial axes, such as HW.
        operator: for the message.

    Raises:
        UserError: the layout is neither N, C, spatial axes nor N, spatial axes, C.
    """
    require_choice(layout, (f"NC{spatial}", f"N{spatial}C"), operator, "layout")
    first = layout.index(spatial)
    return tuple(range(first, first + len(spatial)))


def _resize_images(
    data: Tensor, options: Resampling, *, size: Sequence[int], layout: str, spatial: str
) -> Tensor:
    axes = image_axes(layout, spatial, options.operator)
    require_rank(data, len(layout), options.operator, "the data")
    return resize_axes(data, options, axes=axes, sizes=size)


def resize1d(
    data: Tensor,
    *,
    size: Sequence[int],
    layout: str = "NCW",
    mode: str = "linear",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    cubic_coefficient: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
) -> Tensor:
    """Resize signals to a given size.

    This is `resize` along the one spatial axis; its page has the formulas.

    Args:
        data: [n, c, w], or [n, w, c] in the layout NWC.
            The mode nearest takes any dtype, others take floats.
        size: the width of the result, each at least 1.
        layout: NCW or NWC.
        mode: nearest, linear or cubic.
        coordinates: as for `resize`.
        rounding: as for `resize`.
        cubic_coefficient: as for `resize`.
        exclude_outside: as for `resize`.
        antialias: as for `resize`.

    Returns:
        A tensor of the dtype and layout of `data`.

    Raises:
        UserError: an argument is not as described.

    Reference: TVM, topi.image.resize1d; ONNX Resize.

    Example::

        >>> A = rc.placeholder((1, 1, 2), name="A")
        >>> B = rc.topi.resize1d(A, size=(4,))
        >>> a = np.array([0, 4], "float32").reshape((1, 1, 2))
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.ravel())
        [0. 1. 3. 4.]
    """
    options = Resampling(
        operator="resize1d",
        mode=mode,
        coordinates=coordinates,
        rounding=rounding,
        cubic_coefficient=cubic_coefficient,
        exclude_outside=exclude_outside,
        antialias=antialias,
    )
    return _resize_images(data, options, size=size, layout=layout, spatial="W")


def _sample_resize1d(draws: Draws) -> Sample:
    return _sample_images(draws, "W")


@meaning_of(resize1d, sample=_sample_resize1d)
def resize1d_numpy(
    data: Array,
    *,
    size: Sequence[int],
    layout: str = "NCW",
    mode: str = "linear",
    **how: Any,
) -> Array:
    axes = image_axes(layout, "W", "resize1d")
    return resize_numpy(data, axes=axes, sizes=size, mode=mode, **how)


def resize2d(
    data: Tensor,
    *,
    size: Sequence[int],
    layout: str = "NCHW",
    mode: str = "linear",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    cubic_coefficient: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
) -> Tensor:
    """Resize images to a given size.

    This is `resize` along the two spatial axes; its page has the formulas.

    Args:
        data: [n, c, h, w], or [n, h, w, c] in the layout NHWC.
            The mode nearest takes any dtype, others take floats.
        size: height and width of the result, each at least 1.
        layout: NCHW or NHWC.
        mode: nearest, linear or cubic.
        coordinates: as for `resize`.
        rounding: as for `resize`.
        cubic_coefficient: as for `resize`.
        exclude_outside: as for `resize`.
        antialias: as for `resize`.

    Returns:
        A tensor of the dtype and layout of `data`.

    Raises:
        UserError: an argument is not as described.

    Reference: TVM, topi.image.resize2d; ONNX Resize.

    Example::

        >>> A = rc.placeholder((1, 1, 1, 2), name="A")
        >>> B = rc.topi.resize2d(A, size=(1, 4))
        >>> a = np.array([0, 4], "float32").reshape((1, 1, 1, 2))
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.ravel())
        [0. 1. 3. 4.]
    """
    options = Resampling(
        operator="resize2d",
        mode=mode,
        coordinates=coordinates,
        rounding=rounding,
        cubic_coefficient=cubic_coefficient,
        exclude_outside=exclude_outside,
        antialias=antialias,
    )
    return _resize_images(data, options, size=size, layout=layout, spatial="HW")


def _sample_resize2d(draws: Draws) -> Sample:
    return _sample_images(draws, "HW")


@meaning_of(resize2d, sample=_sample_resize2d)
def resize2d_numpy(
    data: Array,
    *,
    size: Sequence[int],
    layout: str = "NCHW",
    mode: str = "linear",
    **how: Any,
) -> Array:
    axes = image_axes(layout, "HW", "resize2d")
    return resize_numpy(data, axes=axes, sizes=size, mode=mode, **how)


def resize3d(
    data: Tensor,
    *,
    size: Sequence[int],
    layout: str = "NCDHW",
    mode: str = "linear",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    cubic_coefficient: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
) -> Tensor:
    """Resize volumes to a given size.

    This is `resize` along the three spatial axes; its page has the formulas.

    Args:
        data: [n, c, d, h, w], or [n, d, h, w, c] in the layout NDHWC.
            The mode nearest takes any dtype, others take floats.
        size: depth, height and width of the result, each at least 1.
        layout: NCDHW or NDHWC.
        mode: nearest, linear or cubic.
        coordinates: as for `resize`.
        rounding: as for `resize`.
        cubic_coefficient: as for `resize`.
        exclude_outside: as for `resize`.
        antialias: as for `resize`.

    Returns:
        A tensor of the dtype and layout of `data`.

    Raises:
        UserError: an argument is not as described.

    Reference: TVM, topi.image.resize3d; ONNX Resize.

    Example::

        >>> A = rc.placeholder((1, 1, 1, 1, 2), name="A")
        >>> B = rc.topi.resize3d(A, size=(1, 1, 4))
        >>> a = np.array([0, 4], "float32").reshape((1, 1, 1, 1, 2))
        >>> (b,) = rc.oracle.evaluate([B], {A: a})
        >>> print(b.ravel())
        [0. 1. 3. 4.]
    """
    options = Resampling(
        operator="resize3d",
        mode=mode,
        coordinates=coordinates,
        rounding=rounding,
        cubic_coefficient=cubic_coefficient,
        exclude_outside=exclude_outside,
        antialias=antialias,
    )
    return _resize_images(data, options, size=size, layout=layout, spatial="DHW")


def _sample_resize3d(draws: Draws) -> Sample:
    return _sample_images(draws, "DHW")


@meaning_of(resize3d, sample=_sample_resize3d)
def resize3d_numpy(
    data: Array,
    *,
    size: Sequence[int],
    layout: str = "NCDHW",
    mode: str = "linear",
    **how: Any,
) -> Array:
    axes = image_axes(layout, "DHW", "resize3d")
    return resize_numpy(data, axes=axes, sizes=size, mode=mode, **how)


def _sample_images(draws: Draws, spatial: str) -> Sample:
    layout = draws.choice((f"NC{spatial}", f"N{spatial}C"))
    rank = len(spatial)
    longest = {1: 6, 2: 4, 3: 3}[rank]
    extents = {"N": draws.choice((0, 1, 1, 1, 2)), "C": draws.integer(1, 2)}
    shape = [
        extents[axis] if axis in extents else draws.integer(1, longest)
        for axis in layout
    ]
    mode = draws.choice(MODES)
    options = {
        "mode": mode,
        "layout": layout,
        "size": tuple(draws.integer(1, longest + 1) for _ in spatial),
        "coordinates": draws.choice(COORDINATES),
        "rounding": draws.choice(ROUNDINGS),
        "exclude_outside": draws.flag(),
        "antialias": draws.flag(),
    }
    dtype = draws.number_dtype() if mode == "nearest" else draws.float_dtype()
    return Sample((draws.array(shape, dtype),), options)


def upsampling(
    data: Tensor,
    *,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> Tensor:
    """Enlarge images by a factor along each axis.

    The method nearest_neighbor takes element floor(x / scale) of the input. The others interpolate
    at x / scale, or with `align_corners` at x * (n - 1) / (m - 1), where m is the extent of the
    result and n that of the input. This is `resize` with the coordinates asymmetric or
    align_corners; its page has the formulas and says how NaN and infinity propagate.

    Args:
        data: [n, c, h, w], or [n, h, w, c] in the layout NHWC. The method nearest_neighbor takes
            any dtype, others take floats.
        scale_h: the factor of the height, above 0. The result has floor(h * scale_h) rows.
        scale_w: the factor of the width, above 0.
        layout: NCHW or NHWC.
        method: nearest_neighbor, bilinear or bicubic.
        align_corners: True if corners stay corners; nearest_neighbor ignores it.

    Returns:
        A tensor of the dtype and layout of `data`.

    Raises:
        UserError: an argument is not as described.

    Reference: TVM, topi.nn.upsampling; ONNX Upsample.

    Example::

        >>> A = rc.placeholder((1, 1, 1, 2), name="A")
        >>> B = rc.topi.upsampling(A, scale_h=2.0, scale_w=2.0)
        >>> a = np.array([1, 2], "float32").reshape(1, 1, 1, 2)
        >>> print(rc.oracle.evaluate([B], {A: a})[0][0, 0])
        [[1. 1. 2. 2.]
         [1. 1. 2. 2.]]
    """
    require_choice(method, tuple(_PLANES), "upsampling", "method")
    axes = image_axes(layout, "HW", "upsampling")
    require_rank(data, 4, "upsampling", "the data")
    options = _upsampling("upsampling", _PLANES[method], align_corners)
    return resize_axes(data, options, axes=axes, scales=(scale_h, scale_w))


def _upsampling(operator: str, mode: str, align_corners: bool) -> Resampling:
    is_aligned = align_corners and mode != "nearest"
    return Resampling(
        operator=operator,
        mode=mode,
        coordinates="align_corners" if is_aligned else "asymmetric",
        rounding="floor",
    )


def _sample_upsampling(draws: Draws) -> Sample:
    sample = _sample_images(draws, "HW")
    method = draws.choice(tuple(_PLANES))
    options = {
        "layout": sample.attributes["layout"],
        "method": method,
        "scale_h": draws.choice((1.0, 1.5, 2.0, 3.0)),
        "scale_w": draws.choice((1.0, 1.25, 2.0)),
        "align_corners": draws.flag(),
    }
    (data,) = sample.operands
    assert data is not None
    if method != "nearest_neighbor" and data.dtype.kind in "iu":
        data = data.astype(np.float32)
    return Sample((data,), options)


@meaning_of(upsampling, sample=_sample_upsampling)
def upsampling_numpy(
    data: Array,
    *,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> Array:
    is_aligned = align_corners and method != "nearest_neighbor"
    return resize_numpy(
        data,
        axes=image_axes(layout, "HW", "upsampling"),
        scales=(scale_h, scale_w),
        mode=_PLANES[method],
        coordinates="align_corners" if is_aligned else "asymmetric",
        rounding="floor",
    )


def upsampling3d(
    data: Tensor,
    *,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> Tensor:
    """Enlarge volumes by a factor along each axis.

    The formulas are those of `upsampling`, with a third spatial axis.

    Args:
        data: [n, c, d, h, w], or [n, d, h, w, c] in the layout NDHWC. The method nearest_neighbor
            takes any dtype, trilinear takes floats.
        scale_d: the factor of the depth, above 0. The result has floor(d * scale_d) planes.
        scale_h: the factor of the height, above 0.
        scale_w: the factor of the width, above 0.
        layout: NCDHW or NDHWC.
        method: nearest_neighbor or trilinear.
        align_corners: True if corners stay corners; nearest_neighbor ignores it.

    Returns:
        A tensor of the dtype and layout of `data`.

    Raises:
        UserError: an argument is not as described.

    Reference: TVM, topi.nn.upsampling3d.

    Example::

        >>> A = rc.placeholder((1, 1, 1, 1, 2), name="A")
        >>> B = rc.topi.upsampling3d(A, scale_d=1.0, scale_h=1.0, scale_w=2.0, method="trilinear")
        >>> a = np.array([1, 2], "float32").reshape(1, 1, 1, 1, 2)
        >>> print(rc.oracle.evaluate([B], {A: a})[0].ravel())
        [1.  1.5 2.  2. ]
    """
    require_choice(method, tuple(_CUBES), "upsampling3d", "method")
    axes = image_axes(layout, "DHW", "upsampling3d")
    require_rank(data, 5, "upsampling3d", "the data")
    options = _upsampling("upsampling3d", _CUBES[method], align_corners)
    return resize_axes(data, options, axes=axes, scales=(scale_d, scale_h, scale_w))


def _sample_upsampling3d(draws: Draws) -> Sample:
    sample = _sample_images(draws, "DHW")
    method = draws.choice(tuple(_CUBES))
    options = {
        "layout": sample.attributes["layout"],
        "method": method,
        "scale_d": draws.choice((1.0, 2.0)),
        "scale_h": draws.choice((1.0, 1.5)),
        "scale_w": draws.choice((1.0, 1.25, 2.0)),
        "align_corners": draws.flag(),
    }
    (data,) = sample.operands
    assert data is not None
    if method != "nearest_neighbor" and data.dtype.kind in "iu":
        data = data.astype(np.float32)
    return Sample((data,), options)


@meaning_of(upsampling3d, sample=_sample_upsampling3d)
def upsampling3d_numpy(
    data: Array,
    *,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> Array:
    is_aligned = align_corners and method != "nearest_neighbor"
    return resize_numpy(
        data,
        axes=image_axes(layout, "DHW", "upsampling3d"),
        scales=(scale_d, scale_h, scale_w),
        mode=_CUBES[method],
        coordinates="align_corners" if is_aligned else "asymmetric",
        rounding="floor",
    )
