"""The doctor reports every tool of every toolchain, found or not, and never fails."""

from pathlib import Path

import pytest

from refcomp.toolchain.description import load_description, toolchain_names
from refcomp.toolchain.diagnose import ToolReport, diagnose

pytestmark = pytest.mark.tools  # asks those that there are


def _reports(toolchain: str) -> dict[str, ToolReport]:
    return {report.name: report for report in diagnose() if report.toolchain == toolchain}


def test_every_tool_and_file_is_reported() -> None:
    expected = []
    for name in toolchain_names():
        description = load_description(name)
        expected += [(name, tool.names[-1]) for tool in description.tools.values()]
        expected += [(name, key) for key in description.files]
    reports = diagnose()
    assert [(report.toolchain, report.name) for report in reports] == expected
    for report in reports:
        assert report.is_ok == (not report.reason)
        assert not report.is_ok or Path(report.path).exists()
        assert report.install and report.purpose


def test_found_tools(fake_tools) -> None:
    fake_tools.add_all("-19")
    reports = _reports("llvm")
    for name in ("llc", "opt", "ld.lld"):
        report = reports[name]
        assert (report.version, report.is_ok, report.is_needed) == ("19.1.7", True, True)
        assert report.path == str(fake_tools.bin / f"{name}-19")
    missing = reports["llvm-objdump"]
    assert (missing.is_ok, missing.is_needed, missing.path) == (False, False, "")
    assert "llvm-objdump: none found" in missing.reason


def test_missing_and_too_old_tools(fake_tools) -> None:
    fake_tools.add("llc", "14.0.6")
    fake_tools.add("opt", "16.0.6")
    reports = _reports("llvm")
    assert not any(reports[name].is_ok for name in ("llc", "opt", "ld.lld"))
    assert "llc is version 14.0.6, but the oldest that is accepted is 15" in reports["llc"].reason
    assert "ld.lld: none found" in reports["ld.lld"].reason
    assert f"sought in REFCOMP_LLVM={fake_tools.bin.parent}" in reports["ld.lld"].reason
    assert reports["opt"].version == "16.0.6"
    assert "no version has all the tools" in reports["opt"].reason


def test_a_single_optional_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "oclgrind"
    tool.write_text("#!/bin/sh\necho; echo Oclgrind 21.10\n")
    tool.chmod(0o755)
    monkeypatch.setenv("REFCOMP_OCLGRIND", str(tool))
    report = _reports("opencl")["oclgrind"]
    assert (report.path, report.version, report.is_ok) == (str(tool), "21.10", True)
    monkeypatch.setenv("REFCOMP_OCLGRIND", str(tmp_path / "gone"))
    report = _reports("opencl")["oclgrind"]
    assert not report.is_ok
    assert f"REFCOMP_OCLGRIND={tmp_path}/gone" in report.reason


def test_a_missing_library_of_bitcode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIP_DEVICE_LIB_PATH", str(tmp_path / "gone"))
    report = _reports("rocm")["ocml"]
    assert not report.is_ok and not report.is_needed
    place = f"HIP_DEVICE_LIB_PATH={tmp_path}/gone: ocml.bc, ocml.amdgcn.bc"
    assert report.reason == f"not found; sought in {place}"
    monkeypatch.setenv("HIP_DEVICE_LIB_PATH", str(tmp_path))
    (tmp_path / "ocml.bc").touch()
    assert _reports("rocm")["ocml"].path == f"{tmp_path}/ocml.bc"


def test_nvcc_of_a_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "bin" / "nvcc"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho Cuda compilation tools, release 12.4, V12.4.131\n")
    tool.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    report = _reports("cuda")["nvcc"]
    assert (report.path, report.version, report.is_ok) == (str(tool), "12.4", True)
