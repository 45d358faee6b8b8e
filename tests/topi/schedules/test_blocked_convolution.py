"""The schedule of blocked convolutions: where it sums up, what it unrolls, and that it is right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import refcomp
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import PARALLEL, UNROLLED, VECTORIZED, Allocate, For, IfThenElse
from refcomp.lowering.lower import lower
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.te.tensor import var
from refcomp.topi.broadcast.arithmetic import add
from refcomp.topi.convolution.conv2d_nchwc import conv2d_nchwc, conv2d_nchwc_numpy
from refcomp.topi.convolution.depthwise_conv2d_nchwc import (
    depthwise_conv2d_nchwc,
    depthwise_conv2d_nchwc_numpy,
)
from refcomp.topi.elementwise.activations import relu
from refcomp.topi.movement.transform import transpose
from refcomp.topi.schedules.blocked_convolution import elementwise_follower
from refcomp.topi.schedules.llvm import schedule_llvm, stored_tensors
from tests.strategies.operands import integers, seeds, tensors


def _lowered(inputs, *outputs, level="v4"):
    schedule = schedule_llvm(outputs, f"llvm -mcpu=x86-64-{level}")
    stored = stored_tensors(schedule)
    return lower(schedule, [*inputs, *outputs, *stored], "f"), stored


def _allocations(func):
    return {
        node.buffer.name: (node.buffer.scope, [d.value for d in node.buffer.shape])
        for node in walk(func.body)
        if isinstance(node, Allocate)
    }


def _extents(func, kind):
    return {n.extent.value for n in walk(func.body) if isinstance(n, For) and n.kind == kind}


def _operands(n=1, outs=4, size=14, kernel=1, depth=2):
    shapes = ((n, depth, size, size, 16), (outs, depth, kernel, kernel, 16, 16), (outs, 16))
    return tensors(*shapes)


def test_sums_are_registers_inside_the_loops_of_what_follows() -> None:
    data, weight, bias = _operands(var("n"))
    func, stored = _lowered([data, weight, bias], relu(conv2d_nchwc(data, weight, bias)))
    assert stored == ()
    assert _allocations(func) == {"conv2d": ("local", [1, 2, 1, 7, 16])}
    assert _extents(func, VECTORIZED) == {16}
    assert _extents(func, UNROLLED) == {2, 7}  # 14 pixels in a row
    assert not [node for node in walk(func.body) if isinstance(node, IfThenElse)]


def test_without_anything_behind_it_the_sums_are_copied_out() -> None:
    data, weight, _ = _operands()
    func, stored = _lowered([data, weight], conv2d_nchwc(data, weight))
    assert stored == ()
    assert _allocations(func) == {"conv2d.local": ("local", [1, 2, 1, 7, 16])}


def test_large_reductions_are_divided() -> None:
    """The sums of 7 rows are in memory; the weights of each part stay near."""
    data, weight, bias = _operands(size=16, kernel=3, depth=4)
    func, stored = _lowered([data, weight, bias], relu(conv2d_nchwc(data, weight, bias)))
    assert stored == ()
    assert _allocations(func) == {"conv2d": ("local", [1, 2, 7, 14, 16])}
    assert {2, 7} <= _extents(func, UNROLLED)
    # Of each part of the reduction: all places of a tile, then the next tile.
    serial = [n.var.name for n in walk(func.body) if isinstance(n, For)]
    sums = serial[serial.index("rb.outer") :]
    assert sums[:4] == ["rb.outer", "y", "x.outer", "rb.inner"]


@pytest.mark.parametrize(("size", "rows_first"), [(14, False), (56, True)])
def test_threads_share_one_loop_over_rows_and_channels(size, rows_first) -> None:
    data, weight, bias = _operands(size=size, depth=32, outs=2)
    func, _ = _lowered([data, weight, bias], relu(conv2d_nchwc(data, weight, bias)))
    (shared,) = [n for n in walk(func.body) if isinstance(n, For) and n.kind == PARALLEL]
    assert shared.extent.value == (28 if rows_first else 2)


@pytest.mark.parametrize(
    ("size", "depth", "outs", "extent"),
    [
        # 4 rows of 56 pixels and 256 channels stay in the second cache.
        (56, 16, 4, 14 * 4),
        # All of the image stays there: each tile of channels is computed alone.
        (14, 16, 4, 4),
        # Two halves of the image read the weights twice.
        (28, 8, 64, 2 * 64),
        # A divided reduction: 2 rows of 14 pixels and 1024 channels.
        (14, 64, 16, 7 * 16),
        # Weights that each row would read again are larger than the image.
        (7, 128, 32, 32),
    ],
)
def test_rows_stay_near_for_all_channels_if_that_reads_less(size, depth, outs, extent) -> None:
    data, weight, bias = _operands(size=size, depth=depth, outs=outs)
    output = relu(conv2d_nchwc(data, weight, bias))
    func, _ = _lowered([data, weight, bias], output, level="v3")
    (shared,) = [n for n in walk(func.body) if isinstance(n, For) and n.kind == PARALLEL]
    assert shared.extent.value == extent


def test_windows_of_one_pixel_are_copied_before_they_are_far_apart() -> None:
    data, weight, _ = _operands(size=14)
    _, stored = _lowered([data, weight], conv2d_nchwc(data, weight, strides=(2, 2)))
    assert [tensor.name for tensor in stored] == ["every"]
    assert [dim.value for dim in stored[0].shape] == [1, 2, 7, 7, 16]


def test_what_does_not_follow_element_by_element_reads_memory() -> None:
    data, weight, _ = _operands()
    plain = conv2d_nchwc(data, weight)
    turned = transpose(plain, axes=(0, 1, 3, 2, 4))
    _, stored = _lowered([data, weight], turned)
    assert [tensor.name for tensor in stored] == ["conv2d"]
    _, stored = _lowered([data, weight], relu(plain), add(plain, plain))  # two readers
    assert [tensor.name for tensor in stored] == ["conv2d"]


@pytest.mark.parametrize(
    ("outs", "width", "tile"),
    [
        (4, 7, {2, 7}),
        (4, 56, {2, 8}),
        (4, 10, {2, 5}),
        (4, 3, {2, 3}),
        (3, 14, {1, 14}),
        (1, 9, {1, 9}),
    ],
)
def test_tiles_leave_the_fewest_pixels_over(outs, width, tile) -> None:
    data, weight, _ = _operands(outs=outs, size=width, kernel=1)
    func, _ = _lowered([data, weight], conv2d_nchwc(data, weight))
    assert _extents(func, UNROLLED) == tile


@pytest.mark.parametrize(("width", "pixels"), [(56, 4), (18, 6), (10, 5), (3, 3)])
def test_tiles_fit_16_registers_of_half_a_block(width, pixels) -> None:
    data, weight, _ = _operands(size=width, kernel=1)
    func, _ = _lowered([data, weight], conv2d_nchwc(data, weight), level="v3")
    assert _extents(func, UNROLLED) == {1, pixels}


def _check(to_callable, n, outs, depth, size, kernel, stride, seed):
    height, width = ((s - 1) * stride + kernel for s in size)
    arrays = [
        integers(seed, n, depth, height, width, 4),
        integers(seed + 1, outs, depth, kernel, kernel, 4, 4),
        integers(seed + 2, outs, 4),
    ]
    inputs = tensors(*(array.shape for array in arrays))
    output = relu(conv2d_nchwc(*inputs, strides=(stride, stride)))
    func, stored = _lowered(inputs, output)
    result = np.full((n, outs, *size, 4), np.nan, np.float32)
    spaces = [np.empty([dim.value for dim in one.shape], np.float32) for one in stored]
    to_callable(func)(*arrays, result, *spaces)
    expected = np.maximum(conv2d_nchwc_numpy(*arrays, strides=(stride, stride)), 0)
    np.testing.assert_array_equal(result, expected)


_few = st.integers(1, 3)
_cases = (st.integers(0, 2), _few, _few, st.tuples(_few, st.integers(1, 17)), _few, _few, seeds)


@pytest.mark.search
@settings(max_examples=15)
@given(*_cases)
def test_interpreter_agrees_with_the_meaning(n, outs, depth, size, kernel, stride, seed):
    run = lambda func: lambda *arrays: interpret(func, arrays)  # noqa: E731
    _check(run, n, outs, depth, size, kernel, stride, seed)


@pytest.mark.llvm
@settings(max_examples=10)
@given(*_cases)
def test_machine_code_agrees_with_the_meaning(n, outs, depth, size, kernel, stride, seed):
    with refcomp.build_options(contract=True):  # small integers: nothing rounds
        _check(refcomp.build, n, outs, depth, size, kernel, stride, seed)


@pytest.mark.llvm
@pytest.mark.parametrize(("size", "kernel"), [((14, 13), 3), ((56, 57), 1), ((7, 7), 1)])
def test_divided_reductions_agree_with_the_meaning(size, kernel) -> None:
    arrays = [
        integers(0, 2, 32, size[0] + kernel - 1, size[1] + kernel - 1, 16),
        integers(1, 2, 32, kernel, kernel, 16, 16),
        integers(2, 2, 16),
    ]
    inputs = tensors(*(array.shape for array in arrays))
    output = relu(conv2d_nchwc(*inputs))
    func, _ = _lowered(inputs, output, level="v3")
    assert any(name == "conv2d" and size[2] > 1 for name, (_, size) in _allocations(func).items())
    result = np.full((2, 2, *size, 16), np.nan, np.float32)
    with refcomp.build_options(contract=True):
        refcomp.build(func)(*arrays, result)
    np.testing.assert_array_equal(result, np.maximum(conv2d_nchwc_numpy(*arrays), 0))


@pytest.mark.llvm
def test_rows_of_a_whole_reduction_agree_with_the_meaning() -> None:
    shapes = ((2, 16, 56, 30, 16), (4, 16, 1, 1, 16, 16), (4, 16))
    arrays = [integers(k, *shape) for k, shape in enumerate(shapes)]
    inputs = tensors(*shapes)
    func, _ = _lowered(inputs, relu(conv2d_nchwc(*inputs)), level="v3")
    assert 7 * 4 in {n.extent.value for n in walk(func.body) if isinstance(n, For)}
    result = np.full((2, 4, 56, 30, 16), np.nan, np.float32)
    refcomp.build(func)(*arrays, result)
    np.testing.assert_array_equal(result, np.maximum(conv2d_nchwc_numpy(*arrays), 0))


def _depthwise(size):
    shapes = ((1, 2, *size, 16), (2, 3, 3, 16), (2, 16))
    inputs = tensors(*shapes)
    output = relu(depthwise_conv2d_nchwc(*inputs, padding=(1, 1, 1, 1)))
    return inputs, output


def test_windows_of_one_channel_are_unrolled() -> None:
    inputs, output = _depthwise((12, 12))
    func, stored = _lowered(inputs, output, level="v3")
    assert stored == ()
    # The border of a block of channels is computed before this block, within its loop.
    border = ("global", [1, 1, 14, 14, 16])
    assert _allocations(func) == {"pad": border, "depthwise": ("local", [1, 1, 1, 6, 16])}
    assert _extents(func, UNROLLED) == {1, 3, 6}
    (shared,) = [n for n in walk(func.body) if isinstance(n, For) and n.kind == PARALLEL]
    assert any(isinstance(n, Allocate) and n.buffer.name == "pad" for n in walk(shared))


def test_large_border_has_memory_for_all_channels() -> None:
    inputs, output = _depthwise((56, 56))
    _, stored = _lowered(inputs, output, level="v3")
    assert [tensor.name for tensor in stored] == ["pad"]


@pytest.mark.parametrize(("groups", "blocks"), [(1, 2), (2, 2), (4, 1)])
def test_tile_has_channels_of_one_group(groups, blocks) -> None:
    shapes = ((1, 4, 14, 14, 8), (4, 4 // groups, 1, 1, 8, 8))
    inputs = tensors(*shapes)
    func, _ = _lowered(inputs, conv2d_nchwc(*inputs, groups=groups), level="v3")
    (shape,) = [size for _, size in _allocations(func).values()]
    assert shape[1] == blocks


@pytest.mark.llvm
@pytest.mark.parametrize("size", [(5, 13), (7, 7), (1, 2), (40, 40)])
def test_convolutions_of_one_channel_agree_with_the_meaning(size) -> None:
    inputs, output = _depthwise(size)
    func, stored = _lowered(inputs, output, level="v3")
    arrays = [integers(k, *(dim.value for dim in tensor.shape)) for k, tensor in enumerate(inputs)]
    result = np.full((1, 2, *size, 16), np.nan, np.float32)
    spaces = [np.empty([dim.value for dim in one.shape], np.float32) for one in stored]
    refcomp.build(func)(*arrays, result, *spaces)
    expected = depthwise_conv2d_nchwc_numpy(*arrays, padding=(1, 1, 1, 1))
    np.testing.assert_array_equal(result, np.maximum(expected, 0))


def followed(make):
    """What follows a product elementwise, and the output that `make` computes of the product."""
    A = refcomp.placeholder((1, 8), name="A")
    B = refcomp.placeholder((8, 8), name="B")
    product = refcomp.topi.matmul(A, B)
    output = make(product)
    schedule = refcomp.create_schedule(output)
    return elementwise_follower(schedule, product.op), output


def test_an_epilogue_may_read_a_result_twice_and_along_one_row() -> None:
    topi = refcomp.topi
    row = refcomp.placeholder((1, 8), name="row")
    for make in (
        topi.relu,
        lambda x: topi.multiply(x, topi.sigmoid(x)),
        lambda x: topi.relu(topi.add(x, row)),
    ):
        follower, output = followed(make)
        assert follower is output


def test_other_readers_do_not_follow() -> None:
    topi = refcomp.topi
    for make in (
        lambda x: x,
        lambda x: topi.transpose(x, axes=(1, 0)),
        lambda x: topi.add(x, topi.sum(x, axis=1, keepdims=True)),
        lambda x: topi.softmax(x),
    ):
        assert followed(make)[0] is None
