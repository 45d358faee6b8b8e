"""`refcomp show --resources`: a line for each kernel of AMD GPUs, as a table and as JSON."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from refcomp.cli.resources import resources_to_text
from refcomp.driver.kernel_resources import KernelResources

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


@pytest.mark.parametrize("target", ["opencl", "llvm"])
def test_other_targets_do_not_tell(cli: Cli, target: str) -> None:
    result = cli("show", "-", "--resources", "--target", target, input=_KERNEL)
    assert result.exit_code != 0
    assert "the resources of kernels are not known" in result.stderr
    assert "only machine code for AMD GPUs lists them" in result.stderr
    assert "build for the target rocm" in result.stderr


def test_columns_are_aligned() -> None:
    rows = [
        KernelResources(name, 8, 0, 106, 0, 0, 0, 65536, 1024, 4, "shared memory")
        for name in ("short", "a_long_name")
    ]
    lines = resources_to_text(rows).splitlines()
    assert lines[1].index("106") == lines[2].index("106")
    assert lines[2].endswith("4  shared memory")
