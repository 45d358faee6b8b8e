"""The interface between the runtime and a HIP driver: those of `refcomp.hip.api` as C functions.

`of_library` returns the functions of AMD's library. `offered_by` wraps the methods of a Python
object (the emulator, or a recorder in tests) into C functions with the same signatures. A call goes
through the same conversions in both cases, so the code above cannot distinguish them.

    class Offered:
        def hipMalloc(self, memory, size):   # a pointer to write to, an int
            memory[0] = 0x1000
            return 0                         # the error number
        def hipGetErrorName(self, error):    # one of `TEXTS`, which return bytes
            return b"hipErrorUnknown"

A method receives its arguments as ctypes passes them to a callback:

- numbers as int
- addresses and handles as int, or None for 0
- texts as bytes
- outputs as a pointer (`memory[0] = ...`)
- `extra` as a pointer to addresses

An exception of a method is kept, and `raise_pending` raises it in the caller. If the library or the
object lacks a function, HipFunctions has no such attribute.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from refcomp.hip import api as hip_api

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

Address = ctypes.c_void_p

C_TYPES: dict[str, type[ctypes._CDataType]] = {
    "i32": ctypes.c_int32,
    "u32": ctypes.c_uint32,
    "size": ctypes.c_size_t,
    "address": Address,
    "handle": Address,
    "text": ctypes.c_char_p,
    "extra": ctypes.POINTER(Address),
    "out_i32": ctypes.POINTER(ctypes.c_int32),
    "out_f32": ctypes.POINTER(ctypes.c_float),
    "out_size": ctypes.POINTER(ctypes.c_size_t),
    "out_address": ctypes.POINTER(Address),
    "out_handle": ctypes.POINTER(Address),
    # Not c_char_p: ctypes would pass a copy to a callback, which could not write to the text.
    "out_text": Address,
}
_UNKNOWN_ERROR = 999
# The parameters of the functions `hip_api.PROPERTIES`, whose name depends on the version.
_PROPERTIES = "out_text properties, i32 device"


class HipFunctions(SimpleNamespace):
    """The functions of a driver, as attributes. Each has argtypes and restype."""

    def __init__(self, **functions: CFuncPtr) -> None:
        super().__init__(**functions)
        # An exception cannot cross a C frame. So it is kept here, for each thread.
        self.raised = threading.local()

    def raise_pending(self) -> None:
        """Raise the exception of this thread's last call of a Python method, if any."""
        error = self.raised.__dict__.pop("error", None)
        if error is not None:
            raise error


@cache
def parameters(function: str) -> tuple[tuple[str, str], ...]:
    """Return the kind and the name of each parameter of a function of `hip_api`."""
    words = [part.split() for part in _declarations()[function].split(",") if part]
    return tuple((kind, name) for kind, name in words)


def function_names() -> tuple[str, ...]:
    """Return the names of all functions that a driver may have."""
    return tuple(_declarations())


def of_library(loaded: ctypes.CDLL) -> HipFunctions:
    """Return those functions of AMD's library that its version has."""
    functions = HipFunctions()
    for name in function_names():
        with suppress(AttributeError):
            setattr(functions, name, _prototype(name)((name, loaded)))
    return functions


def offered_by(offered: object) -> HipFunctions:
    """Return the methods of `offered` that have names of HIP functions, as C functions."""
    functions = HipFunctions()
    for name in function_names():
        method = getattr(offered, name, None)
        if method is not None:
            setattr(functions, name, _c_function(name, method, functions.raised))
    return functions


@cache
def _declarations() -> dict[str, str]:
    properties = {call.function: _PROPERTIES for call in hip_api.PROPERTIES}
    return {**hip_api.FUNCTIONS, **hip_api.TEXTS, **properties}


@cache
def _prototype(name: str) -> type[CFuncPtr]:
    result = ctypes.c_char_p if name in hip_api.TEXTS else ctypes.c_int32
    return ctypes.CFUNCTYPE(result, *_argument_types(name))


def _argument_types(name: str) -> list[type[ctypes._CDataType]]:
    return [C_TYPES[kind] for kind, _ in parameters(name)]


def _c_function(
    name: str, method: Callable[..., Any], raised: threading.local
) -> CFuncPtr:
    if name in hip_api.TEXTS:
        return _text_function(name, method)

    def call(*args: object) -> int:
        try:
            return int(method(*args))
        except BaseException as error:
            raised.error = error
            return _UNKNOWN_ERROR

    return _prototype(name)(call)


def _text_function(name: str, method: Callable[..., bytes]) -> CFuncPtr:
    """Wrap a method that returns a text.

    ctypes would free the text when the callback returns. So the callback returns the address of a
    copy, and the copies are kept.
    """
    kept: dict[bytes, ctypes.Array[ctypes.c_char]] = {}

    def call(*args: object) -> int:
        text = method(*args)
        copy = kept.setdefault(text, ctypes.create_string_buffer(text))
        return ctypes.addressof(copy)

    callback = ctypes.CFUNCTYPE(Address, *_argument_types(name))(call)
    function = ctypes.cast(callback, _prototype(name))
    # Keep the callback alive for as long as the function.
    function.callback = callback  # type: ignore[attr-defined]
    return function
