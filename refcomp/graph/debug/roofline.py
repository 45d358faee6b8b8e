"""Profiles of networks: the time of each node beside what the machine could do at most.

The roofline model bounds the rate of a kernel by two peaks, that of operations and that of bytes:

    least seconds = max(operations / peak of operations, bytes / peak of bytes)

The greater one of the two is what the kernel is bound by. Bytes are those of inputs, outputs and
constants, each once. If they are still in a cache, a kernel can be faster than memory allows.

Reference: S. Williams et al., "Roofline: an insightful visual performance model for multicore
architectures", Communications of the ACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from refcomp.driver.backends import backend_of
from refcomp.foundation.errors import UserError
from refcomp.graph.debug.comparing import operators_of
from refcomp.graph.debug.executor import DebugExecutor
from refcomp.graph.debug.peaks import Peaks
from refcomp.graph.debug.work import count_bytes, count_flops

_Number = TypeVar("_Number", int, float)

COMPUTE = "compute"
MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class NodeProfile:
    """The time and the work of one node, or of all nodes with the same operators.

    Attributes:
        name: the name of the node; for a total, how many nodes there are.
        operator: the operator, or the operators of a fused node, joined by `+`.
        seconds: the least time of a launch; for a total, the sum.
        mean: the mean time of a launch, in seconds; for a total, the sum.
        multiply_adds: products that are added to sums; None if they cannot be counted.
        flops: all operations on floats, a multiply-add counted as two; None as above.
        bytes: of inputs, outputs and constants, each once.
        least: the least seconds by the roofline model; None without peaks or operations.
        bound_by: `compute` or `memory`; None as `least`.
    """

    name: str
    operator: str
    seconds: float
    mean: float
    multiply_adds: int | None
    flops: int | None
    bytes: int
    least: float | None
    bound_by: str | None

    @property
    def gflops(self) -> float | None:
        """Return 10^9 operations a second; None if they cannot be counted."""
        return None if self.flops is None else _rate(self.flops, self.seconds)

    @property
    def gbytes(self) -> float:
        """Return 10^9 bytes a second."""
        return _rate(self.bytes, self.seconds)

    @property
    def of_roof(self) -> float | None:
        """Return the least time divided by the time, which is 1 on the roofline."""
        if self.least is None:
            return None
        return self.least / self.seconds if self.seconds else 0.0


def _rate(amount: int, seconds: float) -> float:
    return amount / seconds / 1e9 if seconds else 0.0


@dataclass(frozen=True, slots=True)
class NetworkProfile:
    """The profile of a network, which `profile_network` returns.

    Attributes:
        nodes: the nodes in order.
        peaks: the peaks of the machine; None if they were not measured.
    """

    nodes: tuple[NodeProfile, ...]
    peaks: Peaks | None

    @property
    def seconds(self) -> float:
        """Return the sum of the least times of all nodes."""
        return sum(node.seconds for node in self.nodes)

    def share(self, node: NodeProfile) -> float:
        """Return the share of a node in the time of all nodes, from 0 to 1."""
        return node.seconds / self.seconds if self.seconds else 0.0

    def by_operator(self) -> list[NodeProfile]:
        """Return the total of the nodes with the same operators, the longest time first."""
        groups: dict[str, list[NodeProfile]] = {}
        for node in self.nodes:
            groups.setdefault(node.operator, []).append(node)
        totals = [_total(group) for group in groups.values()]
        return sorted(totals, key=lambda total: -total.seconds)


def _total(nodes: list[NodeProfile]) -> NodeProfile:
    least = _sum(node.least for node in nodes)
    by_memory = [node for node in nodes if node.bound_by == MEMORY]
    seconds = sum(node.seconds for node in nodes)
    bound_by = None
    if least is not None:
        # What bounds most of the time.
        memory_seconds = sum(node.seconds for node in by_memory)
        bound_by = MEMORY if 2 * memory_seconds > seconds else COMPUTE
    return NodeProfile(
        name=str(len(nodes)),
        operator=nodes[0].operator,
        seconds=seconds,
        mean=sum(node.mean for node in nodes),
        multiply_adds=_sum(node.multiply_adds for node in nodes),
        flops=_sum(node.flops for node in nodes),
        bytes=sum(node.bytes for node in nodes),
        least=least,
        bound_by=bound_by,
    )


def _sum(numbers: Iterable[_Number | None]) -> _Number | None:
    """Return the sum, None if a number is not known."""
    total: _Number | None = None
    for number in numbers:
        if number is None:
            return None
        total = number if total is None else total + number
    return total


def profile_network(
    executor: DebugExecutor,
    feeds: Mapping[str, object],
    peaks: Peaks | None = None,
) -> NetworkProfile:
    """Return the time and the work of each node of a network.

    Args:
        executor: a debug executor, whose `repeat` is the number of launches of each kernel.
        feeds: the inputs by name.
        peaks: what `measure_peaks` returned; None to leave the roofline out.

    Raises:
        UserError: the device is emulated, or the target is interpreted, so that no time is that of
            compiled code.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N", 4))
        >>> w = builder.constant("w", np.ones((4, 3), "float32"))
        >>> net = builder.finish([builder.node("matmul", [x, w], name="y")])
        >>> executor = rc.graph.debug.create(net, repeat=3)
        >>> x = np.ones((2, 4), "float32")
        >>> profile = rc.graph.debug.profile_network(executor, {"x": x})
        >>> [(node.name, node.multiply_adds, node.flops, node.bytes) for node in profile.nodes]
        [('y', 24, 48, 104)]
    """
    check_times(executor)
    executor.run(feeds)  # loads pages and caches
    executor.run(feeds)
    nodes = []
    pairs = zip(executor.module.graph.nodes, executor.module.kernels, strict=True)
    for node, kernel in pairs:
        times = executor.times[node.name]
        work = count_flops(node, executor.symbols)
        size = count_bytes(kernel, executor.symbols)
        least = None
        bound_by = None
        if peaks is not None and work is not None:
            computing = work.total / peaks.gflops / 1e9
            moving = size / peaks.gbytes / 1e9
            least = max(computing, moving)
            bound_by = COMPUTE if computing > moving else MEMORY
        profile = NodeProfile(
            name=node.name,
            operator=operators_of(node),
            seconds=times.min,
            mean=times.mean,
            multiply_adds=None if work is None else work.multiply_adds,
            flops=None if work is None else work.total,
            bytes=size,
            least=least,
            bound_by=bound_by,
        )
        nodes.append(profile)
    return NetworkProfile(tuple(nodes), peaks)


def check_times(executor: DebugExecutor) -> None:
    """Raise UserError if an executor does not run compiled code."""
    target = executor.module.target
    if backend_of(target).compile is None:
        raise UserError(
            f"the target {target} has no times to profile",
            why="it interprets loop IR, and compiles nothing",
            remedy="profile the target llvm",
        )
    if not executor.is_timed:
        raise UserError(
            f"the device {executor.device} has no times to profile",
            why="it is emulated: it counts instructions, and counts are not times",
            remedy="refcomp emulate MODEL.onnx --profile shows the counts",
        )
