"""Binary -> callable: devices, arrays, argument checks, modules and module files.

Reading order: device.py and ndarray.py (memory), argument_rules.py, scalars.py and entry_checks.py
(what a call may pass), function.py and host.py (calling), module.py, then manifest.py, archive.py
and module_file.py (files). Devices other than the host: launch.py, then host_integers.py,
host_walk.py and program.py (what runs around kernels), opencl.py and opencl_kernels.py,
hip_library.py, hip_handle.py, hip_stream.py, hip_info.py, hip_kernels.py and hip.py,
device_module.py, and program_manifest.py (files).
Beside them sources.py, threads.py, timing.py, machine.py and elf.py.
"""

from refcomp.runtime.device import Device, cpu, device, register_device_kind
from refcomp.runtime.entry_checks import EntryChecks
from refcomp.runtime.function import Function
from refcomp.runtime.hip import HipDriver
from refcomp.runtime.module import Module
from refcomp.runtime.module_file import load_module
from refcomp.runtime.ndarray import NDArray, array, empty, from_dlpack, from_numpy
from refcomp.runtime.opencl import OpenCLDriver
from refcomp.runtime.program import ProgramFunction
from refcomp.runtime.threads import set_thread_count, thread_count
from refcomp.runtime.timing import TimeResult

__all__ = [
    "NDArray",
    "array",
    "empty",
    "from_numpy",
    "from_dlpack",
    "Device",
    "device",
    "cpu",
    "register_device_kind",
    "EntryChecks",
    "Function",
    "ProgramFunction",
    "OpenCLDriver",
    "HipDriver",
    "Module",
    "load_module",
    "TimeResult",
    "set_thread_count",
    "thread_count",
]
