"""A file of kernels that `refcomp emulate` lists and runs: what it asks of every kind of file.

`amd_kernels.py` reads code objects for AMD GPUs, `ptx_kernels.py` reads PTX.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from refcomp.cli.kernel_arguments import GivenArgument
from refcomp.cli.kernel_listing import KernelListing, ListedKernel
from refcomp.emulator.execution.launch import Extents
from refcomp.emulator.limits import Limits
from refcomp.foundation.errors import UserError
from refcomp.profile.report import ProfileReport


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """A kernel that is to be run.

    Attributes:
        kernel: its name.
        grid: the number of groups along x, y and z.
        block: the threads of a group, likewise.
        arguments: one for each argument of the kernel.
        shared_bytes: of a group, beyond the kernel's own.
        limits: when the kernel is given up.
        is_watched: True to look for results that depend on bits which nothing wrote.
        hazards: True to look for all hazards, or the names of some.
        is_profiled: True to count what runs.
        card: the card that estimates are for; None for a usual one.
    """

    kernel: str
    grid: Extents
    block: Extents
    arguments: Sequence[GivenArgument]
    shared_bytes: int
    limits: Limits
    is_watched: bool
    hazards: bool | tuple[str, ...]
    is_profiled: bool
    card: str | None


@dataclass(frozen=True, slots=True)
class KernelOutcome:
    """The outcome of a run; the arrays of its arguments hold what the kernel wrote.

    Attributes:
        steps: instructions that ran, each counted once for each wave or warp.
        findings: the text of each error of the kernel.
        profiles: the report on the kernel; empty if it was not profiled.
        not_compared: instructions that ran, or might have run in PTX, and that were never compared
            with a reference.
        notes: what is odd, but may be intended.
    """

    steps: int
    findings: tuple[str, ...]
    profiles: tuple[ProfileReport, ...] = ()
    not_compared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class KernelFile(Protocol):
    """A file of kernels."""

    @property
    def listing(self) -> KernelListing:
        """The kernels of the file."""

    def find(self, name: str) -> ListedKernel:
        """Return a kernel. Raise UserError if the file has none of this name."""

    def run(self, request: KernelRequest) -> KernelOutcome:
        """Run a kernel."""


def only_kernel(listing: KernelListing) -> str:
    """Return the name of the only kernel. Raise UserError if there are several."""
    names = sorted(listing.kernels)
    if len(names) > 1:
        raise UserError(
            "which kernel is to run?",
            why=f"there are {len(names)}",
            remedy=f"name one by --kernel: {', '.join(names)}",
        )
    return names[0]
