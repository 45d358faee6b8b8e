"""Move transposes through elementwise operators, and remove those that cancel.

Before::

    graph net(x: f32[N, 2, 3]) -> (y) {
      a: f32[N, 3, 2] = transpose(x) {axes=[0, 2, 1]}
      r: f32[N, 3, 2] = relu(a)
      y: f32[N, 2, 3] = transpose(r) {axes=[0, 2, 1]}
    }

After::

    graph net(x: f32[N, 2, 3]) -> (y) {
      r.before: f32[N, 2, 3] = relu(x)
      y: f32[N, 2, 3] = identity(r.before)
    }

A transpose of a transpose becomes one transpose, or none; a reshape of a reshape becomes one. If an
elementwise operator is the only reader of transposes of one kind, it is computed before them. Its
result is then transposed.

Requires: nothing. Ensures: no result changes a bit, and no transpose is added. An output that is
left without a node becomes an `identity`. Refuses: nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain, is_pointwise

Axes = tuple[int, ...]


def cancel_layout_changes(graph: Graph) -> Graph:
    """Return `graph` with fewer layout changes; the same object if none can be saved."""
    if sum(node.operator in ("transpose", "reshape") for node in graph.nodes) == 0:
        return graph
    canceller = _Canceller(graph)
    for node in graph.nodes:
        canceller.add(node)
    return canceller.finish() if canceller.is_changed else graph


class _Canceller:
    """A rewriter that knows which of its values are transposes and reshapes of others."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.rewriter = GraphRewriter(graph)
        self.readers = graph.readers()
        self.is_changed = False
        # New value -> the value that it is a transpose of, and the axes.
        self.transposed: dict[Value, tuple[Value, Axes]] = {}
        self.reshaped: dict[
            Value, Value
        ] = {}  # new value -> the value that it reshapes
        self.moved: set[Value] = (
            set()
        )  # old values whose transpose moved behind a reader

    def add(self, node: GraphNode) -> None:
        if not is_plain(node):
            self.rewriter.copy(node)
        elif node.operator == "transpose":
            self._add_transpose(node)
        elif node.operator == "reshape":
            self._add_reshape(node)
        elif self._may_move(node):
            self._move(node)
        else:
            self.rewriter.copy(node)

    def finish(self) -> Graph:
        return self.rewriter.finish_copy()

    def _read(self, node: GraphNode) -> Value:
        (value,) = node.reads
        return self.rewriter.values[value]

    def _add_transpose(self, node: GraphNode) -> None:
        read = self._read(node)
        axes = _axes(node)
        source = read
        if read in self.transposed:
            source, before = self.transposed[read]
            axes = tuple(before[axis] for axis in axes)
            self.is_changed = True
        if axes == tuple(range(len(axes))):
            self.is_changed = True
            self._replace(node, source)
            return
        made = self._made(node, source, read, axes)
        self.transposed[made] = (source, axes)

    def _made(self, node: GraphNode, source: Value, read: Value, axes: Axes) -> Value:
        """Return the transpose of `source` for a node, which stays if it is one already."""
        if source is read:
            self.rewriter.copy(node)
            return self.rewriter.values[node.outputs[0]]
        made = self.rewriter.node("transpose", [source], {"axes": axes}, node.name)
        self.rewriter.values[node.outputs[0]] = made
        return made

    def _add_reshape(self, node: GraphNode) -> None:
        read = self._read(node)
        source = self.reshaped.get(read, read)
        output = node.outputs[0]
        shape = node.attributes.get("shape")
        # 0 copies an extent of the operand, so that its shape must stay.
        is_plain = isinstance(shape, tuple) and 0 not in shape
        if source is read or not is_plain:
            self.rewriter.copy(node)
        else:
            self.is_changed = True
            attributes = dict(node.attributes)
            made = self.rewriter.node("reshape", [source], attributes, node.name)
            self.rewriter.values[output] = made
        if is_plain:
            self.reshaped[self.rewriter.values[output]] = source

    def _may_move(self, node: GraphNode) -> bool:
        """Return True if all that the node reads are transposes of one kind, or one element."""
        if not is_pointwise(node):
            return False
        kinds = set()
        for value in node.reads:
            new = self.rewriter.values[value]
            if new in self.transposed:
                kinds.add(self.transposed[new][1])
                is_alone = self.readers[value] == [node]
                if not is_alone or value in self.graph.outputs:
                    return False
                if value.shape != node.outputs[0].shape:
                    return False
            elif not _is_one_element(value):
                return False
        return len(kinds) == 1

    def _move(self, node: GraphNode) -> None:
        """Compute the node on the values before the transposes, and transpose the result."""
        axes: Axes = ()
        inputs: list[Value | None] = []
        for value in node.inputs:
            new = None if value is None else self.rewriter.values[value]
            if new in self.transposed:
                new, axes = self.transposed[new]
            inputs.append(new)
        name = f"{node.name}.before"
        before = self.rewriter.node(node.operator, inputs, node.attributes, name)
        made = self.rewriter.node("transpose", [before], {"axes": axes}, node.name)
        self.rewriter.values[node.outputs[0]] = made
        self.transposed[made] = (before, axes)
        self.is_changed = True

    def _replace(self, node: GraphNode, value: Value) -> None:
        """Let `value` stand for the result of a node. An output keeps a node of its own."""
        output = node.outputs[0]
        if output in self.graph.outputs:
            value = self.rewriter.node("identity", [value], name=node.name)
        self.rewriter.values[output] = value


def _axes(node: GraphNode) -> Axes:
    axes = node.attributes["axes"]
    assert isinstance(axes, tuple)
    return tuple(int(axis) for axis in axes)


def _is_one_element(value: Value) -> bool:
    constant: Sequence[int] = [dim for dim in value.shape if isinstance(dim, int)]
    return len(constant) == len(value.shape) and math.prod(constant) == 1
