"""Devices by name: by the name of a target or of a kind of device, as in the classic API.

`context("llvm", 0)` is the host, where code for that target runs. `context("opencl", 1)` is the
second OpenCL device. `.exist` is True if the device exists. Other names are refused.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count

from refcomp.driver.backends import backend_of, backends
from refcomp.driver.host_tools import host_tools
from refcomp.emulator.hip import EmulatedHip
from refcomp.emulator.limits import USUAL_LIMITS, Limits
from refcomp.emulator.machine.observation import Observer
from refcomp.emulator.observers.counting import Profile, WaveCounting
from refcomp.emulator.observers.hazards import HAZARDS
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.target import Target
from refcomp.runtime.device import Device, cpu, device, device_kinds
from refcomp.runtime.hip.driver import HipDriver
from refcomp.runtime.hip.library import (
    HipLibrary,
    emulated_hip,
    library_of,
    register_emulator,
)
from refcomp.toolchain import disassemble

# Options of an emulator, beside the names of hazards.
_ALL_HAZARDS = "hazards"
_UNCHECKED = "unchecked"
_INTERPRETED = "interpreted"
_MAX_STEPS = "max-steps"
_MAX_SECONDS = "max-seconds"
# Observed devices have numbers, since each is a device of its own.
_observed = count(1)

__all__ = [
    "context",
    "cpu",
    "cuda",
    "device",
    "device_for",
    "gpu",
    "opencl",
    "rocm",
    "rocm_emulator",
]
# Names of kinds of devices in the classic API.
_CLASSIC_NAMES = {"gpu": "cuda", "cl": "opencl"}


def context(name: str | Target, index: int = 0) -> Device:
    """Return a device by the name of a target or of a kind of device.

    The device need not exist on this machine: `device.exist` is True if it does.

    Args:
        name: a target, which may have options, or a kind of device; `"gpu"` is `"cuda"`, and
            `"cl"` is `"opencl"`.
        index: the number of the device among those of its kind, an int of at least 0.

    Raises:
        UserError: the name is unknown, or the index is not such an int.

    Source: TVM, tvm.context.

    Example::

        >>> str(rc.context("llvm -mcpu=znver4")), str(rc.context("opencl", 1))
        ('cpu:0', 'opencl:1')
        >>> rc.context("tpu")
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: 'tpu' is not the name of a device...
    """
    kind = name.kind if isinstance(name, Target) else _first_word(name)
    by_target = {backend.name: backend.device for backend in backends()}
    kind = by_target.get(kind, _CLASSIC_NAMES.get(kind, kind))
    if kind not in device_kinds():
        known = dict.fromkeys([*device_kinds(), *by_target])
        remedy = (
            f"use one of: {', '.join(known)}; an emulated AMD GPU is "
            "refcomp.rocm_emulator('gfx942')"
        )
        raise UserError(
            f"{name!r} is not the name of a device", remedy=advise(kind, known, remedy)
        )
    return device(kind, index)


def _first_word(name: object) -> str:
    words = name.split() if isinstance(name, str) else []
    return words[0] if words else ""


def device_for(target: Target | str) -> Device:
    """Return device number 0 of the kind that runs code for `target`."""
    return device(backend_of(target).device)


def opencl(index: int = 0) -> Device:
    """Return an OpenCL device, which need not exist on this machine.

    Args:
        index: the number of the device among those of all platforms, an int of at least 0.

    Raises:
        UserError: the index is not such an int.

    Source: TVM, tvm.opencl.

    Example::

        >>> str(rc.opencl(1))
        'opencl:1'
    """
    return device("opencl", index)


def cuda(index: int = 0) -> Device:
    """Return an NVIDIA GPU, which need not exist on this machine.

    The targets `cuda` and `nvptx` run on it. It needs NVIDIA's driver and the package pycuda
    (`pip install refcomp[cuda]`); `device.driver.absence()` says what is missing.

    Args:
        index: the number of the GPU as NVIDIA's driver counts them, an int of at least 0.

    Raises:
        UserError: the index is not such an int.

    Source: TVM, tvm.cuda.

    Example::

        >>> str(rc.cuda(1))
        'cuda:1'
    """
    return device("cuda", index)


def gpu(index: int = 0) -> Device:
    """Return an NVIDIA GPU: the classic name of `cuda`.

    Args:
        index: the number of the GPU, an int of at least 0.

    Raises:
        UserError: the index is not such an int.

    Source: TVM, tvm.gpu.

    Example::

        >>> rc.gpu(0) == rc.cuda(0) == rc.context("gpu")
        True
    """
    return cuda(index)


def rocm(index: int = 0) -> Device:
    """Return an AMD GPU, which need not exist on this machine.

    It is emulated if the environment variable REFCOMP_ROCM is set, for example to
    `emulator:gfx942`, or with options:

    - `emulator:gfx942:hazards`
    - `emulator:gfx942:waits:races`
    - `emulator:gfx942:unchecked`
    - `emulator:gfx942:interpreted`
    - `emulator:gfx942:max-steps=100000:max-seconds=10`

    Args:
        index: the number of the GPU, an int of at least 0.

    Raises:
        UserError: the index is not such an int.

    Source: TVM, tvm.rocm.

    Example::

        >>> str(rc.rocm(0))
        'rocm:0'
    """
    return device("rocm", index)


def rocm_emulator(
    arch: str = "gfx942",
    *,
    hazards: bool | str | Sequence[str] = False,
    is_watched: bool = True,
    is_translated: bool = True,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    profile: Profile | None = None,
    observers: Sequence[Observer] = (),
) -> Device:
    """Return an emulated AMD GPU. It has a kind of device of its own.

    A launch that is stopped raises a UserError that lists where the waves are.

    Args:
        arch: the GPU, such as `"gfx942"`.
        hazards: True to check for all hazards, or the names of some
            (`refcomp.emulator.observers.hazards.HAZARDS`).
        is_watched: False to skip the checks for undefined bits. They take up to a third of the
            time.
        is_translated: False to interpret all instructions. By default, hot code is translated to
            code of this host, unless it is observed. Results are the same, several times sooner.
        max_steps: instructions, summed over the waves, after which a launch is stopped if no wave
            has ended. Default 2 * 10**9.
        max_seconds: seconds after which such a launch is stopped. Default 600.
        profile: counts what runs on the device. A device with a profile is not shared.
        observers: further observers of all launches. A device with observers is not shared.

    Raises:
        UserError: the GPU is not emulated, or an option is wrong.

    Example::

        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.compute((64,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
        >>> increment = rc.build(s, [A, B], target="rocm -mcpu=gfx942")
        >>> gpu = rc.rocm_emulator("gfx942", hazards=True)
        >>> a, b = rc.array(np.ones(64, "float32"), gpu), rc.empty(64, device=gpu)
        >>> increment(a, b)
        >>> print(b.asnumpy()[:4])
        [2. 2. 2. 2.]
    """
    if not isinstance(profile, Profile | None):
        what = f"profile={profile!r} is not a Profile"
        raise UserError(
            what, remedy="pass a refcomp.Profile(), and read its kernels afterwards"
        )
    observers = observers if profile is None else (*observers, WaveCounting(profile))
    given = {_MAX_STEPS: max_steps, _MAX_SECONDS: max_seconds}
    limits = [f"{name}={value}" for name, value in given.items() if value is not None]
    if isinstance(hazards, bool):
        words = [_ALL_HAZARDS] if hazards else []
    elif isinstance(hazards, str):
        words = [hazards] if hazards else []
    else:
        words = list(hazards)
    if not is_watched:
        words.append(_UNCHECKED)
    if not is_translated:
        words.append(_INTERPRETED)
    choice = ":".join([str(arch), *words, *limits])
    driver = _emulator_driver(choice)
    if observers:
        driver = _observed_driver(choice, observers)
    driver.count()  # raises UserError if such a GPU is not emulated
    kind = re.sub(r"\W", "_", choice)
    number = f"_observed{next(_observed)}" if observers else ""
    return Device(f"rocm_emulator_{kind}{number}", 0, driver)


# Cached, so that equal choices mean the same device and can share its arrays.
@cache
def _emulator_driver(choice: str) -> HipDriver:
    return HipDriver(lambda: emulated_hip(choice))


def _observed_driver(choice: str, observers: Sequence[Observer]) -> HipDriver:
    def library() -> HipLibrary:
        return library_of(_emulated(choice, observers), f"the emulator of {choice}")

    return HipDriver(library)


def _disassemble(code: bytes) -> str:
    return disassemble(Binary(code, "hsaco"))


def _emulated(choice: str, observers: Sequence[Observer] = ()) -> EmulatedHip:
    """Return the emulator of `ARCH`, or of `ARCH:OPTION:OPTION`. UserError for unknown options."""
    arch, *given = choice.split(":")
    limits: dict[str, str] = {}
    words: list[str] = []
    for word in given:
        name, has_value, value = word.partition("=")
        if has_value:
            limits[name] = value
        if name not in (_MAX_STEPS, _MAX_SECONDS):
            words.append(word)
    switches = (_UNCHECKED, _INTERPRETED)
    known = (_ALL_HAZARDS, *HAZARDS, *switches, f"{_MAX_STEPS}=N", f"{_MAX_SECONDS}=N")
    if unknown := [word for word in words if word not in known]:
        what = f"an emulated GPU has no option {', '.join(unknown)}"
        remedy = advise(unknown[0], known, f"use some of: {', '.join(known)}")
        raise UserError(what, where=choice, remedy=remedy)
    hazards = [word for word in words if word not in (_UNCHECKED, _INTERPRETED)]
    return EmulatedHip(
        arch,
        _disassemble,
        is_watched=_UNCHECKED not in words,
        observers=observers,
        hazards=True if _ALL_HAZARDS in hazards else hazards,
        limits=_limits(limits, choice),
        tools=None if _INTERPRETED in words else host_tools(),
    )


def _limits(texts: Mapping[str, str], choice: str) -> Limits:
    """Return the limits that options ask for. UserError for a text that is not a limit."""
    usual = USUAL_LIMITS
    try:
        steps = int(texts.get(_MAX_STEPS, usual.steps))
        seconds = float(texts.get(_MAX_SECONDS, usual.seconds))
    except ValueError as error:
        given = ", ".join(f"{name}={text}" for name, text in texts.items())
        raise UserError(
            f"{_shortened(given)} is not a limit",
            where=_shortened(choice),
            remedy=f"give a number, such as {_MAX_STEPS}=1000 or {_MAX_SECONDS}=10",
        ) from error
    return Limits(steps, seconds)


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


register_emulator(_emulated)
