"""What `refcomp show --resources` tells: a line for each kernel, with what it takes of the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from refcomp.cli.levels import check_whole
from refcomp.driver.backends import backend_of
from refcomp.driver.compile import compile_functions
from refcomp.driver.kernel_resources import KernelResources, unknown_resources
from refcomp.foundation.target import Target
from refcomp.ir.func import PrimFunc

_HEADINGS = {
    "kernel": "kernel",
    "vgprs": "VGPRs",
    "sgprs": "SGPRs",
    "spilled_vgprs": "in memory",
    "spilled_sgprs": "in lanes",
    "private_bytes": "private",
    "shared_bytes": "LDS",
    "threads": "threads",
    "waves": "waves",
    "limit": "limited by",
}
_NOTE = (
    "VGPRs of a lane (matrix ones included), SGPRs of a wave; VGPRs spilled to memory, SGPRs to "
    "lanes of VGPRs; bytes of private memory of a thread and of LDS of a group; waves that a SIMD "
    "holds\n"
)


def kernel_resources(
    funcs: Sequence[PrimFunc], target: Target
) -> list[KernelResources]:
    """What the kernels of `funcs` take. Unsupported for targets other than AMD GPUs."""
    resources = backend_of(target).resources
    if resources is None:
        raise unknown_resources()
    check_whole(funcs, "what its kernels take")
    code = compile_functions(funcs, target).code
    return [] if code is None else [*resources(code.code)]


def resources_to_json(resources: Sequence[KernelResources]) -> list[dict[str, Any]]:
    """The numbers by name."""
    return [asdict(one) for one in resources]


def resources_to_text(resources: Sequence[KernelResources]) -> str:
    """A table, and what its numbers are."""
    rows = [[*_HEADINGS.values()]]
    rows += [[str(getattr(one, name)) for name in _HEADINGS] for one in resources]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    lines = [
        "  ".join(
            cell.ljust(width) if place in (0, last) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, _NOTE])
