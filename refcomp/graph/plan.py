"""The plan of a run for one set of values of a graph's symbols: its memory and its bound kernels.

All values but constants, and the workspaces of the kernels, share one piece of memory. Values that
are not in use at the same time may share bytes (`refcomp.graph.memory_plan`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from refcomp.foundation.artifacts import evaluate_dim
from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import UserError
from refcomp.graph.compile import GraphModule
from refcomp.graph.graph import Value
from refcomp.graph.memory_plan import MemoryPlan, Request, plan_memory
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.device import Device, DeviceMemory, PartingDriver

# The first and the last step at which a value is used, both included.
Life = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """The memory and the launches of a run, ready to be repeated."""

    inputs: Mapping[str, NDArray]  # by name: where a run copies the inputs
    launches: tuple[Callable[[], None], ...]  # kernels with their arguments, in order
    outputs: tuple[NDArray, ...]  # the arrays that hold the results afterwards
    bytes: int  # the size of the block of memory


def make_plan(
    module: GraphModule,
    symbols: Mapping[str, int],
    constants: Mapping[Value, NDArray],
    device: Device,
) -> Plan:
    """Return the plan for these values of the symbols.

    The kernels are bound to their arrays. None is launched.
    """
    lives = value_lives(module)
    shapes = {v: tuple(evaluate_dim(dim, symbols) for dim in v.shape) for v in lives}
    sizes = {v: math.prod(shapes[v]) * v.dtype.bytes for v in lives}
    placed = plan_memory([Request(sizes[v], *lives[v]) for v in lives])
    parts = _allocate_parts(device, placed, list(sizes.values()), symbols)
    arrays = dict(constants)
    for value, part in zip(lives, parts, strict=True):
        arrays[value] = NDArray(part, shapes[value], to_numpy(value.dtype), device)
    graph = module.graph
    inputs = {value.name: arrays[value] for value in graph.inputs}
    launches = []
    for kernel in module.kernels:
        assert module.module is not None
        values = (*kernel.inputs, *kernel.outputs, *kernel.workspaces)
        function = module.module[kernel.name]
        launches.append(function.bind(*(arrays[value] for value in values)))
    outputs = tuple(arrays[value] for value in graph.outputs)
    return Plan(inputs, tuple(launches), outputs, placed.total)


def value_lives(module: GraphModule) -> dict[Value, Life]:
    """Return the first and the last step at which each value and workspace is used.

    Step k is kernel k. Inputs live from step -1 on, outputs until the step after the last.
    Constants are left out: they have memory of their own.
    """
    lives: dict[Value, Life] = dict.fromkeys(module.graph.inputs, (-1, -1))
    for step, kernel in enumerate(module.kernels):
        lives |= dict.fromkeys((*kernel.outputs, *kernel.workspaces), (step, step))
        for value in kernel.inputs:
            if value in lives:  # otherwise it is a constant
                lives[value] = (lives[value][0], step)
    for value in module.graph.outputs:
        if value in lives:
            lives[value] = (lives[value][0], len(module.kernels))
    return lives


def _allocate_parts(
    device: Device, placed: MemoryPlan, sizes: Sequence[int], symbols: Mapping[str, int]
) -> list[DeviceMemory]:
    """Return the memory of each value.

    All are parts of one piece. Where memory cannot be used in parts, as in OpenCL, each value gets
    a piece of its own.
    """
    driver = device.driver
    if not isinstance(driver, PartingDriver):
        return [_allocate(device, size, symbols) for size in sizes]
    whole = _allocate(device, placed.total, symbols)
    parts = zip(placed.offsets, sizes, strict=True)
    return [driver.part(whole, offset, size) for offset, size in parts]


def _allocate(device: Device, size: int, symbols: Mapping[str, int]) -> DeviceMemory:
    try:
        return device.driver.allocate(device.index, size)
    except (MemoryError, ValueError, OverflowError) as error:
        extents = ", ".join(f"{name} = {extent}" for name, extent in symbols.items())
        raise UserError(
            f"running the graph needs {size} bytes of memory, which {device} does not give",
            where=extents or None,
            remedy="run it on fewer or smaller inputs at a time",
        ) from error
