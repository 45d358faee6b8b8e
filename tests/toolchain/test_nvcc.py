"""nvcc and the compiler of this machine: what does not fit is refused with a way out."""

import subprocess
from pathlib import Path

import pytest

from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.toolchain.compile import compile_source, compile_with_report
from refcomp.toolchain.places import package_folders

_SOURCE = Source('extern "C" __global__ void k(float* a) { a[0] = 1.0f; }\n', "cuda")
# As nvcc 13.0 prints it.
_TOO_NEW = """\
In file included from /usr/local/cuda/bin/../include/cuda_runtime.h:82,
                 from <command-line>:
/usr/local/cuda/include/crt/host_config.h:137:2: error: #error -- unsupported GNU version! \
gcc versions later than 15 are not supported!
"""


def _compile(**options: str):
    return compile_source(_SOURCE, options, "cubin", description="cuda")


def _script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def _fake_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, version="13.0") -> None:
    answer = (
        f'case "$1" in --version) echo release {version}; exit;; --list*) echo sm_75; exit;; esac'
    )
    monkeypatch.setenv("REFCOMP_NVCC", str(_script(tmp_path / "nvcc", f"{answer}\n{body}")))


@pytest.mark.tools
def test_an_unsupported_host_compiler_is_explained(tmp_path, monkeypatch) -> None:
    (tmp_path / "stderr").write_text(_TOO_NEW)
    _fake_nvcc(tmp_path, monkeypatch, f"cat {tmp_path}/stderr >&2; exit 1")
    with pytest.raises(ToolchainError, match="^nvcc failed") as caught:
        _compile()
    assert "unsupported GNU version! gcc versions later than 15" in caught.value.stderr
    assert "set NVCC_CCBIN to a compiler that this nvcc accepts" in str(caught.value)
    assert "pip install -U nvidia-cuda-nvcc" in str(caught.value)


@pytest.mark.nvcc
@pytest.mark.gcc
def test_nvcc_itself_refuses_a_host_compiler_that_is_too_new(tmp_path, monkeypatch) -> None:
    compiler = _script(tmp_path / "g++", 'exec /usr/bin/g++ -U__GNUC__ -D__GNUC__=99 "$@"')
    monkeypatch.setenv("NVCC_CCBIN", str(compiler))
    with pytest.raises(ToolchainError, match="^nvcc failed") as caught:
        _compile()
    assert "unsupported GNU version" in caught.value.stderr
    assert "set NVCC_CCBIN to a compiler that this nvcc accepts" in str(caught.value)
    monkeypatch.setenv("NVCC_CCBIN", "/usr/bin/g++")
    assert _compile().data.startswith(b"\x7fELF")


@pytest.mark.nvcc
def test_a_missing_host_compiler_is_explained(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("NVCC_CCBIN", str(tmp_path / "gone"))
    with pytest.raises(ToolchainError, match="^nvcc failed") as caught:
        _compile()
    assert "install g++, or set NVCC_CCBIN to its path" in str(caught.value)


@pytest.mark.tools
def test_headers_that_a_wheel_lacks_are_named(tmp_path, monkeypatch) -> None:
    told = "cuda_fp16.h:4504:10: fatal error: nv/target: No such file or directory"
    _fake_nvcc(tmp_path, monkeypatch, f"echo '{told}' >&2; exit 1")
    with pytest.raises(ToolchainError) as caught:
        _compile()
    assert "what to do: pip install nvidia-cuda-cccl" in str(caught.value)


@pytest.mark.tools
def test_an_nvcc_that_is_too_old_is_refused(tmp_path, monkeypatch) -> None:
    _fake_nvcc(tmp_path, monkeypatch, "", version="10.2")
    with pytest.raises(ToolchainError, match="no usable nvcc") as caught:
        _compile()
    assert "is version 10.2, but the oldest that is accepted is 11" in str(caught.value)


@pytest.mark.nvcc
def test_an_unknown_architecture_is_refused_with_those_that_nvcc_lists() -> None:
    with pytest.raises(UserError, match="arch 'sm_9O' is unknown to the cuda") as caught:
        _compile(arch="sm_9O")
    text = str(caught.value)
    assert "did you mean" in text and "sm_90" in text and "-arch=sm_9O" in text
    assert "--list-gpu-code" in text


@pytest.mark.nvcc
def test_the_commands_make_a_fatbin_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("REFCOMP_KEEP", str(tmp_path / "kept"))
    options = {"arch": "sm_80", "capabilities": "80,90"}
    made = compile_with_report(_SOURCE, options, "fatbin", description="cuda")
    (folder,) = (tmp_path / "kept").glob("cuda-*")
    script = (folder / "commands.sh").read_text()
    assert "-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90" in script
    (folder / "compile_fat.fatbin").unlink()
    subprocess.run([folder / "commands.sh"], check=True, timeout=120, capture_output=True)
    assert (folder / "compile_fat.fatbin").stat().st_size == len(made.binary.data)
    assert "for 'sm_80'" in made.report and "for 'sm_90'" in made.report


@pytest.mark.nvrtc
def test_the_nvcc_of_the_wheel_needs_no_toolkit(monkeypatch) -> None:
    wheels = [Path(folder).glob("nvidia/*/bin/nvcc") for folder in package_folders()]
    monkeypatch.setenv("REFCOMP_NVCC", str(next(path for group in wheels for path in group)))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    headers = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <mma.h>\n"
    source = Source(headers + _SOURCE.text, "cuda")
    assert compile_source(source, {"arch": "sm_80"}, "cubin", description="cuda").data
