"""Devices and targets by their classic names: programs skip what does not exist."""

from types import SimpleNamespace

import numpy as np
import pytest

import refcomp as rc
from refcomp import classic as tvm
from refcomp.classic.devices import ABSENT
from refcomp.foundation.errors import UserError


@pytest.mark.parametrize("kind", ABSENT)
def test_kinds_that_refcomp_lacks_do_not_exist(kind: str) -> None:
    ctx = tvm.context(kind, 1)
    assert (str(ctx), ctx.exist, tvm.module.enabled(kind)) == (f"{kind}:1", False, False)
    with pytest.raises(UserError) as info:
        tvm.nd.array(np.ones(3, "float32"), ctx)
    assert info.value.what == f"this machine has no device {kind}:1"
    assert info.value.why == f"{ABSENT[kind]} is not a target of refcomp"
    assert info.value.remedy == "build for opencl, and pass refcomp.opencl(0)"


def test_other_names_are_those_of_refcomp() -> None:
    assert tvm.context("llvm -mcpu=znver4", 0) == tvm.nd.context("cpu") == rc.cpu()
    assert tvm.context("cl", 1) == rc.opencl(1)
    assert tvm.context(dev_type="gpu", dev_id=1) == rc.gpu(1)
    with pytest.raises(UserError, match="'tpu' is not the name of a device"):
        tvm.context("tpu")
    with pytest.raises(UserError, match="-1 is not the index of a device"):
        tvm.context("metal", -1)


def test_kinds_have_their_classic_numbers() -> None:
    assert tvm.context(1) == rc.cpu()
    assert tvm.context(2, 1) == rc.gpu(1)
    assert tvm.context(4) == rc.opencl(0)
    assert (str(tvm.context(8)), tvm.context(8).exist) == ("metal:0", False)
    with pytest.raises(UserError, match="no kind of device has the number 3") as info:
        tvm.context(3)
    assert info.value.remedy.startswith("pass a name, or one of 1 (cpu), 2 (gpu), 4 (opencl)")


@pytest.mark.parametrize(
    ("toolchain", "is_needed", "enabled"),
    [("cuda", True, False), ("cuda", False, True), ("rocm", True, True)],
)
def test_a_target_is_enabled_unless_a_tool_that_it_needs_is_missing(
    monkeypatch, toolchain: str, is_needed: bool, enabled: bool
) -> None:
    missing = SimpleNamespace(toolchain=toolchain, is_needed=is_needed, is_ok=False)
    monkeypatch.setattr("refcomp.classic.devices.diagnose", lambda: [missing])
    assert tvm.module.enabled("gpu") is tvm.module.enabled("cuda -arch=sm_80") is enabled
    assert tvm.module.enabled("interp")
    assert not tvm.module.enabled("stackvm")


@pytest.mark.llvm
def test_a_target_whose_tools_are_there_is_enabled() -> None:
    assert tvm.module.enabled("llvm") and tvm.module.enabled("cpu")
    assert tvm.module.enabled("llvm -mcpu=znver4")


@pytest.mark.parametrize("name", ["", " ", None, 3])
def test_a_target_without_a_name_is_refused(name: object) -> None:
    with pytest.raises(UserError, match="is not the name of a target"):
        tvm.module.enabled(name)
