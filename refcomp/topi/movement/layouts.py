"""Layouts: the order of a tensor's axes, with axes that are divided into blocks.

A layout names each axis by a capital letter. A number and a small letter behind it name the place
within blocks of that axis: `NCHW16c` has the channels in blocks of 16.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te.extents import Extent, extents
from refcomp.te.tensor import ExprLike, Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.movement.rearrange import rearrange
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, product, require_rank

_AXIS = re.compile(r"([A-Z])|([1-9][0-9]*)([a-z])")


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout that was read.

    Attributes:
        axes: the letters of the axes in order; a small letter is the place within a block.
        blocks: capital letter -> elements of a block, for axes that have blocks.
    """

    axes: str
    blocks: dict[str, int]

    @property
    def letters(self) -> set[str]:
        """Return the capital letters."""
        return {axis for axis in self.axes if axis.isupper()}


def parse_layout(text: str, operator: str) -> Layout:
    """Return the layout that `text` names.

    Raises:
        UserError: the text is not a layout, names an axis twice, or a block of an unknown axis.
    """
    axes = []
    blocks: dict[str, int] = {}
    end = 0
    for match in _AXIS.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        capital, size, small = match.groups()
        axes.append(capital or small)
        if small:
            blocks[small.upper()] = int(size)
    is_whole = end == len(text) and bool(axes) and len(set(axes)) == len(axes)
    if not is_whole or not set(blocks) <= set(axes):
        raise UserError(
            f"{operator}: {text!r} is not a layout",
            why="a layout names each axis once by a capital letter, and blocks as in 16c",
            remedy='write it like "NCHW" or "NCHW16c"',
        )
    return Layout("".join(axes), blocks)


def layout_transform(data: Tensor, *, src_layout: str, dst_layout: str) -> Tensor:
    """Return `data` with its axes in another order, or divided into other blocks.

        NCHW to NCHW16c:  result[n, o, y, x, i] = data[n, o * 16 + i, y, x]

    Elements are not changed, so NaN keeps its bits. A tensor without elements gives one without.

    Args:
        data: a tensor of any dtype with an axis for each letter of `src_layout`. Axes that are
            divided into blocks have constant extents.
        src_layout: the layout of `data`, such as "NHWC" or "NCHW8c".
        dst_layout: the layout of the result, with the same capital letters.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        UserError: a layout cannot be read, the letters differ, the rank or a block of `data` is not
            that of `src_layout`, or blocks do not divide an axis.

    Reference: TVM, topi.layout_transform.

    Example::

        >>> A = rc.placeholder((1, 4, 1, 2), name="A")
        >>> B = rc.topi.layout_transform(A, src_layout="NCHW", dst_layout="NCHW2c")
        >>> a = np.arange(8, dtype="float32").reshape(1, 4, 1, 2)
        >>> rc.oracle.evaluate([B], {A: a})[0][0, 0].tolist()
        [[[0.0, 2.0], [1.0, 3.0]]]
    """
    operator = "layout_transform"
    source = parse_layout(src_layout, operator)
    target = parse_layout(dst_layout, operator)
    if source.letters != target.letters:
        raise UserError(
            f"{operator} cannot change {src_layout} to {dst_layout}",
            why="the layouts have different axes",
            remedy="name the same capital letters in both",
        )
    require_rank(data, len(source.axes), operator, "data")
    whole = _whole_extents(data, source, operator)
    shape = _shape(whole, target, data, operator)

    def element(index: tuple[Expr, ...]) -> list[ExprLike]:
        at = dict(zip(target.axes, index, strict=True))
        places: list[ExprLike] = []
        for axis in source.axes:
            capital = axis.upper()
            place: Expr = at[capital]
            if capital in target.blocks:
                place = place * target.blocks[capital] + at[capital.lower()]
            block = source.blocks.get(capital, 1)
            if axis.islower():
                place = place % block
            elif block > 1:
                place = place // block
            places.append(place)
        return places

    return rearrange(data, shape, element, operator)


