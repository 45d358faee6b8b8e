"""The data layout and the version: llc is asked once, and its answer without a layout is shown."""

import pytest

from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.layout import device_layout, llvm_major

ANSWER = """echo '  target datalayout = "e-p:64:64-A5"'"""


@pytest.fixture
def rocm_tools(fake_tools, tmp_path, monkeypatch):
    monkeypatch.setenv("REFCOMP_ROCM_LLVM", str(tmp_path / "fake"))
    fake_tools.add_all()
    return fake_tools


def test_it_is_asked_once(rocm_tools) -> None:
    rocm_tools.add("llc", body=ANSWER)
    assert [device_layout("rocm") for _ in range(2)] == ["e-p:64:64-A5"] * 2
    asked = [start for start in rocm_tools.starts() if "--version" not in start]
    assert len(asked) == 1 and "-mtriple=amdgcn-amd-amdhsa -stop-after=finalize-isel" in asked[0]


def test_an_answer_without_a_layout_is_an_error(rocm_tools) -> None:
    rocm_tools.add("llc", body="echo something else")
    with pytest.raises(ToolchainError, match="llc's answer holds no data layout") as caught:
        device_layout("rocm")
    assert "something else" in str(caught.value)


@pytest.mark.rocm
def test_what_llvm_says() -> None:
    assert "-A5-" in device_layout("rocm")


@pytest.mark.rocm
@pytest.mark.llvm15
def test_the_version_is_that_of_the_tools(monkeypatch) -> None:
    for major in (15, 19):
        monkeypatch.setenv("REFCOMP_ROCM_LLVM", f"/usr/lib/llvm-{major}/bin")
        assert llvm_major("rocm") == major
