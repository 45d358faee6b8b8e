"""Devices by their classic names.

Classic programs ask whether a device exists, and skip a device that does not. So a device of a kind
that refcomp lacks, such as `metal`, does not exist. Its error says what to write instead.
"""

from __future__ import annotations

from refcomp.driver import devices
from refcomp.driver.backends import backend_of, backends
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import Target
from refcomp.runtime.device import Device, HostDriver
from refcomp.toolchain import diagnose

# Classic kinds of devices that refcomp does not have -> what they are.
ABSENT = {
    "metal": "Metal",
    "vulkan": "Vulkan",
    "opengl": "OpenGL",
    "webgpu": "WebGPU",
    "hexagon": "Hexagon",
    "vpi": "the simulator of Verilog",
    "ext_dev": "the device of an extension",
    "sdaccel": "SDAccel",
    "aocl": "OpenCL for FPGAs",
    "aocl_sw_emu": "the emulator of OpenCL for FPGAs",
}
# The numbers of kinds of devices, which DLPack shares with the classic system.
_NUMBERED = {
    1: "cpu",
    2: "gpu",
    4: "opencl",
    5: "aocl",
    6: "sdaccel",
    7: "vulkan",
    8: "metal",
    9: "vpi",
    10: "rocm",
    11: "opengl",
    12: "ext_dev",
    14: "hexagon",
    15: "webgpu",
}
# Classic kinds of targets -> those of refcomp.
_KINDS = {"cpu": "llvm", "gpu": "cuda", "cl": "opencl"}


class AbsentDriver(HostDriver):
    """The driver of a kind of device that refcomp does not have: it counts no devices.

    A device is asked whether it exists before its driver does anything else.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def count(self) -> int:
        """Return 0."""
        return 0

    def absence(self) -> tuple[str, str]:
        """Return why the device is missing, and what to do."""
        return (
            f"{ABSENT[self._kind]} is not a target of refcomp",
            "build for opencl, and pass refcomp.opencl(0)",
        )


def context(dev_type: str | int | Target, dev_id: int = 0) -> Device:
    """Return a device, as `refcomp.context` does.

    Args:
        dev_type: a target, or the name or the classic number of a kind of device: 2 is `"gpu"`.
            For a kind that refcomp lacks, such as `"metal"`, `exist` of the device is False.
        dev_id: the number of the device among those of its kind, an int of at least 0.

    Raises:
        UserError: the name or the number of the kind is unknown, or `dev_id` is not such an int.

    Example::

        >>> str(rc.classic.context("llvm", 0)), rc.classic.context("metal", 0).exist
        ('cpu:0', False)
    """
    if isinstance(dev_type, int):
        dev_type = _numbered_kind(dev_type)
    first = dev_type.split()[:1] if isinstance(dev_type, str) else []
    if not first or first[0] not in ABSENT:
        return devices.context(dev_type, dev_id)
    index = devices.cpu(dev_id).index  # checked there
    return Device(first[0], index, AbsentDriver(first[0]))


def _numbered_kind(number: int) -> str:
    if isinstance(number, bool) or number not in _NUMBERED:
        known = ", ".join(f"{n} ({kind})" for n, kind in _NUMBERED.items())
        raise UserError(
            f"no kind of device has the number {number}",
            remedy=f"pass a name, or one of {known}",
        )
    return _NUMBERED[number]


def enabled(target: str) -> bool:
    """Return True if this machine has the tools that compile for a target.

    Whether it has a device is another question: `tvm.context(target, 0).exist`.

    Args:
        target: a kind of target or of device, such as `"llvm"` or `"gpu"`; options may follow.

    Raises:
        UserError: `target` is not a text with a name.

    Example::

        >>> rc.classic.module.enabled("interp"), rc.classic.module.enabled("metal")
        (True, False)
    """
    if not isinstance(target, str) or not target.split():
        raise UserError(
            f"{target!r} is not the name of a target", remedy='pass a name, as "llvm"'
        )
    first = target.split()[0]
    kind = _KINDS.get(first, first)
    if kind not in [backend.name for backend in backends()]:
        return False
    if backend_of(kind).compile is None and backend_of(kind).device == "cpu":
        return True  # the interpreter needs no tools
    return all(
        tool.is_ok for tool in diagnose() if tool.toolchain == kind and tool.is_needed
    )
