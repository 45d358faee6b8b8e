"""What all convolutions share: padded sums over windows, in numpy and in te, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.convolution.windows import (
    check_groups,
    check_layout,
    check_numbers,
    constant_sizes,
    convolve,
    convolve_numpy,
    make_windows,
    spatial_axes,
    to_plain,
    windows_numpy,
)
from tests.strategies.operands import assert_same, integers, run_te, tensors

LAYOUTS = [("NCHW", "OIHW"), ("NHWC", "HWIO"), ("HWCN", "HWIO"), ("NCHW", "HWIO")]


def test_spatial_axes_keep_their_order() -> None:
    assert [spatial_axes(layout) for layout in ("NCW", "NDHWC", "OIHW")] == ["W", "DHW", "HW"]


def test_windows_of_a_row() -> None:
    row = np.arange(6).reshape(1, 1, 6)
    seen = windows_numpy(row, (2,), (1,), (3,))
    np.testing.assert_array_equal(seen[0, 0], [[0, 3], [1, 4], [2, 5]])
    seen = windows_numpy(row, (2,), (2,), (1,))
    np.testing.assert_array_equal(seen[0, 0], [[0, 1], [2, 3], [4, 5]])


def _plain(data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the convolution by loops, with strides of 2 and a border of 1."""
    x = np.pad(data, [(0, 0), (0, 0), (1, 1), (1, 1)])
    found = np.zeros((len(x), len(weight), 3, 3), data.dtype)
    for n, o, i, j in np.ndindex(found.shape):
        window = x[n, :, 2 * i : 2 * i + 2, 2 * j : 2 * j + 3]
        found[n, o, i, j] = (window * weight[o]).sum()
    return found


@pytest.mark.parametrize(("layout", "weight_layout"), LAYOUTS)
def test_layouts_differ_in_the_order_of_axes_only(layout: str, weight_layout: str) -> None:
    data, weight = integers(1, 2, 3, 5, 6), integers(2, 4, 3, 2, 3)
    expected = to_plain(_plain(data, weight), "NCHW", layout)
    operands = (to_plain(data, "NCHW", layout), to_plain(weight, "OIHW", weight_layout))
    how = {"strides": (2, 2), "padding": (1, 1, 1, 1), "dilation": (1, 1)}
    found = convolve_numpy(*operands, None, layout=layout, weight_layout=weight_layout, **how)
    assert_same(found, expected)
    how.update(operator="conv", layout=layout, weight_layout=weight_layout)
    made = run_te(lambda x, w: convolve(x, w, None, **how), *operands, is_symbolic=False)
    assert_same(made, expected)


def test_ill_formed_attributes_are_refused() -> None:
    with pytest.raises(UserError, match=r"conv cannot have the strides \(1,\)"):
        check_numbers((1,), 2, "conv", "strides")
    with pytest.raises(UserError, match=r"conv cannot have the dilation \(0, 1\)"):
        make_windows("conv", "NCHW", (1, 1), (1, 1), (0, 0, 0, 0), (0, 1))
    with pytest.raises(UserError, match=r"conv cannot use the padding \(0, 0\)"):
        make_windows("conv", "NCHW", (1, 1), (1, 1), (0, 0), (1, 1))
    with pytest.raises(UserError, match="conv does not have the layout 'NHCW'"):
        check_layout("NHCW", {"NCHW": "OIHW"}, "conv")
    for groups in (0, 2):
        with pytest.raises(UserError, match=f"3 output channels into {groups} groups"):
            check_groups(groups, 3, "conv")
    (weight,) = tensors((var("n"), 1, 1))
    with pytest.raises(UserError, match="conv: the weight's shape must be a constant"):
        constant_sizes(weight, "OIW", "conv")
    with pytest.raises(UserError, match="conv: the weight has 3 dimensions instead of 4"):
        constant_sizes(weight, "OIHW", "conv")


def test_axes_are_named_by_their_letters() -> None:
    data, weight = tensors((2, 5, 6, 3), (2, 3, 3, 4))
    how = {"strides": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1)}
    layouts = {"layout": "NHWC", "weight_layout": "HWIO"}
    made = convolve(data, weight, None, operator="conv", **layouts, **how)
    assert [axis.var.name for axis in made.op.axis] == ["n", "y", "x", "o"]
    assert [axis.var.name for axis in made.op.reduce_axis] == ["ry", "rx", "rc"]
