"""CUDA C of others' kind, by nvcc without and with optimization: right, and without a finding."""

import copy
import subprocess
from pathlib import Path

import pytest

from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.toolchain import find_tools, load_description
from tests.emulator.ptx.cuda_algorithms import ALGORITHMS
from tests.emulator.ptx.cuda_cooperation import COOPERATION
from tests.emulator.ptx.cuda_kernels import CASES

_LEVELS = {"O0": ["-G"], "O3": ["-O3"]}
# File -> the GPU that it is compiled for, and the launches of its kernels.
FILES = {
    "cuda_kernels": ("sm_80", CASES),
    "cuda_cooperation": ("sm_90", COOPERATION),
    "cuda_algorithms": ("sm_90", ALGORITHMS),
}


def compiled(folder: Path, file: str, level: str) -> str:
    """Return a CUDA file as PTX by nvcc."""
    nvcc = find_tools(load_description("cuda")).paths["nvcc"]
    source = Path(__file__).parent / f"{file}.cu"
    made = folder / f"{file}.ptx"
    flags = ["-ptx", f"-arch={FILES[file][0]}", *_LEVELS[level]]
    command = [nvcc, *flags, str(source), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return made.read_text()


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """A function that returns a GPU which looks for hazards, and a file on it."""
    made = {}

    def loaded(file, level):
        if (file, level) not in made:
            gpu = EmulatedNvidiaGpu(size=16 << 20, hazards=True)
            text = compiled(tmp_path_factory.mktemp("cuda"), file, level)
            made[file, level] = gpu, gpu.load(text)
        return made[file, level]

    return loaded


_EACH = [
    pytest.param(file, level, case, id=f"{case.name}-{level}")
    for file, (_, cases) in FILES.items()
    for level in _LEVELS
    for case in cases
]


@pytest.mark.nvcc
@pytest.mark.parametrize(("file", "level", "case"), _EACH)
def test_kernels_compute_without_a_finding(load, file, level, case):
    gpu, module = load(file, level)
    actual = copy.deepcopy(case.arguments)
    report = gpu.run(
        module, case.name, case.grid, case.block, actual, shared_bytes=case.shared_bytes
    )
    assert "\n".join(map(str, report.findings)) == ""
    case.check(actual)


def test_sixty_kernels_run():
    names = [case.name for _, cases in FILES.values() for case in cases]
    assert len(set(names)) == len(names) >= 60


@pytest.mark.nvcc
def test_a_kernel_prints_to_the_standard_output(load, capsys):
    gpu, module = load("cuda_algorithms", "O3")
    case = ALGORITHMS.named("checked_and_printed")
    count, x, y = copy.deepcopy(case.arguments)
    x[:] = 1
    x[[7, 41]] = 5
    report = gpu.run(module, case.name, case.grid, case.block, [count, x, y])
    wanted = "thread 7 has 5, 2.50 in all\nthread 41 has 5, 2.50 in all\n"
    assert report.printed == capsys.readouterr().out == wanted


@pytest.mark.nvcc
@pytest.mark.parametrize("level", _LEVELS)
def test_an_assertion_that_fails_is_a_finding(load, level):
    gpu, module = load("cuda_algorithms", level)
    case = ALGORITHMS.named("checked_and_printed")
    count, x, y = copy.deepcopy(case.arguments)
    x[33] = -1
    report = gpu.run(module, case.name, case.grid, case.block, [count, x, y])
    (finding,) = report.findings
    assert finding.kind == "assertion"
    assert finding.thread == (33, 0, 0)
    assert "the assertion `x[threadIdx.x] >= 0` failed in " in finding.what
    assert "cuda_algorithms.cu, line " in finding.what
    assert "function void checked_and_printed(int, const int *, int *)" in finding.what
