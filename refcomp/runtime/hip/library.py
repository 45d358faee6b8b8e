"""AMD's HIP runtime library: how it is found and called, and what its errors mean.

Nothing is loaded at import. The library is searched below $ROCM_PATH, then by the names that the
dynamic loader knows, newest first, then in /opt/rocm. Only $REFCOMP_ROCM replaces it by an emulated
GPU. Errors are reported in the library's own words: UserError if a device or a driver is missing,
MemoryError for lack of memory, else ToolchainError.
"""

import ctypes
import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cached_property
from importlib import import_module

from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.hip import api as hip_api
from refcomp.hip.interface import HipFunctions, of_library, offered_by, parameters

# Errors of a machine without a usable GPU.
_MISSING = tuple(
    hip_api.number(f"hipError{name}")
    for name in ("NotInitialized", "InsufficientDriver", "NoDevice", "InvalidDevice")
)
# Errors of code that was compiled for another GPU.
_FOREIGN = tuple(
    hip_api.number(f"hipError{name}") for name in ("NoBinaryForGpu", "InvalidImage")
)
_OUT_OF_MEMORY = hip_api.number("hipErrorOutOfMemory")
# Remedies.
_TOO_MUCH = (
    "fewer threads in a group, fewer groups, or less shared memory; "
    "see `device.driver.info`"
)
_ASTRAY = "build the schedule for `interp`, which reports the wrong access"
# Number of an error -> (its meaning for the user of a kernel, the remedy).
_MEANINGS = {
    hip_api.number(f"hipError{name}"): meaning
    for name, *meaning in (
        ("InvalidConfiguration", "a kernel asks for more than the GPU has", _TOO_MUCH),
        ("LaunchOutOfResources", "a kernel asks for more than the GPU has", _TOO_MUCH),
        (
            "IllegalAddress",
            "a kernel launched before reached memory that is not its own",
            _ASTRAY,
        ),
        ("LaunchFailure", "a kernel launched before failed", _ASTRAY),
        (
            "LaunchTimeOut",
            "a kernel launched before ran too long",
            "split the work in more kernels",
        ),
    )
}
_OTHER = ("the HIP runtime failed", "see dmesg for the cause")
# The kinds of input arguments, which messages show.
_INPUTS = ("i32", "u32", "size", "address", "handle", "text")
# Major versions after the first are sought by name.
_MAJORS_AHEAD = 40
_NUMBER = re.compile(r"\d+")
_GIVEN = "ROCM_PATH"  # environment variable: the folder in which ROCm is installed
_USUAL = "/opt/rocm"
# Environment variable: emulator:ARCH or emulator:ARCH:OPTION; empty for a real GPU.
CHOICE = "REFCOMP_ROCM"
_EMULATOR = re.compile(r"emulator:(\w+(?::[\w-]+(?:=[\w.+-]*)?)*)")

Work = Callable[[], None]


class CopyKind(StrEnum):
    """The direction of a copy, by its name in HIP's header."""

    HOST_TO_DEVICE = "hipMemcpyHostToDevice"
    DEVICE_TO_HOST = "hipMemcpyDeviceToHost"
    DEVICE_TO_DEVICE = "hipMemcpyDeviceToDevice"


_WITHOUT = f"without an AMD GPU: {CHOICE}=emulator:gfx942 runs the same code, slowly"
INSTALL = f"install ROCm, or on Debian: apt-get install libamdhip64-5; {_WITHOUT}"
GPU_REMEDY = (
    "an AMD GPU with its driver (amdgpu) is needed, and the right to use it: /dev/kfd and "
    f"/dev/dri/renderD* must be there, and you in their group (render); {_WITHOUT}"
)


class HipLibrary:
    """The functions of a HIP library, real or emulated, and the meaning of their errors."""

    def __init__(
        self,
        functions: HipFunctions,
        path: str,
        counted: Callable[[Work], object] | None = None,
    ) -> None:
        self._functions = functions
        self.path = path  # the name in messages
        # Runs some work and counts the part of the GPU. Only an emulated GPU has it.
        self.counted = counted

    def status(self, function: str, *args: object) -> int:
        """Return the error number of a function of `hip_api.FUNCTIONS`.

        An exception of a stand-in in Python is raised again.
        """
        called = getattr(self._functions, function)
        assert len(args) == len(parameters(function)), (
            f"{function}: wrong number of arguments"
        )
        number = int(called(*args))
        if number:
            self._functions.raise_pending()
        return number

    def call(self, function: str, *args: object) -> None:
        """Call a function, and raise the meaning of its error number."""
        number = self.status(function, *args)
        if number:
            raise self.failure(function, args, number)

    def has(self, function: str) -> bool:
        """Return True if this version of the library has the function."""
        return hasattr(self._functions, function)

    def number(self, name: str) -> int:
        """Return the number of `name` of the header in this version of the library."""
        return hip_api.number(name, self.major)

    @cached_property
    def major(self) -> int:
        """Return the number before the first point of the library's version."""
        version = ctypes.c_int32()
        self.call("hipRuntimeGetVersion", ctypes.byref(version))
        return version.value // hip_api.MAJOR_UNIT

    def failure(self, function: str, args: Sequence[object], number: int) -> Exception:
        """Return the error for `number`, which is not 0, of `function` called with `args`."""
        report = f"{call_text(function, args)} says: {self.text(number)}"
        if number == _OUT_OF_MEMORY:
            return MemoryError(f"the AMD GPU has no room. {report}. Free arrays on it")
        if number in _MISSING:
            return UserError(
                "the AMD GPU cannot be used", why=report, remedy=GPU_REMEDY
            )
        if number in _FOREIGN:
            remedy = (
                "compile for this GPU: rocm -mcpu=... with the name that `device.driver.arch(0)` "
                "or rocminfo returns"
            )
            return ToolchainError(
                "the code is for another GPU", why=report, remedy=remedy
            )
        what, remedy = _MEANINGS.get(number, _OTHER)
        return ToolchainError(what, why=report, remedy=remedy)

    def text(self, number: int) -> str:
        """Return the library's own name and text for an error number, and the number."""
        texts = [getattr(self._functions, text)(number) for text in hip_api.TEXTS]
        # The name and the text are the same for some errors.
        words = dict.fromkeys(text.decode(errors="replace") for text in texts if text)
        return f"{', '.join(words)} ({number})"


