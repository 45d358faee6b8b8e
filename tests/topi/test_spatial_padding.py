"""Padding: te against numpy's own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.ir.promotion import const
from refcomp.topi.spatial_padding import (
    check_borders,
    check_padding,
    pad_axes,
    pad_numpy,
    pad_spatial,
)
from tests.strategies.operands import (
    assert_same,
    batches,
    extents,
    integers,
    run_te,
    seeds,
    tensors,
)


@pytest.mark.search
@given(batches, extents, extents, extents, st.tuples(*[st.integers(0, 2)] * 4), seeds)
def test_padding_is_its_meaning(n, c, h, w, padding, seed):
    for shape, first in (((n, c, h, w), 2), ((n, h, w, c), 1)):
        data = integers(seed, *shape)
        actual = run_te(lambda t, first=first: pad_spatial(t, padding, const(7.0), first), data)
        assert_same(actual, pad_numpy(data, padding, 7.0, first))


def test_nothing_to_add_gives_the_tensor_itself() -> None:
    (data,) = tensors((1, 2, 3, 4))
    assert pad_spatial(data, (0, 0, 0, 0), const(0.0), 2) is data


@pytest.mark.parametrize("padding", [(1, 1), (0, 0, -1, 0)])
def test_ill_formed_padding_is_refused(padding):
    with pytest.raises(UserError, match="four numbers >= 0"):
        check_padding(padding, "conv2d")


def test_borders_of_one_axis() -> None:
    data = integers(1, 2, 3)
    actual = run_te(lambda t: pad_axes(t, {1: (1, 2)}, const(7.0)), data)
    assert_same(actual, np.pad(data, [(0, 0), (1, 2)], constant_values=7))


def test_borders_are_paired_by_axis() -> None:
    assert check_borders((1, 2, 3, 4, 5, 6), 3, "conv3d") == ((1, 4), (2, 5), (3, 6))
    for padding in ((1, 1), (0, 0, 0, -1)):
        with pytest.raises(UserError, match="conv2d cannot use the padding"):
            check_borders(padding, 2, "conv2d")
