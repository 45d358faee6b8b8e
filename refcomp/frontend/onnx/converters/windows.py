"""Windows of convolutions and poolings: their extents, strides, dilations and padding.

Each tuple has a number for each spatial axis. Padding has two: first all at the beginnings, then
all at the ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.near_misses import advise
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.graph.graph import Value
from refcomp.graph.macros import NotKnownError

# Operators of refcomp exist for this many spatial axes.
MAX_SPATIAL = 3
AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


@dataclass(frozen=True, slots=True)
class NodeWindows:
    """The windows of a node.

    Attributes:
        kernel: extents of a window.
        strides: elements from one window to the next.
        dilation: elements from one element of a window to the next.
        padding: elements added at the beginnings, then at the ends.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Return the number of spatial axes."""
        return len(self.kernel)

    def reach(self, k: int) -> int:
        """Return the extent of a dilated window along spatial axis `k`."""
        return (self.kernel[k] - 1) * self.dilation[k] + 1

    def with_axis(self) -> NodeWindows:
        """Return the windows with a spatial axis of extent 1 before the others."""
        before = self.padding[: self.rank]
        after = self.padding[self.rank :]
        return NodeWindows(
            (1, *self.kernel),
            (1, *self.strides),
            (1, *self.dilation),
            (0, *before, 0, *after),
        )


def spatial_rank(data: Value) -> int:
    """Return the number of spatial axes of data [n, c, ...].

    Raises:
        UserError: there is none.
        Unsupported: there are more than three.
    """
    rank = len(data.shape) - 2
    if rank < 1:
        raise UserError(
            f"its input {data} has {len(data.shape)} dimensions",
            why="windows lie in the axes behind the batch and the channels",
            remedy="give a tensor of at least 3 dimensions",
        )
    if rank > MAX_SPATIAL:
        raise Unsupported(f"its input has {rank} spatial axes, more than {MAX_SPATIAL}")
    return rank


def read_windows(node: OnnxNode, data: Value, kernel: Sequence[int]) -> NodeWindows:
    """Return the windows of a convolution or a pooling, without the padding of auto_pad.

    Raises:
        UserError: an attribute has not as many numbers as there are spatial axes, or a number is
            too small, or auto_pad is unknown.
        Unsupported: there are more than three spatial axes.
    """
    rank = spatial_rank(data)
    ones = (1,) * rank
    attributes = node.attributes
    given = NodeWindows(
        tuple(kernel),
        strides=tuple(attributes.get("strides") or ones),
        dilation=tuple(attributes.get("dilations") or ones),
        padding=tuple(attributes.get("pads") or (0, 0) * rank),
    )
    _check("kernel_shape", given.kernel, rank, least=1)
    _check("strides", given.strides, rank, least=1)
    _check("dilations", given.dilation, rank, least=1)
    _check("pads", given.padding, 2 * rank, least=0)
    if auto_pad(node) == "NOTSET":
        return given
    return replace(given, padding=(0, 0) * rank)


def _check(name: str, numbers: Sequence[int], count: int, least: int) -> None:
    if len(numbers) == count and all(number >= least for number in numbers):
        return
    raise UserError(
        f"its attribute {name} is {list(numbers)}",
        why=f"it must have {count} numbers, each at least {least}",
        remedy="correct the attribute, or export the model again",
    )


def auto_pad(node: OnnxNode) -> str:
    """Return the mode of automatic padding. Raise UserError for an unknown one."""
    mode = str(node.attributes.get("auto_pad") or "NOTSET")
    if mode not in AUTO_PADS:
        raise UserError(
            f"its attribute auto_pad is {mode!r}",
            remedy=advise(mode, AUTO_PADS, f"use {', '.join(AUTO_PADS)}"),
        )
    return mode


def padded_windows(node: OnnxNode, data: Value, kernel: Sequence[int]) -> NodeWindows:
    """Return the windows of a node, with the padding of auto_pad.

    With SAME_UPPER and SAME_LOWER there are ceil(size / stride) windows along each axis, and the
    padding makes them fit.

    Raises:
        NotKnownError: the padding depends on a symbolic extent.
        UserError, Unsupported: as in `read_windows`.
    """
    windows = read_windows(node, data, kernel)
    mode = auto_pad(node)
    if not mode.startswith("SAME"):
        return windows
    totals = [
        _same_padding(size, windows.reach(k), windows.strides[k])
        for k, size in enumerate(data.shape[2:])
    ]
    return replace(windows, padding=shared_padding(totals, mode == "SAME_UPPER"))


def _same_padding(size: object, reach: int, stride: int) -> int:
    """Return how many elements must be added so that ceil(size / stride) windows fit."""
    if stride == 1:
        return reach - 1
    if not isinstance(size, int):
        raise NotKnownError
    last_start = (-(-size // stride) - 1) * stride
    return max(0, last_start + reach - size)


def shared_padding(totals: Sequence[int], odd_at_end: bool) -> tuple[int, ...]:
    """Return padding at the beginnings and at the ends, given both together.

    Args:
        totals: elements to add along each axis.
        odd_at_end: True if the odd element is added at the end.
    """
    before = [total // 2 if odd_at_end else total - total // 2 for total in totals]
    after = [total - first for total, first in zip(totals, before, strict=True)]
    return (*before, *after)


def require_spatial_extents(data: Value) -> tuple[int, ...]:
    """Return the spatial extents as numbers, or raise NotKnownError."""
    extents = [dim for dim in data.shape[2:] if isinstance(dim, int)]
    if len(extents) != len(data.shape) - 2:
        raise NotKnownError
    return tuple(extents)
