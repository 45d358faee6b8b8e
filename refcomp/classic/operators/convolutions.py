"""Classic convolutions of sequences, and of images at moved positions."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.classic.operators.arguments import (
    Sizes,
    chosen,
    padding_of,
    pair_of,
    sizes_of,
    window_of,
)
from refcomp.foundation.errors import UserError
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.convolution import conv1d as sequences
from refcomp.topi.convolution import conv_transpose
from refcomp.topi.convolution import deformable_conv2d as deformable


def conv1d(
    data: Tensor,
    kernel: Tensor,
    strides: Sizes = 1,
    padding: Sizes | str = "VALID",
    dilation: Sizes = 1,
    layout: str = "NCW",
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of sequences, by `topi.conv1d`."""
    first = chosen(layout, {"NCW": 2, "NWC": 0}, "the layout of conv1d")
    spread = _only(dilation, "the dilation")
    return sequences.conv1d(
        data,
        kernel,
        strides=(_only(strides, "the stride"),),
        padding=_ends(padding, kernel, first, spread),
        dilation=(spread,),
        layout=layout,
        out_dtype=out_dtype,
    )


def conv1d_transpose_ncw(
    data: Tensor,
    kernel: Tensor,
    stride: Sizes,
    padding: Sizes | str,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the transposed convolution of sequences, by `topi.conv1d_transpose`."""
    return conv_transpose.conv1d_transpose(
        data,
        kernel,
        strides=(_only(stride, "the stride"),),
        padding=_ends(padding, kernel, 2, 1),
        out_dtype=out_dtype,
    )


def _only(value: Sizes, what: str) -> int:
    """Return a number that is given alone, or in a list of one.

    Raises:
        UserError: there are several numbers.
    """
    numbers = sizes_of(value if isinstance(value, Sequence) else (value,), what)
    if len(numbers) != 1:
        raise UserError(f"{what} is {numbers}", remedy="give one number")
    return numbers[0]


def _ends(
    padding: Sizes | str, kernel: Tensor, first: int, dilation: int
) -> tuple[int, int]:
    """Return the elements that are added before and after a sequence.

    Args:
        padding: one number for both ends, two numbers, "VALID" or "SAME".
        kernel: the weights, whose window is along the axis `first`.
        first: the axis of the window.
        dilation: elements from one element of a window to the next.
    """
    if isinstance(padding, str):
        (extent,) = sizes_of(kernel.shape[first : first + 1], "the window")
        window = ((extent - 1) * dilation + 1, 1)
        before, _, after, _ = padding_of(padding, window)
        return before, after
    return pair_of(padding, "the padding")


def deformable_conv2d_nchw(
    data: Tensor,
    offset: Tensor,
    kernel: Tensor,
    strides: Sizes,
    padding: Sizes | str,
    dilation: Sizes,
    deformable_groups: int,
    groups: int,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of images at moved positions, by `topi.deformable_conv2d`.

    Raises:
        UserError: `out_dtype` is not the dtype of the images, or an argument does not fit.
    """
    if out_dtype not in (None, data.dtype):
        raise UserError(
            f"deformable_conv2d_nchw cannot return {out_dtype}",
            why="sums have the dtype of the images",
            remedy=f"leave out_dtype out, or write {data.dtype!r}",
        )
    spread = pair_of(dilation, "the dilation")
    return deformable.deformable_conv2d(
        data,
        offset,
        kernel,
        strides=pair_of(strides, "the stride"),
        padding=padding_of(padding, window_of(kernel.shape[2:4], spread)),
        dilation=spread,
        groups=groups,
        offset_groups=deformable_groups,
    )
