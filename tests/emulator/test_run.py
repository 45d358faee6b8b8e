"""Kernels on numpy arrays; that all that refcomp prints agrees, see tests/emulator/test_ledger.py.

Arguments are checked, and what a wrong kernel does is found.
"""

from dataclasses import replace

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.foundation.local_memory import LocalMemory
from refcomp.ir.parser import parse_func
from tests.emulator.kernels import GPUS, Kernels, compiled_code, make_gpu
from tests.emulator.opencl import compiled_opencl

pytestmark = pytest.mark.rocm


def test_arguments_that_do_not_fit_are_refused():
    gpu = make_gpu()
    loaded = gpu.load(compiled_code("vector_add"))
    floats = np.zeros(64, np.float32)
    shape = (1, 1, 1), (64, 1, 1)
    one, cases, room = np.int64(1), [], gpu.arena.free_bytes()
    kinds = "A: array, B: array, C: array, n: 8 bytes, groups: 8 bytes"
    cases.append(([floats], rf"takes 5 arguments \({kinds}\), not 1", "hidden ones"))
    cases.append(([floats] * 3 + [np.int32(64), one], "n has 8 bytes, not 4", "int64"))
    cases.append(([floats] * 4 + [one], "the argument n is a number, not an array", "int64"))
    cases.append(([floats, one, floats, one, one], "B is an array, not a number", "uint64"))
    cases.append(([floats[::2]] * 3 + [one] * 2, "for A is not contiguous", "ascontiguousarray"))
    cases.append(([floats.astype(object)] * 3 + [one] * 2, "A holds Python objects", "dtype"))
    for arguments, message, remedy in cases:
        with pytest.raises(UserError, match=message) as told:
            gpu.run(loaded, "vector_add", *shape, arguments)
        assert remedy in told.value.remedy
    assert gpu.arena.free_bytes() == room  # what was laid out is given back


def test_a_launch_that_is_refused_keeps_no_arrays():
    gpu, floats, one = make_gpu(), np.zeros(64, np.float32), np.int64(1)
    loaded = gpu.load(compiled_code("vector_add"))
    room = gpu.arena.free_bytes()
    with pytest.raises(UserError, match="nothing to do"):
        gpu.run(loaded, "vector_add", (0, 1, 1), (64, 1, 1), [floats] * 3 + [one] * 2)
    assert gpu.arena.free_bytes() == room


def test_an_address_may_stand_for_an_array():
    """As 0 does where a kernel takes an array or none; this one does not."""
    gpu, floats = make_gpu(), np.zeros(64, np.float32)
    arguments = [floats, np.uint64(0), floats, np.int64(64), np.int64(1)]
    loaded = gpu.load(compiled_code("vector_add"))
    (finding,) = gpu.run(loaded, "vector_add", (1, 1, 1), (64, 1, 1), arguments).findings
    assert finding.kind == "out of bounds"


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


def test_local_memory_is_for_local_pointers_only():
    gpu, floats, one = make_gpu(), np.zeros(64, np.float32), np.int64(1)
    loaded = gpu.load(compiled_code("vector_add"))
    with pytest.raises(UserError, match="the argument n is not local memory") as told:
        arguments = [floats] * 3 + [LocalMemory(8), one]
        gpu.run(loaded, "vector_add", (1, 1, 1), (64, 1, 1), arguments)
    assert told.value.why == "the kernel takes 8 bytes in its place"


_SUM = """
kernel void sum(global int *x, local int *t, local long *total) {
  int i = __builtin_amdgcn_workitem_id_x();
  t[i] = x[i];
  if (i == 0) *total = 7;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  x[i] = t[i ^ 1] + *total;
}
"""


@pytest.mark.clang
@pytest.mark.parametrize("gpu", GPUS)
def test_local_memory_of_two_arguments_lies_apart(tmp_path, gpu):
    device = make_gpu(hazards=True)
    loaded = device.load(compiled_opencl(tmp_path, _SUM, gpu).read_bytes())
    x = np.arange(64, dtype=np.int32)

    def run(*local, **options):
        shape = (1, 1, 1), (64, 1, 1)
        return device.run(loaded, "sum", *shape, [x, *local], **options).findings

    assert not run(LocalMemory(256), LocalMemory(8))
    np.testing.assert_array_equal(x, (np.arange(64) ^ 1) + 7)
    assert not run(LocalMemory(256), LocalMemory(8), shared_bytes=20)
    told = {finding.what for finding in run(LocalMemory(256), LocalMemory(4))}
    assert "8 bytes at 256 of 260 bytes of shared memory" in told
    with pytest.raises(UserError, match="sum asks for 70260 bytes of shared memory"):
        run(LocalMemory(70000), LocalMemory(260))
    with pytest.raises(UserError, match="is local memory of a group") as told:
        run(np.int32(0), LocalMemory(8))
    assert "--arg local:256" in told.value.remedy


def test_arguments_without_names_have_numbers():
    """As in code objects of other compilers."""
    gpu = make_gpu()
    loaded = gpu.load(compiled_code("vector_add"))
    kernel = loaded.kernel("vector_add")
    nameless = tuple(replace(one, name="") for one in kernel.arguments)
    loaded.code.kernels["vector_add"] = replace(kernel, arguments=nameless)
    floats, shape = np.zeros(64, np.float32), ((2, 1, 1), (64, 1, 1))
    with pytest.raises(UserError, match=r"\(#0: array, .*, #4: 8 bytes\), not 1"):
        gpu.run(loaded, "vector_add", *shape, [floats])
    arguments = [floats, floats, floats, np.int64(65), np.int64(2)]
    first = gpu.run(loaded, "vector_add", *shape, arguments).findings[0]
    assert first.what == "4 bytes that end 4 bytes behind the argument #0 (256 bytes)"
