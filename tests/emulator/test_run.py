"""Kernels on numpy arrays: all that refcomp prints for AMD GPUs, as machine code of each GPU.

The interpreter of the loop IR says what they mean; results agree to the bit, or within the bound
of an intrinsic, and nothing is found wrong with them.
"""

import numpy as np
import pytest

from refcomp.emulator.generation import ARCHITECTURES
from refcomp.errors import UserError
from refcomp.ir.parser import parse_func
from tests.codegen.one_operation import (
    binary_cases,
    cast_cases,
    choice_cases,
    constant_cases,
    let_cases,
)
from tests.emulator.agreement import all_accesses, intrinsics, operations, whole_kernels
from tests.emulator.kernels import Kernels, compiled_code, make_gpu

pytestmark = pytest.mark.rocm
GENERATORS = (binary_cases, cast_cases, choice_cases, let_cases, constant_cases)


@pytest.fixture
def step(request):
    """Every case at night, else every second one."""
    return 1 if request.config.getoption("--nightly") else 2


def _check(outcome):
    assert not outcome.wrong, "\n".join(outcome.wrong[:20])


on_every_gpu = pytest.mark.parametrize("gpu", ARCHITECTURES)


@on_every_gpu
def test_whole_kernels_agree(gpu):
    _check(whole_kernels(gpu))


@on_every_gpu
@pytest.mark.parametrize("cases", GENERATORS)
def test_operations_agree_to_the_bit(cases, gpu, step, record_property):
    _check(operations(cases, step, gpu))
    count = operations(cases, step, gpu).count
    record_property("summary", f"{count} {cases.__name__} emulated on {gpu}")


@on_every_gpu
def test_intrinsics_agree_within_their_bounds(gpu, step):
    _check(intrinsics(step, gpu))


@on_every_gpu
def test_accesses_agree_to_the_bit(gpu, step):
    _check(all_accesses(step, gpu))


def test_arguments_that_do_not_fit_are_refused():
    gpu = make_gpu()
    loaded = gpu.load(compiled_code("vector_add"))
    floats = np.zeros(64, np.float32)
    shape = (1, 1, 1), (64, 1, 1)
    with pytest.raises(UserError, match=r"takes 5 arguments \(A, B, C, n, groups\), not 1"):
        gpu.run(loaded, "vector_add", *shape, [floats])
    with pytest.raises(UserError, match="the argument n has 8 bytes, not 4"):
        gpu.run(loaded, "vector_add", *shape, [floats] * 3 + [np.int32(64), np.int64(1)])
    with pytest.raises(UserError, match="the argument n is a number, not an array"):
        gpu.run(loaded, "vector_add", *shape, [floats] * 4 + [np.int64(1)])
    with pytest.raises(UserError, match="the array for A is not contiguous"):
        gpu.run(loaded, "vector_add", *shape, [floats[::2]] * 3 + [np.int64(1)] * 2)


def test_wrong_kernels_are_found():
    """A guard that is too wide, and memory of the group that no thread wrote."""
    text = """
    func f(A: f32[100], C: f32[100] out) {
      for g in range(2) blockIdx.x { for t in range(64) threadIdx.x {
        alloc S: f32[64] shared {
          if (t < 63) { S@[t] = A@[g * 50 + t] }
          barrier
          if (g * 64 + t < 101) { C@[g * 64 + t] = S@[63 - t] }
        }
      } }
    }
    """
    kernel = parse_func(text)
    arrays = [np.ones(100, np.float32), np.zeros(100, np.float32)]
    report = Kernels([kernel]).run(kernel, arrays, (2, 1, 1), (64, 1, 1))
    told = {finding.what for finding in report.findings}
    assert "4 bytes that end 4 bytes behind the argument C (400 bytes)" in told
    assert "what is stored depends on bits that nothing wrote" in told
