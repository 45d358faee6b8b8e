"""Operators that sample images at computed positions, and those that add up columns."""

from __future__ import annotations

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value
from refcomp.te.tensor import DTypeLike

# The modes of GridSample-16 by their names since opset 20.
_OLD_MODES = {"bilinear": "linear", "bicubic": "cubic"}


@converter("GridSample")
def grid_sample_of_images(node: OnnxNode) -> Value:
    """Convert GridSample-16, which knows images only, and other names of the modes."""
    data = node.required(0)
    if len(data.shape) != 4:
        raise UserError(
            f"its input is {data}",
            why="GridSample takes volumes since opset 20",
            remedy="give a tensor [n, c, h, w], or export with a newer opset",
        )
    mode: str = node.attributes["mode"]
    return _sampled(node, _OLD_MODES.get(mode, mode))


@converter("GridSample", since=20)
def grid_sample(node: OnnxNode) -> Value:
    """Convert GridSample."""
    return _sampled(node, node.attributes["mode"])


def _sampled(node: OnnxNode, mode: str) -> Value:
    data, grid = node.all_inputs()
    for axis in range(2, len(data.shape)):
        node.extent(data, axis)  # a run must know it
    options = {
        "mode": mode,
        "padding": node.attributes["padding_mode"],
        "align_corners": bool(node.attributes["align_corners"]),
    }
    dtype = grid.dtype
    if not data.dtype.is_float or data.dtype.bits > grid.dtype.bits:
        dtype = data.dtype if data.dtype.is_float else grid.dtype

    def sample(image: Value, wide: DTypeLike) -> Value:
        pair = [node.cast(image, wide), node.cast(grid, wide)]
        return node.make("grid_sample", pair, **options)

    if data.dtype.is_float:
        return node.cast(sample(data, dtype), data.dtype)
    if data.dtype.bits < 64:
        return node.cast(sample(data, "float64"), data.dtype)
    # f64 holds 53 bits: sample the halves of 64 bits, and join them again.
    high = node.make("right_shift", [data, node.constant(32, data.dtype.dtype)])
    low = node.make("bitwise_and", [data, node.constant(0xFFFFFFFF, data.dtype.dtype)])
    if mode != "nearest":
        return node.cast(sample(data, "float64"), data.dtype)
    halves = [node.cast(sample(half, "float64"), data.dtype) for half in (high, low)]
    shifted = node.make("left_shift", [halves[0], node.constant(32, data.dtype.dtype)])
    return node.make("bitwise_or", [shifted, halves[1]])


@converter("AffineGrid")
def affine_grid(node: OnnxNode) -> Value:
    """Convert AffineGrid of any version."""
    theta = node.required(0)
    size = node.integers(node.required(1), "size")
    if len(size) not in (4, 5) or len(theta.shape) != 3:
        raise UserError(
            f"its size is {list(size)}, and its theta {theta}",
            remedy="give (N, C, H, W) and [N, 2, 3], or (N, C, D, H, W) and [N, 3, 4]",
        )
    for axis in (1, 2):
        node.extent(theta, axis)  # a run must know it
    batch = theta.shape[0]
    if isinstance(batch, int) and batch != size[0]:
        raise UserError(
            f"its size {list(size)} has {size[0]} images, but {theta} has {batch} matrices",
            remedy="give one matrix for each image",
        )
    is_aligned = bool(node.attributes["align_corners"])
    return node.make("affine_grid", [theta], size=size[2:], align_corners=is_aligned)


@converter("Col2Im")
def col2im(node: OnnxNode) -> Value:
    """Convert Col2Im of any version."""
    data = node.required(0)
    for axis in range(1, len(data.shape)):
        node.extent(data, axis)  # a run must know it
    return node.make(
        "col2im",
        [data],
        image_shape=node.integers(node.required(1), "image_shape"),
        block_shape=node.integers(node.required(2), "block_shape"),
        strides=node.attributes.get("strides", ()),
        padding=node.attributes.get("pads", ()),
        dilation=node.attributes.get("dilations", ()),
    )
