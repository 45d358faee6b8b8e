"""The plan of a run for one set of values of a graph's symbols: placed memory, bound kernels.

One piece of memory holds the workspaces of the kernels and every value that is not a constant.
Values that are not in use at the same time share it (`refcomp.graph.memory_plan`).
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

Life = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """Where each input is to be copied, what is then launched, and where the outputs are.

    `bytes` is the size of the memory that all share.
    """

    inputs: Mapping[str, NDArray]
    launches: tuple[Callable[[], None], ...]
    outputs: tuple[NDArray, ...]
    bytes: int


def make_plan(
    module: GraphModule,
    symbols: Mapping[str, int],
    constants: Mapping[Value, NDArray],
    device: Device,
) -> Plan:
    """The plan for these values of the symbols. The kernels are bound, none is launched."""
    lives = value_lives(module)
    shapes = {v: tuple(evaluate_dim(dim, symbols) for dim in v.shape) for v in lives}
    sizes = {v: math.prod(shapes[v]) * v.dtype.bytes for v in lives}
    placed = plan_memory([Request(sizes[v], *lives[v]) for v in lives])
    parts = _memory_of_values(device, placed, list(sizes.values()), symbols)
    arrays = dict(constants)
    for value, part in zip(lives, parts, strict=True):
        arrays[value] = NDArray(part, shapes[value], to_numpy(value.dtype), device)
    graph = module.graph
    inputs = {value.name: arrays[value] for value in graph.inputs}
    outputs = tuple(arrays[value] for value in graph.outputs)
    return Plan(inputs, _bound_kernels(module, arrays), outputs, placed.total)


def value_lives(module: GraphModule) -> dict[Value, Life]:
    """The first and the last step at which each value and workspace, but for constants, is used.

    Step k is kernel k; inputs live from step -1, outputs to the step after the last.
    """
    end = len(module.kernels)
    lives: dict[Value, Life] = dict.fromkeys(module.graph.inputs, (-1, -1))
    for step, kernel in enumerate(module.kernels):
        lives |= dict.fromkeys((*kernel.outputs, *kernel.workspaces), (step, step))
        lives |= {
            value: (lives[value][0], step) for value in kernel.inputs if value in lives
        }
    lives |= {
        value: (lives[value][0], end)
        for value in module.graph.outputs
        if value in lives
    }
    return lives


def _memory_of_values(
    device: Device, placed: MemoryPlan, sizes: Sequence[int], symbols: Mapping[str, int]
) -> list[DeviceMemory]:
    """Parts of one piece; a piece for each where memory cannot be used in parts, as in OpenCL."""
    driver = device.driver
    if not isinstance(driver, PartingDriver):
        return [_allocate(device, size, symbols) for size in sizes]
    whole = _allocate(device, placed.total, symbols)
    return [
        driver.part(whole, *part) for part in zip(placed.offsets, sizes, strict=True)
    ]


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


def _bound_kernels(
    module: GraphModule, arrays: Mapping[Value, NDArray]
) -> tuple[Callable[[], None], ...]:
    bound = []
    for kernel in module.kernels:
        assert module.module is not None
        arguments = (*kernel.inputs, *kernel.outputs, *kernel.workspaces)
        bound.append(
            module.module[kernel.name].bind(*(arrays[value] for value in arguments))
        )
    return tuple(bound)
