"""Maps of memory plans: which bytes each value has while it lives, as data and as text.

The lower bound of a plan's size is the largest sum of the sizes of values that live at one step. No
plan can be smaller, whatever its placement, unless a kernel writes over its input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase

from refcomp.foundation.artifacts import evaluate_dim
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import Target, as_target
from refcomp.graph.debug.comparing import operators_of
from refcomp.graph.graph import Graph, GraphNode, Value, spell
from refcomp.graph.infer import FUSED
from refcomp.graph.kernels import NodeKernel
from refcomp.graph.memory_plan import ALIGNMENT, least_memory
from refcomp.graph.narrow import is_narrow
from refcomp.graph.placement import Life, Places, place_values, separate_places
from refcomp.graph.plan import value_lives
from refcomp.topi.operator import find_operator

_LETTERS = ascii_uppercase + ascii_lowercase
_MAX_STEPS = 100  # columns of the picture; more steps share a column
_ROWS = 24
# Patterns of operators that read an element of an input of the output's shape where they write it.
_POINTWISE = ("elementwise", "broadcast")


@dataclass(frozen=True, slots=True)
class MemoryBox:
    """A value in a block of memory, from its first to its last step."""

    name: str
    offset: int  # bytes from the beginning of the block
    size: int  # bytes
    first: int  # step; -1 is before the first kernel
    last: int  # step, included; the number of kernels is behind the last one


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """The places of all values of a network, which `map_memory` returns.

    Attributes:
        boxes: the values and the workspaces.
        peak: the size of the block, in bytes.
        least: the lower bound of the peak, in bytes.
        in_place: the lower bound in bytes, if elementwise kernels could write over an input that
            dies there and has the output's type. Compiled functions cannot: their arguments must
            not overlap (`noalias`).
        apart: the bytes of all values, if none shared memory. OpenCL has no addresses in buffers,
            so that this is its peak.
        constants: the bytes of the constants, which have memory of their own.
        operators: the name and the operators of each kernel, in order.
    """

    boxes: tuple[MemoryBox, ...]
    peak: int
    least: int
    in_place: int
    apart: int
    constants: int
    operators: tuple[str, ...]

    @property
    def steps(self) -> int:
        """Return the number of kernels."""
        return len(self.operators)

    @property
    def ratio(self) -> float:
        """Return the peak divided by its lower bound; 1 is the best."""
        return self.peak / self.least if self.least else 1.0

    @property
    def summary(self) -> str:
        """Return the sizes as one line."""
        return (
            f"peak {self.peak:,} bytes, lower bound {self.least:,}, ratio {self.ratio:.3f}; "
            f"in place {self.in_place:,}; without sharing {self.apart:,}; "
            f"constants {self.constants:,}"
        )

    def __str__(self) -> str:
        return "\n".join([self.summary, "", *_picture(self), "", *_table(self)])


def map_memory(
    graph: Graph,
    kernels: Sequence[NodeKernel],
    symbols: Mapping[str, int],
    target: Target | str = "llvm",
) -> MemoryMap:
    """Return the places of all values of a compiled graph.

    Args:
        graph: the optimized graph.
        kernels: the call of each node, in order.
        symbols: the sizes of its symbols.
        target: what the kernels are for.

    Raises:
        UserError: only a run determines the sizes, a symbol has no size, or the target is unknown.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N", 16))
        >>> net = builder.finish([builder.node("relu", [x], name="y")])
        >>> module = rc.compile_graph(net, "interp")
        >>> memory = rc.graph.debug.map_memory(module.graph, module.kernels, {"N": 2})
        >>> memory.peak, memory.least, memory.ratio
        (256, 256, 1.0)
    """
    for node in graph.nodes:
        if is_narrow(node):
            raise UserError(
                f"the memory of the graph {spell(graph.name)} is not known before a run",
                why=f"only a run determines the extent of {spell(node.name)}",
                remedy="run it; each plan of GraphExecutor has its size in bytes",
            )
    lives = value_lives(graph, kernels)
    sizes = {value: _size(value, symbols) for value in lives}
    shapes = {
        value: tuple(evaluate_dim(dim, symbols) for dim in value.shape)
        for value in lives
    }
    if as_target(target).kind == "opencl":
        places = separate_places(lives)
        placed = places.plan(dict.fromkeys(lives, (-1, len(kernels))), sizes)
    else:
        places, placed = place_values(graph.nodes, shapes, sizes, lives)
    boxes = tuple(
        MemoryBox(value.name, offset, sizes[value], *lives[value])
        for value, offset in zip(lives, placed.offsets, strict=True)
    )
    return MemoryMap(
        boxes=boxes,
        peak=placed.total,
        least=least_memory(list(places.requests(lives, sizes).values())),
        in_place=_least_in_place(graph, places, lives, sizes),
        apart=sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes.values()),
        constants=sum(array.nbytes for array in graph.constants.values()),
        operators=tuple(_title(node) for node in graph.nodes),
    )


def _title(node: GraphNode) -> str:
    return f"{spell(node.name)} ({operators_of(node)})"


def _least_in_place(
    graph: Graph,
    places: Places,
    lives: Mapping[Value, Life],
    sizes: Mapping[Value, int],
) -> int:
    requests = places.requests(lives, sizes)
    rounded = {
        root: -(-request.size // ALIGNMENT) * ALIGNMENT
        for root, request in requests.items()
    }
    least = 0
    for step, node in enumerate(graph.nodes):
        live = (v for v, r in requests.items() if r.first <= step <= r.last)
        total = sum(rounded[root] for root in live)
        output = node.outputs[0]
        # A part of another value, or a value that has parts already, has no memory of its own.
        begins = output in requests and requests[output].first == step
        roots = {places.of[v].root for v in _writable(node) if v in lives}
        ends = any(
            requests[root].last == step and sizes[root] == sizes[output]
            for root in roots
        )
        if begins and ends:
            total -= rounded[output]
        least = max(least, total)
    return least


def _writable(node: GraphNode) -> list[Value]:
    """Return the inputs that a node reads only where it writes its one output."""
    if len(node.outputs) > 1:
        return []
    members: Sequence[GraphNode] = (node,)
    outer = {value: value for value in node.reads}
    if node.operator == FUSED:
        (subgraph,) = node.subgraphs
        members = subgraph.nodes
        given = (value for value in node.inputs if value is not None)
        outer = dict(zip(subgraph.inputs, given, strict=True))
    moved = {
        value
        for member in members
        for value in member.reads
        if find_operator(member.operator).pattern not in _POINTWISE
    }
    output = node.outputs[0]
    return [
        value
        for inner, value in outer.items()
        if inner not in moved
        and (value.dtype, value.shape) == (output.dtype, output.shape)
    ]


def _size(value: Value, symbols: Mapping[str, int]) -> int:
    size = value.dtype.bytes
    for dim in value.shape:
        try:
            size *= evaluate_dim(dim, symbols)
        except KeyError as error:
            raise UserError(
                f"the symbol {error.args[0]!r} has no size",
                where=str(value),
                remedy=f"give it: --symbol {error.args[0]}=1",
            ) from error
    return size


def _picture(memory: MemoryMap) -> list[str]:
    """Return a picture: a column for each step, a row for a part of the block.

    A letter is the value that has the first byte of the row at the first step of the column.
    """
    steps = range(-1, memory.steps + 1)
    stride = -(-len(steps) // _MAX_STEPS)
    columns = steps[::stride]
    rows = []
    for row in reversed(range(_ROWS)):
        begin = memory.peak * row // _ROWS
        cells = (_letter_at(memory, begin, step) for step in columns)
        rows.append(f"{begin:>13,} |{''.join(cells)}|")
    every = "" if stride == 1 else f", a column for {stride} steps"
    return [*rows, f"{'byte':>13}  steps -1 to {memory.steps}{every}"]


def _letter_at(memory: MemoryMap, byte: int, step: int) -> str:
    for number, box in enumerate(memory.boxes):
        lives = box.first <= step <= box.last
        if lives and box.offset <= byte < box.offset + box.size:
            return _letter(number)
    return "."


def _letter(number: int) -> str:
    return _LETTERS[number % len(_LETTERS)]


def _table(memory: MemoryMap) -> list[str]:
    lines = [f"   {'offset':>13} {'bytes':>13}  steps      value"]
    for number, box in enumerate(memory.boxes):
        life: Life = (box.first, box.last)
        steps = f"{life[0]}-{life[1]}"
        lines.append(
            f"{_letter(number)}  {box.offset:>13,} {box.size:>13,}  {steps:<9}  {spell(box.name)}"
        )
    return lines
