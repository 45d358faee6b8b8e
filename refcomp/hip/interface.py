"""The one interface between the runtime and a HIP driver: the functions of `hip_api`, as in C.

`of_library` types the functions of AMD's library. `offered_by` gives the functions of a Python
object (an emulator, a recording of tests) the same C signatures: a call goes through the same
conversions either way, so that whatever is above this line cannot tell the two apart.

    class Offered:
        def hipMalloc(self, memory, size):   # a pointer to write through, an int
            memory[0] = 0x1000
            return 0                         # the error number
        def hipGetErrorName(self, error):    # of hip_api.TEXTS: a bytes
            return b"hipErrorUnknown"

Arguments arrive as ctypes passes them to a callback: numbers as int, addresses and handles as int
(None for 0), texts as bytes, what is written as a pointer (`memory[0] = ...`), `extra` as a pointer
to addresses. What the object raises comes out of the call that reached it, not as a number.
Refuses nothing: a function that is not there is an attribute that is not there.
"""

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

from refcomp.hip import api as hip_api

Address = ctypes.c_void_p

C_TYPES: dict[str, Any] = {
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
    # No c_char_p: what a callback got of that would be a copy, and no place to write to.
    "out_text": Address,
}
_UNKNOWN_ERROR = 999
# The properties of a device are the one answer whose function differs by version.
_PROPERTIES = "out_text properties, i32 device"


class HipFunctions(SimpleNamespace):
    """The functions that a driver has, as attributes, each with argtypes and restype."""

    def __init__(self, **functions: Any) -> None:
        super().__init__(**functions)
        self.raised = threading.local()

    def raise_what_was_raised(self) -> None:
        """Raises what an offering object raised in this thread's last call, if it did."""
        error = self.raised.__dict__.pop("error", None)
        if error is not None:
            raise error


@cache
def parameters(function: str) -> tuple[tuple[str, str], ...]:
    """The kind and the name of each argument of a function of `hip_api`."""
    words = [part.split() for part in _declarations()[function].split(",") if part]
    return tuple((kind, name) for kind, name in words)


def function_names() -> tuple[str, ...]:
    """All functions that a driver may have."""
    return tuple(_declarations())


def of_library(loaded: ctypes.CDLL) -> HipFunctions:
    """The functions of AMD's library, those that its version has."""
    found = {name: _symbol(loaded, name) for name in function_names()}
    return HipFunctions(
        **{name: function for name, function in found.items() if function}
    )


def offered_by(offered: object) -> HipFunctions:
    """The functions that are methods of `offered`, behind their C signatures."""
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
def _prototype(name: str) -> Any:
    result = ctypes.c_char_p if name in hip_api.TEXTS else ctypes.c_int32
    return ctypes.CFUNCTYPE(result, *_argument_types(name))


def _argument_types(name: str) -> list[Any]:
    return [C_TYPES[kind] for kind, _ in parameters(name)]


def _symbol(loaded: ctypes.CDLL, name: str) -> Any:
    try:
        return _prototype(name)((name, loaded))
    except AttributeError:
        return None


def _c_function(name: str, method: Callable[..., Any], raised: threading.local) -> Any:
    if name in hip_api.TEXTS:
        return _text_function(name, method)

    def call(*args: Any) -> int:
        try:
            return int(method(*args))
        except BaseException as error:  # beyond a C frame it would be lost
            raised.error = error
            return _UNKNOWN_ERROR

    return _prototype(name)(call)


def _text_function(name: str, method: Callable[..., bytes]) -> Any:
    """A callback cannot return a text that outlives it: its address is returned, and it is kept."""
    kept: dict[bytes, Any] = {}

    def call(*args: Any) -> int:
        text = method(*args)
        return ctypes.addressof(
            kept.setdefault(text, ctypes.create_string_buffer(text))
        )

    callback = ctypes.CFUNCTYPE(Address, *_argument_types(name))(call)
    function = ctypes.cast(callback, _prototype(name))
    function.callback = callback  # which else would be gone
    return function
