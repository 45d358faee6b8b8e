"""CUDA C of others, translated: the bits of the interpreter, and which kernels are refused."""

import copy
import subprocess
from pathlib import Path

import numpy as np
import pytest

from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.toolchain import find_tools, load_description
from tests.emulator.ptx.cuda_kernels import CASES
from tests.emulator.ptx.translation.both import AT_ONCE

# Kernels that are interpreted: they call functions, order memory, or add floats in some order.
_REFUSED = {
    "shuffled_sum": "atom.global.add.f32",
    "last_block_sum": "st.volatile",
    "common_divisors": "st.param",
    "largest_of_each": "st.param",
    "powers": "st.param",
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The kernels of `cuda_kernels.cu` as PTX, optimized."""
    nvcc = find_tools(load_description("cuda")).paths["nvcc"]
    source = Path(__file__).parents[1] / "cuda_kernels.cu"
    made = tmp_path_factory.mktemp("cuda") / "kernels.ptx"
    command = [nvcc, "-ptx", "-arch=sm_80", "-O3", str(source), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return made.read_text()


@pytest.mark.nvcc
@pytest.mark.llvm
def test_kernels_give_the_bits_of_the_interpreter(text):
    gpus = [EmulatedNvidiaGpu(size=16 << 20, tools=tools) for tools in (AT_ONCE, None)]
    loaded = [gpu.load(text) for gpu in gpus]
    counts = loaded[0].runner.counts
    for case in CASES[:24]:
        found = []
        before = counts.blocks
        for gpu, module in zip(gpus, loaded, strict=True):
            arguments = copy.deepcopy(case.arguments)
            report = gpu.run(
                module, case.name, case.grid, case.block, arguments, shared_bytes=case.shared_bytes
            )
            assert not report.findings
            found.append([case.order(one) for one in arguments])
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=case.name)
        assert (counts.blocks == before) == (case.name in counts.refused), case.name
    assert counts.stops == 0
    assert counts.refused.keys() == _REFUSED.keys()
    for name, reason in _REFUSED.items():
        assert reason in counts.refused[name]
