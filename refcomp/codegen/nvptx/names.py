"""Check the architectures that kernels in LLVM IR are printed for.

Refuses, by UserError, names that NVIDIA's architectures do not have, and architectures without
atomic additions of f64.
"""

from __future__ import annotations

from refcomp.foundation.compute_capability import capability_of
from refcomp.foundation.errors import UserError

MIN_ARCH = "sm_60"


def check_arch(arch: str) -> None:
    """Raise UserError for a name of no architecture, or of one that is too old."""
    if capability_of(arch) < capability_of(MIN_ARCH):
        raise UserError(
            f"{arch} is older than {MIN_ARCH}",
            where=f"-arch={arch}",
            why="it has no atomic addition of f64, which kernels may need",
            remedy=f"build for {MIN_ARCH} or newer",
        )
