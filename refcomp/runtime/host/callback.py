"""Calls from machine code into Python: the callback for registered functions.

A process has one callback. A module with such calls has a variable `refcomp.callback`. `connect`
stores the address of the callback there. The callback does this for each call:

1. It looks the function up by name.
2. It calls the function with copies of the program's arrays (`refcomp.foundation.lent_arrays`).
3. If the program uses the value, it stores the value in the slot behind the arguments.
4. If the function raises, it keeps the exception under a number. Machine code returns this number
   as its status, and `take_raised` returns the exception for it.

Several threads may call back at once. A function that is called back may call a module again.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from itertools import count
from threading import Lock
from typing import Any

import numpy as np

from refcomp.foundation.artifacts import (
    SLOT_DTYPES,
    BufferArgument,
    PackedCall,
    packed_call_from_text,
)
from refcomp.foundation.dtype import DType, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.lent_arrays import LentMemory, call_with_copies
from refcomp.foundation.registered_calls import call_registered
from refcomp.foundation.registry import get_global_func
from refcomp.runtime.device import HostArray

VARIABLE = "refcomp.callback"
# Machine code returns 0 for success, 1 if memory is exhausted, or the number of an exception.
_FIRST_NUMBER = 2
_NUMBERS = 1 << 30

# If several threads of a parallel region raise, machine code returns one of the numbers, and the
# other exceptions are never taken. So only the latest exceptions are kept.
_MAX_KEPT = 1000

_SLOT_BYTES = 8
_raised: dict[int, BaseException] = {}  # by number, the oldest first
_serial = count()
_lock = Lock()


def take_raised(status: int) -> BaseException | None:
    """Return the exception for `status`, and forget it; None if there is none."""
    with _lock:
        return _raised.pop(status, None)


def _keep(error: BaseException) -> int:
    with _lock:
        number = _FIRST_NUMBER + next(_serial) % _NUMBERS
        _raised[number] = error
        if len(_raised) > _MAX_KEPT:
            oldest = next(iter(_raised))
            del _raised[oldest]
    return number


def _call_back(description: bytes, slots: int) -> int:
    """Call the described function with the arguments at the address `slots`.

    Return 0, or the number of the exception that the function raised.
    """
    try:
        call = _read_description(description)
        args, behind = _arguments(call, slots)
        if call.result is None:
            function = get_global_func(call.name)
            assert function is not None
            call_with_copies(function, args)
        else:
            value = call_registered(call.name, args, call.result, traces=call.traces)
            _put(SLOT_DTYPES[call.result.kind], behind, value)
        return 0
    # An exception cannot cross machine code, so it must be kept, whatever it is.
    except BaseException as error:
        return _keep(error)


@lru_cache(maxsize=1024)
def _read_description(description: bytes) -> PackedCall:
    return packed_call_from_text(description.decode("ascii"))


def _arguments(
    call: PackedCall, slots: int
) -> tuple[list[LentMemory | float | str], int]:
    """Return the arguments at the address `slots`, and the address behind them."""
    args: list[LentMemory | float | str] = []
    for arg in call.args:
        if isinstance(arg, str):
            args.append(arg)
        elif isinstance(arg, BufferArgument):
            # An array takes a slot for its address and one for each extent.
            address = ctypes.c_uint64.from_address(slots).value
            extents = (ctypes.c_int64 * arg.rank).from_address(slots + _SLOT_BYTES)
            shape = tuple(max(0, extent) for extent in extents)
            elements = _elements(arg, address, shape)
            args.append(LentMemory(elements, arg.access != "read"))
            slots += _SLOT_BYTES * (1 + arg.rank)
        else:
            args.append(_number(arg, slots))
            slots += _SLOT_BYTES
    return args, slots


def _elements(arg: BufferArgument, address: int, shape: tuple[int, ...]) -> HostArray:
    """Return a view of the memory at `address`."""
    dtype = to_numpy(arg.dtype)
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    # An array without elements may have an address without memory.
    if size == 0:
        return np.empty(shape, dtype)
    memory = memoryview((ctypes.c_uint8 * size).from_address(address))
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)


# The dtype of a slot -> its type in C.
_C_TYPES: dict[str, Any] = {
    "bool": ctypes.c_uint8,
    "int": ctypes.c_int64,
    "uint": ctypes.c_uint64,
    "float": ctypes.c_double,
}


def _number(dtype: DType, slot: int) -> bool | int | float:
    value: bool | int | float = _C_TYPES[dtype.kind].from_address(slot).value
    return bool(value) if dtype.is_bool else value


def _put(dtype: DType, slot: int, value: float) -> None:
    _C_TYPES[dtype.kind].from_address(slot).value = value


# Kept for ever, since machine code has its address.
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p)(
    _call_back
)


def connect(library: ctypes.CDLL) -> None:
    """Store the callback's address in a loaded module that has a variable for it."""
    try:
        place = ctypes.c_void_p.in_dll(library, VARIABLE)
    except ValueError:
        return
    place.value = ctypes.cast(_CALLBACK, ctypes.c_void_p).value


def refuse_if_called_back(data: bytes) -> None:
    """Raise UserError if the shared object `data` needs the callback."""
    if b"\0" + VARIABLE.encode() + b"\0" in data:
        raise UserError(
            "the module cannot be written as a bare shared object",
            why="it calls functions registered in Python, and only refcomp can connect them",
            remedy="write a module file: module.save(path)",
        )
