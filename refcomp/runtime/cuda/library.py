"""pycuda: how it is imported, and what the errors of NVIDIA's driver mean.

Nothing is imported until a program asks for a device, because pycuda cannot be imported without a
driver. An error of the driver reaches pycuda's callers as a text only: `cuCtxSynchronize failed: an
illegal memory access was encountered`. So the meaning is found by the driver's words.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.runtime.cuda.interface import PycudaDriver, missing_names

# Returns `pycuda.driver`, or raises the ImportError of pycuda.
ImportPycuda = Callable[[], PycudaDriver]

_DRIVER_LIBRARY = "libcuda.so.1"
# Environment variable: emulator:ARCH or emulator:ARCH:OPTION; empty for a real GPU.
CHOICE = "REFCOMP_CUDA"
_EMULATOR = re.compile(r"emulator:(\w+(?::[\w-]+(?:=[\w.+-]*)?)*)")
_INSTALL_PYCUDA = (
    "pip install refcomp[cuda]. pycuda is compiled from its source, which needs a C++ compiler, "
    "cuda.h, curand.h and libcuda.so: let CUDA_ROOT name the toolkit, CPATH the folders of headers "
    "that it lacks (wheels nvidia-cuda-runtime, nvidia-curand), LIBRARY_PATH the folder of "
    "libcuda.so"
)
_INSTALL_DRIVER = (
    "run on a machine with an NVIDIA GPU, and install its driver there; without one, "
    f"{CHOICE}=emulator:sm_90 runs PTX (option `-code=ptx`), slowly"
)
_SHOW_DEVICE = (
    "see whether nvidia-smi lists a GPU, and whether CUDA_VISIBLE_DEVICES hides it; a container "
    "must be started with its GPUs"
)


@dataclass(frozen=True, slots=True)
class Absence:
    """The reason why devices are missing."""

    why: str
    remedy: str


# Makes an object with the names of pycuda. The argument is the name of a GPU, and options of the
# emulator, each after a colon. UserError for unknown names and options.
MakeEmulator = Callable[[str], Any]
_emulators: list[MakeEmulator] = []
_EMULATOR_HOME = "refcomp.driver.cuda_emulator"


def register_emulator(make: MakeEmulator) -> None:
    """Let `make` make all emulated GPUs from now on."""
    _emulators[:] = [make]


def import_pycuda() -> PycudaDriver:
    """Import `pycuda.driver`, or return the emulated GPU that $REFCOMP_CUDA names.

    Raises:
        ImportError: pycuda cannot be imported.
        UserError: there is no such emulated GPU.
    """
    if choice := os.environ.get(CHOICE):
        return _chosen(choice)
    import pycuda.driver  # noqa: PLC0415  (optional, and needs a driver)

    return cast(PycudaDriver, pycuda.driver)


def _chosen(choice: str) -> PycudaDriver:
    """Return the emulated GPU that the environment names."""
    match = _EMULATOR.fullmatch(choice)
    if match is None:
        raise UserError(
            f"{CHOICE}={choice} is not known",
            where=f"environment variable {CHOICE}",
            remedy="use emulator:sm_90, or emulator:sm_90:hazards; nothing for a real GPU",
        )
    if not _emulators:
        # It registers the emulator, which a program without emulated GPUs does not import.
        import_module(_EMULATOR_HOME)
    try:
        return cast(PycudaDriver, _emulators[0](match[1]))
    except UserError as error:
        raise UserError(
            error.what,
            where=f"environment variable {CHOICE}={choice}",
            why=error.why,
            remedy=error.remedy,
        ) from error


def find_pycuda(load: ImportPycuda) -> PycudaDriver | Absence:
    """Return pycuda's module, or say what is missing."""
    try:
        cuda = load()
    except ImportError as error:
        return _absence_of(error)
    if missing := missing_names(cuda):
        why = f"this version of pycuda lacks {', '.join(missing)}"
        return Absence(why, "pip install --upgrade 'pycuda>=2022.2'")
    return cuda


