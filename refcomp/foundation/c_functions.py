"""C functions of this host: find them by name, and call them from Python.

The search order: first the shared objects that the user names (option `-libs=a.so,b.so` of a
target), then the C library's `libm` and `libc`. Other libraries that this process has loaded do
not count, since a compiled module must work without them.

Refuses, with UserError, a name that none of these objects defines, and a name that both the user
and the C library define.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

    # A number in C. `Any` is the Python type that corresponds to the C type.
    CNumber = ctypes._SimpleCData[Any]

# An argument of a call: a number with its dtype, or an array, which is passed by address.
CArgument = tuple[object, DType] | np.ndarray[Any, np.dtype[Any]]

_C_LIBRARY = ("libm.so.6", "libc.so.6")
_C_TYPES: dict[str, type[CNumber]] = {
    "bool": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}


def library_paths(option: str) -> tuple[str, ...]:
    """Return the absolute paths of the shared objects in the value of `-libs`.

    Raises UserError if one of them cannot be loaded.
    """
    paths = tuple(os.path.abspath(path) for path in option.split(",") if path)
    for path in paths:
        _open(path)
    return paths


def _open(path: str) -> ctypes.CDLL:
    # The object is never unloaded, so modules that link against it find it by name.
    try:
        return ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW)
    except OSError as error:
        raise UserError(
            f"the shared object {path} cannot be loaded",
            why=str(error),
            remedy="name an object made for this machine: -libs=/path/to/it.so",
        ) from error


def find_c_function(name: str, libraries: Sequence[str] = ()) -> CFuncPtr:
    """Return the function `name` from the first of `libraries`, libm and libc that defines it.

    Each call returns a new ctypes object. Raises UserError, see the module's docstring.
    """
    if name.startswith("llvm."):
        raise UserError(
            f"{name} is an intrinsic of LLVM, not a C function",
            why="only code that LLVM compiles for this host can use it",
            remedy='build for the target "llvm", or use a function of refcomp, such as popcount',
        )
    of_user = _find(name, libraries)
    standard = _find(name, _C_LIBRARY)
    function = of_user or standard
    if function is None:
        raise UserError(
            f"unknown C function {name!r}",
            where=f"searched: {', '.join([*libraries, *_C_LIBRARY])}",
            remedy="name the shared object that defines it, "
            "as in 'llvm -libs=/path/to/it.so'",
        )
    # A user's object that links against libm also offers libm's own functions: no conflict.
    if of_user and standard and _address(of_user) != _address(standard):
        raise UserError(
            f"both {', '.join(libraries)} and the C library define the function {name!r}",
            why="the dynamic loader would take the C library's",
            remedy="give yours another name",
        )
    return function


def _find(name: str, paths: Sequence[str]) -> CFuncPtr | None:
    for path in paths:
        with suppress(AttributeError):
            return _open(path)[name]
    return None


def _address(function: CFuncPtr) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


def call_c_function(
    function: CFuncPtr, args: Sequence[CArgument], result: DType
) -> bool | int | float:
    """Call `function`, and return its result as a Python number."""
    values: list[CNumber] = []
    for arg in args:
        if isinstance(arg, np.ndarray):
            values.append(ctypes.c_void_p(arg.ctypes.data))
        else:
            number, dtype = arg
            values.append(c_type(dtype)(number))
    function.restype = c_type(result)
    function.argtypes = [type(value) for value in values]
    number = function(*values)
    assert isinstance(number, bool | int | float)
    return number


def c_type(dtype: DType) -> type[CNumber]:
    """Return the ctypes type of one lane of `dtype`. KeyError for f16 and bf16."""
    return _C_TYPES[str(dtype.element)]
