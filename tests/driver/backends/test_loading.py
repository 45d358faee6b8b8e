"""Programs loaded for a device, whether it is there or not."""

from dataclasses import replace

import pytest

import refcomp
from refcomp.codegen.signature import signature_of
from refcomp.driver import backend
from refcomp.driver.backend import CompiledFunctions, Loading
from refcomp.driver.backends import as_target, loading
from refcomp.driver.backends.loading import device_limits, device_of, load_programs
from refcomp.driver.backends.opencl import OPENCL
from refcomp.driver.compile import compile_functions
from refcomp.foundation import target
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.runtime.device import Device
from tests.driver.backends.kernels import fills


def test_kernels_are_named_as_in_the_code():
    func = fills("float32")
    compiled = compile_functions([func], "opencl")
    module = load_programs(compiled, Loading((signature_of(func),), {}, ()))
    assert module.imported_modules[0].kernel_names == ("f_kernel0",)
    assert "launch f_kernel0" in module.get_source("launch")


def test_functions_that_were_not_split_are_a_bug():
    func = fills("float32")
    code = compile_functions([func], "opencl").code
    with pytest.raises(AssertionError):
        load_programs(CompiledFunctions(as_target("opencl"), (func,), code), Loading((), {}, ()))


def test_the_device_is_the_one_that_the_record_names(monkeypatch):
    monkeypatch.setattr(backend, "_BACKENDS", dict(backend._BACKENDS))
    monkeypatch.setattr(target, "_KINDS", dict(target._KINDS))
    assert device_of(as_target("rocm -mcpu=gfx942")) == refcomp.rocm(0)
    refcomp.register_backend(replace(OPENCL, name="mine"))
    assert device_of(as_target("mine")) == refcomp.opencl(0)
    module = refcomp.build(fills("float32"), target="mine")
    assert module.imported_modules[0].kernel_names == ("f_kernel0",)


class _Driver:
    def __init__(self, count):
        self._count = count

    def count(self):
        return self._count

    def limits(self, index):
        return DeviceLimits((8, 8, 8), 8, 64)


@pytest.mark.parametrize(("count", "threads"), [(0, 256), (1, 8)])
def test_limits_are_those_of_the_device_that_is_there(count, threads, monkeypatch):
    driver = _Driver(count)
    monkeypatch.setattr(loading, "device_of", lambda target: Device("gpu", 0, driver))
    assert device_limits(as_target("opencl")).threads == threads
    assert device_limits(as_target("opencl -threads=512")).threads == 512
