"""Host schedules: what they vectorize, unroll and store, and that they change no result."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refcomp.compiler import build_functions
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import UNROLLED, VECTORIZED, Allocate, For
from refcomp.lowering.lower import lower
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.te.tensor import var
from refcomp.topi.contraction.dense import gemm, gemm_numpy
from refcomp.topi.convolution.conv2d import conv2d, conv2d_nhwc, conv2d_nhwc_numpy, conv2d_numpy
from refcomp.topi.elementwise.activations import relu, relu_numpy
from refcomp.topi.movement.transform import reshape, transpose
from refcomp.topi.normalization.softmax import softmax
from refcomp.topi.pooling.pool2d import avg_pool2d, max_pool2d, max_pool2d_numpy
from refcomp.topi.schedules.llvm import schedule_llvm, stored_tensors
from tests.strategies.operands import extents, integers, seeds, tensors

_SAME = {"padding": (1, 1, 1, 1)}


def lowered(inputs, output):
    """The function of `output` on inputs, output and workspaces, and the workspaces."""
    # The level makes the loops the same on each machine that runs the tests.
    schedule = schedule_llvm([output], "llvm -mcpu=x86-64-v4")
    stored = stored_tensors(schedule)
    return lower(schedule, [*inputs, output, *stored], "f"), stored


def loops(func, kind):
    return [n for n in walk(func.body) if isinstance(n, For) and n.kind == kind]


def run(run_func, output, stored, arrays, batch):
    """What `run_func` puts into the output for `arrays`."""

    def memory(tensor):
        shape = [batch if not hasattr(d, "value") else d.value for d in tensor.shape]
        return np.full(shape, np.nan, np.float32)

    result, *spaces = [memory(tensor) for tensor in (output, *stored)]
    run_func(*arrays, result, *spaces)
    return result


def test_convolution_keeps_a_tile_of_registers() -> None:
    data, weight, bias = tensors((var("n"), 8, 8, 16), (3, 3, 16, 32), (32,))
    func, stored = lowered([data, weight, bias], relu(conv2d_nhwc(data, weight, bias, **_SAME)))
    assert [tensor.name for tensor in stored] == ["pad"]
    assert {loop.extent.value for loop in loops(func, VECTORIZED)} == {16}
    # Eight pixels by two vectors of output channels.
    assert {loop.extent.value for loop in loops(func, UNROLLED)} == {1, 2, 8}


def test_injective_stages_have_no_memory() -> None:
    (data,) = tensors((4, 20))
    func, stored = lowered([data], relu(relu(data)))
    assert stored == ()
    assert [loop.extent.value for loop in loops(func, VECTORIZED)] == [
        10
    ]  # divides 20, as 16 and 8 do not


def test_a_transpose_is_computed_in_squares() -> None:
    (data,) = tensors((24, 40))
    func, _ = lowered([data], transpose(data, axes=(1, 0)))
    assert [loop.extent.value for loop in loops(func, VECTORIZED)] == [8]
    inner = [n.extent.value for n in walk(func.body) if isinstance(n, For)]
    assert inner == [5, 3, 8, 8]


@pytest.mark.parametrize(("extent", "side"), [(14, 7), (28, 7), (20, 5), (13, 8), (22, 8)])
def test_squares_divide_the_rows_if_they_can(extent, side) -> None:
    (data,) = tensors((16, extent))
    func, _ = lowered([data], transpose(data, axes=(1, 0)))
    inner = [n.extent.value for n in walk(func.body) if isinstance(n, For)]
    assert inner == [-(-extent // side), 2, side, 8]


def test_vectors_do_not_cross_a_step_of_an_index() -> None:
    (data,) = tensors((4, 6, 40))
    func, _ = lowered([data], reshape(data, shape=(960,)))
    assert [loop.extent.value for loop in loops(func, VECTORIZED)] == [8]  # 16 crosses rows of 40


def test_windows_are_summed_in_registers_without_loops() -> None:
    (data,) = tensors((1, 4, 18, 18))
    output = avg_pool2d(data, kernel=(3, 3), strides=(1, 1))
    func, stored = lowered([data], output)
    assert stored == ()
    assert 3 in {loop.extent.value for loop in loops(func, UNROLLED)}
    (sums,) = [node.buffer for node in walk(func.body) if isinstance(node, Allocate)]
    assert sums.scope == "local"


def test_what_is_read_twice_is_stored() -> None:
    (data,) = tensors((var("n"), 3))  # too short for vectors along rows
    _, stored = lowered([data], softmax(data))
    names = [tensor.name for tensor in stored]
    assert names == ["greatest", "power", "total", "inverse"]


def test_symbolic_and_single_extents_stay_scalar() -> None:
    (data,) = tensors((4, var("n")))
    assert not loops(lowered([data], relu(data))[0], VECTORIZED)
    (single,) = tensors((1, 1))
    assert not loops(lowered([single], relu(single))[0], VECTORIZED)


def _cases():
    image, packed, bias = tensors((var("n"), 5, 4, 3), (3, 3, 3, 18), (18,))
    yield (
        [image, packed, bias],
        conv2d_nhwc(image, packed, bias, **_SAME),
        (lambda x, w, b: conv2d_nhwc_numpy(x, w, b, **_SAME)),
    )
    image, weight = tensors((var("n"), 4, 5, 6), (6, 2, 3, 2))
    yield (
        [image, weight],
        relu(conv2d(image, weight, groups=2)),
        (lambda x, w: relu_numpy(conv2d_numpy(x, w, groups=2))),
    )
    (image,) = tensors((var("n"), 3, 6, 7))
    yield (
        [image],
        max_pool2d(image, kernel=(3, 2), padding=(1, 0, 1, 1)),
        (lambda x: max_pool2d_numpy(x, kernel=(3, 2), padding=(1, 0, 1, 1))),
    )
    a, b = tensors((var("n"), 7), (7, 33))
    yield [a, b], gemm(a, b), gemm_numpy


CASES = list(_cases())


@pytest.mark.search
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1].op.name)
@pytest.mark.parametrize("batch", [0, 1, 2])
def test_interpreter_agrees_with_the_meaning(case, batch):
    _check(case, batch, 5, lambda func: lambda *arrays: interpret(func, arrays))


@pytest.mark.llvm
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1].op.name)
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_machine_code_agrees_with_the_meaning(case, batch):
    _check(case, batch, 6, lambda func: build_functions([func], "llvm"))


def _check(case, batch, seed, to_callable):
    inputs, output, meaning = case
    func, stored = lowered(inputs, output)
    shapes = [[d.value if hasattr(d, "value") else batch for d in t.shape] for t in inputs]
    arrays = [integers(seed + k, *shape) for k, shape in enumerate(shapes)]
    result = run(to_callable(func), output, stored, arrays, batch)
    np.testing.assert_array_equal(result, meaning(*arrays))


@settings(max_examples=10)
@given(extents, st.integers(1, 40), extents, seeds)
def test_any_number_of_columns(rows, columns, depth, seed):
    a, b = tensors((rows, depth), (depth, columns))
    output = gemm(a, b)
    func, stored = lowered([a, b], output)
    arrays = integers(seed, rows, depth), integers(seed + 1, depth, columns)
    result = run(lambda *given: interpret(func, given), output, stored, arrays, 0)
    np.testing.assert_array_equal(result, gemm_numpy(*arrays))
