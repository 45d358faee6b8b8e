"""Strips of windows in registers: what has strips, how long they are, and that results stay."""

import pytest

from refcomp.te.tensor import var
from refcomp.topi.convolution.conv1d import conv1d
from refcomp.topi.convolution.conv2d import conv2d
from refcomp.topi.convolution.depthwise_conv2d import (
    depthwise_conv2d_nchw,
    depthwise_conv2d_nhwc,
)
from refcomp.topi.elementwise.activations import relu
from refcomp.topi.normalization.softmax import softmax
from refcomp.topi.pooling.global_pool import global_avg_pool2d
from refcomp.topi.pooling.pool2d import avg_pool2d, max_pool2d
from refcomp.topi.schedules.window_strips import find_strips
from tests.strategies.operands import tensors
from tests.topi.schedules.scheduled import EVERYWHERE, check, loops, lowered, profiled, scope_of

_SAME = {"padding": (1, 1, 1, 1)}


def strip(output):
    """The name of the axis of the strips, and how many windows each has; None without strips."""
    found = find_strips(output.op)
    if found is None:
        return None
    return None if found.axis is None else found.axis.var.name, found.windows


def test_strips_run_down_an_image() -> None:
    data, weight = tensors((1, 28, 28, 64), (3, 3, 64, 1))
    assert strip(depthwise_conv2d_nhwc(data, weight, **_SAME)) == ("y", 7)
    data, weight = tensors((1, 64, 56, 56), (64, 1, 3, 3))
    assert strip(depthwise_conv2d_nchw(data, weight, **_SAME)) == ("y", 8)


def test_strips_that_divide_no_extent_are_about_equally_long() -> None:
    (data,) = tensors((1, 2, 13, 13))
    (total,) = avg_pool2d(data, kernel=(3, 3)).op.inputs  # 11 rows
    assert strip(total) == ("i2", 6)


def test_large_windows_have_short_strips_so_that_the_code_stays_short() -> None:
    data, weight = tensors((1, 64, 56, 56), (64, 1, 7, 7))
    assert strip(depthwise_conv2d_nchw(data, weight)) == ("y", 2)
    data, weight = tensors((1, 64, 56, 56), (64, 1, 12, 12))
    assert strip(depthwise_conv2d_nchw(data, weight)) is None


def test_windows_apart_from_each_other_have_no_strips() -> None:
    (data,) = tensors((1, 4, 8, 8))
    assert strip(max_pool2d(data, kernel=(2, 2), strides=(2, 2))) is None


def test_a_border_is_worth_a_strip_of_one_window() -> None:
    (data,) = tensors((1, 4, 8, 8))
    padded = max_pool2d(data, kernel=(2, 2), strides=(2, 2), **_SAME)
    assert strip(padded) == (None, 1)
    func = lowered([data], padded)
    assert scope_of(func, "pad") == "local" and loops(func, "blockIdx.x") == [2]


def test_windows_that_overlap_along_the_last_axis_only_have_no_strips() -> None:
    data, weight = tensors((2, 4, 8), (3, 4, 2))
    assert strip(conv1d(data, weight)) is None


def test_reductions_without_windows_have_no_strips() -> None:
    (data,) = tensors((2, 4, 8, 8))
    assert strip(global_avg_pool2d(data).op.inputs[0]) is None
    rows = softmax(tensors((4, 8))[0])
    assert all(strip(tensor) is None for tensor in (rows, *rows.op.inputs[1:]))


def test_symbolic_rows_have_no_strips() -> None:
    data, weight = tensors((1, 4, var("h"), 8), (4, 1, 3, 3))
    assert strip(depthwise_conv2d_nchw(data, weight)) is None


def test_a_depthwise_convolution_is_one_kernel_with_its_border_and_what_follows() -> None:
    data, weight, bias = tensors((1, 28, 28, 64), (3, 3, 64, 1), (64,))
    func = lowered([data, weight, bias], relu(depthwise_conv2d_nhwc(data, weight, bias, **_SAME)))
    # Each thread has 7 of 28 rows.
    assert loops(func, "blockIdx.x") == [4 * 28 * 64 // 64]
    assert scope_of(func, "pad") == "local"
    assert scope_of(func, "depthwise_conv2d_nhwc") == "local"


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx1100"])
def test_each_element_of_a_strip_is_loaded_once(gpu) -> None:
    data, weight = tensors((1, 16, 8, 64), (3, 3, 64, 1))
    _, (report,) = profiled([data, weight], depthwise_conv2d_nhwc(data, weight), gpu)
    # 14 x 6 windows for each of 64 channels: strips of 7. Lanes that load or store:
    strips = 2 * 6 * 64
    lanes = sum(one.access.lanes for one in report.counts.accesses("global") if one.access)
    assert lanes == strips * ((7 + 2) * 3 + 9 + 7)
    assert report.efficiency > 0.99


def _cases():
    data, weight, bias = tensors((2, 5, 9, 3), (3, 2, 3, 2), (6,))
    made = depthwise_conv2d_nhwc(data, weight, bias, strides=(1, 2), padding=(1, 0, 2, 1))
    yield "depthwise_nhwc", [data, weight, bias], relu(made)
    data, weight = tensors((1, 3, 13, 6), (3, 1, 3, 3))
    yield "depthwise_nchw", [data, weight], depthwise_conv2d_nchw(data, weight, dilation=(2, 1))
    (data,) = tensors((1, 3, 13, 6))
    yield "max_pool", [data], max_pool2d(data, kernel=(3, 2), strides=(2, 2), **_SAME)
    yield "avg_pool", [data], avg_pool2d(data, kernel=(3, 3), **_SAME)
    yield "apart", [data], max_pool2d(data, kernel=(2, 2), strides=(2, 2), **_SAME)
    data, weight = tensors((1, 3, 6, 5), (2, 3, 3, 3))
    yield "small_conv2d", [data, weight], conv2d(data, weight, **_SAME)


CASES = list(_cases())


@pytest.mark.parametrize("way", EVERYWHERE)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_results_stay(case, way) -> None:
    _, inputs, output = case
    assert scope_of(lowered(inputs, output), "pad") in ("local", None)
    check(way, inputs, output)
