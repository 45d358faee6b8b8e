"""NVRTC compiles the text that nvcc compiles, and its errors name the same lines."""

import sys
from pathlib import Path

import pytest

from refcomp.codegen.cuda.module import print_cuda
from refcomp.emulator.ptx.text.parse import read_ptx
from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.toolchain import nvrtc_program
from refcomp.toolchain.compile import compile_source, compile_with_report
from refcomp.toolchain.description import load_description
from refcomp.toolchain.find import find_tools
from refcomp.toolchain.ptxas_report import read_ptxas_report
from tests.codegen.cuda.test_named_instructions import _kernels_for
from tests.codegen.device_kernels import TEXTS, device_kernel

pytestmark = pytest.mark.nvrtc

_HALF = """\
#include <cuda_fp16.h>
extern "C" __global__ void k(__half* a, float* b) { a[threadIdx.x] = __float2half(b[0]); }
"""


def _compile(text: str, output: str = "cubin", arch: str = "sm_90", **fields):
    source = Source(text, "cuda", **fields)
    return compile_source(source, {"arch": arch}, output, description="nvrtc")


def test_headers_of_cuda_are_found() -> None:
    assert _compile(_HALF).data.startswith(b"\x7fELF")


def test_ptx_ends_without_a_nul() -> None:
    text = _compile(_HALF, "ptx", "sm_80").data.decode()
    assert ".target sm_80" in text and text.endswith("\n") and "\0" not in text


def test_an_error_names_the_statement() -> None:
    text = 'extern "C" __global__ void k() {\n  int x = ;\n}\n'
    with pytest.raises(ToolchainError, match="^NVRTC failed") as caught:
        _compile(text, line_map=("", "A[i] = B[i]", ""))
    assert caught.value.where == "A[i] = B[i]"
    assert "kernel.cu(2): error: expected an expression" in caught.value.stderr
    assert caught.value.kept is not None and (caught.value.kept / "kernel.cu").exists()


def test_missing_headers_are_named() -> None:
    with pytest.raises(ToolchainError) as caught:
        _compile("#include <cuda_of_tomorrow.h>\n")
    assert "pip install nvidia-cuda-runtime" in str(caught.value)


def test_an_unknown_architecture_is_refused_with_near_ones() -> None:
    with pytest.raises(UserError, match="arch 'sm_91' is unknown to the nvrtc") as caught:
        _compile(_HALF, arch="sm_91")
    assert "did you mean" in str(caught.value) and "sm_90" in str(caught.value)


def test_the_commands_make_the_output_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFCOMP_KEEP", str(tmp_path / "kept"))
    data = _compile(_HALF).data
    (folder,) = (tmp_path / "kept").glob("nvrtc-*")
    script = (folder / "commands.sh").read_text()
    assert f"{sys.executable} -P " in script and "--gpu-architecture=sm_90" in script
    assert (folder / "compile.cubin").read_bytes() == data


def test_resources_are_reported() -> None:
    source = Source(_HALF, "cuda")
    made = compile_with_report(source, {"arch": "sm_80"}, "cubin", description="nvrtc")
    assert "Function properties for k" in made.report


def test_without_the_package_the_reason_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert nvrtc_program.main(["--version"]) == 1
    assert "cuda-bindings cannot be imported" in capsys.readouterr().err


def test_a_library_that_fails_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cuda.bindings import nvrtc  # noqa: PLC0415

    def fail() -> None:
        raise RuntimeError("libnvrtc was not found")

    monkeypatch.setattr(nvrtc, "nvrtcVersion", fail)
    assert nvrtc_program.main(["--version"]) == 1
    assert "NVRTC failed: libnvrtc was not found" in capsys.readouterr().err


def test_all_golden_kernels_compile_and_are_reported() -> None:
    source = print_cuda([device_kernel(name) for name in TEXTS], "sm_80")
    made = compile_with_report(source, {"arch": "sm_80"}, "cubin", description="nvrtc")
    assert {record.kernel for record in read_ptxas_report(made.report)} == set(TEXTS)


@pytest.mark.nvcc
def test_nvcc_of_the_same_version_makes_the_same_ptx() -> None:
    """But for places in source files: headers are told in other ways."""
    source = print_cuda(_kernels_for("sm_80"), "sm_80")
    found = []
    for chain in ("nvrtc", "cuda"):
        code = compile_source(source, {"arch": "sm_80"}, "ptx", description=chain)
        functions = read_ptx(code.data.decode()).functions
        entries = {name: one for name, one in functions.items() if one.is_entry}
        found.append({name: [*map(str, one.instructions)] for name, one in entries.items()})
    versions = {find_tools(load_description(chain)).version for chain in ("nvrtc", "cuda")}
    assert found[0] == found[1] or len(versions) == 2
    assert len(found[0]) > 5
