"""From binaries to callables: devices, arrays, checks of arguments, modules and their files.

The files in reading order:

    device.py        devices, and the driver of a kind of device
    arrays/          arrays, and the checks of a call's arguments
    function.py      the base class of functions with checked arguments
    host/            machine code for this processor
    launch.py        kernels on a device: load, launch, limits
    packed_arguments.py  the arguments of a kernel as bytes
    programs/        the host part of a program, and its kernels
    hip/, opencl/, cuda/  the drivers of AMD GPUs, OpenCL devices and NVIDIA GPUs
    module.py        compiled functions with their source texts
    files/           the format of module files
    module_file.py   loading a module file, with all checks
    linked_module.py the functions that are linked into this process
    timing.py        measuring the time of a function

Example::

    >>> a = rc.runtime.array([1, 2, 3], dtype="float32")
    >>> a.device == rc.runtime.cpu(), rc.runtime.thread_count() >= 1
    (True, True)
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

# At once, since the module has the name of its function.
from refcomp.runtime.device import Device, cpu, device, register_device_kind

if TYPE_CHECKING:
    from refcomp.runtime.arrays.cuda_array import from_cuda_array
    from refcomp.runtime.arrays.entry_checks import EntryChecks
    from refcomp.runtime.arrays.ndarray import (
        NDArray,
        array,
        empty,
        from_dlpack,
        from_numpy,
    )
    from refcomp.runtime.cuda.driver import CudaDriver
    from refcomp.runtime.function import Function
    from refcomp.runtime.hip.driver import HipDriver
    from refcomp.runtime.host.threads import set_thread_count, thread_count
    from refcomp.runtime.linked_module import system_lib
    from refcomp.runtime.module import Module
    from refcomp.runtime.module_file import load_module
    from refcomp.runtime.opencl.driver import OpenCLDriver
    from refcomp.runtime.programs.program import ProgramFunction
    from refcomp.runtime.timing import TimeResult

# Module -> its names. Each is imported on first use, since a call needs no drivers of GPUs.
_SOURCES = {
    "arrays.cuda_array": "from_cuda_array",
    "arrays.entry_checks": "EntryChecks",
    "arrays.ndarray": "NDArray array empty from_dlpack from_numpy",
    "cuda.driver": "CudaDriver",
    "function": "Function",
    "hip.driver": "HipDriver",
    "host.threads": "set_thread_count thread_count",
    "linked_module": "system_lib",
    "module": "Module",
    "module_file": "load_module",
    "opencl.driver": "OpenCLDriver",
    "programs.program": "ProgramFunction",
    "timing": "TimeResult",
}
_HOME = {name: home for home, names in _SOURCES.items() for name in names.split()}

__all__ = [
    "NDArray",
    "array",
    "empty",
    "from_numpy",
    "from_dlpack",
    "from_cuda_array",
    "Device",
    "device",
    "cpu",
    "register_device_kind",
    "EntryChecks",
    "Function",
    "ProgramFunction",
    "OpenCLDriver",
    "HipDriver",
    "CudaDriver",
    "Module",
    "load_module",
    "system_lib",
    "TimeResult",
    "set_thread_count",
    "thread_count",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        # Python suggests a near name of the module.
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}",
            name=name,
            obj=sys.modules[__name__],
        )
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
