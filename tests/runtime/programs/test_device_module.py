"""The imported module of a Module for a device."""

from typing import Any

import pytest

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import UserError
from refcomp.runtime.programs.device_module import DeviceModule
from refcomp.runtime.programs.program import DeviceCode
from tests.runtime.device_programs import ADD, ADD_OPENCL, signatures_of
from tests.runtime.fake_device import FakeDriver, fake_device


def _module(code: Source | Binary = ADD_OPENCL, **more: Any) -> DeviceModule:
    driver = FakeDriver()
    loaded = DeviceCode(code, signatures_of(ADD), fake_device(driver))
    return DeviceModule(loaded, target="opencl", sources={"opencl": ADD_OPENCL.text}, **more)


def test_what_it_tells() -> None:
    module = _module()
    assert module.get_source() == module.get_source("opencl") == ADD_OPENCL.text
    assert module.kernel_names == ("add_kernel",)
    assert module.target == "opencl"
    assert module.code == ADD_OPENCL
    assert module.imported_modules == ()
    assert repr(module) == "<refcomp device module for opencl: add_kernel>"


def test_assembly_of_machine_code() -> None:
    module = _module(Binary(b"code", "hsaco"), disassemble=lambda: "s_endpgm")
    assert module.get_source("asm") == "s_endpgm"
    assert module.get_source() == ADD_OPENCL.text
    with pytest.raises(UserError, match="no source of format 'asm'"):
        _module().get_source("asm")


def test_kernels_are_not_called_by_themselves() -> None:
    with pytest.raises(UserError, match=r"'add_kernel' cannot be called(.|\n)*that imports this"):
        _module()["add_kernel"]
    assert "add_kernel" not in _module()
