"""Schedules for GPUs: which stages are kernels, and that they change no result."""

import numpy as np
import pytest

import refcomp
from refcomp.compiler import build_functions
from refcomp.ir.constants import as_int
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate, For
from refcomp.lowering.lower import lower
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.passes.insert_barriers import insert_barriers
from refcomp.passes.split_host_device import split_host_device
from refcomp.te.tensor import var
from refcomp.topi.contraction.dense import gemm, gemm_numpy
from refcomp.topi.convolution.conv2d import conv2d, conv2d_nhwc, conv2d_nhwc_numpy, conv2d_numpy
from refcomp.topi.elementwise.activations import relu, relu_numpy
from refcomp.topi.normalization.softmax import softmax
from refcomp.topi.pooling.pool2d import max_pool2d, max_pool2d_numpy
from refcomp.topi.schedules.cuda import schedule_cuda
from refcomp.topi.schedules.gpu import schedule_gpu
from refcomp.topi.schedules.llvm import stored_tensors
from tests.strategies.operands import integers, tensors

_SAME = {"padding": (1, 1, 1, 1)}


def lowered(inputs, output):
    """The function of `output` on inputs, output and workspaces, and the workspaces."""
    schedule = schedule_gpu([output])
    stored = stored_tensors(schedule)
    return lower(schedule, [*inputs, output, *stored], "f"), stored


def kernels(func):
    return sum(isinstance(n, For) and n.kind == "blockIdx.x" for n in walk(func.body))


def test_a_convolution_and_what_follows_it_are_one_kernel_behind_the_border():
    data, weight, bias = tensors((var("n"), 8, 8, 16), (3, 3, 16, 32), (32,))
    func, stored = lowered([data, weight, bias], relu(conv2d_nhwc(data, weight, bias, **_SAME)))
    assert [tensor.name for tensor in stored] == ["pad"]
    assert kernels(func) == 2
    (sums,) = [n.buffer for n in walk(func.body) if isinstance(n, Allocate)]
    assert sums.scope == "local" and {d.value for d in sums.shape} == {1}


def test_statistics_of_rows_and_what_follows_are_one_kernel():
    (data,) = tensors((var("n"), 10))
    func, stored = lowered([data], softmax(data))
    assert stored == ()
    assert kernels(func) == 1


def test_what_has_no_axis_gets_a_loop_of_one_iteration() -> None:
    (data,) = tensors(())
    schedule = schedule_gpu([relu(data)])
    assert [step.primitive for step in schedule.steps] == ["fuse", "split", "bind", "bind"]


def _sum(*factors):
    """The sum over k of the products of `factors[k]`, which has rank 0."""
    k = refcomp.reduce_axis((0, factors[0].shape[0]), "k")
    product = factors[0][k] if len(factors) == 1 else factors[0][k] * factors[1][k]
    return refcomp.compute((), lambda: refcomp.sum(product, axis=k), name="T")


def _scalar_results():
    """Yield inputs and a result of rank 0: with and without a reduction, of one stage or two."""
    n = var("n")
    for shape in (n, 64, 0):
        x, y = tensors((shape,), (shape,))
        yield [x], _sum(x)
        yield [x, y], _sum(x, y)
    (matrix, a, b, x) = tensors((8, 5), (), (), (n,))
    k, r = refcomp.reduce_axis((0, 8), "k"), refcomp.reduce_axis((0, 5), "r")
    yield [matrix], refcomp.compute((), lambda: refcomp.max(matrix[k, r], axis=[k, r]), name="M")
    yield [a, b], refcomp.compute((), lambda: a() * 2 + b(), name="C")
    yield [matrix], refcomp.compute((), lambda: matrix[3, 2] + 1, name="C")
    total = _sum(x)
    yield [x, a], refcomp.compute((), lambda: total() * a(), name="C")


@pytest.mark.parametrize("schedule", [schedule_gpu, schedule_cuda], ids=lambda f: f.__name__)
@pytest.mark.parametrize("case", range(10))
def test_results_of_rank_0_are_computed_in_kernels(case, schedule):
    inputs, result = list(_scalar_results())[case]
    func = lower(schedule([result]), [*inputs, result], "f")
    assert split_host_device(func).kernels  # it refuses what is left to the host
    sizes = [
        [as_int(extent) if as_int(extent) is not None else 7 for extent in x.shape] for x in inputs
    ]
    arrays = [integers(3, *size) for size in sizes]
    found = np.full((), 77, "float32")
    interpret(insert_barriers(func), [*arrays, found])
    (wanted,) = evaluate([result], dict(zip(inputs, arrays, strict=True)))
    np.testing.assert_array_equal(found, wanted)


def _cases():
    image, weight, bias = tensors((var("n"), 5, 4, 3), (3, 3, 3, 18), (18,))
    yield (
        [image, weight, bias],
        relu(conv2d_nhwc(image, weight, bias, **_SAME)),
        (lambda x, w, b: relu_numpy(conv2d_nhwc_numpy(x, w, b, **_SAME))),
    )
    image, weight = tensors((var("n"), 4, 5, 6), (6, 2, 3, 2))
    yield (
        [image, weight],
        conv2d(image, weight, groups=2),
        (lambda x, w: conv2d_numpy(x, w, groups=2)),
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


def _operands(inputs, batch):
    """Small whole numbers, whose sums are exact in any order."""
    shapes = [[d.value if hasattr(d, "value") else batch for d in t.shape] for t in inputs]
    return [integers(5 + k, *shape) for k, shape in enumerate(shapes)]


def _memory(tensors, batch):
    shapes = [[d.value if hasattr(d, "value") else batch for d in t.shape] for t in tensors]
    return [np.full(shape, np.nan, np.float32) for shape in shapes]


@pytest.mark.search
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1].op.name)
@pytest.mark.parametrize("batch", [0, 1, 2])
def test_interpreter_agrees_with_the_meaning(case, batch):
    inputs, output, meaning = case
    func, stored = lowered(inputs, output)
    arrays, (result, *spaces) = _operands(inputs, batch), _memory([output, *stored], batch)
    interpret(func, [*arrays, result, *spaces])
    np.testing.assert_array_equal(result, meaning(*arrays))


@pytest.mark.pocl
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1].op.name)
def test_a_device_agrees_with_the_meaning(case):
    inputs, output, meaning = case
    func, stored = lowered(inputs, output)
    arrays, spaces = _operands(inputs, 3), _memory([output, *stored], 3)
    there = [refcomp.array(array, refcomp.opencl(0)) for array in (*arrays, *spaces)]
    build_functions([func], "opencl")(*there)
    np.testing.assert_array_equal(there[len(arrays)].asnumpy(), meaning(*arrays))
