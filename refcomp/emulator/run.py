"""Runs kernels of a code object on numpy arrays.

    gpu = EmulatedGpu(disassemble)
    report = gpu.run(gpu.load(code), "add", (4, 1, 1), (64, 1, 1), [a, b, c, np.int64(200)])

Arrays are written in place. Numbers are numpy scalars of the width that the kernel takes. A
numpy.uint64 in place of an array is an address, such as 0. A `LocalMemory` is shared memory for an
argument that is `local T *` in OpenCL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from refcomp.emulator.code.code_object import KernelEntry
from refcomp.emulator.execution.launch import (
    Extents,
    LaunchReport,
    LaunchRequest,
    LoadedCode,
    launch,
    load_code,
)
from refcomp.emulator.limits import USUAL_LIMITS, Limits
from refcomp.emulator.machine.array_arguments import place_array
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import Arena
from refcomp.emulator.machine.observation import Observer
from refcomp.emulator.observers.hazards import hazard_observers
from refcomp.emulator.translation.compilation import HostTools
from refcomp.foundation.amd_metadata import KernelArgument
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import UserError
from refcomp.foundation.local_memory import LOCAL_POINTER, LocalMemory, place_local

_ARENA_BYTES = 1 << 30
_SCALARS = {
    size: tuple(f"{kind}{8 * size}" for kind in ("int", "uint", "float"))
    for size in (2, 4, 8)
} | {1: ("int8", "uint8")}


# An array is copied to the GPU, a number is passed by value.
Argument: TypeAlias = Array | np.generic | LocalMemory


@dataclass(frozen=True, slots=True)
class _PlacedArgument:
    """An argument on the GPU during a launch."""

    content: bytes  # the number, or the address in 8 bytes
    array: Array | None = None  # the caller's array; None for a number
    address: int = 0  # of the copy of the array


@dataclass(frozen=True, slots=True)
class _LocalLayout:
    """The arguments of a launch after local memory was placed in the shared memory of a group."""

    arguments: list[Array | np.generic]  # offsets in place of local memory
    shared_bytes: int  # in addition to the kernel's own


class EmulatedGpu:
    """An emulated GPU.

    Args:
        disassemble: returns the assembly text of a code object.
        size: bytes of its memory.
        is_watched: report uses of bits that nothing wrote. Launches take up to half as long again.
        observers: observe all launches.
        hazards: names of `HAZARDS` to check for, or True for all. An array that is not writeable
            must not be written by the kernel.
        tools: translate hot code to code of the host; None to interpret all of it.
    """

    def __init__(
        self,
        disassemble: Callable[[bytes], str],
        *,
        size: int = _ARENA_BYTES,
        is_watched: bool = True,
        observers: Sequence[Observer] = (),
        hazards: bool | Iterable[str] = False,
        tools: HostTools | None = None,
    ) -> None:
        self.arena = Arena(size, is_watched=is_watched)
        self._tools = tools
        self._disassemble = disassemble
        self.observers = (*hazard_observers(hazards), *observers)

    def load(self, code: bytes) -> LoadedCode:
        """Load a code object. See `load_code` for errors."""
        return load_code(self.arena, code, self._disassemble, tools=self._tools)

    def run(
        self,
        loaded: LoadedCode,
        kernel: str,
        grid: Extents,
        block: Extents,
        arguments: Sequence[Argument],
        *,
        shared_bytes: int = 0,
        limits: Limits = USUAL_LIMITS,
        observers: Sequence[Observer] = (),
    ) -> LaunchReport:
        """Run a kernel on numpy arrays, which are copied to the GPU and back.

        Args:
            loaded: the code object.
            kernel: name of the kernel.
            grid, block: numbers of groups, and of threads of a group, along x, y and z.
            arguments: arrays, numpy scalars and `LocalMemory`, one for each explicit argument.
            shared_bytes: shared memory of a group in addition to the kernel's own.
            limits: when the launch is given up.
            observers: observe this launch, besides those of the GPU.

        Raises:
            UserError: the arguments do not fit, or a driver would refuse the launch.
            Unsupported: the emulator does not know an instruction of the kernel.
            MemoryError: there is too little memory.
        """
        explicit = explicit_arguments(loaded.kernel(kernel))
        if len(explicit) != len(arguments):
            expected = ", ".join(f"{one.name}: {_kind_of(one)}" for one in explicit)
            raise UserError(
                f"{kernel} takes {counted(len(explicit), 'argument')} ({expected}), not "
                f"{len(arguments)}",
                remedy="give one for each, in this order; the GPU fills in hidden ones",
            )
        own = loaded.kernel(kernel).descriptor.shared_bytes
        layout = _with_local(explicit, arguments, own, shared_bytes)
        with self._placed(explicit, layout.arguments) as placed:
            buffer = _pack(explicit, placed)
            read_only = tuple(
                one.address
                for one in placed
                if one.array is not None and not one.array.flags.writeable
            )
            request = LaunchRequest(
                kernel=kernel,
                grid=grid,
                block=block,
                arguments=buffer,
                shared_bytes=layout.shared_bytes,
                limits=limits,
                observers=(*self.observers, *observers),
                read_only=read_only,
            )
            report = launch(loaded, request)
            for one in placed:
                if one.array is not None and one.array.flags.writeable:
                    found = self.arena.read(one.address, one.array.nbytes)
                    one.array.reshape(-1).view(np.uint8)[:] = found
        return report

    @contextmanager
    def _placed(
        self,
        explicit: Sequence[KernelArgument],
        arguments: Sequence[Array | np.generic],
    ) -> Iterator[list[_PlacedArgument]]:
        """Keep the arguments on the GPU during a launch."""
        placed: list[_PlacedArgument] = []
        try:
            for argument, given in zip(explicit, arguments, strict=True):
                placed.append(self._put(argument, given))
            yield placed
        finally:
            for one in placed:
                if one.array is not None:
                    self.arena.free(one.address)

    def _put(
        self, argument: KernelArgument, given: Array | np.generic
    ) -> _PlacedArgument:
        if not isinstance(given, np.ndarray):
            if argument.kind == "global_buffer" and not isinstance(given, np.uint64):
                raise UserError(
                    f"the argument {argument.name} is an array, not a number",
                    why=f"it is an address of global memory, and {given!r} is given",
                    remedy="give an array, or an address as uint64",
                )
            return _PlacedArgument(np.asarray(given).tobytes())
        if argument.kind != "global_buffer":
            raise UserError(
                f"the argument {argument.name} is a number, not an array",
                remedy=_scalar_of(argument),
            )
        address = place_array(self.arena, argument.name, given)
        content = address.to_bytes(8, "little")
        return _PlacedArgument(content, given, address)


def explicit_arguments(kernel: KernelEntry) -> list[KernelArgument]:
    """Return the arguments that the caller passes, without hidden ones.

    Some compilers leave out names: such arguments are named by their numbers, #0.
    """
    given = (one for one in kernel.arguments if not one.kind.startswith("hidden_"))
    return [
        replace(one, name=one.name or f"#{number}") for number, one in enumerate(given)
    ]


def _with_local(
    explicit: Sequence[KernelArgument],
    arguments: Sequence[Argument],
    own: int,
    more: int,
) -> _LocalLayout:
    """Place local memory behind the kernel's `own` shared bytes and `more`.

    Raises:
        UserError: local memory is given for another argument, or is missing.
    """
    for argument, given in zip(explicit, arguments, strict=True):
        if (argument.kind == LOCAL_POINTER) != isinstance(given, LocalMemory):
            raise _misplaced_local(argument)
    pieces = [
        (given, argument.alignment)
        for argument, given in zip(explicit, arguments, strict=True)
        if isinstance(given, LocalMemory)
    ]
    offsets, end = place_local(own + more, pieces)
    remaining = iter(offsets)
    placed: list[Array | np.generic] = []
    for given in arguments:
        if isinstance(given, LocalMemory):
            placed.append(np.uint32(next(remaining)))
        else:
            placed.append(given)
    return _LocalLayout(placed, end - own)


def _misplaced_local(argument: KernelArgument) -> UserError:
    if argument.kind != LOCAL_POINTER:
        return UserError(
            f"the argument {argument.name} is not local memory",
            why=f"the kernel takes {_kind_of(argument)} in its place",
            remedy="give local memory for arguments that are `local T *` in OpenCL only",
        )
    return UserError(
        f"the argument {argument.name} is local memory of a group",
        why="in OpenCL it is `local T *`: the launch says how many bytes there are",
        remedy="give its size: --arg local:256, in Python refcomp.LocalMemory(256)",
    )


def _kind_of(argument: KernelArgument) -> str:
    if argument.kind == LOCAL_POINTER:
        return "local memory"
    return (
        "array" if argument.kind == "global_buffer" else counted(argument.size, "byte")
    )


def _scalar_of(argument: KernelArgument) -> str:
    names = " or ".join(_SCALARS.get(argument.size, ("void",)))
    return f"give a number of {counted(argument.size, 'byte')}, as {names}"


def _pack(
    explicit: Sequence[KernelArgument], placed: Sequence[_PlacedArgument]
) -> bytes:
    size = max((a.offset + a.size for a in explicit), default=0)
    buffer = bytearray(size)
    for argument, one in zip(explicit, placed, strict=True):
        given = len(one.content)
        if given != argument.size:
            raise UserError(
                f"the argument {argument.name} has {counted(argument.size, 'byte')}, not {given}",
                remedy=_scalar_of(argument),
            )
        buffer[argument.offset : argument.offset + argument.size] = one.content
    return bytes(buffer)
