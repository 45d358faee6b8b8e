"""C functions of this host by name: where they are sought, and how Python calls them.

They are sought in the shared objects that the user names (option `-libs=a.so,b.so` of a target),
then in the C library's `libm` and `libc`, and nowhere else: what happens to be loaded by others is
not looked at. Refuses, with UserError, a function that none of them has, and one of the user's
whose name the C library has, too.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError

_ALWAYS = ("libm.so.6", "libc.so.6")
_FLOATS: dict[int, Any] = {32: ctypes.c_float, 64: ctypes.c_double}


def library_paths(option: str) -> tuple[str, ...]:
    """The absolute paths of the shared objects in the value of `-libs`, all of which load."""
    paths = tuple(os.path.abspath(path) for path in option.split(",") if path)
    for path in paths:
        _open(path)
    return paths


def _open(path: str) -> ctypes.CDLL:
    # Loaded objects are never unloaded, so that what links to them finds them by name.
    try:
        return ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW)
    except OSError as error:
        raise UserError(
            f"the shared object {path} cannot be loaded",
            why=str(error),
            remedy="name one that was made for this machine: -libs=/path/to/it.so",
        ) from error


def find_c_function(name: str, libraries: Sequence[str] = ()) -> Any:
    """The function `name` of the first of `libraries`, libm and libc that has it, as a ctypes
    object of its own."""
    if name.startswith("llvm."):
        raise UserError(
            f"{name} is an intrinsic of LLVM, and nothing else knows it",
            why="only what LLVM compiles for this host can use it",
            remedy='build for the target "llvm", or use a function of refcomp, such as popcount',
        )
    of_user, standard = _first_with(name, libraries), _first_with(name, _ALWAYS)
    if (
        of_user is not None
        and standard is not None
        and _address(of_user) != _address(standard)
    ):
        raise UserError(
            f"the C function {name!r} is in {', '.join(libraries)}, but in the C library, too",
            why="the dynamic loader would take the C library's",
            remedy="give yours another name",
        )
    function = of_user or standard
    if function is not None:
        return function
    sought = ", ".join([*libraries, *_ALWAYS])
    raise UserError(
        f"there is no C function {name!r}",
        where=f"it was sought in {sought}",
        remedy="name the shared object that has it, as in 'llvm -libs=/path/to/it.so'",
    )


def _first_with(name: str, paths: Sequence[str]) -> Any:
    for path in paths:
        with suppress(AttributeError):
            return _open(path)[name]
    return None


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


def call_c_function(function: Any, args: Sequence[Any], result: DType) -> Any:
    """What `function` gives for `args`: each is a number with its dtype, or a numpy array, of
    which the function gets the address."""
    values = [_c_value(arg) for arg in args]
    function.restype = c_type(result)
    function.argtypes = [type(value) for value in values]
    return function(*values)


def _c_value(arg: Any) -> Any:
    if not isinstance(arg, tuple):
        return ctypes.c_void_p(arg.ctypes.data)
    value, dtype = arg
    return c_type(dtype)(value)


def c_type(dtype: DType) -> Any:
    """The ctypes type of numbers of a dtype that C has."""
    if dtype.is_bool:
        return ctypes.c_bool
    if dtype.is_int:
        return getattr(ctypes, f"c_{'u' * (dtype.kind == 'uint')}int{dtype.bits}")
    return _FLOATS[dtype.bits]
