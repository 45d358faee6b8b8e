"""Asynchronous copies into double buffers: which copies are, and that each is waited for."""

import copy
from functools import cache

import numpy as np
import pytest

import refcomp as rc
from refcomp.codegen.cuda.module import print_cuda
from refcomp.driver.steps import CUDA_STEPS, kernels_of, run_step
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes.align_arguments import align_arguments
from refcomp.toolchain import compile_source
from tests.codegen.cuda.host_kernels import HostKernels

COPY = "__pipeline_memcpy_async"
WAIT = "__pipeline_wait_prior(0);"


@cache
def product(n: int, vector: int) -> PrimFunc:
    """Return a matrix product whose tiles are double-buffered, `vector` elements a copy."""
    A, B = (rc.placeholder((n, n), name=name) for name in "AB")
    k = rc.reduce_axis((0, n), name="k")
    C = rc.compute((n, n), lambda i, j: rc.sum(A[k, i] * B[k, j], axis=k), name="C")
    s = rc.create_schedule(C)
    tiles = [s.cache_read(tensor, "shared", [C]) for tensor in (A, B)]
    sums = s.cache_write(C, "local")
    by, i = s[C].split(C.op.axis[0], 32)
    bx, j = s[C].split(C.op.axis[1], 32)
    ty, i = s[C].split(i, 8)
    tx, j = s[C].split(j, 8)
    s[C].reorder(by, bx, ty, tx, i, j)
    for loop, tag in zip(
        (by, bx, ty, tx), ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"), strict=True
    ):
        s[C].bind(loop, rc.thread_axis(tag))
    s[sums].compute_at(s[C], tx)
    ko, ki = s[sums].split(s[sums].op.reduce_axis[0], 8)
    s[sums].reorder(ko, ki, *s[sums].op.axis)
    for tile in tiles:
        s[tile].compute_at(s[sums], ko)
        rest, lanes = s[tile].split(s[tile].fuse(*s[tile].op.axis), vector)
        rest, x = s[tile].split(rest, 4)
        rest, y = s[tile].split(rest, 4)
        s[tile].bind(x, rc.thread_axis("threadIdx.x"))
        s[tile].bind(y, rc.thread_axis("threadIdx.y"))
        s[tile].vectorize(lanes)
        s[tile].double_buffer()
    made = rc.lower(s, [A, B, C], name=f"product{n}x{vector}")
    for step in CUDA_STEPS:
        made = run_step(step, made)
    (kernel,) = kernels_of([made])
    return kernel


PRODUCTS = [(64, 4), (32, 2), (96, 1)]


def test_tiles_are_copied_and_waited_for_before_each_barrier():
    for size in PRODUCTS:
        text = print_cuda([product(*size)], "sm_80").text
        assert text.count(f", {4 * size[1]});") == text.count(COPY) == 4
        barriers = text.split("__syncthreads();")
        assert all(part.rstrip().endswith(WAIT) for part in barriers[:-1])


def test_older_gpus_load_and_store():
    for arch in ("sm_75", "sm_75,sm_90"):
        assert "__pipeline" not in print_cuda([product(64, 4)], arch).text


def _arguments(n):
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-4, 5, (n, n)).astype(np.float32) for _ in range(2))
    return [a, b, np.zeros((n, n), np.float32)]


@pytest.mark.gcc
def test_products_are_right_and_a_missing_wait_is_noticed():
    kernels = [product(*size) for size in PRODUCTS]
    built = HostKernels(kernels)
    assert built.text.count(COPY) == 4 * len(kernels)
    broken = HostKernels(kernels, built.text.replace(WAIT, ""))
    for kernel, (n, _) in zip(kernels, PRODUCTS, strict=True):
        actual = _arguments(n)
        others = copy.deepcopy(actual)
        expected = actual[0].T @ actual[1]
        built.call(kernel, actual)
        np.testing.assert_array_equal(actual[2], expected, err_msg=kernel.name)
        broken.call(kernel, others)
        assert not np.array_equal(others[2], expected)


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_nvcc_makes_asynchronous_copies(arch):
    source = print_cuda([product(*size) for size in PRODUCTS], arch)
    ptx = compile_source(source, {"arch": arch}, "ptx", description="cuda").data.decode()
    for size, (_, lanes) in zip(("16", "8", "4"), PRODUCTS, strict=True):
        assert f", {4 * lanes}, {size};" in ptx
    assert "cp.async.wait_group 0;" in ptx and "st.shared" not in ptx


