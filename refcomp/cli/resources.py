"""The table of `refcomp show --resources`: the resources of the GPU that each kernel takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from refcomp.cli.levels import check_unpassed
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
_LEFT = ("kernel", "limit")  # texts; all other columns are numbers
_NOTE = (
    "VGPRs of a lane (matrix ones included), SGPRs of a wave; VGPRs spilled to memory, SGPRs to "
    "lanes of VGPRs; bytes of private memory of a thread and of LDS of a group; waves that a SIMD "
    "holds\n"
)


def kernel_resources(
    funcs: Sequence[PrimFunc], target: Target
) -> list[KernelResources]:
    """Return the resources of each kernel of `funcs`.

    Raise Unsupported for targets other than AMD GPUs, and UserError for text that has been through
    passes.
    """
    resources = backend_of(target).resources
    if resources is None:
        raise unknown_resources()
    check_unpassed(funcs, "the text")
    code = compile_functions(funcs, target).code
    return [] if code is None else [*resources(code.code)]


def resources_to_json(resources: Sequence[KernelResources]) -> list[dict[str, object]]:
    """Return the numbers by name."""
    return [asdict(one) for one in resources]


def resources_to_text(resources: Sequence[KernelResources]) -> str:
    """Return a table, and below it the units of its numbers."""
    columns = []
    for name, heading in _HEADINGS.items():
        cells = [heading, *(str(getattr(one, name)) for one in resources)]
        width = max(map(len, cells))
        if name in _LEFT:
            columns.append([cell.ljust(width) for cell in cells])
        else:
            columns.append([cell.rjust(width) for cell in cells])
    lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
    return "\n".join([*lines, _NOTE])
