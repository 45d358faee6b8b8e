"""nvcc compiles if it is found, else NVRTC; a message names both."""

from pathlib import Path

import pytest

from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.preference import compile_by_first, first_usable

NVIDIA = ("cuda", "nvrtc")
_SOURCE = Source('extern "C" __global__ void k(float* a) { a[0] = 1.0f; }\n', "cuda")


def _fake_nvcc(folder: Path) -> Path:
    tool = folder / "bin" / "nvcc"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho Cuda compilation tools, release 12.4, V12.4.131\n")
    tool.chmod(0o755)
    return tool


@pytest.fixture
def no_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A toolkit without nvcc."""
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))


@pytest.fixture
def no_nvrtc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that hides NVIDIA's package `cuda` from the programs that are started."""
    (tmp_path / "hiding" / "cuda").mkdir(parents=True)
    (tmp_path / "hiding" / "cuda" / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hiding"))


@pytest.mark.tools
def test_nvcc_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_nvcc(tmp_path)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert first_usable(NVIDIA) == "cuda"


@pytest.mark.nvrtc
def test_nvrtc_is_used_without_nvcc(no_nvcc) -> None:
    assert first_usable(NVIDIA) == "nvrtc"
    made = compile_by_first(_SOURCE, {"arch": "sm_80"}, "cubin", NVIDIA)
    assert made.binary.data.startswith(b"\x7fELF")
    assert "Compiling entry function 'k' for 'sm_80'" in made.report


@pytest.mark.tools
def test_without_both_the_message_names_both(no_nvcc, no_nvrtc) -> None:
    with pytest.raises(ToolchainError, match="^no usable nvcc and no NVRTC") as caught:
        compile_by_first(_SOURCE, {}, "cubin", NVIDIA)
    text = str(caught.value)
    assert "pip install nvidia-cuda-nvcc" in text and "REFCOMP_NVCC" in text
    assert "pip install cuda-bindings nvidia-cuda-nvrtc" in text
    assert "the Python that runs refcomp" in text
    assert "cuda-bindings cannot be imported: No module named 'cuda.bindings'" in text


def test_an_nvcc_that_is_named_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFCOMP_NVCC", str(tmp_path / "gone"))
    with pytest.raises(ToolchainError, match="^no usable nvcc for the cuda toolchain") as caught:
        first_usable(NVIDIA)
    assert f"REFCOMP_NVCC={tmp_path}/gone" in str(caught.value)


@pytest.mark.tools
def test_results_in_the_cache_need_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_another_process, no_nvrtc
) -> None:
    tool = _fake_nvcc(tmp_path)
    body = (
        'case "$1" in --list*) echo sm_75;; --version) echo release 12.4;; '
        '*) for last; do :; done; printf code > "$last";; esac'
    )
    tool.write_text(f"#!/bin/sh\n{body}\n")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    made = compile_by_first(_SOURCE, {}, "cubin", NVIDIA)
    assert made.binary.data == b"code"
    tool.unlink()
    as_another_process()
    assert compile_by_first(_SOURCE, {}, "cubin", NVIDIA) == made
