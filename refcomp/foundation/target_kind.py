"""A kind of target, and the limits of a device for kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from refcomp.foundation.records import record

# Which schedules of `refcomp.topi` fit: of `schedules/llvm.py`, `gpu.py` or `cuda.py`.
Schedules = Literal["cpu", "gpu", "cuda"]


@record
class DeviceLimits:
    """The limits of a device for one kernel."""

    threads_per_axis: tuple[int, int, int]  # of a group, in x, y and z
    threads: int  # of a group, in all
    shared_bytes: int  # of a group
    features: frozenset[str] = frozenset()  # for OpenCL, the names of extensions
    groups_per_axis: tuple[int, int, int] = (2**31 - 1,) * 3  # in x, y and z
    argument_bytes: int = 1 << 30  # of all arguments together
    vector_bytes: int = 1 << 30  # of the longest vector


@record
class TargetKind:
    """A kind of target: the first word of a target's text."""

    name: str
    meaning: str  # for users
    options: Mapping[str, str]  # name of an option, as in `-name=value` -> its meaning
    # Of a device about which nothing else is known; None if the code runs on the host.
    limits: DeviceLimits | None = None
    device: str = "cpu"  # the kind of device that runs the code
    schedules: Schedules = "cpu"
    # The toolchains whose tools make the code; None if it depends on more than refcomp knows.
    toolchains: tuple[str, ...] | None = None
