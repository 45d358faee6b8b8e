"""BareKernel: a kernel of a code object that somebody else compiled, launched by its metadata.

    kernels = load_code_object("saxpy.hsaco")
    kernels["saxpy"](x, y, numpy.float32(2), numpy.int32(n), grid=n // 64, block=64)

The metadata tells where each argument lies and how many bytes it has, not its dtype: arrays on the
device stand for addresses, `LocalMemory` for a `local T *` of OpenCL, and everything else is given
as the bytes it is, a numpy scalar or a structure of ctypes. The driver fills in what compilers add
behind them. A launch is queued; whether arrays are as large as the kernel thinks, nobody can check.
Refuses arguments of another size or place, groups that the kernel was not compiled for, and kernels
that take more than memory.
"""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

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

_BUFFER, _VALUE = "global_buffer", "by_value"
_POINTER_BYTES = 8
_AXES = 3


@dataclass(frozen=True, slots=True)
class PackedArgument:
    """An argument of a kernel: where it lies among them, its bytes, and what it is, as the metadata
    calls it; `alignment` in bytes is that of what a pointer to local memory points to."""

    offset: int
    size: int
    kind: str
    alignment: int = 1


@dataclass(frozen=True, slots=True)
class PackedSignature:
    """How a kernel is launched: its arguments without the hidden ones, the threads of its groups in
    x, y and z where they are known, how many there are at most, and its shared memory in bytes."""

    name: str
    arguments: tuple[PackedArgument, ...]
    block: tuple[int, ...]
    max_threads: int
    shared_bytes: int


class PackedLauncher(Protocol):
    """Loaded code whose kernels are launched with their arguments as bytes."""

    def launch_packed(
        self,
        kernel: str,
        arguments: bytes,
        grid: Extents,
        block: Extents,
        shared_bytes: int,
    ) -> None:
        """Queue a run of `kernel`; `shared_bytes` come on top of the kernel's own."""


