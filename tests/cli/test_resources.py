"""`refcomp show --resources`: a line for each kernel of a GPU, as a table and as JSON."""

import dataclasses
import json
from collections.abc import Callable

import pytest
from click.testing import Result

from refcomp.cli.resources import resources_to_text
from refcomp.driver.amd_resources import AmdResources
from refcomp.driver.nvidia_resources import NvidiaResources

Cli = Callable[..., Result]
_KERNEL = """
func rows(A: f32[n, 8], B: f32[n, 8] out) {
  for b in range(n) blockIdx.x { for t in range(8) threadIdx.x {
    alloc S: f32[8] shared { S[t] = A[b, t] B[b, t] = S[7 - t] }
  } }
}
"""


@pytest.mark.rocm
def test_each_kernel_has_a_line(cli: Cli) -> None:
    result = cli("show", "-", "--resources", "--target", "rocm -mcpu=gfx90a", input=_KERNEL)
    assert result.exit_code == 0
    heading, row, note = result.stdout.splitlines()
    expected = ["kernel", "VGPRs", "SGPRs", "in", "memory", "in", "lanes", "private", "LDS"]
    assert heading.split() == [*expected, "threads", "waves", "limited", "by"]
    assert row.startswith("rows_kernel0 ") and row.split()[3:9] == ["0", "0", "0", "32", "8", "8"]
    assert "VGPRs spilled to memory, SGPRs to lanes of VGPRs" in note
    assert "VGPRs of a lane" in note
    shown = cli("show", "-", "--resources", "--json", "--target", "rocm", input=_KERNEL).stdout
    (told,) = json.loads(shown)
    assert (told["kernel"], told["shared_bytes"], told["threads"]) == ("rows_kernel0", 32, 8)


@pytest.mark.nvcc
def test_kernels_for_nvidia_have_a_line_for_each_architecture(cli: Cli) -> None:
    target = "cuda -arch=sm_80,sm_90"
    result = cli("show", "-", "--resources", "--target", target, input=_KERNEL)
    assert result.exit_code == 0, result.stderr
    heading, *rows, note = result.stdout.splitlines()[:4]
    assert heading.split() == [
        *("kernel", "for", "registers", "spilled", "reloaded", "stack", "shared", "dynamic"),
        *("constant", "barriers", "threads", "blocks", "warps", "limited", "by"),
    ]
    for row, arch in zip(rows, ("sm_80", "sm_90"), strict=True):
        cells = row.split()
        assert cells[:2] == ["rows_kernel0", arch] and 0 < int(cells[2]) < 64
        # Eight threads fill a quarter of a warp: the number of blocks limits.
        assert cells[3:7] == ["0", "0", "0", "32"]
        assert cells[10:] == ["8", "32", "32", "blocks"]
    assert note.startswith("registers of a thread; bytes that it spills")
    shown = cli("show", "-", "--resources", "--json", "--target", target, input=_KERNEL).stdout
    first, second = json.loads(shown)
    assert (first["arch"], second["arch"], first["blocks"]) == ("sm_80", "sm_90", 32)
    assert set(first) >= {"spill_store_bytes", "constant_bytes", "limit", "advice"}


@pytest.mark.nvcc
def test_ptx_has_no_resources_yet(cli: Cli) -> None:
    target = "cuda -arch=sm_80 -code=ptx"
    result = cli("show", "-", "--resources", "--target", target, input=_KERNEL)
    assert result.exit_code != 0
    assert "the resources of kernels are not known" in result.stderr


@pytest.mark.nvcc
@pytest.mark.nvrtc
def test_every_stage_of_cuda_is_shown(cli: Cli) -> None:
    for stage, word in (("cuda", "__global__"), ("ptx", ".target sm_80"), ("asm", "EXIT")):
        result = cli("show", "-", "--stage", stage, "--target", "cuda -arch=sm_80", input=_KERNEL)
        assert result.exit_code == 0 and word in result.stdout


@pytest.mark.parametrize("target", ["opencl", "llvm"])
def test_other_targets_do_not_tell(cli: Cli, target: str) -> None:
    result = cli("show", "-", "--resources", "--target", target, input=_KERNEL)
    assert result.exit_code != 0
    assert "the resources of kernels are not known" in result.stderr
    assert "only machine code for AMD and NVIDIA GPUs comes with them" in result.stderr
    assert "build for the target rocm, cuda or nvptx" in result.stderr


def _nvidia(**fields: object) -> NvidiaResources:
    plain = {field.name: 0 for field in dataclasses.fields(NvidiaResources)}
    return NvidiaResources(**{**plain, "kernel": "k", "arch": "sm_90", "advice": "", **fields})


def test_advice_stands_below_the_table() -> None:
    rows = [_nvidia(advice="unroll the loop j"), _nvidia(kernel="other", blocks=None)]
    lines = resources_to_text(rows).splitlines()
    assert lines[2].split()[-3:] == ["?", "0", "0"]
    assert lines[-1] == "k for sm_90: unroll the loop j"


def test_columns_are_aligned() -> None:
    rows = [
        AmdResources(name, 8, 0, 106, 0, 0, 0, 65536, 1024, 4, "shared memory")
        for name in ("short", "a_long_name")
    ]
    lines = resources_to_text(rows).splitlines()
    assert lines[1].index("106") == lines[2].index("106")
    assert lines[2].endswith("4  shared memory")
