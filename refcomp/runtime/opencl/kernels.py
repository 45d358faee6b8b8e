"""Kernels on an OpenCL device: compiled from OpenCL C by the device's compiler, and launched.

A kernel takes its buffers and numbers in order, then a `__local` pointer for each shared buffer
whose size is not constant. A text is compiled once for a device while any module uses it; the
OpenCL platform decides what it stores on disk. Launches may come from several threads.

If the compiler refuses a text, a ToolchainError has its log, the lines and their loop-IR
statements. Launches beyond the limits of the device are UserErrors.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from refcomp.foundation.artifacts import Source
from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.runtime.device import DeviceMemory
from refcomp.runtime.launch import Argument, Extents, KernelSignature

if TYPE_CHECKING:
    import pyopencl

# `<kernel>:12:5: error: ...` of most compilers, `error: /path/file.cl:12:5: ...` of PoCL.
_GUILTY = re.compile(r":(\d+):\d+: (?:fatal )?error:|error: [^\n]*?:(\d+):\d+:")
_LINES_SHOWN = 3
# Remedies, if the log of the compiler names lines of the text, and if it names none.
_OF_THE_TEXT = (
    "this is a bug of refcomp, or a limit of the device; its log stands below"
)
_OF_THE_COMPILER = (
    "its log stands below, and blames no line: see whether it compiles anything at all; PoCL needs "
    "a folder that it can write: set POCL_CACHE_DIR"
)


class OpenCLPrograms:
    """The compiled texts of one device."""

    def __init__(
        self, cl: ModuleType, context: pyopencl.Context, device: pyopencl.Device
    ) -> None:
        self._cl = cl
        self._context = context
        self._device = device
        self._options = _build_options(cl, device)
        # Text -> its program, while a module uses it.
        self._built: WeakValueDictionary[str, pyopencl.Program] = WeakValueDictionary()
        self._lock = Lock()

    def build(self, source: Source) -> pyopencl.Program:
        """Return the compiled `source`. Raise ToolchainError if the compiler refuses it."""
        with self._lock:
            program = self._built.get(source.text)
            if program is None:
                program = self._built[source.text] = self._build(source)
        return program

    def _build(self, source: Source) -> pyopencl.Program:
        program = self._cl.Program(self._context, source.text)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # Reading the handle first turns off pyopencl's own cache, which unpickles files.
                _ = program.int_ptr
                return program.build(list(self._options))
        except self._cl.RuntimeError as error:
            raise self._refused(source, program, error) from error

    def _refused(
        self, source: Source, program: pyopencl.Program, error: Exception
    ) -> ToolchainError:
        kind = self._cl.program_build_info.LOG
        log = program.get_build_info(self._device, kind) or str(error)
        guilty = _guilty_lines(source, log)
        return ToolchainError(
            f"the OpenCL compiler of {self._device.name.strip()} refuses the kernels",
            where=guilty or None,
            why=str(error).splitlines()[0].partition(" - ")[0],
            remedy=_OF_THE_TEXT if guilty else _OF_THE_COMPILER,
            stderr=log,
        )


def _build_options(cl: ModuleType, device: pyopencl.Device) -> tuple[str, ...]:
    """Return the options: the language version, and correctly rounded division and square root."""
    exact = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    # A device without the option may err in the last bits, which the language allows.
    if device.single_fp_config & exact:
        return ("-cl-std=CL1.2", "-cl-fp32-correctly-rounded-divide-sqrt")
    return ("-cl-std=CL1.2",)


def _guilty_lines(source: Source, log: str) -> str:
    """Return each line of `source` that `log` names, with its loop-IR statement."""
    lines = source.text.splitlines()
    numbers = dict.fromkeys(
        int(match[1] or match[2]) for match in _GUILTY.finditer(log)
    )
    shown = []
    for number in [n for n in numbers if 0 < n <= len(lines)][:_LINES_SHOWN]:
        shown.append(f"line {number}: {lines[number - 1].strip()}")
        # Lines after the last statement have no entry.
        if statement := "".join(source.line_map[number - 1 : number]):
            shown.append(f"    from {statement}")
    return "\n".join(shown)


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel of a program."""

    signature: KernelSignature
    kernel: pyopencl.Kernel
    # For setting the arguments and launching: the kernel keeps its arguments.
    lock: Lock


class OpenCLKernels:
    """The Launcher of one compiled text."""

    def __init__(
        self,
        cl: ModuleType,
        queue: pyopencl.CommandQueue,
        program: pyopencl.Program,
        kernels: Sequence[KernelSignature],
    ) -> None:
        self._cl = cl
        self._queue = queue
        # Kernels do not keep the object alive by which `OpenCLPrograms` finds the text again.
        self._program = program
        self._kernels = {
            kernel.name: self._kernel_of(program, kernel) for kernel in kernels
        }

    def _kernel_of(
        self, program: pyopencl.Program, signature: KernelSignature
    ) -> _Kernel:
        try:
            kernel = self._cl.Kernel(program, signature.symbol)
        except self._cl.Error as error:
            raise UserError(
                f"the OpenCL text has no kernel {signature.symbol!r}",
                why=str(error),
                remedy="build the module again",
            ) from error
        shared = kernel.num_args - len(signature.params)
        if shared < 0:
            raise UserError(
                f"the kernel {signature.symbol!r} of the OpenCL text takes {kernel.num_args} "
                f"arguments, not {len(signature.params)}",
                remedy="build the module again",
            )
        # With the types known, pyopencl packs numbers ten times faster.
        types = [dtype and to_numpy(dtype).type for dtype in signature.params]
        kernel.set_scalar_arg_dtypes(types + [None] * shared)
        return _Kernel(signature, kernel, Lock())

    def launch(
        self,
        kernel: str,
        values: Sequence[Argument],
        grid: Extents,
        block: Extents,
        shared_bytes: tuple[int, ...],
    ) -> None:
        """Queue a run; see `refcomp.runtime.launch.Launcher`.

        Raises UserError if the device refuses the launch, and MemoryError if it lacks memory.
        """
        chosen = self._kernels[kernel]
        arguments = [
            value.owner if isinstance(value, DeviceMemory) else value
            for value in values
        ]
        # OpenCL has no local memory of 0 bytes.
        arguments += [self._cl.LocalMemory(max(size, 1)) for size in shared_bytes]
        threads = tuple(groups * size for groups, size in zip(grid, block, strict=True))
        try:
            with chosen.lock:
                chosen.kernel.set_args(*arguments)
                self._cl.enqueue_nd_range_kernel(
                    self._queue, chosen.kernel, threads, block
                )
        except self._cl.MemoryError as error:
            raise MemoryError(
                f"the OpenCL device has no room to run {kernel} ({error}). Free arrays on it"
            ) from error
        except self._cl.Error as error:
            raise _refused_launch(chosen.signature, grid, block, error) from error


def _refused_launch(
    kernel: KernelSignature, grid: Extents, block: Extents, error: Exception
) -> UserError:
    return UserError(
        f"the OpenCL device refuses to run {kernel.name} with groups of {block}, {grid} of them",
        where="; ".join(f"{tag}: {text}" for tag, text in kernel.loops),
        why=str(error),
        remedy="split by smaller factors",
    )