class BareKernel:
    """A kernel of `code`, called with its arguments and the shape of the launch."""

    def __init__(self, code: DeviceCode, signature: PackedSignature) -> None:
        self._code, self.signature = code, signature

    def __call__(
        self,
        *args: Any,
        grid: int | Sequence[int],
        block: int | Sequence[int] | None = None,
        shared_bytes: int = 0,
    ) -> None:
        """Queue a run of `grid` groups of `block` threads, each in x or in up to three axes, with
        `shared_bytes` of dynamic shared memory. It runs where the first array lies.

        UserError for what does not fit; `block` may be left out where the kernel says it itself.
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
        told = KernelSignature(signature.name, signature.name, ())
        check_launch(told, groups, threads, shared, limits, code.device)
        if 0 not in groups:
            packed: Any = launcher
            _launch(packed, signature.name, arguments, groups, threads, shared_bytes)

    def __repr__(self) -> str:
        taken = ", ".join(map(_told, self.signature.arguments))
        return f"<refcomp kernel {self.signature.name}({taken})>"

    def _extents(self, what: str, given: int | Sequence[int]) -> Extents:
        listed = [given] if isinstance(given, int | np.integer) else list(given)
        least = 0 if what == "grid" else 1
        is_whole = all(isinstance(n, int | np.integer) and n >= least for n in listed)
        if not (1 <= len(listed) <= _AXES and is_whole):
            raise UserError(
                f"{what}={given!r} is no shape for the kernel {self.signature.name}",
                remedy=f"give one to {_AXES} whole numbers: {what}=64, {what}=(16, 16)",
            )
        x, y, z = [*map(int, listed), 1, 1][:_AXES]
        return x, y, z

    def _check_block(self, block: Extents) -> None:
        signature = self.signature
        if signature.block and block != signature.block:
            asked = " x ".join(map(str, signature.block))
            raise self._other_block(block, f"groups of {asked} threads, and no others")
        if prod(block) > signature.max_threads:
            raise self._other_block(
                block, f"at most {signature.max_threads} threads of a group"
            )

    def _other_block(self, block: Extents, compiled_for: str) -> UserError:
        return UserError(
            f"the kernel {self.signature.name} is called with groups of "
            f"{' x '.join(map(str, block))} threads",
            why=f"it was compiled for {compiled_for}",
            remedy="give such a block, or compile it for this one",
        )

    # Arguments.

    def _place_local(
        self, args: Sequence[Any], more: int
    ) -> tuple[dict[int, int], int]:
        """Return the offset of each piece of local memory, by the place of its argument, and the
        shared bytes beyond the kernel's own: `more` and these pieces."""
        wanted = self.signature.arguments
        if len(args) != len(wanted):
            raise UserError(
                f"the kernel {self.signature.name} takes {len(wanted)} arguments, not {len(args)}",
                where=repr(self),
            )
        local = [
            place for place, arg in enumerate(args) if isinstance(arg, LocalMemory)
        ]
        own = self.signature.shared_bytes
        pieces = [(args[place], wanted[place].alignment) for place in local]
        offsets, end = place_local(own + more, pieces)
        return dict(zip(local, offsets, strict=True)), end - own

    def _pack(
        self, args: Sequence[Any], device: Device, offsets: Mapping[int, int]
    ) -> bytes:
        wanted = self.signature.arguments
        buffer = bytearray(max((a.offset + a.size for a in wanted), default=0))
        for place, (argument, value) in enumerate(zip(wanted, args, strict=True)):
            if argument.kind == LOCAL_POINTER:
                piece = self._local(place, value, offsets)
            else:
                piece = self._piece(place, argument, value, device)
            buffer[argument.offset : argument.offset + argument.size] = piece
        return bytes(buffer)

    def _piece(
        self, place: int, argument: PackedArgument, value: Any, device: Device
    ) -> bytes:
        if argument.kind == _BUFFER:
            return self._address(place, value, device)
        if argument.kind != _VALUE:
            raise Unsupported(
                f"the kernel {self.signature.name} takes a {argument.kind} as argument {place}",
                why="only addresses of global memory, local memory and values are passed",
                remedy="compile it with an address or a value in its place",
            )
        piece = _bytes_of(value)
        if piece is None or len(piece) != argument.size:
            has = "is no such thing" if piece is None else f"has {len(piece)} bytes"
            raise self._misfit(
                place,
                f"is {_told(argument)}, and {value!r} {has}",
                "give a numpy scalar of that size, such as numpy.float32(2), or a structure of "
                "ctypes: the metadata of code objects tells no dtypes",
            )
        return piece

    def _local(self, place: int, value: Any, offsets: Mapping[int, int]) -> bytes:
        if place not in offsets:
            what = f"is local memory of a group, not {type(value).__name__}"
            raise self._misfit(
                place, what, "give its size in bytes: refcomp.LocalMemory(256)"
            )
        return offsets[place].to_bytes(POINTER_BYTES, "little")

    def _address(self, place: int, value: Any, device: Device) -> bytes:
        if not isinstance(value, NDArray):
            what = f"is the address of an array, not {type(value).__name__}"
            raise self._misfit(place, what, "pass refcomp.array(values, device)")
        if value.device != device:
            what = f"lies on {value.device}, and the first array on {device}"
            raise self._misfit(place, what, f"copy it: x.copyto({device})")
        return value.address.to_bytes(_POINTER_BYTES, "little")

    def _misfit(self, place: int, what: str, remedy: str) -> UserError:
        start = f"argument {place} of the kernel {self.signature.name}"
        return UserError(f"{start} {what}", where=repr(self), remedy=remedy)


def _launch(
    launcher: PackedLauncher,
    kernel: str,
    arguments: bytes,
    grid: Extents,
    block: Extents,
    shared_bytes: int,
) -> None:
    launcher.launch_packed(kernel, arguments, grid, block, max(0, shared_bytes))


def _device_of(args: Sequence[Any], home: Device) -> Device:
    """Where the first array lies, when its driver is one for this code."""
    arrays = (arg for arg in args if isinstance(arg, NDArray))
    first = next(arrays, None)
    is_such = first is not None and type(first.device.driver) is type(home.driver)
    return first.device if first is not None and is_such else home


def _bytes_of(value: Any) -> bytes | None:
    """The bytes that a value is, as C passes it; None for what is no value of a known size."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, ctypes.Structure | ctypes.Union | ctypes._SimpleCData):
        return bytes(value)
    return value.tobytes() if isinstance(value, np.generic) else None


def _told(argument: PackedArgument) -> str:
    if argument.kind == LOCAL_POINTER:
        return "local memory"
    if argument.kind == _BUFFER:
        return "array"
    return f"{argument.size} bytes" if argument.kind == _VALUE else argument.kind
