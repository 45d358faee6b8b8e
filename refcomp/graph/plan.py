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

Life = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """The arrays and launches of one run.

    Attributes:
        inputs: name -> the array that the input is copied to.
        launches: the bound kernels, in order.
        outputs: the arrays that hold the outputs after the last launch.
        bytes: size of the memory that all arrays share.
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
    """Return the plan for these values of the symbols.

    The kernels are bound to their arrays. None is launched.
    """
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
    """Return the first and the last step at which each value and workspace is used.

    Step k is kernel k. Inputs live from step -1 on, outputs until the step after the last.
    Constants are left out: they have memory of their own.
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
    """Return the memory of each value.

    All are parts of one piece. Where memory cannot be used in parts, as in OpenCL, each value gets
    a piece of its own.
    """
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
