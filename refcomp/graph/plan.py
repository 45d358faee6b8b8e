"""The plan of a run for one set of values of a graph's symbols: its memory and its bound kernels.

All values but constants, and the workspaces of the kernels, share one piece of memory. Values that
are not in use at the same time may share bytes (`refcomp.graph.memory_plan`). So may values that
are parts of others (`refcomp.graph.placement`): the nodes that make them are not launched.

Runs take turns, so the plans for several sizes share one block, too (`MemoryPool`). A plan takes
the block of the largest plan before it, if it fits.

A plan ends before a `narrow` node, whose extent its results determine (`refcomp.graph.narrow`).
Then it has a `Pause`, which plans the rest for each count that runs meet, in a pool of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from refcomp.foundation.artifacts import evaluate_dim
from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import UserError
from refcomp.graph.compile import GraphModule
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.kernels import NodeKernel
from refcomp.graph.memory_plan import MemoryPlan
from refcomp.graph.narrow import (
    checked_count,
    count_of,
    is_narrow,
    narrowed_axis,
    narrowed_symbol,
)
from refcomp.graph.placement import Life, place_values, separate_places
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.device import Device, DeviceMemory, PartingDriver
from refcomp.runtime.host.joined_calls import join_calls

# Plans that are kept. Each holds the memory of a whole run.
_MAX_PLANS = 8

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Plan:
    """The memory and the launches of a run, ready to be repeated."""

    inputs: Mapping[str, NDArray]  # by name: where a run copies the inputs
    launches: tuple[Callable[[], None], ...]  # kernels with their arguments, in order
    outputs: tuple[
        NDArray, ...
    ]  # the arrays that hold the results; none before a pause
    bytes: int  # the size of the block of memory
    run: Callable[[], None]  # makes all launches
    pause: Pause | None = None  # what follows the launches; None: the run is done


@dataclass(frozen=True, slots=True)
class Pause:
    """The end of a plan, where a run reads a count."""

    node: str  # the name of the `narrow` node
    count: NDArray  # one integer
    most: int  # the extent that is shortened
    plan_rest: Callable[[int], Plan]  # for a value of the count
    rests: dict[int, Plan] = field(default_factory=dict)  # the last ones, by count

    def resume(self) -> Plan:
        """Return the plan of the rest. The launches before it must have been made.

        Raises:
            UserError: the count is negative, or greater than the extent.
        """
        kept = checked_count(self.count.asnumpy(), self.most, self.node)
        return recent_plan(self.rests, kept, lambda: self.plan_rest(kept))


class MemoryPool:
    """A block of memory that plans share. Only one of them may run at a time."""

    def __init__(self) -> None:
        self._block: DeviceMemory | None = None
        self._size = 0  # bytes

    def block(
        self, device: Device, size: int, symbols: Mapping[str, int]
    ) -> DeviceMemory:
        """Return a block of at least `size` bytes: the last one, if it is large enough.

        A larger block replaces it. Plans that have the old one keep it as long as they exist.
        """
        if self._block is None or size > self._size:
            self._block = _allocate(device, size, symbols)
            self._size = size
        return self._block


def recent_plan(plans: dict[_Key, Plan], key: _Key, make: Callable[[], Plan]) -> Plan:
    """Return the plan of a key, from the last 8 that `plans` holds, or a new one."""
    # Removed and inserted again, so that the least recently used plan is the first.
    plan = plans.pop(key, None)
    if plan is None:
        if len(plans) == _MAX_PLANS:
            del plans[next(iter(plans))]
        plan = make()
    plans[key] = plan
    return plan


def make_plan(
    module: GraphModule,
    symbols: Mapping[str, int],
    constants: Mapping[Value, NDArray],
    device: Device,
    pool: MemoryPool | None = None,
) -> Plan:
    """Return the plan for these values of the symbols.

    The kernels are bound to their arrays. None is launched.

    Args:
        module: the compiled graph.
        symbols: the values of all symbols that inputs determine.
        constants: the arrays of the constants.
        device: the device.
        pool: the memory to take; None for memory that no other plan has.
    """
    return _plan_from(0, module, symbols, constants, device, pool or MemoryPool())


def _plan_from(
    first: int,
    module: GraphModule,
    symbols: Mapping[str, int],
    known: Mapping[Value, NDArray],
    device: Device,
    pool: MemoryPool,
) -> Plan:
    """Return the plan from kernel `first` to the end, or to a symbol without a value.

    Args:
        first: the number of the kernel.
        module: the compiled graph.
        symbols: the values that are known.
        known: the arrays of constants, and of the values that were planned before.
        device: the device.
        pool: the memory of all other values.
    """
    graph = module.graph
    last = first
    while last < len(graph.nodes) and not _waits(graph.nodes[last], symbols):
        last += 1
    lives = _lives_in_part(module, first, last)
    shapes = {v: tuple(evaluate_dim(dim, symbols) for dim in v.shape) for v in lives}
    sizes = {v: math.prod(shapes[v]) * v.dtype.bytes for v in lives}
    nodes = graph.nodes[first:last]
    if isinstance(device.driver, PartingDriver):
        places, placed = place_values(nodes, shapes, sizes, lives)
    else:
        places = separate_places(lives)
        placed = places.plan(lives, sizes)
    parts = _allocate_parts(device, placed, list(sizes.values()), symbols, pool)
    arrays = dict(known)
    for value, part in zip(lives, parts, strict=True):
        arrays[value] = NDArray(part, shapes[value], to_numpy(value.dtype), device)
    inputs = {value.name: arrays[value] for value in graph.inputs}
    launches = []
    for number, kernel in enumerate(module.kernels[first:last]):
        if number in places.moved:
            continue
        assert module.module is not None
        values = (*kernel.inputs, *kernel.outputs, *kernel.workspaces)
        function = module.module[kernel.name]
        launches.append(function.bind(*(arrays[value] for value in values)))
    run = join_calls(launches)
    if last == len(graph.nodes):
        outputs = tuple(arrays[value] for value in graph.outputs)
        return Plan(inputs, tuple(launches), outputs, placed.total, run)
    node = graph.nodes[last]
    data = node.inputs[0]
    assert data is not None

    rest_pool = MemoryPool()

    def plan_rest(kept: int) -> Plan:
        all_symbols = {**symbols, narrowed_symbol(node): kept}
        return _plan_from(last, module, all_symbols, arrays, device, rest_pool)

    pause = Pause(
        node.name,
        count=arrays[count_of(node)],
        most=arrays[data].shape[narrowed_axis(node)],
        plan_rest=plan_rest,
    )
    return Plan(inputs, tuple(launches), (), placed.total, run, pause)


def _waits(node: GraphNode, symbols: Mapping[str, int]) -> bool:
    return is_narrow(node) and narrowed_symbol(node) not in symbols


def _lives_in_part(module: GraphModule, first: int, last: int) -> dict[Value, Life]:
    """Return the lives of the values that kernels `first` to `last` - 1 make.

    What later kernels read lives to the end of the part.
    """
    end = last if last == len(module.kernels) else last - 1
    return {
        value: (begin, max(begin, min(use, end)))
        for value, (begin, use) in value_lives(module.graph, module.kernels).items()
        if first <= begin < last or (first == 0 and begin < 0)
    }


def value_lives(graph: Graph, kernels: Sequence[NodeKernel]) -> dict[Value, Life]:
    """Return the first and the last step at which each value and workspace is used.

    Step k is kernel k. Inputs live from step -1 on, outputs until the step after the last.
    Constants are left out: they have memory of their own.
    """
    lives: dict[Value, Life] = dict.fromkeys(graph.inputs, (-1, -1))
    nodes = zip(graph.nodes, kernels, strict=True)
    for step, (node, kernel) in enumerate(nodes):
        lives |= dict.fromkeys((*kernel.outputs, *kernel.workspaces), (step, step))
        # What the node reads: the count of `narrow` is not an input of its kernel.
        for value in node.reads:
            if value in lives:  # otherwise it is a constant
                lives[value] = (lives[value][0], step)
    for value in graph.outputs:
        if value in lives:
            lives[value] = (lives[value][0], len(kernels))
    return lives


def _allocate_parts(
    device: Device,
    placed: MemoryPlan,
    sizes: Sequence[int],
    symbols: Mapping[str, int],
    pool: MemoryPool,
) -> list[DeviceMemory]:
    """Return the memory of each value.

    All are parts of the pool's block. Where memory cannot be used in parts, as in OpenCL, each
    value gets a piece of its own.
    """
    driver = device.driver
    if not isinstance(driver, PartingDriver):
        return [_allocate(device, size, symbols) for size in sizes]
    whole = pool.block(device, placed.total, symbols)
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
