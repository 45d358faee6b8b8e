"""Classic operators of layers: products, convolutions, activations, normalizations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from refcomp.foundation.dtype import DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.graph.dims import Shape
from refcomp.graph.graph import Value
from refcomp.graph.symbol.declare import classic, same_shapes
from refcomp.graph.symbol.operator import Attributes, NodeMaker
from refcomp.topi.operator import Attribute

ImageLayout = Literal["NCHW", "NHWC"]
_SAME = ("", "same")


def four_sides(padding: Sequence[int]) -> tuple[int, ...]:
    """Return a padding of one, two or four numbers as top, left, bottom, right.

    Raises:
        UserError: it has another number of numbers.
    """
    if len(padding) not in (1, 2, 4):
        raise UserError(
            f"the padding {tuple(padding)} has {len(padding)} numbers",
            remedy="give one number, two (rows, columns), or four (top, left, bottom, right)",
        )
    return tuple(padding) * (4 // len(padding))


def permutation(source: str, target: str, attribute: str) -> tuple[int, ...]:
    """Return the axes that bring the layout `source` into the layout `target`.

    Raises:
        UserError: the layouts do not have the same letters.
    """
    if sorted(source) != sorted(target):
        raise UserError(
            f"{attribute} cannot be {source!r}",
            remedy=f"give an order of the letters {', '.join(target)}",
        )
    return tuple(map(source.index, target))


def in_layout(
    make: NodeMaker, value: Value, source: str, target: str, attribute: str
) -> Value:
    """Return a value with its axes moved from the layout `source` to the layout `target`."""
    axes = permutation(source, target, attribute)
    if axes == tuple(range(len(axes))):
        return value
    return make.step("transpose", [value], {"axes": axes})


def check_out_layout(layout: str, out_layout: str) -> None:
    """Raise UserError unless the layout of the result is that of the data."""
    if out_layout not in ("", "__undef__", layout):
        raise UserError(
            f"out_layout is {out_layout!r}, but layout is {layout!r}",
            remedy="leave out_layout out, and transpose the result",
        )


def _dense_shapes(
    known: Mapping[str, Shape], attributes: Attributes
) -> Mapping[str, Shape]:
    units = _count(attributes["units"])
    return {"weight": (units, known["data"][1]), "bias": (units,)}


def _count(value: object) -> int:
    assert isinstance(value, int)
    return value


@classic(
    shapes=_dense_shapes,
    given_if={"bias": "use_bias"},
    texts={
        "data": "a matrix [n, c].",
        "weight": "[units, c], a variable `NAME_weight` by default.",
        "bias": "[units], a variable `NAME_bias` by default; only if `use_bias` is True.",
        "units": "the number of outputs of the layer.",
        "use_bias": "True to add a bias.",
    },
)
def dense(
    make: NodeMaker,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    units: int,
    use_bias: bool = True,
) -> Value:
    """Return data @ transposed weight + bias, a matrix [n, units].

    Example::

        >>> y = rc.sym.dense(rc.sym.Variable("x"), units=10, name="fc")
        >>> y.infer_shape(x=(1, 64))
        ([(1, 64), (10, 64), (10,)], [(1, 10)])
    """
    if len(data.shape) != 2:
        raise UserError(
            f"dense cannot be applied to {len(data.shape)} dimensions",
            remedy="flatten the data to a matrix first",
        )
    if weight.shape[:1] != (units,):
        raise UserError(
            f"dense has {units} units, but the weights are {weight}",
            remedy="give weights [units, c]",
        )
    return make.last("dense", [data, weight, bias])


def _out_dtype(data: DType, attributes: Attributes) -> DType:
    text = attributes["out_dtype"]
    return data if text in _SAME else as_dtype(text)


def _convolution_dtypes(
    inputs: Sequence[DType], attributes: Attributes
) -> Sequence[DType]:
    return [_out_dtype(inputs[0], attributes)]


def _weight_layout(layout: object, kernel_layout: object) -> str:
    return str(kernel_layout) or {"NCHW": "OIHW", "NHWC": "HWIO"}[str(layout)]


def _conv2d_shapes(
    known: Mapping[str, Shape], attributes: Attributes
) -> Mapping[str, Shape]:
    layout = str(attributes["layout"])
    inside = known["data"][layout.index("C")]
    groups = _count(attributes["groups"])
    channels = _count(attributes["channels"])
    if not isinstance(inside, int) or groups < 1 or inside % groups:
        return {}
    kernel = attributes["kernel_size"]
    assert isinstance(kernel, tuple)
    extents = dict(zip("OIHW", (channels, inside // groups, *kernel), strict=True))
    order = _weight_layout(layout, attributes["kernel_layout"])
    permutation(order, "OIHW", "kernel_layout")
    return {"weight": tuple(extents[axis] for axis in order), "bias": (channels,)}


def _windows(
    strides: tuple[int, int],
    padding: Sequence[int],
    dilation: tuple[int, int],
    groups: int,
) -> dict[str, Attribute]:
    return {
        "strides": strides,
        "padding": four_sides(padding),
        "dilation": dilation,
        "groups": groups,
    }


def _with_dtype(
    make: NodeMaker,
    bias: Value | None,
    out_dtype: str,
    attributes: dict[str, Attribute],
) -> Value | None:
    """Add the dtype of the sums to `attributes`, and return the bias in this dtype."""
    if out_dtype in _SAME:
        return bias
    attributes["out_dtype"] = out_dtype
    if bias is None or bias.dtype == as_dtype(out_dtype):
        return bias
    return make.step("cast", [bias], {"dtype": out_dtype})


def _check_filters(
    weight: Value, order: str, channels: int, kernel_size: tuple[int, int]
) -> None:
    extents = dict(zip(order, weight.shape, strict=False))
    found = (extents.get("O"), extents.get("H"), extents.get("W"))
    if len(weight.shape) != 4 or found != (channels, *kernel_size):
        raise UserError(
            f"the weights are {weight}, but channels is {channels} "
            f"and kernel_size {kernel_size}",
            remedy=f"give weights in the layout {order} with these extents",
        )


@classic(
    shapes=_conv2d_shapes,
    dtypes=_convolution_dtypes,
    given_if={"bias": "use_bias"},
    texts={
        "data": "images [n, c, h, w], or [n, h, w, c] in the layout NHWC.",
        "weight": "filters [channels, c / groups, kh, kw], or [kh, kw, c / groups, channels] in "
        "the layout NHWC; a variable `NAME_weight` by default.",
    },
)
def conv2d(
    make: NodeMaker,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    channels: int,
    kernel_size: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, ...] = (0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
    layout: ImageLayout = "NCHW",
    kernel_layout: str = "",
    out_layout: str = "",
    out_dtype: str = "same",
    use_bias: bool = True,
) -> Value:
    """Return the convolution of images with filters, plus a bias.

    The result has floor((h + padding - (kh - 1) * dilation - 1) / stride) + 1 rows, and columns
    likewise. If `groups` is the number of channels, the convolution is depthwise.

    Example::

        >>> y = rc.sym.conv2d(rc.sym.Variable("x"), channels=8, kernel_size=(3, 3), name="c")
        >>> y.infer_shape(x=(1, 3, 32, 32))
        ([(1, 3, 32, 32), (8, 3, 3, 3), (8,)], [(1, 8, 30, 30)])
    """
    check_out_layout(layout, out_layout)
    order = _weight_layout(layout, kernel_layout)
    target = _weight_layout(layout, "")
    permutation(order, target, "kernel_layout")
    _check_filters(weight, order, channels, kernel_size)
    weight = in_layout(make, weight, order, target, "kernel_layout")
    attributes = _windows(strides, padding, dilation, groups)
    bias = _with_dtype(make, bias, out_dtype, attributes)
    operator = "conv2d" if layout == "NCHW" else "conv2d_nhwc"
    return make.last(operator, [data, weight, bias], attributes)


def _conv2d_transpose_shapes(
    known: Mapping[str, Shape], attributes: Attributes
) -> Mapping[str, Shape]:
    layout = str(attributes["layout"])
    inside = known["data"][layout.index("C")]
    groups = _count(attributes["groups"])
    channels = _count(attributes["channels"])
    kernel = attributes["kernel_size"]
    assert isinstance(kernel, tuple)
    if groups < 1 or channels % groups:
        return {}
    outside = channels // groups
    is_first = layout == "NCHW"
    weight = (inside, outside, *kernel) if is_first else (*kernel, inside, outside)
    return {"weight": weight, "bias": (channels,)}


@classic(
    shapes=_conv2d_transpose_shapes,
    dtypes=_convolution_dtypes,
    given_if={"bias": "use_bias"},
    texts={
        "data": "images [n, c, h, w], or [n, h, w, c] in the layout NHWC.",
        "weight": "filters [c, channels / groups, kh, kw], or [kh, kw, c, channels / groups] in "
        "the layout NHWC; a variable `NAME_weight` by default.",
        "output_padding": "further rows and columns at the bottom and right.",
        "kernel_layout": "accepted for old files; the weights are as above in any case.",
    },
)
def conv2d_transpose(
    make: NodeMaker,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    channels: int,
    kernel_size: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, ...] = (0, 0),
    output_padding: tuple[int, int] = (0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
    layout: ImageLayout = "NCHW",
    kernel_layout: Literal["OIHW", "IOHW", "HWOI"] = "OIHW",
    out_dtype: str = "same",
    use_bias: bool = True,
) -> Value:
    """Return the transposed convolution of images with filters, plus a bias.

    The result has (h - 1) * stride + (kh - 1) * dilation + 1 rows, less the padding, plus the
    output padding; columns likewise.

    Example::

        >>> x = rc.sym.Variable("x")
        >>> y = rc.sym.conv2d_transpose(x, channels=2, kernel_size=(4, 4), strides=(2, 2), name="c")
        >>> y.infer_shape(x=(1, 3, 4, 4))
        ([(1, 3, 4, 4), (3, 2, 4, 4), (2,)], [(1, 2, 10, 10)])
    """
    order = "IOHW" if layout == "NCHW" else "HWIO"
    if groups < 1 or channels % groups:
        raise UserError(
            f"{channels} channels cannot be divided into {groups} groups",
            remedy="give a number of groups that divides the channels",
        )
    _check_filters(weight, order, channels // groups, kernel_size)
    attributes = _windows(strides, padding, dilation, groups)
    attributes |= {"output_padding": output_padding, "layout": layout}
    bias = _with_dtype(make, bias, out_dtype, attributes)
    return make.last("conv2d_transpose", [data, weight, bias], attributes)


@classic(shapes=same_shapes)
def relu(make: NodeMaker, data: Value) -> Value:
    """Return max(x, 0), for each element x."""
    return make.last("relu", [data])


@classic(shapes=same_shapes, texts={"alpha": "the factor of negative elements."})
def leaky_relu(make: NodeMaker, data: Value, *, alpha: float = 0.25) -> Value:
    """Return x where x > 0, else alpha * x, for each element x."""
    return make.last("leaky_relu", [data], {"alpha": alpha})


def _channel_shapes(
    known: Mapping[str, Shape], attributes: Attributes
) -> Mapping[str, Shape]:
    """Return a vector with an element for each channel of `data`, under every name."""
    extent = known["data"][_count(attributes["axis"])]
    names = ("alpha", "gamma", "beta", "moving_mean", "moving_var")
    return dict.fromkeys(names, (extent,))


@classic(
    shapes=_channel_shapes,
    texts={
        "alpha": "[c], the factor of negative elements of each channel; "
        "a variable `NAME_alpha` by default.",
        "axis": "the axis of the channels.",
    },
)
def prelu(make: NodeMaker, data: Value, alpha: Value, *, axis: int = 1) -> Value:
    """Return x where x >= 0, else alpha * x, with an alpha for each channel."""
    rank = len(data.shape)
    if not -rank <= axis < rank:
        raise UserError(f"the data has no axis {axis}", remedy=f"it has {rank} axes")
    behind = rank - 1 - axis % rank
    slope = alpha
    if behind:
        axes = tuple(range(1, behind + 1))
        slope = make.step("expand_dims", [alpha], {"axis": axes})
    return make.last("prelu", [data, slope])


@classic(
    shapes=same_shapes,
    hidden_outputs=1,
    texts={"rate": "the share of elements that training sets to 0."},
)
def dropout(make: NodeMaker, data: Value, *, rate: float = 0.5) -> Value:
    """Return the data: elements are dropped in training only."""
    del rate
    return make.last("identity", [data])


@classic(
    shapes=_channel_shapes,
    hidden_outputs=2,
    texts={
        "gamma": "[c], the factor of each channel; a variable `NAME_gamma` by default.",
        "beta": "[c], added to each channel; a variable `NAME_beta` by default.",
        "moving_mean": "[c], the means; a variable `NAME_moving_mean` by default.",
        "moving_var": "[c], the variances; a variable `NAME_moving_var` by default.",
        "axis": "the axis of the channels.",
        "epsilon": "added to the variances.",
        "center": "False to leave out beta.",
        "scale": "False to leave out gamma.",
    },
)
def batch_norm(
    make: NodeMaker,
    data: Value,
    gamma: Value,
    beta: Value,
    moving_mean: Value,
    moving_var: Value,
    *,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Value:
    """Return (x - mean) / sqrt(variance + epsilon) * gamma + beta for each channel.

    Mean and variance are those that training found.
    """
    factor = gamma if scale else make.step("ones_like", [gamma])
    shift = beta if center else make.step("zeros_like", [beta])
    inputs = [data, factor, shift, moving_mean, moving_var]
    return make.last("batch_norm", inputs, {"axis": axis, "epsilon": epsilon})


@classic(shapes=same_shapes)
def softmax(make: NodeMaker, data: Value, *, axis: int = -1) -> Value:
    """Return exp(x) / sum of exp(x) along an axis, computed without overflow."""
    return make.last("softmax", [data], {"axis": axis})


@classic(shapes=same_shapes)
def log_softmax(make: NodeMaker, data: Value, *, axis: int = -1) -> Value:
    """Return the logarithm of softmax along an axis."""
    return make.last("log_softmax", [data], {"axis": axis})


@classic(
    shapes=same_shapes,
    texts={"axis": "the axes of the norm.", "eps": "the least sum of squares."},
)
def l2_normalize(
    make: NodeMaker, data: Value, *, eps: float = 1e-12, axis: tuple[int, ...] = (1,)
) -> Value:
    """Return x / sqrt(max(sum of x * x, eps)) along some axes."""
    return make.last("l2_normalize", [data], {"axis": axis, "epsilon": eps})


@classic()
def flatten(make: NodeMaker, data: Value) -> Value:
    """Return a matrix [n, c * h * w] with the elements of [n, c, h, w], of any rank."""
    if not data.shape:
        raise UserError("flatten needs an axis", remedy="give data of rank 1 or more")
    return make.last("flatten", [data])


@classic(
    texts={
        "lhs": "[..., m, k], or [..., k, m] if it is transposed.",
        "rhs": "[..., k, n], or [..., n, k] if it is transposed.",
        "transpose_a": "True to exchange the last two axes of `lhs`.",
        "transpose_b": "True to exchange the last two axes of `rhs`.",
    }
)
def matmul(
    make: NodeMaker,
    lhs: Value,
    rhs: Value,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Value:
    """Return the products of the matrices in the last two axes, [..., m, n]."""
    flags: dict[str, Attribute] = {"trans_a": transpose_a, "trans_b": transpose_b}
    return make.last("matmul", [lhs, rhs], flags)
