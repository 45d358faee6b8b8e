"""Operators that resize tensors along axes: Resize and Upsample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value
from refcomp.topi.image.positions import as_fraction
from refcomp.topi.operator import Attribute

_MAX_ELEMENTS = 1 << 40
_CROP = "tf_crop_and_resize"
# Modes of Upsample-1 and of Resize, by their names in `resize`.
_MODES = {"bilinear": "linear"}


@dataclass(frozen=True, slots=True)
class _AxisResize:
    """The resizing of one axis.

    Attributes:
        axis: the axis, counted from 0.
        scale: the factor from the input to the result, for positions.
        size: the extent of the result; None for floor(extent * scale).
        begin, end: the part of the input that tf_crop_and_resize takes; 0 and 1 for all of it.
    """

    axis: int
    scale: float
    size: int | None = None
    begin: float = 0.0
    end: float = 1.0

    @property
    def is_identity(self) -> bool:
        """Return True if the axis stays as it is."""
        return (self.scale, self.begin, self.end) == (1, 0, 1)


@converter("Upsample")
def upsample_images(node: OnnxNode) -> Value:
    """Convert Upsample-1, which has one factor for heights and one for widths."""
    rank = len(node.required(0).shape)
    if rank != 4:
        raise UserError(
            f"its input is {node.required(0)}", remedy="give a tensor [n, c, h, w]"
        )
    factors = (1, 1, node.attributes["height_scale"], node.attributes["width_scale"])
    return _by_old_scales(node, factors)


@converter("Upsample", since=7)
def upsample_by_attribute(node: OnnxNode) -> Value:
    """Convert Upsample-7, whose scales are an attribute."""
    return _by_old_scales(node, node.attributes["scales"])


@converter("Upsample", since=9)
@converter("Resize", since=10)
def resize_by_scales(node: OnnxNode) -> Value:
    """Convert Resize-10 and Upsample, whose scales are an input."""
    return _by_old_scales(node, _numbers(node, node.required(1), "scales"))


def _by_old_scales(node: OnnxNode, scales: Sequence[float]) -> Value:
    """Return the data at positions x / s, as all versions before Resize-11 mean it.

    The texts of these versions do not say which element is the nearest one. ONNX Runtime rounds
    down where an axis grows, and up where it shrinks.
    """
    data = node.required(0)
    _check_count(node, scales, len(data.shape), "scales")
    _check_finite(scales, "scales")
    mode = _mode(node)
    parts = [_AxisResize(k, s) for k, s in enumerate(scales) if s != 1]
    options: dict[str, Attribute] = {"mode": mode, "coordinates": "asymmetric"}
    if mode != "nearest":
        return _resized(node, parts, options)
    grown = [one for one in parts if one.scale > 1]
    shrunk = [one for one in parts if one.scale < 1]
    larger = _resized(node, grown, {**options, "rounding": "floor"})
    return _resized(node, shrunk, {**options, "rounding": "ceil"}, larger)


@converter("Resize", since=11)
def resize(node: OnnxNode) -> Value:
    """Convert Resize. Axes whose extent stays are left alone, so that they may be symbols."""
    data = node.required(0)
    attributes = node.attributes
    rank = len(data.shape)
    given = attributes.get("axes", range(rank))
    axes = [node.axis(axis, rank) for axis in given]
    coordinates = attributes["coordinate_transformation_mode"]
    bounds = [0.0] * len(axes) + [1.0] * len(axes)
    if coordinates == _CROP:
        bounds = _numbers(node, node.required(1), "roi")
        _check_count(node, bounds, 2 * len(axes), "roi")
        _check_finite(bounds, "roi")
    scales = _optional(node, 2)
    sizes = _optional(node, 3)
    if (scales is None) == (sizes is None):
        raise UserError(
            "it has both scales and sizes, or neither",
            remedy="give one of the two inputs, with elements",
        )
    if sizes is not None:
        parts = _by_sizes(node, axes, node.integers(sizes, "sizes"))
    else:
        assert scales is not None
        factors = _numbers(node, scales, "scales")
        _check_count(node, factors, len(axes), "scales")
        _check_finite(factors, "scales")
        parts = [_AxisResize(axis, s) for axis, s in zip(axes, factors, strict=True)]
        if coordinates == "align_corners":
            coordinates = _CROP
            bounds[len(axes) :] = [_last_aligned(node, one) for one in parts]
    corners = zip(bounds[: len(axes)], bounds[len(axes) :], strict=True)
    cropped = [
        _AxisResize(one.axis, one.scale, one.size, begin, end)
        for one, (begin, end) in zip(parts, corners, strict=True)
    ]
    changed = [one for one in cropped if not one.is_identity]
    mode = _mode(node)
    options: dict[str, Attribute] = {
        "mode": mode,
        "coordinates": coordinates,
        "rounding": attributes["nearest_mode"],
        "cubic_coefficient": attributes["cubic_coeff_a"],
        "exclude_outside": bool(attributes["exclude_outside"]),
        "antialias": mode != "nearest" and bool(attributes.get("antialias", 0)),
        "extrapolation_value": attributes["extrapolation_value"],
    }
    return _resized(node, changed, options)


def _last_aligned(node: OnnxNode, one: _AxisResize) -> float:
    """Return the position of the last element of an axis with aligned corners: 1 is the last.

    ONNX's tests let the corners be those of the extent before it is rounded down, n * s. So element
    x is at x * (n - 1) / (n * s - 1), and the last one, m - 1, maybe before the last of the input.
    """
    if one.scale == 1:
        return 1.0
    wanted = node.extent(node.required(0), one.axis) * as_fraction(one.scale)
    last = math.floor(wanted) - 1
    return float(last / (wanted - 1)) if last > 0 else 0.0


def _by_sizes(
    node: OnnxNode, axes: Sequence[int], sizes: Sequence[int]
) -> list[_AxisResize]:
    """Return how axes get extents, or extents of the same aspect ratio within or around these."""
    _check_count(node, sizes, len(axes), "sizes")
    data = node.required(0)
    extents = [node.extent(data, axis) for axis in axes]
    policy = node.attributes.get("keep_aspect_ratio_policy", "stretch")
    choices = {"not_larger": min, "not_smaller": max}
    if policy not in ("stretch", *choices):
        raise UserError(
            f"its keep_aspect_ratio_policy is {policy!r}",
            remedy="use stretch, not_larger or not_smaller",
        )
    if 0 in extents and any(sizes):
        raise UserError(
            f"it cannot resize {data} to {list(sizes)}, since an axis has no elements"
        )
    factors = [m / max(n, 1) for m, n in zip(sizes, extents, strict=True)]
    if policy == "stretch" or not factors:
        pairs = zip(factors, sizes, strict=True)
    else:
        scale = choices[policy](factors)
        rounded = [math.floor(scale * n + 0.5) for n in extents]
        pairs = zip([scale] * len(axes), rounded, strict=True)
    return [
        _AxisResize(axis, scale, size)
        for axis, (scale, size) in zip(axes, pairs, strict=True)
    ]


def _resized(
    node: OnnxNode,
    parts: Sequence[_AxisResize],
    options: Mapping[str, Attribute],
    data: Value | None = None,
) -> Value:
    """Return the data resized along some axes; integers are interpolated as floats."""
    data = node.required(0) if data is None else data
    if not parts:
        return data
    extents = [node.extent(data, one.axis) for one in parts]
    sizes = [
        math.floor(extent * as_fraction(one.scale)) if one.size is None else one.size
        for extent, one in zip(extents, parts, strict=True)
    ]
    elements = math.prod(max(size, 1) for size in sizes)
    if any(size < 0 for size in sizes) or elements > _MAX_ELEMENTS:
        raise UserError(f"it cannot resize {data} to extents of {sizes}")
    if 0 in sizes:
        shape = list(node.extents(data))
        for one, size in zip(parts, sizes, strict=True):
            shape[one.axis] = size
        return node.make("zeros", [], shape=tuple(shape), dtype=str(data.dtype))
    attributes: dict[str, Attribute] = {
        **options,
        "axes": tuple(one.axis for one in parts),
        "sizes": tuple(sizes),
        "scales": tuple(one.scale for one in parts),
    }
    if options["coordinates"] == _CROP:
        begins = [one.begin for one in parts]
        attributes["roi"] = (*begins, *(one.end for one in parts))
    if options["mode"] == "nearest" or data.dtype.is_float:
        return node.make("resize", [data], **attributes)
    wide = node.cast(data, "float64" if data.dtype.bits > 16 else "float32")
    made = node.make("resize", [wide], **attributes)
    return _as_integers(node, made, data)


def _as_integers(node: OnnxNode, made: Value, like: Value) -> Value:
    """Return numbers in the range of an integer dtype without their fractions."""
    bits = like.dtype.bits
    is_signed = like.dtype.kind == "int"
    low = -(2.0 ** (bits - 1)) if is_signed else 0.0
    high = math.nextafter(2.0 ** (bits - is_signed), 0)
    limited = node.make("clip", [made], minimum=low, maximum=high)
    return node.cast(limited, like.dtype)


def _mode(node: OnnxNode) -> str:
    mode: str = node.attributes["mode"]
    return _MODES.get(mode, mode)


def _optional(node: OnnxNode, place: int) -> Value | None:
    """Return an input; None if it is left out or has no elements."""
    value = node.input(place)
    return None if value is None or value.shape == (0,) else value


def _numbers(node: OnnxNode, value: Value, what: str) -> list[float]:
    """Return the elements of a list of floats."""
    if not value.dtype.is_float or len(value.shape) != 1:
        raise UserError(f"its {what} is {value}, not a list of floats")
    return [float(one) for one in node.known(value)]


def _check_count(
    node: OnnxNode, numbers: Sequence[float], count: int, what: str
) -> None:
    if len(numbers) != count:
        raise UserError(
            f"its {what} has {len(numbers)} numbers, not {count}",
            why=f"the input is {node.required(0)}",
        )


def _check_finite(numbers: Sequence[float], what: str) -> None:
    if not all(map(math.isfinite, numbers)):
        raise UserError(f"its {what} is {list(numbers)}", remedy="give finite numbers")
