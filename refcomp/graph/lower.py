"""Lower the kernels of a graph, and build one module of them.

This module imports the compiler. `refcomp.graph.compile` imports it only if the module is not in
the cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.certificates import certify_build
from refcomp.compiler import build_lowered
from refcomp.foundation.options import current_options
from refcomp.foundation.target import Target
from refcomp.graph.kernels import ScheduledKernel
from refcomp.ir.func import PrimFunc
from refcomp.lowering.entry_conditions import with_entry_conditions
from refcomp.lowering.lower import lower
from refcomp.runtime.module import Module


def lower_kernel(kernel: ScheduledKernel, target: Target) -> PrimFunc:
    """Return the function of a kernel. It is certified first, if the build options ask for it."""
    if current_options().certify:
        certify_build(kernel.schedule, kernel.args, kernel.name, target.kind)
    return lower(kernel.schedule, kernel.args, kernel.name)


def build_kernels(kernels: Sequence[ScheduledKernel], target: Target) -> Module:
    """Return the module with the functions of all kernels, at least one."""
    # One at a time, so that the first ones are compiled while others are still lowered.
    lowered = (with_entry_conditions(lower_kernel(one, target)) for one in kernels)
    return build_lowered(lowered, target, len(kernels))
