"""AMD's HIP runtime library: found, typed as `refcomp.hip_api` says, and its errors told.

Nothing is loaded at import. The library is sought below $ROCM_PATH, then by the names that the
dynamic loader knows, newest first, then in /opt/rocm. Refuses what fails in the library's own
words: UserError where a device or a driver is missing, MemoryError for lack of memory, else
ToolchainError.
"""

import ctypes
import glob
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from refcomp import hip_api
from refcomp.errors import ToolchainError, UserError

_C_TYPES: dict[hip_api.Argument, Any] = {
    "i32": ctypes.c_int32,
    "u32": ctypes.c_uint32,
    "size": ctypes.c_size_t,
    "address": ctypes.c_void_p,
    "out_i32": ctypes.POINTER(ctypes.c_int32),
    "out_f32": ctypes.POINTER(ctypes.c_float),
    "out_address": ctypes.POINTER(ctypes.c_void_p),
    "bytes": ctypes.c_char_p,
}
_MISSING = (
    hip_api.NOT_INITIALIZED,
    hip_api.INSUFFICIENT_DRIVER,
    hip_api.NO_DEVICE,
    hip_api.INVALID_DEVICE,
)
# How many major versions after the first are sought by name.
_MAJORS_AHEAD = 40
_NUMBER = re.compile(r"\d+")
_GIVEN = "ROCM_PATH"
_USUAL = "/opt/rocm"

INSTALL = "install ROCm, or on Debian: apt-get install libamdhip64-5"
GPU_REMEDY = (
    "an AMD GPU with its driver (amdgpu) is needed, and the right to use it: /dev/kfd and "
    "/dev/dri/renderD* must be there, and you in their group (render)"
)


class HipLibrary:
    """The library's functions; `loaded` has them as attributes, each taking C values."""

    def __init__(self, loaded: Any, path: str) -> None:
        self._loaded, self.path = loaded, path

    def status(self, function: str, *args: Any) -> int:
        """The error number that a function of `hip_api.FUNCTIONS` returns."""
        return int(getattr(self._loaded, function)(*args))

    def call(self, function: str, *args: Any) -> None:
        """Calls it; raises what its error number means."""
        number = self.status(function, *args)
        if number:
            raise self.failure(function, number)

    def has(self, function: str) -> bool:
        """Whether this version of the library has the function."""
        return hasattr(self._loaded, function)

    def failure(self, function: str, number: int) -> Exception:
        """What to raise when `function` returned `number`, which is not 0."""
        told = f"{function} says: {self.text(number)} ({number})"
        if number == hip_api.OUT_OF_MEMORY:
            return MemoryError(f"the AMD GPU has no room. {told}. Free arrays on it")
        if number in _MISSING:
            return UserError("the AMD GPU cannot be used", why=told, remedy=GPU_REMEDY)
        if number in (hip_api.NO_BINARY_FOR_GPU, hip_api.INVALID_IMAGE):
            remedy = "compile for this GPU: rocm -mcpu=... with the name that rocminfo tells"
            return ToolchainError("the code is for another GPU", why=told, remedy=remedy)
        return ToolchainError("the HIP runtime failed", why=told, remedy="see dmesg for the cause")

    def text(self, number: int) -> str:
        """The library's own words for an error number."""
        return (getattr(self._loaded, hip_api.ERROR_TEXT)(number) or b"").decode(errors="replace")


def load_hip() -> HipLibrary | None:
    """The newest library that can be loaded, or None."""
    for name in _candidates():
        with suppress(OSError):
            return HipLibrary(_typed(ctypes.CDLL(name, mode=os.RTLD_LOCAL | os.RTLD_NOW)), name)
    return None


def sought_places() -> str:
    """Where `load_hip` looks, for a message."""
    if given := os.environ.get(_GIVEN):
        return f"{_GIVEN}={given}: lib/{hip_api.LIBRARY}*"
    first = f"{hip_api.LIBRARY}.{hip_api.LEAST_MAJOR}"
    return f"{first} and newer where the dynamic loader looks, {_USUAL}/lib/{hip_api.LIBRARY}*"


def _candidates() -> Iterator[str]:
    if given := os.environ.get(_GIVEN):
        yield from _files_below(given)
        return
    majors = range(hip_api.LEAST_MAJOR + _MAJORS_AHEAD, hip_api.LEAST_MAJOR - 1, -1)
    yield from (f"{hip_api.LIBRARY}.{major}" for major in majors)
    yield hip_api.LIBRARY
    yield from _files_below(_USUAL)


def _files_below(root: str) -> list[str]:
    found = glob.glob(os.path.join(glob.escape(root), "lib", f"{hip_api.LIBRARY}*"))
    return sorted(found, key=_numbers, reverse=True)


def _numbers(path: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(os.path.basename(path))]


def _typed(loaded: ctypes.CDLL) -> ctypes.CDLL:
    for name, arguments in hip_api.FUNCTIONS.items():
        _declare(loaded, name, [_C_TYPES[argument] for argument in arguments])
    for properties in hip_api.PROPERTIES:
        _declare(loaded, properties.function, [ctypes.c_char_p, ctypes.c_int32])
    text = getattr(loaded, hip_api.ERROR_TEXT)
    text.argtypes, text.restype = [ctypes.c_int32], ctypes.c_char_p
    return loaded


def _declare(loaded: ctypes.CDLL, name: str, types: list[Any]) -> None:
    function: Callable[..., int] | None = getattr(loaded, name, None)
    if function is not None:
        function.argtypes, function.restype = types, ctypes.c_int32  # type: ignore[attr-defined]
