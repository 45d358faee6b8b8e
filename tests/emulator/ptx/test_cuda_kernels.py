"""CUDA C of others' kind, by nvcc without and with optimization: right, and without a finding."""

import copy
import subprocess
from pathlib import Path

import numpy as np
import pytest

from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.toolchain import find_tools, load_description
from tests.emulator.ptx.cuda_kernels import CASES

_LEVELS = {"O0": ["-G"], "O3": ["-O3"]}


@pytest.fixture(scope="module", params=_LEVELS)
def loaded(request, tmp_path_factory):
    """A GPU that looks for hazards, and the kernels of `cuda_kernels.cu` on it."""
    nvcc = find_tools(load_description("cuda")).paths["nvcc"]
    source = Path(__file__).parent / "cuda_kernels.cu"
    made = tmp_path_factory.mktemp("cuda") / "kernels.ptx"
    command = [nvcc, "-ptx", "-arch=sm_80", *_LEVELS[request.param], str(source), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    gpu = EmulatedNvidiaGpu(size=16 << 20, hazards=True)
    return gpu, gpu.load(made.read_text())


@pytest.mark.nvcc
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels_compute_without_a_finding(loaded, case):
    gpu, module = loaded
    actual = copy.deepcopy(case.arguments)
    expected = copy.deepcopy(case.arguments)
    case.expected(*expected)
    report = gpu.run(
        module, case.name, case.grid, case.block, actual, shared_bytes=case.shared_bytes
    )
    assert "\n".join(map(str, report.findings)) == ""
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(
            case.order(ours), case.order(theirs), case.tolerance, 1e-6 if case.tolerance else 0
        )
