"""Classic operators of images: pools, padding, sizes, normalization of channels."""

from __future__ import annotations

from typing import Literal

from refcomp.graph.graph import Value
from refcomp.graph.symbol.declare import classic, same_shapes
from refcomp.graph.symbol.layers import ImageLayout, check_out_layout, four_sides
from refcomp.graph.symbol.operator import NodeMaker
from refcomp.topi.operator import Attribute

_IMAGES = "images [n, c, h, w], or [n, h, w, c] in the layout NHWC."
_METHODS = {"NEAREST_NEIGHBOR": "nearest_neighbor", "BILINEAR": "bilinear"}
_Method = Literal["NEAREST_NEIGHBOR", "BILINEAR"]


def _pool(
    pool_size: tuple[int, int],
    strides: tuple[int, int],
    padding: tuple[int, ...],
    layout: str,
    ceil_mode: bool,
) -> dict[str, Attribute]:
    return {
        "kernel": pool_size,
        "strides": strides,
        "padding": four_sides(padding),
        "layout": layout,
        "ceil_mode": ceil_mode,
    }


@classic(texts={"data": _IMAGES})
def max_pool2d(
    make: NodeMaker,
    data: Value,
    *,
    pool_size: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, ...] = (0, 0),
    layout: ImageLayout = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Value:
    """Return the maximum of each window. Padding is never the maximum.

    Example::

        >>> y = rc.sym.max_pool2d(rc.sym.Variable("x"), pool_size=(2, 2), strides=(2, 2))
        >>> y.infer_shape(x=(1, 3, 8, 8))[1]
        [(1, 3, 4, 4)]
    """
    check_out_layout(layout, out_layout)
    attributes = _pool(pool_size, strides, padding, layout, ceil_mode)
    return make.last("max_pool2d", [data], attributes)


@classic(
    texts={
        "data": _IMAGES,
        "count_include_pad": "True to count padding, which is 0, in the mean.",
    }
)
def avg_pool2d(
    make: NodeMaker,
    data: Value,
    *,
    pool_size: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, ...] = (0, 0),
    layout: ImageLayout = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Value:
    """Return the mean of each window.

    Example::

        >>> y = rc.sym.avg_pool2d(rc.sym.Variable("x"), pool_size=(2, 2), strides=(2, 2))
        >>> y.infer_shape(x=(1, 3, 8, 8))[1]
        [(1, 3, 4, 4)]
    """
    check_out_layout(layout, out_layout)
    attributes = _pool(pool_size, strides, padding, layout, ceil_mode)
    attributes["count_include_pad"] = count_include_pad
    return make.last("avg_pool2d", [data], attributes)


@classic(texts={"data": _IMAGES})
def global_max_pool2d(
    make: NodeMaker, data: Value, *, layout: ImageLayout = "NCHW", out_layout: str = ""
) -> Value:
    """Return the maximum of each channel, [n, c, 1, 1] in the layout NCHW."""
    check_out_layout(layout, out_layout)
    return make.last("global_max_pool2d", [data], {"layout": layout})


@classic(texts={"data": _IMAGES})
def global_avg_pool2d(
    make: NodeMaker, data: Value, *, layout: ImageLayout = "NCHW", out_layout: str = ""
) -> Value:
    """Return the mean of each channel, [n, c, 1, 1] in the layout NCHW."""
    check_out_layout(layout, out_layout)
    return make.last("global_avg_pool2d", [data], {"layout": layout})


@classic(
    texts={
        "data": _IMAGES,
        "scale": "the factor of rows and columns.",
        "method": "how elements are found between those of `data`.",
    }
)
def upsampling(
    make: NodeMaker,
    data: Value,
    *,
    scale: int,
    layout: ImageLayout = "NCHW",
    method: _Method = "NEAREST_NEIGHBOR",
) -> Value:
    """Enlarge images by a whole factor.

    NEAREST_NEIGHBOR takes the element at floor(x / scale), BILINEAR interpolates at x / scale.

    Example::

        >>> rc.sym.upsampling(rc.sym.Variable("x"), scale=2).infer_shape(x=(1, 3, 4, 4))[1]
        [(1, 3, 8, 8)]
    """
    attributes: dict[str, Attribute] = {
        "scale_h": float(scale),
        "scale_w": float(scale),
        "layout": layout,
        "method": _METHODS[method],
    }
    return make.last("upsampling", [data], attributes)


@classic(
    texts={
        "data": _IMAGES,
        "size": "rows and columns of the result.",
        "method": "how elements are found between those of `data`.",
        "align_corners": "True if the corners of both images are the same points.",
    }
)
def resize(
    make: NodeMaker,
    data: Value,
    *,
    size: tuple[int, int],
    layout: ImageLayout = "NCHW",
    method: _Method = "BILINEAR",
    align_corners: bool = False,
) -> Value:
    """Resize images to a given size.

    Element x of m is at x * n / m in an axis of n elements, or at x * (n - 1) / (m - 1) if corners
    are aligned. NEAREST_NEIGHBOR rounds this down, or to the nearest if corners are aligned.

    Example::

        >>> rc.sym.resize(rc.sym.Variable("x"), size=(6, 8)).infer_shape(x=(1, 3, 4, 4))[1]
        [(1, 3, 6, 8)]
    """
    attributes: dict[str, Attribute] = {
        "size": size,
        "layout": layout,
        "mode": "linear" if method == "BILINEAR" else "nearest",
        "coordinates": "align_corners" if align_corners else "asymmetric",
        "rounding": "round_prefer_ceil" if align_corners else "floor",
    }
    return make.last("resize2d", [data], attributes)


@classic(
    texts={
        "pad_width": "for each axis the elements to add before and after it.",
        "pad_value": "the value of the added elements.",
    }
)
def pad(
    make: NodeMaker,
    data: Value,
    *,
    pad_width: tuple[tuple[int, int], ...],
    pad_value: float = 0.0,
) -> Value:
    """Return the data with elements added around it.

    Example::

        >>> y = rc.sym.pad(rc.sym.Variable("x"), pad_width=((0, 0), (1, 2)))
        >>> y.infer_shape(x=(2, 3))[1]
        [(2, 6)]
    """
    number = (
        int(pad_value)
        if not data.dtype.is_float and pad_value.is_integer()
        else pad_value
    )
    attributes: dict[str, Attribute] = {
        "pad_before": tuple(before for before, _ in pad_width),
        "pad_after": tuple(after for _, after in pad_width),
        "pad_value": number,
    }
    return make.last("pad", [data], attributes)


@classic(
    shapes=same_shapes,
    texts={
        "size": "the number of neighbouring channels, itself included.",
        "axis": "the axis of the channels.",
        "bias": "added to the sum.",
        "alpha": "the factor of the sum.",
        "beta": "the exponent.",
    },
)
def lrn(
    make: NodeMaker,
    data: Value,
    *,
    size: int = 5,
    axis: int = 1,
    bias: float = 2.0,
    alpha: float = 0.0001,
    beta: float = 0.75,
) -> Value:
    """Return x / (bias + alpha / size * sum of squares of neighbouring channels) ** beta."""
    attributes: dict[str, Attribute] = {
        "size": size,
        "axis": axis,
        "bias": bias,
        "alpha": alpha,
        "beta": beta,
    }
    return make.last("lrn", [data], attributes)
