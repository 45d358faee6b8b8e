"""Kernels of code objects that other compilers wrote, launched by their metadata.

    kernels = load_code_object("saxpy.hsaco")
    kernels["saxpy"](x, y, numpy.float32(2), numpy.int32(n), grid=n // 64, block=64)

The metadata has the offset and the size of each argument, but not its dtype. So the caller passes:

- an array on the device for an address
- `LocalMemory` for a `local T *` of OpenCL
- a numpy scalar or a ctypes structure of the right size for any other argument

The driver fills in the hidden arguments that compilers add. A launch is queued. Nobody can check
whether arrays are as large as the kernel expects. Refuses arguments of another size, arrays on
another device, groups that the kernel was not compiled for, and other kinds of arguments.
"""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol, cast

import numpy as np

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.local_memory import (
    LOCAL_POINTER,
    POINTER_BYTES,
    LocalMemory,
    place_local,
)
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.device import Device
from refcomp.runtime.launch import Extents, KernelSignature, check_launch
from refcomp.runtime.programs.program import DeviceCode

# Kinds of arguments in the metadata.
_BUFFER = "global_buffer"
_VALUE = "by_value"
_POINTER_BYTES = 8  # of global memory
_AXES = 3


@dataclass(frozen=True, slots=True)
class PackedArgument:
    """An argument of a kernel, as the metadata describes it."""

    offset: int  # bytes from the beginning of the arguments
    size: int  # bytes
    kind: str  # see `refcomp.foundation.amd_metadata.KernelArgument`
    alignment: int = 1  # bytes, of the local memory that it points to


@dataclass(frozen=True, slots=True)
class PackedSignature:
    """The interface of a kernel for its launches."""

    name: str
    arguments: tuple[PackedArgument, ...]  # without the hidden ones
    block: tuple[int, ...]  # the only size of a group in x, y, z; () if any is accepted
    max_threads: int  # of a group
    shared_bytes: int  # of a group, without dynamic shared memory


class PackedLauncher(Protocol):
    """Loaded code whose kernels take their arguments as bytes."""

    def launch_packed(
        self,
        kernel: str,
        arguments: bytes,
        grid: Extents,
        block: Extents,
        shared_bytes: int,
    ) -> None:
        """Queue a run of `kernel` with `shared_bytes` of dynamic shared memory."""


