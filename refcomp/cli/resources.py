"""The table of `refcomp show --resources`: the resources of the GPU that each kernel takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from refcomp.cli.levels import check_unpassed
from refcomp.driver.backends import backend_of
from refcomp.driver.compile import compile_functions
from refcomp.driver.kernel_resources import KernelResources, unknown_resources
from refcomp.driver.nvidia_resources import NvidiaResources
from refcomp.foundation.target import Target
from refcomp.ir.func import PrimFunc


@dataclass(frozen=True, slots=True)
class _Table:
    """The columns for the GPUs of one vendor."""

    headings: Mapping[str, str]  # field of a record -> heading
    note: str  # below the table: the units


_AMD = _Table(
    {
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
    },
    "VGPRs of a lane (matrix ones included), SGPRs of a wave; VGPRs spilled to memory, SGPRs to "
    "lanes of VGPRs; bytes of private memory of a thread and of LDS of a group; waves that a SIMD "
    "holds\n",
)
_NVIDIA = _Table(
    {
        "kernel": "kernel",
        "arch": "for",
        "registers": "registers",
        "spill_store_bytes": "spilled",
        "spill_load_bytes": "reloaded",
        "stack_bytes": "stack",
        "shared_bytes": "shared",
        "dynamic_bytes": "dynamic",
        "constant_bytes": "constant",
        "barriers": "barriers",
        "threads": "threads",
        "blocks": "blocks",
        "warps": "warps",
        "limit": "limited by",
    },
    "registers of a thread; bytes that it spills, reloads and has on its stack;\n"
    "bytes of static and dynamic shared memory and of constant memory;\n"
    "barriers and threads of a block; blocks and warps that a multiprocessor (SM) holds\n",
)
_LEFT = ("kernel", "arch", "limit")  # texts; all other columns are numbers


def kernel_resources(
    funcs: Sequence[PrimFunc], target: Target
) -> list[KernelResources]:
    """Return the resources of each kernel of `funcs`.

    Raise Unsupported for other targets than GPUs of AMD and NVIDIA. Raise UserError for text that
    has been through passes.
    """
    resources = backend_of(target).resources
    if resources is None:
        raise unknown_resources()
    check_unpassed(funcs, "the text")
    return [*resources(compile_functions(funcs, target))]


def resources_to_json(resources: Sequence[KernelResources]) -> list[dict[str, object]]:
    """Return the numbers by name."""
    return [asdict(one) for one in resources]


def resources_to_text(resources: Sequence[KernelResources]) -> str:
    """Return a table, below it the units of its numbers, and what to change in which kernel."""
    is_nvidia = any(isinstance(one, NvidiaResources) for one in resources)
    table = _NVIDIA if is_nvidia else _AMD
    columns = []
    for name, heading in table.headings.items():
        cells = [heading, *(_cell(getattr(one, name)) for one in resources)]
        width = max(map(len, cells))
        if name in _LEFT:
            columns.append([cell.ljust(width) for cell in cells])
        else:
            columns.append([cell.rjust(width) for cell in cells])
    lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
    advice = [
        f"{one.kernel} for {one.arch}: {one.advice}\n"
        for one in resources
        if isinstance(one, NvidiaResources) and one.advice
    ]
    return "\n".join([*lines, table.note]) + "".join(advice)


def _cell(value: object) -> str:
    return "?" if value is None else str(value)
