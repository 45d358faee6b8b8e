"""Registers as waves find them: by the descriptor of a kernel."""

import subprocess
from dataclasses import replace

import numpy as np
import pytest

from refcomp.emulator.code.code_object import PreloadedArguments
from refcomp.emulator.execution.initial_state import unused_vectors
from refcomp.emulator.execution.launch import LaunchRequest, launch
from refcomp.emulator.limits import Limits
from refcomp.emulator.machine.observation import Observer
from refcomp.foundation.errors import Unsupported
from tests.emulator.kernels import compiled_code, make_gpu

pytestmark = pytest.mark.rocm


class _FirstWaves(Observer):
    """The registers of the first batch of waves."""

    def began(self, waves):
        self.scalars, self.vectors = waves.values.s.copy(), waves.values.v.copy()
        self.unwritten, self.lanes = waves.shadow.s.copy(), waves.mask.copy()


def _begun(gpu="gfx942", **fields):
    """What waves of a kernel with another descriptor find."""
    loaded = make_gpu().load(compiled_code("vector_add", gpu=gpu))
    kernel = loaded.kernel("vector_add")
    descriptor = replace(kernel.descriptor, **fields)
    loaded.code.kernels["vector_add"] = replace(kernel, descriptor=descriptor, block=())
    seen = _FirstWaves()
    arguments = np.arange(1, 11, dtype=np.uint32).tobytes()
    request = LaunchRequest(
        "vector_add", (1, 2, 1), (20, 2, 1), arguments, limits=Limits(1), observers=(seen,)
    )
    report = launch(loaded, request)
    assert "endless" in {finding.kind for finding in report.findings}
    return seen


def test_work_items_have_three_numbers_and_groups_three_ids():
    seen = _begun(properties=1 << 3, rsrc2=2 << 1 | 1 << 7 | 1 << 8)
    item = np.arange(40)
    assert (seen.vectors[0, 0, :40] == (item % 20 | item // 20 << 10)).all()
    assert np.count_nonzero(seen.lanes[0]) == 40
    assert seen.scalars[2:4].tolist() == [[0, 0], [0, 1]]  # of two waves
    assert not seen.unwritten[:4].any() and (seen.unwritten[4] == 0xFFFFFFFF).all()


@pytest.mark.parametrize("gpu", ["gfx942", "gfx90a"])
def test_arguments_may_stand_in_registers(gpu):
    seen = _begun(gpu, properties=1 << 3, rsrc2=6 << 1 | 1 << 8, preload=3 | 2 << 7)
    assert seen.scalars[2:5, 0].tolist() == [3, 4, 5]
    assert (seen.unwritten[5] == 0xFFFFFFFF).all() and seen.scalars[6].tolist() == [0, 1]


def test_what_no_compiler_asks_for_is_refused():
    for gpu, fields, message in [
        (
            "gfx1100",
            {"preload": 1},
            "asks for arguments in registers\n  why: a gfx1100 cannot preload",
        ),
        ("gfx942", {"preload": 127}, "asks for more arguments in registers than it has"),
        ("gfx942", {"rsrc2": 1 << 10}, "asks for the work-group info register"),
    ]:
        with pytest.raises(Unsupported, match=message):
            _begun(gpu, **fields)


def test_no_registers_lie_between_a_kernels_own_and_its_accumulators():
    (kernel,) = make_gpu().load(compiled_code("matmul")).code.kernels.values()
    descriptor = replace(kernel.descriptor, rsrc3=10)
    assert unused_vectors(descriptor, 260) == slice(44, 256)
    assert unused_vectors(descriptor, 44) == slice(0, 0)


_SAXPY = """
kernel void saxpy(__global float *x, __global float *y, float a, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < n) y[i] = a * x[i] + y[i];
}"""


@pytest.mark.clang
@pytest.mark.parametrize("gpu", ["gfx942", "gfx90a"])
def test_kernels_that_find_their_arguments_in_registers(gpu, tmp_path):
    source, result = tmp_path / "saxpy.cl", tmp_path / "saxpy.hsaco"
    source.write_text(_SAXPY)
    command = ["/usr/lib/llvm-19/bin/clang", "-x", "cl", "-cl-std=CL2.0", "-O2", "-nogpulib"]
    command += ["-target", "amdgcn-amd-amdhsa", f"-mcpu={gpu}", "-mcode-object-version=5"]
    command += ["-Xclang", "-mllvm", "-Xclang", "-amdgpu-kernarg-preload-count=16"]
    subprocess.run([*command, str(source), "-o", str(result)], check=True, timeout=120)
    device = make_gpu()
    loaded = device.load(result.read_bytes())
    assert loaded.kernel("saxpy").descriptor.preloaded == PreloadedArguments(length=6, offset=0)
    x, y = np.arange(128, dtype=np.float32), np.ones(128, np.float32)
    arguments = [x, y, np.float32(2), np.int32(100)]
    report = device.run(loaded, "saxpy", (2, 1, 1), (64, 1, 1), arguments)
    assert not report.findings
    np.testing.assert_array_equal(y, np.where(x < 100, 2 * x + 1, 1))
