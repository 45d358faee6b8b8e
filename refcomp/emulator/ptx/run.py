"""Runs kernels of a PTX file on numpy arrays.

    gpu = EmulatedNvidiaGpu()
    report = gpu.run(gpu.load(text), "add", (4, 1, 1), (64, 1, 1), [a, b, c, np.int32(200)])

Arrays are written in place. Numbers are numpy scalars of the width that the kernel takes. A
numpy.uint64 in place of an array is an address, such as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from refcomp.emulator.limits import USUAL_LIMITS, Limits
from refcomp.emulator.machine.array_arguments import place_array
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import Arena
from refcomp.emulator.ptx.execution.launch import (
    LoadedPtx,
    PtxLaunch,
    PtxReport,
    launch,
    load_ptx,
    parameter_layout,
)
from refcomp.emulator.ptx.machine.findings import Extents
from refcomp.emulator.ptx.machine.observation import PtxObserver
from refcomp.emulator.ptx.observers.races import ThreadRaces
from refcomp.emulator.ptx.text.module import Variable
from refcomp.emulator.ptx.translation.engine import translated
from refcomp.emulator.translation.compilation import HostTools
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import UserError

_ARENA_BYTES = 1 << 30
_ADDRESS_BYTES = 8

# An array is copied to the GPU, a number is passed by value.
Argument: TypeAlias = Array | np.generic


class EmulatedNvidiaGpu:
    """An emulated NVIDIA GPU.

    Args:
        size: bytes of its memory.
        is_watched: report uses of bits that nothing wrote.
        hazards: report data races. Writes to arrays that are not writeable are always reported.
        tools: compile hot kernels to code of this host; None: all kernels are interpreted.
        observers: observe all launches.

    Example::

        >>> import numpy as np
        >>> from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
        >>> gpu = EmulatedNvidiaGpu()
        >>> text = '''
        ... .version 8.0
        ... .target sm_70
        ... .address_size 64
        ... .visible .entry double(.param .u64 data) {
        ...     .reg .b32 %r<3>;
        ...     .reg .b64 %rd<4>;
        ...     ld.param.u64 %rd1, [data];
        ...     mov.u32 %r1, %tid.x;
        ...     mul.wide.u32 %rd2, %r1, 4;
        ...     add.s64 %rd3, %rd1, %rd2;
        ...     ld.global.u32 %r2, [%rd3];
        ...     add.u32 %r2, %r2, %r2;
        ...     st.global.u32 [%rd3], %r2;
        ...     ret;
        ... }'''
        >>> data = np.arange(4, dtype=np.uint32)
        >>> gpu.run(gpu.load(text), "double", (1, 1, 1), (4, 1, 1), [data]).findings
        ()
        >>> data.tolist()
        [0, 2, 4, 6]
    """

    def __init__(
        self,
        *,
        size: int = _ARENA_BYTES,
        is_watched: bool = True,
        hazards: bool = False,
        tools: HostTools | None = None,
        observers: tuple[PtxObserver, ...] = (),
    ) -> None:
        self.arena = Arena(size, is_watched=is_watched)
        self._hazards = hazards
        self._tools = tools
        self._observers = observers

    def load(self, text: str) -> LoadedPtx:
        """Load a PTX file. See `load_ptx` for errors."""
        return translated(load_ptx(self.arena, text), self._tools)

    def run(
        self,
        loaded: LoadedPtx,
        kernel: str,
        grid: Extents,
        block: Extents,
        arguments: Sequence[Argument],
        *,
        shared_bytes: int = 0,
        limits: Limits = USUAL_LIMITS,
    ) -> PtxReport:
        """Run a kernel on numpy arrays, which are copied to the GPU and back.

        Args:
            loaded: the file.
            kernel: name of the kernel.
            grid, block: numbers of blocks, and of threads of a block, along x, y and z.
            arguments: arrays and numpy scalars, one for each parameter.
            shared_bytes: dynamic shared memory of a block.
            limits: the limits after which the launch is stopped.

        Raises:
            UserError: the arguments do not fit, or a driver would refuse the launch.
            Unsupported: an instruction that runs is not emulated.
            MemoryError: there is too little memory.
        """
        function = loaded.kernel(kernel).function
        wanted = function.parameters
        if len(wanted) != len(arguments):
            expected = ", ".join(
                f"{one.name}: {counted(one.bytes, 'byte')}" for one in wanted
            )
            raise UserError(
                f"{kernel} takes {counted(len(wanted), 'argument')} ({expected}), not "
                f"{len(arguments)}",
                remedy="give one for each, in this order",
            )
        layout = parameter_layout(function)
        packed = bytearray(layout.bytes)
        placed: list[tuple[Array, int]] = []
        try:
            for parameter, given in zip(wanted, arguments, strict=True):
                if isinstance(given, np.ndarray):
                    address = place_array(self.arena, parameter.name, given)
                    placed.append((given, address))
                    content = address.to_bytes(_ADDRESS_BYTES, "little")
                else:
                    _refuse_number(parameter, given)
                    content = np.asarray(given).tobytes()
                _check_size(parameter, len(content))
                begin = layout.offsets[parameter.name]
                packed[begin : begin + len(content)] = content
            request = PtxLaunch(
                kernel=kernel,
                grid=grid,
                block=block,
                parameters=bytes(packed),
                dynamic_bytes=shared_bytes,
                limits=limits,
                observers=self._observing(),
                read_only=tuple(
                    address for array, address in placed if not array.flags.writeable
                ),
            )
            report = launch(loaded, request)
            for array, address in placed:
                if array.flags.writeable:
                    found = self.arena.read(address, array.nbytes)
                    array.reshape(-1).view(np.uint8)[:] = found
        finally:
            for _, address in placed:
                self.arena.free(address)
        return report

    def _observing(self) -> tuple[PtxObserver, ...]:
        """Return the observers of one launch."""
        return (*self._observers, ThreadRaces()) if self._hazards else self._observers


def _refuse_number(parameter: Variable, given: np.generic) -> None:
    """Raise UserError if a number is given for a parameter that `.ptr` says is an address."""
    if parameter.is_pointer and not isinstance(given, np.uint64):
        raise UserError(
            f"the argument {parameter.name} is an array, not a number",
            why=f"it is an address of memory (.ptr), and {given!r} is given",
            remedy="give an array, or an address as uint64",
        )


def _check_size(parameter: Variable, given: int) -> None:
    if given != parameter.bytes:
        raise UserError(
            f"the parameter {parameter.name} has {counted(parameter.bytes, 'byte')}, not {given}",
            remedy="give an array, an address, or a number of 8 bytes"
            if parameter.bytes == _ADDRESS_BYTES
            else f"give a number of {counted(parameter.bytes, 'byte')}",
        )