ROUNDS = """
func rounds(A: f32[16, 32], B: f32[16, 8] out, n: i64) {{
  for t in range(8) threadIdx.x {{
    alloc T: f32[{shape}] shared {{
      T@[{first}] = A@[ramp(t * 4, 1, 4)]
      for k in range(15) {{
        {top}
        {fill}
        {use}
      }}
    }}
  }}
}}
"""
PLAIN = {
    "shape": "2, 32",
    "first": "ramp(t * 4, 1, 4)",
    "top": "barrier",
    "fill": "T@[ramp((k + 1) % 2 * 32 + t * 4, 1, 4)] = A@[ramp(k * 32 + t * 4 + 32, 1, 4)]",
    "use": "B@[k * 8 + t] = T@[k % 2 * 32 + (t * 4 + 5) % 32]",
}
FILL = PLAIN["fill"]


def _rounds(**change):
    func = parse_func(ROUNDS.format(**PLAIN | change))
    verify(func, "device")
    return align_arguments(func)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"top": "for j in range(1) { barrier }"},
        {"fill": f"if (k < n) {{ {FILL} }}"},
        {"fill": f"for j in range(1) {{ {FILL.replace('t * 4', 't * 4 + j * 4', 1)} }}"},
        {"use": "let x: i64 = k % 2 { B@[k * 8 + t] = T@[x * 32 + t * 4] }"},
    ],
)
def test_copies_that_are_asynchronous(change):
    assert print_cuda([_rounds(**change)], "sm_80").text.count(COPY) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"shape": "64"},  # not two slots
        {"top": ""},  # no barrier
        {"top": "if (n < 3) { barrier }"},  # perhaps no barrier
        {"top": "for j in range(n) { barrier }"},
        {"use": "B@[k * 8 + t] = T@[(k + 1) % 2 * 32 + t * 4]"},  # what is being copied
        {"use": "B@[k * 8 + t] = T@[(k + n) % 2 * 32 + t * 4]"},
        {"use": "B@[k * 8 + t] = T@[k % 2 * 32 + t * 5]"},  # perhaps of the other slot
        {"use": "B@[k * 8 + t] = T@[n]"},
        {"use": "B@[k * 8 + t] = T@[i64(A@[k])]"},
        {"use": "let x: i64 = i64(A@[k]) { B@[k * 8 + t] = T@[x % 2 * 32 + t] }"},
        {"use": f"T@[k % 2 * 32 + t * 4] = 0.0f32 {PLAIN['use']}"},  # something else writes
        {"use": f"atomic add T[k % 2 * 32 + t * 4] with 1.0f32 {PLAIN['use']}"},
        {"fill": f"for j in range(2) {{ {FILL} }}"},  # twice to one place
        {"fill": f"{FILL} {FILL}"},
        {"fill": f"for j in range(2) {{ {FILL.replace('t * 4', 't * 4 + j * 2', 1)} }}"},
        {"fill": FILL.replace("A@[ramp(k * 32 + t * 4 + 32, 1, 4)]", "broadcast(1.0f32, 4)")},
        {"fill": FILL.replace("A@[ramp(k * 32 + t * 4 + 32", "B@[ramp(t * 4")},  # written
        {"fill": FILL.replace("32, 1, 4)]", "32, 2, 4)]")},  # not side by side
    ],
)
def test_copies_that_are_not(change):
    assert COPY not in print_cuda([_rounds(**change)], "sm_80").text


def test_a_copy_that_is_not_aligned_loads_and_stores():
    text = print_cuda([_rounds(first="ramp(t * 4 + 0, 1, 4)")], "sm_80").text
    assert text.count(COPY) == 2
    unaligned = print_cuda(
        [_rounds(fill=FILL.replace("k * 32 + t * 4 + 32", "k * 32 + t * 4 + 31"))], "sm_80"
    ).text
    assert unaligned.count(COPY) == 1  # the first one
    assert "store_wide<16>(&T[" in unaligned


@pytest.mark.gcc
def test_rounds_agree_with_the_interpreter():
    kernel = _rounds()
    arrays = [np.arange(512, dtype=np.float32).reshape(16, 32), np.zeros((16, 8), np.float32), 3]
    expected = copy.deepcopy(arrays)
    interpret(kernel, expected)
    HostKernels([kernel]).call(kernel, arrays)
    np.testing.assert_array_equal(arrays[1], expected[1])
