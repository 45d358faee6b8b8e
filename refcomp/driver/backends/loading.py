"""The device of programs with kernels, its limits, and loading: any such back end uses this."""

from __future__ import annotations

from typing import cast

from refcomp.codegen.signature import machine_symbol
from refcomp.driver.backend import CompiledFunctions, Loading, backend_of
from refcomp.foundation.target import Target, limits_of
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.func import Program
from refcomp.runtime.device import Device, device
from refcomp.runtime.launch import DeviceDriver
from refcomp.runtime.module import Module


def load_programs(compiled: CompiledFunctions, loading: Loading) -> Module:
    """Load programs whose kernels run on the kind of device that the target's record names."""
    programs = [program for program in compiled.made if isinstance(program, Program)]
    code = compiled.code
    assert code is not None and len(programs) == len(compiled.made)
    names = [kernel.name for program in programs for kernel in program.kernels]
    return Module.from_programs(
        list(zip(loading.signatures, programs, strict=True)),
        code.code,
        target=str(compiled.target),
        device=device_of(compiled.target),
        sources=loading.sources,
        device_sources=code.sources,
        symbols={name: machine_symbol(name) for name in names},
        disassemble=code.disassemble,
    )


def device_of(target: Target) -> Device:
    """Return device number 0 of the kind that code for the target runs on."""
    return device(backend_of(target).device, 0)


def device_limits(target: Target) -> DeviceLimits:
    """Return the limits of kernels for `target`.

    If this machine has the device, they are its own. Otherwise they are those of the device that
    the target's options name, or those of the back end.
    """
    device = device_of(target)
    if not device.exist:
        by_options = backend_of(target).limits_by_options
        return limits_of(target, by_options(target) if by_options else None)
    # Every back end with kernels names a kind of device that runs them.
    driver = cast(DeviceDriver, device.driver)
    return limits_of(target, driver.limits(device.index))
