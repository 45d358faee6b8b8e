"""The toolchain of NVIDIA GPUs by LLVM: the library only where needed, known architectures."""

import pytest

from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.toolchain import compile_source
from tests.toolchain.conftest import COPY

PLAIN = Source("text\n", "llvm", entries=("f", "g"))
MATHS = Source("text\n", "llvm", requires=frozenset({"libdevice"}), entries=("f",))
HELP = """case "$*" in *mcpu=help*)
  echo "  sm_53 - Select the sm_53 processor."
  echo "  sm_75 - Select the sm_75 processor."
  echo "  sm_90a - Select the sm_90a processor."
  echo "  ptx63 - Use PTX version 6.3."; exit 0 ;; esac
"""
NO_TARGET = """echo "llc: error: unable to get target for 'nvptx64-nvidia-cuda'" >&2; exit 1
"""


@pytest.fixture
def nvptx_tools(fake_tools, tmp_path, monkeypatch):
    """Fake tools and a device library."""
    monkeypatch.setenv("REFCOMP_NVPTX_LLVM", str(tmp_path / "fake"))
    for name in ("opt-19", "llvm-link-19"):
        fake_tools.add(name)
    fake_tools.add("llc-19", body=HELP + COPY)
    library = tmp_path / "toolkit" / "nvvm" / "libdevice"
    library.mkdir(parents=True)
    (library / "libdevice.10.bc").touch()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    return fake_tools


def build(source: Source, **options: str) -> bytes:
    return compile_source(source, options, "ptx", description="nvptx").data


def runs(tools) -> list[str]:
    return [start for start in tools.starts() if "--version" not in start and "=help" not in start]


def test_a_text_without_maths_is_not_linked_with_the_library(nvptx_tools) -> None:
    assert build(PLAIN) == b"text\n"
    first, second = runs(nvptx_tools)
    assert "opt-19 -passes=internalize,function(nvvm-reflect),default<O3> " in first
    assert "-internalize-public-api-list=f,g -mcpu=sm_75" in first
    # A float is rounded after each operation, divisions and roots as IEEE 754 says.
    assert "llc-19 -O3 -mcpu=sm_75 -nvptx-fma-level=0 --fp-contract=off " in second
    assert "-nvptx-prec-divf32=2 -nvptx-prec-sqrtf32=1" in second


def test_a_text_with_maths_is_linked_with_what_it_needs(nvptx_tools, tmp_path) -> None:
    build(MATHS, arch="sm_90a")
    link, *_, last = runs(nvptx_tools)
    library = tmp_path / "toolkit" / "nvvm" / "libdevice" / "libdevice.10.bc"
    assert link.startswith("llvm-link-19 -only-needed ") and str(library) in link
    assert "-mcpu=sm_90a" in last


def test_without_the_library_only_maths_fails(nvptx_tools, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert build(PLAIN) == b"text\n"
    with pytest.raises(ToolchainError, match="libdevice was not found") as caught:
        build(MATHS)
    assert f"CUDA_HOME={tmp_path}" in caught.value.where
    assert caught.value.remedy == "pip install nvidia-nvvm, or install the CUDA toolkit"


def test_architectures_are_llvms_from_sm_60_on(nvptx_tools) -> None:
    for arch in ("sm_53", "sm_90", "ptx63"):
        with pytest.raises(UserError, match=f"arch '{arch}' is unknown to the nvptx") as caught:
            build(PLAIN, arch=arch)
        assert "knows: sm_75 sm_90a" in caught.value.why


def test_an_llvm_without_nvptx_is_named(nvptx_tools) -> None:
    nvptx_tools.add("llc-19", body=NO_TARGET)
    with pytest.raises(ToolchainError, match="llc-19 failed") as caught:
        build(PLAIN)
    assert "this LLVM was built without NVPTX" in caught.value.remedy
    assert "REFCOMP_NVPTX_LLVM" in caught.value.remedy
