"""The way from machine code back into Python: calls of registered functions.

A module that makes such calls has a variable `refcomp.callback`, into which `connect` puts the
address of the one callback of this process. The callback finds the function by name, puts numpy
arrays around the addresses it is given, and calls it. What the function raises is kept under a
number, which machine code returns to its caller as the status, and `take_raised` hands out there.
Any thread may call back, also several at once, and a function may call a module again.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from itertools import count
from threading import Lock
from typing import Any

import numpy as np

from refcomp.foundation.artifacts import (
    BufferArgument,
    PackedCall,
    packed_call_from_text,
)
from refcomp.foundation.dtype import DType, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.registry import get_global_func

VARIABLE = "refcomp.callback"
# What machine code returns: 0 when all went well, 1 without memory, the rest are numbers of ours.
_FIRST_NUMBER, _NUMBERS = 2, 1 << 30

# Of several errors raised at once in a parallel region one is told; nobody asks for the others.
_MOST_KEPT = 1000

_SLOT = 8
_raised: dict[int, BaseException] = {}
_serial, _lock = count(), Lock()


def take_raised(status: int) -> BaseException | None:
    """What was raised and kept under `status`, once; None when there is nothing."""
    with _lock:
        return _raised.pop(status, None)


def _keep(error: BaseException) -> int:
    with _lock:
        number = _FIRST_NUMBER + next(_serial) % _NUMBERS
        _raised[number] = error
        if len(_raised) > _MOST_KEPT:
            del _raised[next(iter(_raised))]
    return number


def _call_back(description: bytes, slots: int) -> int:
    """What the callback does: 0, or the number of what was raised."""
    try:
        call = _read_description(description)
        function = get_global_func(call.name)
        assert function is not None
        function(*_arguments(call, slots))
        return 0
    except BaseException as error:  # it must not end here: machine code cannot raise
        return _keep(error)


@lru_cache(maxsize=1024)
def _read_description(description: bytes) -> PackedCall:
    return packed_call_from_text(description.decode("ascii"))


def _arguments(call: PackedCall, slots: int) -> list[Any]:
    args: list[Any] = []
    for arg in call.args:
        if isinstance(arg, BufferArgument):
            extents = (ctypes.c_int64 * arg.rank).from_address(slots + _SLOT)
            address = ctypes.c_uint64.from_address(slots).value
            args.append(
                _array(arg, address, tuple(max(0, extent) for extent in extents))
            )
            slots += _SLOT * (1 + arg.rank)
        else:
            args.append(_number(arg, slots))
            slots += _SLOT
    return args


def _array(arg: BufferArgument, address: int, shape: tuple[int, ...]) -> Any:
    dtype = to_numpy(arg.dtype)
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    if size == 0:  # there may be no memory at all
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_uint8 * size).from_address(address)
    array = np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)
    array.flags.writeable = arg.access != "read"
    return array


def _number(dtype: DType, slot: int) -> bool | int | float:
    if dtype.is_bool:
        return ctypes.c_uint8.from_address(slot).value != 0
    if dtype.is_float:
        return ctypes.c_double.from_address(slot).value
    if dtype.kind == "int":
        return ctypes.c_int64.from_address(slot).value
    return ctypes.c_uint64.from_address(slot).value


# Kept for good: machine code holds its address.
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p)(
    _call_back
)


def connect(library: ctypes.CDLL) -> None:
    """Puts the callback into a loaded module that has a place for it."""
    try:
        place = ctypes.c_void_p.in_dll(library, VARIABLE)
    except ValueError:
        return
    place.value = ctypes.cast(_CALLBACK, ctypes.c_void_p).value


def refuse_if_called_back(data: bytes) -> None:
    """UserError when the shared object `data` needs the callback, which only refcomp connects."""
    if b"\0" + VARIABLE.encode() + b"\0" in data:
        raise UserError(
            "the module cannot be written as a bare shared object",
            why="it calls functions registered in Python, and only refcomp connects these",
            remedy="write a module file: module.save(path)",
        )