def call_text(function: str, args: Sequence[object]) -> str:
    """Return a call as text, with its input arguments: `hipSetDevice(device=1)`."""
    given = zip(parameters(function), args, strict=True)
    inputs = [
        f"{name}={_argument_text(kind, value)}"
        for (kind, name), value in given
        if kind in _INPUTS
    ]
    return f"{function}({', '.join(inputs)})"


def _argument_text(kind: str, value: object) -> str:
    if kind not in ("address", "handle"):
        return (
            value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        )
    number = getattr(value, "value", value)
    return hex(number or 0) if isinstance(number, int | None) else "host memory"


# Makes an object with the functions of `refcomp.hip.interface`. The argument is the name of a GPU,
# and options of the emulator, each after a colon. UserError for unknown names and options.
MakeEmulator = Callable[[str], object]
_emulators: list[MakeEmulator] = []
_EMULATOR_HOME = "refcomp.driver.devices"


def register_emulator(make: MakeEmulator) -> None:
    """Let `make` make all emulated GPUs from now on."""
    _emulators[:] = [make]


def emulated_hip(arch: str) -> HipLibrary:
    """Return a driver for an emulated GPU. Raise UserError if `arch` is not emulated."""
    if not _emulators:
        # It registers the emulator, which a program without emulated GPUs does not import.
        import_module(_EMULATOR_HOME)
    if not _emulators:
        raise UserError(
            f"{arch} cannot be emulated: no emulator is registered",
            remedy="register one, or use a real GPU",
        )
    return library_of(_emulators[0](arch), f"the emulator of {arch}")


def library_of(emulator: object, path: str) -> HipLibrary:
    """Return the functions that an emulated GPU provides."""
    return HipLibrary(offered_by(emulator), path, getattr(emulator, "counted", None))


def load_hip() -> HipLibrary | None:
    """Return the newest library that can be loaded, None if there is none.

    If $REFCOMP_ROCM names an emulated GPU, return that one.
    """
    if choice := os.environ.get(CHOICE):
        match = _EMULATOR.fullmatch(choice)
        if match is None:
            raise UserError(
                f"{CHOICE}={choice} is not known",
                where=f"environment variable {CHOICE}",
                remedy="use emulator:gfx942, or emulator:gfx942:hazards; nothing for a real GPU",
            )
        try:
            return emulated_hip(match[1])
        except UserError as error:
            raise UserError(
                error.what,
                where=f"environment variable {CHOICE}={choice}",
                why=error.why,
                remedy=error.remedy,
            ) from error
    for name in _candidates():
        with suppress(OSError):
            return HipLibrary(
                of_library(ctypes.CDLL(name, os.RTLD_LOCAL | os.RTLD_NOW)), name
            )
    return None


def sought_places() -> str:
    """Describe for messages where `load_hip` searches."""
    if given := os.environ.get(_GIVEN):
        return f"{_GIVEN}={given}: lib/{hip_api.LIBRARY}*"
    first = f"{hip_api.LIBRARY}.{hip_api.MIN_MAJOR}"
    return f"{first} and newer where the dynamic loader looks, {_USUAL}/lib/{hip_api.LIBRARY}*"


def _candidates() -> Iterator[str]:
    if given := os.environ.get(_GIVEN):
        yield from _files_below(given)
        return
    majors = range(hip_api.MIN_MAJOR + _MAJORS_AHEAD, hip_api.MIN_MAJOR - 1, -1)
    yield from (f"{hip_api.LIBRARY}.{major}" for major in majors)
    yield hip_api.LIBRARY
    yield from _files_below(_USUAL)


def _files_below(root: str) -> list[str]:
    found = glob.glob(os.path.join(glob.escape(root), "lib", f"{hip_api.LIBRARY}*"))

    def version(path: str) -> list[int]:
        return [int(number) for number in _NUMBER.findall(os.path.basename(path))]

    return sorted(found, key=version, reverse=True)
