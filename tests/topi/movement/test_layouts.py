"""Layouts: what they name, how tensors change between them, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.movement.layouts import (
    layout_transform,
    layout_transform_numpy,
    layout_view,
    parse_layout,
)
from tests.strategies.operands import tensors


def test_a_layout_is_read_letter_by_letter() -> None:
    layout = parse_layout("NCHW16c", "it")
    assert (layout.axes, layout.blocks, layout.letters) == ("NCHWc", {"C": 16}, set("NCHW"))


@pytest.mark.parametrize("text", ["", "nchw", "NCC", "NCHW16", "NHW4c", "NC4c8c", "N-C", "0cC"])
def test_what_is_not_a_layout_is_refused(text) -> None:
    with pytest.raises(UserError, match="it: .* is not a layout"):
        parse_layout(text, "it")


def test_the_meaning_is_a_transpose_and_a_reshape() -> None:
    data = np.arange(48.0).reshape(1, 8, 2, 3)
    moved = layout_transform_numpy(data, src_layout="NCHW", dst_layout="NHWC")
    np.testing.assert_array_equal(moved, data.transpose(0, 2, 3, 1))
    blocked = layout_transform_numpy(data, src_layout="NCHW", dst_layout="NCHW4c")
    np.testing.assert_array_equal(blocked, data.reshape(1, 2, 4, 2, 3).transpose(0, 1, 3, 4, 2))
    other = layout_transform_numpy(blocked, src_layout="NCHW4c", dst_layout="NCHW2c")
    np.testing.assert_array_equal(other, data.reshape(1, 4, 2, 2, 3).transpose(0, 1, 3, 4, 2))


def test_axes_without_blocks_may_be_symbolic() -> None:
    n = var("n")
    (data,) = tensors((n, 8, 2, 2))
    result = layout_transform(data, src_layout="NCHW", dst_layout="HWNC4c")
    assert result.shape[2] is n


@pytest.mark.parametrize(
    ("shape", "source", "target", "message"),
    [
        ((1, 8, 2, 2), "NCHW", "NCHWD", "cannot change NCHW to NCHWD"),
        ((8, 2, 2), "NCHW", "NHWC", "data has 3 dimensions instead of 4"),
        ((1, 2, 2, 2, 3), "NCHW4c", "NCHW", "the blocks along C have 3 elements instead of 4"),
        ((1, 6, 2, 2), "NCHW", "NCHW4c", "cannot divide C into blocks of 4"),
        ((1, var("c"), 2, 2), "NCHW", "NCHW4c", "cannot divide C into blocks of 4"),
    ],
)
def test_layouts_that_do_not_fit_are_refused(shape, source, target, message) -> None:
    (data,) = tensors(shape)
    with pytest.raises(UserError, match=message):
        layout_transform(data, src_layout=source, dst_layout=target)


def test_dividing_into_blocks_is_a_view() -> None:
    weight = np.arange(8 * 4 * 3 * 3).reshape(8, 4, 3, 3)
    blocks = layout_view(weight, "OIHW", "OIHW4i8o")
    assert np.shares_memory(blocks, weight)
    assert blocks[0, 0, 1, 2, 3, 5] == weight[5, 3, 1, 2]
    # Numpy cannot join the axes of a block without a copy.
    np.testing.assert_array_equal(layout_view(blocks, "OIHW4i8o", "OIHW"), weight)
