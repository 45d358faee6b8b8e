"""Schedules for NVIDIA GPUs: which stages are tiled or have vectors, and that results stay."""

import numpy as np
import pytest

from refcomp.driver.pipeline import run_pipeline
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import VECTORIZED, Allocate, For
from refcomp.lowering.lower import lower
from refcomp.te.tensor import var
from refcomp.topi.broadcast.arithmetic import add, add_numpy
from refcomp.topi.contraction.dense import gemm, gemm_numpy
from refcomp.topi.convolution.conv2d import conv2d_nhwc, conv2d_nhwc_numpy
from refcomp.topi.elementwise.activations import relu, relu_numpy, tanh
from refcomp.topi.movement.transform import transpose, transpose_numpy
from refcomp.topi.normalization.softmax import softmax, softmax_numpy
from refcomp.topi.pooling.pool2d import max_pool2d, max_pool2d_numpy
from refcomp.topi.schedules.cuda import schedule_cuda
from refcomp.topi.schedules.llvm import stored_tensors
from tests.codegen.cuda.host_kernels import HostKernels
from tests.strategies.operands import integers, tensors


def lowered(inputs, output, name="f"):
    """The function of `output` on inputs, output and workspaces, and the workspaces."""
    schedule = schedule_cuda([output])
    stored = stored_tensors(schedule)
    return lower(schedule, [*inputs, output, *stored], name), stored


def lanes(func):
    """The extents of vectors."""
    vectors = (n for n in walk(func.body) if isinstance(n, For) and n.kind == VECTORIZED)
    return [loop.extent.value for loop in vectors]


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((5, 64), "float32", [4]),
        ((5, 64), "float16", [8]),
        ((5, 64), "float64", [2]),
        ((5, 6), "float32", []),
        ((var("n"), 64), "float32", []),
    ],
)
def test_a_thread_computes_what_an_access_of_16_bytes_holds(shape, dtype, expected):
    a, b = tensors(shape, shape, dtype=dtype)
    func, _ = lowered([a, b], relu(add(a, b)))
    assert lanes(func) == expected


def test_what_is_read_across_has_no_vectors():
    (a,) = tensors((8, 64))
    assert lanes(lowered([a], transpose(a, axes=(1, 0)))[0]) == []
    assert lanes(lowered([a], relu(transpose(a, axes=(1, 0))))[0]) == []


def test_a_value_for_all_neighbours_keeps_vectors():
    a, b = tensors((8, 64), (8, 1))
    assert lanes(lowered([a, b], add(a, b))[0]) == [4]


def test_a_product_is_tiled_with_what_follows_it():
    a, b, c = tensors((64, 32), (32, 64), (64,))
    func, stored = lowered([a, b, c], tanh(relu(gemm(a, b, c))))
    assert stored == ()
    scopes = [n.buffer.scope for n in walk(func.body) if isinstance(n, Allocate)]
    assert scopes.count("shared") == 2


def test_what_is_computed_before_a_product_is_computed_on_its_way_to_shared_memory():
    a, b = tensors((64, 32), (32, 64))
    func, stored = lowered([a, b], gemm(relu(a), b))
    assert stored == ()
    blocks = [n for n in walk(func.body) if isinstance(n, For) and n.kind == "blockIdx.y"]
    assert len(blocks) == 1


def test_what_others_read_too_keeps_its_memory():
    a, b = tensors((64, 64), (64, 64))
    hot = relu(a)
    _, stored = lowered([a, b], gemm(hot, add(hot, b)))
    assert all(tensor.name != "gemm" for tensor in stored)


def cases():
    a, b, c = tensors((64, 32), (32, 32), (64, 32))
    yield [a, b, c], relu(gemm(a, b, c)), lambda x, y, z: relu_numpy(gemm_numpy(x, y, z))
    a, b = tensors((64, 32), (32, 32))
    yield [a, b], gemm(relu(a), b), lambda x, y: gemm_numpy(relu_numpy(x), y)
    a, b = tensors((32, 32), (32, 32))
    hot = relu(a)
    yield [a, b], gemm(hot, add(hot, b)), _used_twice
    data, weight = tensors((2, 4, 4, 16), (3, 3, 16, 32))
    same = {"padding": (1, 1, 1, 1)}
    yield (
        [data, weight],
        relu(conv2d_nhwc(data, weight, **same)),
        lambda x, w: relu_numpy(conv2d_nhwc_numpy(x, w, **same)),
    )
    data, weight = tensors((2, 4, 4, 3), (3, 3, 3, 5))
    yield [data, weight], conv2d_nhwc(data, weight), conv2d_nhwc_numpy
    (a,) = tensors((5, 64))
    yield [a], softmax(a), softmax_numpy
    yield [a], transpose(relu(a), axes=(1, 0)), lambda x: transpose_numpy(x, axes=(1, 0)).clip(0)
    a, b = tensors((8, 64), (8, 1))
    yield [a, b], relu(add(a, b)), lambda x, y: relu_numpy(add_numpy(x, y))
    (image,) = tensors((2, 3, 6, 8))
    window = {"kernel": (3, 2), "padding": (1, 0, 1, 1)}
    yield [image], max_pool2d(image, **window), lambda x: max_pool2d_numpy(x, **window)


def _used_twice(x, y):
    hot = relu_numpy(x)
    return gemm_numpy(hot, add_numpy(hot, y))


@pytest.mark.gcc
def test_scheduled_operators_agree_with_their_meaning():
    made = list(cases())
    functions = [lowered(case[0], case[1], f"case{k}") for k, case in enumerate(made)]
    programs = [run_pipeline(func, "cuda") for func, _ in functions]
    built = HostKernels([kernel for program in programs for kernel in program.kernels])
    for program, (_, stored), (inputs, output, meaning) in zip(
        programs, functions, made, strict=True
    ):
        arrays = {t.name: integers(3 + k, *_shape(t)) for k, t in enumerate(inputs)}
        spaces = {t.name: np.full(_shape(t), np.nan, np.float32) for t in (output, *stored)}
        for kernel in program.kernels:
            known = arrays | spaces
            built.call(kernel, [known[param.name] for param in kernel.params])
        expected = meaning(*arrays.values())
        np.testing.assert_allclose(spaces[output.name], expected, 1e-6, err_msg=output.name)


def _shape(tensor):
    return [d.value for d in tensor.shape]