def _whole_extents(data: Tensor, source: Layout, operator: str) -> dict[str, Extent]:
    """Return the extent of each axis with its blocks, by its capital letter."""
    whole: dict[str, Extent] = {}
    for axis, extent in zip(source.axes, extents(data), strict=True):
        capital = axis.upper()
        if axis.islower() and extent != source.blocks[capital]:
            raise UserError(
                f"{operator}: the blocks along {capital} have {extent} elements "
                f"instead of {source.blocks[capital]}",
                remedy="name the layout that the tensor has",
                earlier=[data.declaration()],
            )
        whole[capital] = product([whole.get(capital, 1), extent])
    return whole


def _shape(
    whole: dict[str, Extent], target: Layout, data: Tensor, operator: str
) -> list[Extent]:
    shape: list[Extent] = []
    for axis in target.axes:
        capital = axis.upper()
        block = target.blocks.get(capital, 1)
        extent = whole[capital]
        if block > 1 and (not isinstance(extent, int) or extent % block):
            raise UserError(
                f"{operator} cannot divide {capital} into blocks of {block}",
                why="the extent of the axis must be a constant multiple of the block",
                remedy="pad the tensor first, or choose another block",
                earlier=[data.declaration()],
            )
        if axis.islower():
            shape.append(block)
        else:
            shape.append(extent // block if isinstance(extent, int) else extent)
    return shape


def _sample_layout_transform(draws: Draws) -> Sample:
    blocks = draws.integer(1, 3)
    channels = blocks * 4
    plain = ("NCHW", "NHWC", "CHWN", "HWCN")
    blocked = ("NCHW4c", "NCHW2c", "NHWC4c", "N4cCHW")
    layouts = [draws.choice(draws.choice((plain, blocked))) for _ in range(2)]
    sizes = {"N": draws.extent(0), "H": draws.extent(), "W": draws.extent()}
    shape = []
    source = parse_layout(layouts[0], "layout_transform")
    for axis in source.axes:
        block = source.blocks.get(axis.upper(), 1)
        if axis.islower():
            shape.append(block)
        else:
            shape.append(channels // block if axis == "C" else sizes[axis])
    data = draws.array(shape, draws.number_dtype())
    attributes = {"src_layout": layouts[0], "dst_layout": layouts[1]}
    return Sample((data,), attributes)


@meaning_of(layout_transform, sample=_sample_layout_transform, pattern="injective")
def layout_transform_numpy(data: Array, *, src_layout: str, dst_layout: str) -> Array:
    return np.ascontiguousarray(layout_view(data, src_layout, dst_layout))


def layout_view(data: Array, src_layout: str, dst_layout: str) -> Array:
    """Return `data` in another layout, as a view if numpy can express it by strides.

    Args:
        data: an array in `src_layout`, whose extents fit both layouts.
        src_layout: the layout of `data`.
        dst_layout: the layout of the result.
    """
    source = parse_layout(src_layout, "layout_transform")
    target = parse_layout(dst_layout, "layout_transform")
    letters = sorted(source.letters)
    # Blocks behind their axes, then joined: a tensor with one axis for each letter.
    order = []
    joined = []
    for letter in letters:
        places = [source.axes.index(letter)]
        if letter in source.blocks:
            places.append(source.axes.index(letter.lower()))
        order += places
        joined.append(int(np.prod([data.shape[place] for place in places])))
    plain = data.transpose(order).reshape(joined)
    # The same backwards.
    divided: list[int] = []
    names = ""
    for letter, extent in zip(letters, joined, strict=True):
        block = target.blocks.get(letter, 1)
        divided.append(extent // block)
        names += letter
        if letter in target.blocks:
            divided.append(block)
            names += letter.lower()
    return plain.reshape(divided).transpose([names.index(axis) for axis in target.axes])