class BareKernel:
    """A kernel of `code`. A call takes the arguments and the shape of the launch."""

    def __init__(self, code: DeviceCode, signature: PackedSignature) -> None:
        self._code = code
        self.signature = signature

    def __call__(
        self,
        *args: object,
        grid: int | Sequence[int],
        block: int | Sequence[int] | None = None,
        shared_bytes: int = 0,
    ) -> None:
        """Queue a run of the kernel on the device of its first array.

        Args:
            *args: the arguments, see the module's docstring.
            grid: number of groups, in x or in up to three axes.
            block: threads of a group in the same form. Optional if the kernel has one size only.
            shared_bytes: dynamic shared memory.

        Raises UserError for arguments and sizes that do not fit the kernel or the device.
        """
        signature = self.signature
        code = self._code.on(_device_of(args, self._code.device))
        groups = self._extents("grid", grid)
        threads = self._extents("block", signature.block if block is None else block)
        self._check_block(threads)
        launcher, limits = code.load()
        offsets, shared_bytes = self._place_local(args, max(0, shared_bytes))
        arguments = self._pack(args, code.device, offsets)
        shared = (signature.shared_bytes, shared_bytes)
        kernel = KernelSignature(signature.name, signature.name, params=())
        check_launch(kernel, groups, threads, shared, limits, code.device)
        # The driver refuses an empty grid, which has nothing to do.
        if 0 not in groups:
            packed = cast(PackedLauncher, launcher)
            packed.launch_packed(
                signature.name,
                arguments,
                grid=groups,
                block=threads,
                shared_bytes=max(0, shared_bytes),
            )

    def __repr__(self) -> str:
        params = ", ".join(map(_describe, self.signature.arguments))
        return f"<refcomp kernel {self.signature.name}({params})>"

    def _extents(self, what: str, given: int | Sequence[int]) -> Extents:
        listed = [given] if isinstance(given, int | np.integer) else list(given)
        minimum = 0 if what == "grid" else 1
        is_legal = all(isinstance(n, int | np.integer) and n >= minimum for n in listed)
        if not (1 <= len(listed) <= _AXES and is_legal):
            raise UserError(
                f"{what}={given!r} is not a shape for the kernel {self.signature.name}",
                remedy=f"pass one to {_AXES} whole numbers: {what}=64, {what}=(16, 16)",
            )
        # Missing axes have the extent 1.
        x, y, z = [*map(int, listed), 1, 1][:_AXES]
        return x, y, z

    def _check_block(self, block: Extents) -> None:
        signature = self.signature
        if signature.block and block != signature.block:
            expected = " x ".join(map(str, signature.block))
            raise self._other_block(block, f"groups of {expected} threads only")
        if prod(block) > signature.max_threads:
            raise self._other_block(
                block, f"at most {signature.max_threads} threads of a group"
            )

    def _other_block(self, block: Extents, compiled_for: str) -> UserError:
        return UserError(
            f"the kernel {self.signature.name} is called with groups of "
            f"{' x '.join(map(str, block))} threads",
            why=f"it was compiled for {compiled_for}",
            remedy="pass such a block, or compile the kernel for this one",
        )

    def _place_local(
        self, args: Sequence[object], dynamic: int
    ) -> tuple[dict[int, int], int]:
        """Return the offsets of local memory by argument, and the bytes of dynamic shared memory.

        The result includes the `dynamic` bytes that the caller requests, which come first.
        """
        wanted = self.signature.arguments
        if len(args) != len(wanted):
            raise UserError(
                f"the kernel {self.signature.name} takes {len(wanted)} arguments, not {len(args)}",
                where=repr(self),
            )
        # The kernel's own shared memory comes first, then the dynamic bytes, then the arguments'.
        own = self.signature.shared_bytes
        places: list[int] = []
        pieces: list[tuple[LocalMemory, int]] = []
        for place, arg in enumerate(args):
            if isinstance(arg, LocalMemory):
                places.append(place)
                pieces.append((arg, wanted[place].alignment))
        offsets, end = place_local(own + dynamic, pieces)
        return dict(zip(places, offsets, strict=True)), end - own

    def _pack(
        self, args: Sequence[object], device: Device, offsets: Mapping[int, int]
    ) -> bytes:
        wanted = self.signature.arguments
        # Gaps between arguments, and hidden arguments, are 0.
        buffer = bytearray(max((a.offset + a.size for a in wanted), default=0))
        for place, (argument, value) in enumerate(zip(wanted, args, strict=True)):
            if argument.kind == LOCAL_POINTER:
                if place not in offsets:
                    what = f"is local memory of a group, not {type(value).__name__}"
                    remedy = "pass its size in bytes: refcomp.LocalMemory(256)"
                    raise self._misfit(place, what, remedy)
                piece = offsets[place].to_bytes(POINTER_BYTES, "little")
            else:
                piece = self._piece(place, argument, value, device)
            buffer[argument.offset : argument.offset + argument.size] = piece
        return bytes(buffer)

    def _piece(
        self, place: int, argument: PackedArgument, value: object, device: Device
    ) -> bytes:
        if argument.kind == _BUFFER:
            return self._address(place, value, device)
        if argument.kind != _VALUE:
            raise Unsupported(
                f"the kernel {self.signature.name} takes a {argument.kind} as argument {place}",
                why="refcomp passes global memory, local memory and values only",
                remedy="compile it with an address or a value instead",
            )
        piece = _bytes_of(value)
        if piece is None or len(piece) != argument.size:
            found = "has no fixed size" if piece is None else f"has {len(piece)} bytes"
            raise self._misfit(
                place,
                f"is {_describe(argument)}, but {value!r} {found}",
                "pass a numpy scalar of that size, such as numpy.float32(2), or a structure of "
                "ctypes, because the metadata of code objects has no dtypes",
            )
        return piece

    def _address(self, place: int, value: object, device: Device) -> bytes:
        if not isinstance(value, NDArray):
            what = f"is the address of an array, not {type(value).__name__}"
            raise self._misfit(place, what, "pass refcomp.array(values, device)")
        if value.device != device:
            what = f"lies on {value.device}, but the first array on {device}"
            raise self._misfit(place, what, f"copy it: x.copyto({device})")
        return value.address.to_bytes(_POINTER_BYTES, "little")

    def _misfit(self, place: int, what: str, remedy: str) -> UserError:
        start = f"argument {place} of the kernel {self.signature.name}"
        return UserError(f"{start} {what}", where=repr(self), remedy=remedy)


def _device_of(args: Sequence[object], home: Device) -> Device:
    """Return the device of the first array, or `home` if its driver is another one."""
    for arg in args:
        if isinstance(arg, NDArray):
            is_same_kind = type(arg.device.driver) is type(home.driver)
            return arg.device if is_same_kind else home
    return home


def _bytes_of(value: object) -> bytes | None:
    """Return the bytes of a value in C; None if its size is not known."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, ctypes.Structure | ctypes.Union | ctypes._SimpleCData):
        return bytes(value)
    return value.tobytes() if isinstance(value, np.generic) else None


def _describe(argument: PackedArgument) -> str:
    if argument.kind == LOCAL_POINTER:
        return "local memory"
    if argument.kind == _BUFFER:
        return "array"
    return f"{argument.size} bytes" if argument.kind == _VALUE else argument.kind
