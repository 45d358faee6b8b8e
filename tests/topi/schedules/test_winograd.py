"""The schedule of Winograd's convolution: its bands, where it sums up, and that it is right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import refcomp
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import PARALLEL, UNROLLED, VECTORIZED, Allocate, For, IfThenElse
from refcomp.lowering.lower import lower
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.runtime.host.threads import set_thread_count
from refcomp.te.tensor import var
from refcomp.topi.broadcast.arithmetic import add
from refcomp.topi.convolution.conv2d_nchwc_winograd import (
    conv2d_nchwc_winograd,
    conv2d_nchwc_winograd_numpy,
)
from refcomp.topi.elementwise.activations import relu
from refcomp.topi.schedules.llvm import schedule_llvm, stored_tensors
from refcomp.topi.schedules.vector_registers import AVX2, AVX512, NEON, SSE
from refcomp.topi.schedules.winograd import WinogradTiling, choose_tiling
from tests.strategies.operands import floats, integers, seeds, tensors


def _lowered(inputs, *outputs, level="v4"):
    schedule = schedule_llvm(outputs, f"llvm -mcpu=x86-64-{level}")
    stored = stored_tensors(schedule)
    return lower(schedule, [*inputs, *outputs, *stored], "f"), stored


def _convolution(n, channels, size, block=16, follow=relu):
    blocks = channels // block
    shapes = (
        (n, blocks, size, size, block),
        (4, 4, blocks, blocks, block, block),
        (blocks, block),
    )
    inputs = tensors(*shapes)
    return inputs, follow(conv2d_nchwc_winograd(*inputs, padding=(1, 1, 1, 1)))


def _allocations(func):
    return {
        node.buffer.name: (node.buffer.scope, [d.value for d in node.buffer.shape])
        for node in walk(func.body)
        if isinstance(node, Allocate)
    }


def _loops(func, kind):
    return [n.extent.value for n in walk(func.body) if isinstance(n, For) and n.kind == kind]


def test_large_images_are_computed_in_bands() -> None:
    func, stored = _lowered(*_convolution(1, 64, 56))
    assert stored == ()
    assert _loops(func, PARALLEL) == [14]
    assert _allocations(func) == {
        "tiles": ("global", [1, 4, 4, 4, 56, 16]),
        "pad": ("global", [1, 1, 6, 58, 16]),
        "tile_rows": ("local", [1, 1, 1, 1, 4, 16]),
        "products": ("global", [1, 4, 4, 4, 56, 16]),
        "products.local": ("local", [1, 1, 1, 2, 8, 16]),
        "conv2d": ("local", [1, 1, 2, 2, 16]),
        "result_rows": ("local", [1, 1, 1, 4, 1, 16]),
    }
    assert set(_loops(func, VECTORIZED)) == {16}
    assert not [node for node in walk(func.body) if isinstance(node, IfThenElse)]


def test_many_channels_are_computed_at_once_so_that_weights_are_read_once() -> None:
    func, stored = _lowered(*_convolution(1, 256, 14))
    assert [tensor.name for tensor in stored] == ["tiles"]
    # The blocks of input channels to be transformed, and groups of blocks of output channels.
    assert _loops(func, PARALLEL) == [16, 4]
    assert _allocations(func)["products"] == ("global", [1, 4, 4, 4, 49, 16])
    assert 7 in _loops(func, UNROLLED)


def test_each_image_of_a_batch_has_its_own_tiles() -> None:
    for batch in (2, var("n")):
        func, stored = _lowered(*_convolution(batch, 32, 6))
        assert stored == ()
        assert _allocations(func)["tiles"] == ("global", [1, 4, 4, 2, 9, 16])


def test_without_anything_behind_it_the_results_are_copied_out() -> None:
    func, _ = _lowered(*_convolution(1, 16, 6, follow=lambda result: result))
    # The bias follows the convolution.
    assert _allocations(func)["conv2d"] == ("local", [1, 1, 2, 2, 16])
    inputs, _ = _convolution(1, 16, 6)
    func, _ = _lowered(inputs[:2], conv2d_nchwc_winograd(*inputs[:2]))
    assert _allocations(func)["conv2d.local"] == ("local", [1, 1, 2, 2, 16])


@pytest.mark.parametrize(
    ("channels", "size", "registers", "expected"),
    [
        (64, 56, AVX512, WinogradTiling(2, False, 4, 2, 8, 7)),
        (64, 56, AVX2, WinogradTiling(2, False, 4, 1, 4, 14)),
        (64, 224, AVX2, WinogradTiling(1, False, 2, 1, 4, 28)),
        (128, 28, AVX512, WinogradTiling(14, True, 2, 2, 7, 28)),
        (128, 28, AVX2, WinogradTiling(14, True, 2, 1, 6, 33)),
        (256, 14, AVX2, WinogradTiling(7, True, 4, 1, 5, 10)),
        # Tiles that stay near the core for a group of output channels; 131 parts of 6 have none.
        (512, 28, AVX2, WinogradTiling(14, True, 8, 1, 6, 3)),
        (256, 56, AVX2, WinogradTiling(28, True, 4, 1, 4, 28)),
        (512, 7, AVX2, WinogradTiling(4, True, 8, 1, 6, 3)),
        (48, 6, AVX512, WinogradTiling(3, True, 1, 1, 9, 1)),
        (64, 56, NEON, WinogradTiling(2, False, 4, 1, 4, 14)),
        (16, 2, SSE, WinogradTiling(1, True, 1, 1, 1, 1)),
    ],
)
def test_tilings(channels, size, registers, expected) -> None:
    _, result = _convolution(1, channels, size, follow=lambda result: result)
    (products,) = [tensor for tensor in _tensors_before(result) if tensor.name == "tiles"]
    assert choose_tiling(products, result, registers) == expected


def _tensors_before(tensor):
    yield tensor
    for read in tensor.op.inputs:
        yield from _tensors_before(read)


def _check(to_callable, n, outs, depth, size, padding, level, seed):
    arrays = [
        integers(seed, n, depth, *size, 4),
        integers(seed + 1, 4, 4, outs, depth, 4, 4),
        integers(seed + 2, outs, 4),
    ]
    inputs = tensors(*(array.shape for array in arrays))
    convolved = conv2d_nchwc_winograd(*inputs, padding=padding)
    output = relu(add(convolved, convolved))
    func, stored = _lowered(inputs, output, level=level)
    expected = np.maximum(2 * conv2d_nchwc_winograd_numpy(*arrays, padding=padding), 0)
    result = np.full(expected.shape, np.nan, np.float32)
    work = [np.full([e.value for e in t.shape], np.nan, np.float32) for t in stored]
    to_callable(func)(*arrays, result, *work)
    np.testing.assert_array_equal(result, expected)


_few = st.integers(1, 3)
_cases = (
    st.integers(0, 2),
    _few,
    _few,
    st.tuples(st.integers(3, 9), st.integers(3, 17)),
    st.tuples(*[st.integers(0, 1)] * 4),
    st.sampled_from(["v2", "v3", "v4"]),
    seeds,
)


@pytest.mark.search
@settings(max_examples=15)
@given(*_cases)
def test_interpreter_agrees_with_the_meaning(n, outs, depth, size, padding, level, seed):
    run = lambda func: lambda *arrays: interpret(func, arrays)  # noqa: E731
    _check(run, n, outs, depth, size, padding, level, seed)


@pytest.mark.llvm
@settings(max_examples=10)
@given(*_cases)
def test_machine_code_agrees_with_the_meaning(n, outs, depth, size, padding, level, seed):
    with refcomp.build_options(contract=True):  # small integers: nothing rounds
        _check(refcomp.build, n, outs, depth, size, padding, level, seed)


@pytest.mark.llvm
def test_bands_agree_with_the_meaning() -> None:
    # Few weights beside long rows.
    inputs = tensors((1, 1, 24, 33, 4), (4, 4, 2, 1, 4, 4))
    _, stored = _lowered(inputs, conv2d_nchwc_winograd(*inputs), level="v3")
    assert stored == ()
    _check(refcomp.build, 1, 2, 1, (24, 33), (1, 0, 1, 1), "v3", 1)


@pytest.mark.llvm
@pytest.mark.parametrize(("channels", "size"), [(16, 56), (128, 8)])
def test_results_have_the_same_bits_for_any_number_of_threads(channels, size) -> None:
    inputs, output = _convolution(1, channels, size)
    schedule = schedule_llvm([output])
    stored = stored_tensors(schedule)
    assert len(stored) == (0 if size == 56 else 1)  # in bands, or at once
    function = refcomp.build(schedule, [*inputs, output, *stored], name="f")
    arrays = [floats(k, *(e.value for e in t.shape)) for k, t in enumerate(inputs)]
    results = []
    for count in (1, 2, 3):
        result, *work = (
            np.full([e.value for e in t.shape], np.nan, np.float32) for t in (output, *stored)
        )
        set_thread_count(count)
        try:
            function(*arrays, result, *work)
        finally:
            set_thread_count(None)
        results.append(result)
    assert np.isfinite(results[0]).all()
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
