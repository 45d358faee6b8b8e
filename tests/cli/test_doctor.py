"""`refcomp doctor` reports tools, packages and targets, and fails where the host target does."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from refcomp import __version__
from refcomp.cli import doctor
from refcomp.driver import devices
from refcomp.driver.backends import backends
from refcomp.emulator.hip import EmulatedHip
from refcomp.foundation.errors import UserError
from refcomp.hip import api as hip_api
from refcomp.hip.interface import offered_by
from refcomp.runtime.device import Device
from refcomp.runtime.hip.driver import HipDriver
from refcomp.runtime.hip.library import HipLibrary
from refcomp.runtime.opencl.driver import OpenCLDriver, _OpenclDevices
from refcomp.toolchain import toolchain_names

Cli = Callable[..., Result]


@pytest.fixture
def no_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which LLVM is sought in an empty folder, and nothing was compiled before."""
    monkeypatch.setenv("REFCOMP_LLVM", str(tmp_path / "nowhere"))
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.llvm
def test_everything_is_reported(cli: Cli) -> None:
    result = cli("doctor")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"refcomp {__version__} on ")
    for name in toolchain_names():
        assert f"\ntoolchain {name}: " in result.stdout
    for kind in backends():
        assert f" {kind.name} " in result.stdout
    for kind in ("llvm", "interp"):
        assert f"  ok        {kind}" in result.stdout


@pytest.mark.pocl
def test_a_device_that_works(cli: Cli) -> None:
    assert "  ok        opencl" in cli("doctor").stdout


@pytest.mark.tools
def test_a_device_that_is_not_there_is_told_with_what_is_missing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        OpenCLDriver, "_look", lambda self: _OpenclDevices((), "no platform", "get one", 0)
    )
    report = json.loads(cli("doctor", "--json").stdout)
    opencl = next(target for target in report["targets"] if target["target"] == "opencl")
    assert not opencl["works"]
    assert (
        "this machine has no device opencl:0" in opencl["reason"] and "get one" in opencl["reason"]
    )


class NoDevices(EmulatedHip):
    """AMD's library on a machine without a GPU."""

    def __init__(self) -> None:
        super().__init__("gfx942", lambda data: "", size=4096)

    def hipGetDeviceCount(self, devices: Any) -> int:
        return hip_api.number("hipErrorNoDevice")


def _with_driver(kind: str, driver: HipDriver) -> Callable[..., Device]:
    """`device_for` with another driver for one kind."""

    def device_for(target: Any) -> Device:
        found = devices.device_for(target)
        return Device(kind, 0, driver) if found.kind == kind else found

    return device_for


def _rocm(report: str) -> dict[str, object]:
    rocm = [t for t in json.loads(report)["targets"] if t["target"] == "rocm"]
    return dict(rocm[0])


@pytest.mark.rocm
def test_a_card_that_is_missing_is_not_a_missing_installation(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library is there, and the kernel is compiled: only no GPU is."""
    library = HipLibrary(offered_by(NoDevices()), "/opt/libamdhip64.so.7", None)
    driver = HipDriver(lambda: library)
    monkeypatch.setattr(doctor, "device_for", _with_driver("rocm", driver))
    result = cli("doctor")
    assert result.exit_code == 0
    assert "  no device rocm " in result.stdout and "MISSING   rocm" not in result.stdout
    told = _rocm(cli("doctor", "--json").stdout)
    assert (told["state"], told["works"]) == ("no device", False)
    assert "this machine has no device rocm:0" in str(told["reason"])


@pytest.mark.search
def test_a_missing_library_is_a_missing_installation(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "device_for", _with_driver("rocm", HipDriver(lambda: None)))
    assert "  MISSING   rocm " in cli("doctor").stdout
    assert _rocm(cli("doctor", "--json").stdout)["state"] == "missing"


@pytest.mark.rocm
def test_the_versions_of_hip_are_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    told = _rocm(cli("doctor", "--json").stdout)["library"]
    assert isinstance(told, dict)
    assert told["library"].startswith("libamdhip64.so.")
    for name in ("runtime", "driver"):
        assert re.fullmatch(r"\d+\.\d+\.\d+", told[name])
    line = f"by {told['library']}: runtime {told['runtime']}, driver {told['driver']}"
    assert line in cli("doctor").stdout
    monkeypatch.setattr(HipDriver, "library_details", lambda self: {})
    assert "by libamdhip64" not in cli("doctor").stdout


@pytest.mark.tools
def test_a_library_that_tells_no_version_is_no_failure(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: HipDriver) -> dict[str, str]:
        raise UserError("it does not answer")

    monkeypatch.setattr(HipDriver, "library_details", fail)
    assert _rocm(cli("doctor", "--json").stdout)["library"] == {}


@pytest.mark.llvm
def test_json_has_paths_and_versions(cli: Cli) -> None:
    report = json.loads(cli("doctor", "--json").stdout)
    assert report["refcomp"] == __version__
    llc = next(t for t in report["tools"] if (t["toolchain"], t["name"]) == ("llvm", "llc"))
    assert llc["is_ok"]
    assert Path(llc["path"]).exists()
    assert llc["version"]
    assert {package["package"] for package in report["packages"]} >= {"numpy", "onnx", "pyelftools"}
    works = {target["target"]: target["works"] for target in report["targets"]}
    assert works == works | {"llvm": True, "interp": True}


@pytest.mark.tools
@pytest.mark.usefixtures("no_tools")
def test_missing_tools_are_told_with_the_command_that_installs_them(cli: Cli) -> None:
    result = cli("doctor")
    assert result.exit_code == 3
    assert "  MISSING   llc" in result.stdout
    assert "install: " in result.stdout
    assert "  MISSING   llvm" in result.stdout
    assert "  ok        interp" in result.stdout


@pytest.mark.tools
@pytest.mark.usefixtures("no_tools")
def test_missing_tools_in_json(cli: Cli) -> None:
    result = cli("doctor", "--json")
    assert result.exit_code == 3
    targets = {target["target"]: target for target in json.loads(result.stdout)["targets"]}
    assert not targets["llvm"]["works"]
    assert "no usable" in targets["llvm"]["reason"]
    assert targets["interp"] == targets["interp"] | {"works": True, "reason": ""}