def count_devices(cuda: PycudaDriver) -> tuple[int, Absence]:
    """Start the driver. Return the number of devices, and why it is 0."""
    try:
        cuda.init()
        count = cuda.Device.count()
    except cuda.Error as error:
        return 0, Absence(f"NVIDIA's driver says: {error}", _SHOW_DEVICE)
    return count, Absence("NVIDIA's driver counts no device", _SHOW_DEVICE)


def _absence_of(error: ImportError) -> Absence:
    """Explain why pycuda cannot be imported."""
    no_driver = lack_of_driver()
    if isinstance(error, ModuleNotFoundError) and error.name == "pycuda":
        if no_driver:
            why = (
                f"pycuda is not installed, and NVIDIA's driver is missing: {no_driver}"
            )
            return Absence(why, f"{_INSTALL_DRIVER}; then {_INSTALL_PYCUDA}")
        return Absence("pycuda is not installed", _INSTALL_PYCUDA)
    if no_driver:
        why = f"pycuda is installed, but NVIDIA's driver is missing: {no_driver}"
        return Absence(why, _INSTALL_DRIVER)
    why = f"pycuda is installed, but cannot be imported: {error}"
    remedy = "build it again for this Python, numpy, toolkit and driver"
    command = "pip install --no-cache-dir --force-reinstall --no-binary pycuda pycuda"
    return Absence(why, f"{remedy}: {command}")


def lack_of_driver() -> str:
    """Return why the driver's library cannot be loaded, "" if it can."""
    try:
        ctypes.CDLL(_DRIVER_LIBRARY)
    except OSError as error:
        return str(error)
    return ""


# What the driver's words mean. Source: CUDA Driver API, cuGetErrorString of each CUresult.

_OUT_OF_MEMORY = "out of memory"
_ASTRAY = "build the schedule for `interp`, which reports the wrong access"
_SMALLER = (
    "bind fewer threads to a group, or keep fewer values in a thread: split by smaller factors, "
    "unroll less; `refcomp show --resources` counts registers and shared memory"
)
# Words -> (meaning, remedy), for errors that leave the GPU usable.
_MEANINGS = {
    "too many resources requested for launch": (
        "a kernel asks for more registers than a group can have",
        _SMALLER,
    ),
    "invalid argument": ("NVIDIA's driver refuses an argument", _SMALLER),
    "busy or unavailable": (
        "another process has the GPU to itself",
        "wait for that process, or see the compute mode: nvidia-smi -q -d COMPUTE",
    ),
    "invalid resource handle": (
        "an object of another GPU is used",
        "use streams, events and arrays on the GPU that made them",
    ),
}
# Words of errors after which each later call in this process fails, too.
_ENDINGS = {
    "the launch timed out": "split the work in more kernels",
    "uncorrectable ECC error": "have the GPU's memory checked: nvidia-smi -q -d ECC",
    "an illegal memory access": _ASTRAY,
    "misaligned address": _ASTRAY,
}
_FOREIGN = (
    "no kernel image is available",
    "device kernel image is invalid",
    "a PTX JIT compilation failed",
    "unsupported toolchain",
    "invalid source",
)
_OTHER = ("NVIDIA's driver failed", "see dmesg for the cause")


def meaning_of(words: str, call: str) -> Exception:
    """Return the error for a failure that leaves the GPU usable.

    `words` is the text of pycuda's exception. `call` says what refcomp called it for.
    """
    report = f"{call}: {words}"
    if _OUT_OF_MEMORY in words:
        return MemoryError(f"the NVIDIA GPU has no room. {report}. Free arrays on it")
    for known, (what, remedy) in _MEANINGS.items():
        if known in words:
            return ToolchainError(what, why=report, remedy=remedy)
    what, remedy = _OTHER
    return ToolchainError(what, why=report, remedy=remedy)


def is_about_code(words: str) -> bool:
    """Return True if the driver refused code, because it is damaged or for another GPU."""
    return any(known in words for known in _FOREIGN)


def remedy_of_ending(words: str) -> str:
    """Return what to do about a kernel that ended with an error."""
    found = (remedy for known, remedy in _ENDINGS.items() if known in words)
    return next(found, _ASTRAY)
