"""Emulated NVIDIA GPUs as devices, by `cuda_emulator` or the environment variable REFCOMP_CUDA.

The devices run PTX, which the targets `cuda` and `nvptx` make with `-code=ptx`. They refuse machine
code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

from refcomp.driver.host_tools import kernel_tools
from refcomp.emulator.limits import USUAL_LIMITS, Limits
from refcomp.emulator.observers.counting import Profile
from refcomp.emulator.ptx.cuda import emulated_pycuda
from refcomp.emulator.ptx.loaded_kernels import kernel_loader
from refcomp.emulator.ptx.observers.counting import ThreadCounting
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.runtime.cuda.driver import CudaDriver
from refcomp.runtime.cuda.library import register_emulator
from refcomp.runtime.device import Device

_HAZARDS = "hazards"
_UNCHECKED = "unchecked"
_INTERPRETED = "interpreted"
_MAX_STEPS = "max-steps"
_MAX_SECONDS = "max-seconds"
# Observed devices have numbers, since each is a device of its own.
_observed = count(1)
_KNOWN = (_HAZARDS, _UNCHECKED, _INTERPRETED, f"{_MAX_STEPS}=N", f"{_MAX_SECONDS}=N")


def cuda_emulator(
    arch: str = "sm_90",
    *,
    hazards: bool = False,
    is_watched: bool = True,
    is_translated: bool = True,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    profile: Profile | None = None,
) -> Device:
    """Return an emulated NVIDIA GPU, which runs PTX. It has a kind of device of its own.

    The targets `cuda` and `nvptx` make PTX with the option `-code=ptx`. Machine code is refused,
    because its form is not published. A launch raises a UserError if it finds one of these errors:

    - an access that is out of bounds or misaligned
    - a write to an array that the kernel's signature says it only reads
    - a use of bits that nothing wrote
    - a barrier that some threads never reach
    - an access to memory of a `cp.async` copy that has not been waited for
    - a kernel that never ends

    Args:
        arch: the GPU, as nvcc spells it, such as `"sm_90"`.
        hazards: True to check for data races, too.
        is_watched: False to skip the checks for undefined bits.
        is_translated: False to interpret all kernels. By default, hot kernels are translated to
            code of this host, unless they are counted or checked for data races. Results and
            findings are the same.
        max_steps: instructions, summed over the warps, after which a launch is stopped if no thread
            has ended. Default 2 * 10**9.
        max_seconds: seconds after which such a launch is stopped. Default 600.
        profile: counts what runs on the device. A device with a profile is not shared.

    Raises:
        UserError: there is no such GPU, or an option is wrong.

    Example::

        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.compute((64,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
        >>> increment = rc.build(s, [A, B], "nvptx -code=ptx")
        >>> gpu = rc.cuda_emulator("sm_90", hazards=True)
        >>> a, b = rc.array(np.ones(64, "float32"), gpu), rc.empty(64, device=gpu)
        >>> increment(a, b)
        >>> print(b.asnumpy()[:4])
        [2. 2. 2. 2.]
    """
    flags = {
        "hazards": hazards,
        "is_watched": is_watched,
        "is_translated": is_translated,
    }
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise UserError(
                f"{name}={value!r} is not a bool", remedy="pass True or False"
            )
    if not isinstance(profile, Profile | None):
        raise UserError(
            f"profile={profile!r} is not a Profile",
            remedy="pass a refcomp.Profile(), and read its kernels afterwards",
        )
    words = [_HAZARDS] if hazards else []
    if not is_watched:
        words.append(_UNCHECKED)
    if not is_translated:
        words.append(_INTERPRETED)
    given = {_MAX_STEPS: max_steps, _MAX_SECONDS: max_seconds}
    words += [f"{name}={value}" for name, value in given.items() if value is not None]
    choice = ":".join([str(arch), *words])
    kind = re.sub(r"\W", "_", choice)
    if profile is None:
        return Device(f"cuda_emulator_{kind}", 0, _driver(choice))
    made = _emulated(choice, profile)  # raises UserError for unknown options
    kind += f"_observed{next(_observed)}"
    return Device(f"cuda_emulator_{kind}", 0, CudaDriver(lambda: made))


# Cached, so that equal choices mean the same device and can share its arrays.
@cache
def _driver(choice: str) -> CudaDriver:
    made = _emulated(choice)  # raises UserError for unknown options
    return CudaDriver(lambda: made)


def _emulated(choice: str, profile: Profile | None = None) -> Any:
    """Return the emulator of `ARCH`, or of `ARCH:OPTION:OPTION`, with the names of pycuda."""
    arch, *words = choice.split(":")
    texts = {
        name: value for name, sign, value in (w.partition("=") for w in words) if sign
    }
    switches = [word for word in words if "=" not in word]
    for word in (*switches, *(f"{name}=N" for name in texts)):
        if word not in _KNOWN:
            raise UserError(
                f"an emulated NVIDIA GPU has no option {word}",
                where=choice,
                remedy=advise(word, _KNOWN, f"use some of: {', '.join(_KNOWN)}"),
            )
    try:
        limits = Limits(
            int(texts.get(_MAX_STEPS, USUAL_LIMITS.steps)),
            float(texts.get(_MAX_SECONDS, USUAL_LIMITS.seconds)),
        )
    except ValueError as error:
        raise UserError(
            f"{', '.join(f'{name}={text}' for name, text in texts.items())} is not a limit",
            where=choice,
            remedy=f"give a number, such as {_MAX_STEPS}=1000 or {_MAX_SECONDS}=10",
        ) from error
    observers = [] if profile is None else [ThreadCounting(profile, arch)]

    def counted(work: Callable[[], None]) -> Profile:
        """Call `work`, and return counts of all kernels that it launches."""
        found = Profile()
        with made.lock:
            observers.append(ThreadCounting(found, arch))
            try:
                work()
            finally:
                observers.pop()
        return found

    made = emulated_pycuda(
        arch,
        kernel_loader(
            hazards=_HAZARDS in switches,
            limits=limits,
            observers=observers,
            tools=None if _INTERPRETED in switches else kernel_tools(),
        ),
        is_watched=_UNCHECKED not in switches,
    )
    made.counted = counted
    return made


register_emulator(_emulated)
