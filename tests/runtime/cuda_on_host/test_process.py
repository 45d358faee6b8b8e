"""Kernels in a process of their own: results come back, and each fault is an error in words."""

import numpy as np
import pytest

from refcomp.driver.cuda_on_host import compile_on_host, device_on_host
from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import ToolchainError
from refcomp.runtime.cuda_on_host.process import HostArgument, HostProcess

pytestmark = pytest.mark.gcc

_KERNELS = """
extern "C" __global__ void __launch_bounds__(40) number(int* A, const short k) {
  A[blockIdx.y * 80 + blockIdx.x * 40 + threadIdx.y * 20 + threadIdx.x] = k * blockIdx.y;
}
extern "C" __global__ void stale(int* A) {
  __shared__ int T[4];
  A[blockIdx.x] = T[1];
  T[1] = 7;
}
extern "C" __global__ void begins(
    int* A, const unsigned long long first, const unsigned long long second) {
  A[0] = (int)first, A[1] = (int)second;
}
extern "C" __global__ void lanes(int* A) {
  if (threadIdx.x != 2) A[threadIdx.x] = __shfl_xor_sync(0xffffffff, (int)threadIdx.x, 1u);
}
extern "C" __global__ void parted(int* A) {
  if (threadIdx.x > 1)
    __syncthreads();
  else
    __syncthreads();
}
extern "C" __global__ void endless(int* A) { while (((volatile int*)A)[0] == 0) {} }
extern "C" __global__ void crash(int* A) { *(volatile int*)8 = 1; }
extern "C" __global__ void beyond(int* A) { A[-1] = 1; }
"""


@pytest.fixture(scope="module")
def process():
    driver = device_on_host(limit_s=1.0).driver
    launcher = driver.load(0, compile_on_host(Source(_KERNELS, "cuda")), ())
    return launcher._process


def _launch(process, name, grid=(1, 1, 1), block=(1, 1, 1), size=4, more=(), shared=()):
    array = HostArgument(bytes(4 * size), is_array=True)
    (result,) = process.launch(name, [array, *more], grid, block, shared)
    return np.frombuffer(result, np.int32)


def test_arrays_come_back(process):
    k = HostArgument(np.int16(-3).tobytes(), is_array=False)
    found = _launch(process, "number", (2, 2, 1), (20, 2, 1), 160, [k])
    np.testing.assert_array_equal(found, np.repeat([0, -3], 80))


def test_a_group_does_not_find_what_another_left_in_shared_memory(process):
    assert 7 not in _launch(process, "stale", (4, 1, 1))


def test_dynamic_shared_arrays_begin_at_multiples_of_128_bytes(process):
    assert list(_launch(process, "begins", shared=(4, 12), size=2)) == [0, 128]
    assert list(_launch(process, "begins", shared=(129, 1), size=2)) == [0, 256]


@pytest.mark.parametrize(
    ("kernel", "options", "why"),
    [
        ("number", {}, "fault: parameters of the kernel: 2"),
        (
            "number",
            {"block": (41, 1, 1), "more": [HostArgument(bytes(2), is_array=False)]},
            "fault: launch bound of the kernel: 40",
        ),
        (
            "parted",
            {"block": (4, 1, 1)},
            "fault: divergent barrier: thread 0 is at line 21, thread 2 at line 19 (0: the end)",
        ),
        ("endless", {}, "it was not done after 1 s"),
        ("crash", {}, "it ended with status -11"),
        ("beyond", {"size": 5}, "fault: a write beyond an array, of bytes: 20"),
        ("missing", {}, "fault: no such kernel: 0"),
    ],
)
def test_a_fault_is_an_error_and_the_next_launch_works(process, kernel, options, why):
    with pytest.raises(ToolchainError, match="a CUDA kernel fails on this machine") as caught:
        _launch(process, kernel, **options)
    assert caught.value.why == why
    assert caught.value.where == f"kernel {kernel}"
    assert list(_launch(process, "begins", shared=(1, 1), size=2)) == [0, 128]


def test_lanes_that_do_not_take_part_are_reported():
    driver = device_on_host(limit_s=30.0).driver
    process = driver.load(0, compile_on_host(Source(_KERNELS, "cuda")), ())._process
    with pytest.raises(ToolchainError) as caught:
        _launch(process, "lanes", block=(4, 1, 1))
    assert caught.value.why == "fault: divergent threads: all wait, of which for their warp: 3"


def test_a_process_that_cannot_load_its_kernels():
    process = device_on_host().driver._process
    broken = HostProcess(process, type(process)(b"no library", "so"), limit_s=10.0)
    with pytest.raises(ToolchainError, match="a CUDA kernel fails on this machine") as caught:
        _launch(broken, "number")
    assert "kernels.so" in caught.value.why
