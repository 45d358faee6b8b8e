"""Fuse nodes that can share their loops into one `fused` node, which becomes one kernel.

Before::

    graph net(x: f32[N, 2], w: f32[2, 2]) -> (y) {
      const b: f32[2] = [1.0, 2.0]
      p: f32[N, 2] = matmul(x, w)
      a: f32[N, 2] = add(p, b)
      s: f32[N, 2] = sigmoid(a)
      y: f32[N, 2] = multiply(a, s)
    }

After::

    graph net(x: f32[N, 2], w: f32[2, 2]) -> (y) {
      const b: f32[2] = [1.0, 2.0]
      y: f32[N, 2] = fused(x, w, b)
        graph matmul_add_sigmoid_multiply(x: f32[N, 2], w: f32[2, 2], b: f32[2]) -> (y) {
          p: f32[N, 2] = matmul(x, w)
          a: f32[N, 2] = add(p, b)
          s: f32[N, 2] = sigmoid(a)
          y: f32[N, 2] = multiply(a, s)
        }
    }

The patterns of the operators decide (`refcomp.topi.operator`). A group grows at its end: a node
takes in the groups that make its inputs, if nobody else reads their results.

- An elementwise, broadcast or injective node takes in groups of such nodes. It takes in at most one
  group that ends with a reduction or an anchor, and becomes its epilogue.
- A reduction takes in groups without loops, because it reads each of their elements once.
- An anchor takes in injective groups only, because it reads elements repeatedly. A change of layout
  stays outside if vectors of the anchor would read distant elements through it. A reshape that
  joins or divides the rows of a product's second matrix stays outside, too. It needs no kernel.
- Opaque nodes, `narrow`, control operators, and nodes with several results stay alone.

Requires: nothing. Ensures: a kernel has one output, and nothing costly is computed repeatedly. For
this, a node that broadcasts does not take in a computation of fewer elements. An element of a group
takes at most 32 operations, with repetitions. Refuses: nothing.

Reference: T. Chen et al., "TVM: An Automated End-to-End Optimizing Compiler for Deep Learning",
OSDI 2018, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.graph.builder import GraphBuilder, GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.infer import FUSED
from refcomp.graph.passes.pointwise import pattern_of

_MAX_COST = 32  # nodes that one element of a group evaluates, repetitions included
_CHEAP = {"elementwise", "broadcast", "injective"}
# Pattern of a node -> the patterns of the nodes that it may take in.
_TAKEN_IN: dict[str, set[str]] = {
    "elementwise": {*_CHEAP, "reduction", "anchor"},
    "broadcast": {*_CHEAP, "reduction", "anchor"},
    "injective": {*_CHEAP, "reduction", "anchor"},
    "reduction": _CHEAP,
    "anchor": {"injective"},
    "opaque": set(),
}


def fuse_operators(graph: Graph) -> Graph:
    """Return `graph` with groups of nodes fused, or the same object if no two nodes fuse."""
    grouping = _Grouping(graph)
    for node in graph.nodes:
        grouping.add(node)
    groups = [group.nodes for group in grouping.groups]
    if all(len(group) == 1 for group in groups):
        return graph
    rewriter = GraphRewriter(graph)
    for group in groups:
        if len(group) == 1:
            rewriter.copy(group[0])
        else:
            _add_fused(rewriter, group)
    return rewriter.finish_copy()


class _KernelNodes:
    """Nodes that become one kernel. Only the result of the last one is read outside."""

    def __init__(self, nodes: Sequence[GraphNode]) -> None:
        self.nodes = tuple(nodes)
        self.patterns = {_pattern(node) for node in nodes}

    @property
    def has_loops(self) -> bool:
        return not self.patterns <= _CHEAP

    @property
    def result(self) -> Value:
        return self.nodes[-1].outputs[0]


class _Grouping:
    """The groups of the nodes that were added so far."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.readers = graph.readers()
        self.order = {node: number for number, node in enumerate(graph.nodes)}
        self.groups: dict[_KernelNodes, None] = {}  # each after those that it reads
        self.group_of: dict[Value, _KernelNodes] = {}  # that computes the value

    def add(self, node: GraphNode) -> None:
        """Add `node` to the groups that it takes in, or as a new group."""
        taken = self._taken_in(node)
        nodes = [member for group in taken for member in group.nodes]
        merged = _KernelNodes([*sorted(nodes, key=self.order.__getitem__), node])
        for group in taken:
            del self.groups[group]
        self.groups[merged] = (
            None  # at the end: all that `node` reads is computed by then
        )
        for member in merged.nodes:
            self.group_of.update(dict.fromkeys(member.outputs, merged))

    def _taken_in(self, node: GraphNode) -> list[_KernelNodes]:
        """Return the groups that `node` takes in.

        A value with several readers is inside only when all of them are. So a group that a path of
        cheap nodes leaves and enters again is found after the nodes on the path.
        """
        taken: list[_KernelNodes] = []
        inside = {node}
        pending = list(node.reads)
        refused: list[Value] = []
        while pending:
            value = pending.pop(0)
            group = self.group_of.get(value)
            if group is None or group in taken:
                continue
            if not self._may_take_in(node, group, inside, taken):
                refused.append(value)
                continue
            taken.append(group)
            inside |= set(group.nodes)
            # What was refused may have all its readers inside now.
            pending += [read for member in group.nodes for read in member.reads]
            pending += refused
            refused = []
        return taken

    def _may_take_in(
        self,
        node: GraphNode,
        group: _KernelNodes,
        inside: set[GraphNode],
        taken: Sequence[_KernelNodes],
    ) -> bool:
        # Of several results, the first one may have no reader.
        if "opaque" in group.patterns:
            return False
        value = group.result
        readers = self.readers[value]
        if value in self.graph.outputs or not inside.issuperset(readers):
            return False
        if not all(group.patterns <= _TAKEN_IN[_pattern(reader)] for reader in readers):
            return False
        if any(map(_is_vectorized_anchor, readers)) and _changes_layout(group):
            return False
        if any(_has_divided_rows(reader, group) for reader in readers):
            return False
        if group.has_loops and any(other.has_loops for other in taken):
            return False
        is_expanded = any(
            _pattern(reader) == "broadcast" and value.shape != reader.outputs[0].shape
            for reader in readers
        )
        if is_expanded and group.patterns != {"injective"}:
            return False
        return self._cost(node, [*taken, group]) <= _MAX_COST

    def _cost(self, node: GraphNode, taken: Sequence[_KernelNodes]) -> int:
        """Return the cost of an element of `node` together with the groups that it takes in."""
        inner = {value for group in taken for m in group.nodes for value in m.outputs}
        cost: dict[Value, int] = {}
        members = [m for group in taken for m in group.nodes]
        for member in [*sorted(members, key=self.order.__getitem__), node]:
            # The result of loops is stored, and so is computed once.
            total = 1
            if not _has_loops(member):
                total += sum(
                    cost[v] for v in member.inputs if v is not None and v in inner
                )
            cost.update(dict.fromkeys(member.outputs, total))
        return cost[node.outputs[0]]


def _is_vectorized_anchor(node: GraphNode) -> bool:
    """Return True if vectors of an anchor run along an axis of what it reads.

    The blocked convolution reads single elements, which it repeats in a vector.
    """
    return _pattern(node) == "anchor" and node.operator != "conv2d_nchwc"


def _changes_layout(group: _KernelNodes) -> bool:
    """Return True if neighbours in memory are read from distant places."""
    return any(node.operator == "layout_transform" for node in group.nodes)


def _has_divided_rows(node: GraphNode, group: _KernelNodes) -> bool:
    """Return True if a group joins or divides the rows of the second matrix of a product.

    A row of the product is computed in vectors. Through such a reshape, each of their
    elements would have an address of its own.
    """
    last = group.nodes[-1]
    if node.operator != "matmul" or last.operator != "reshape":
        return False
    is_columns = node.inputs[1] is group.result
    return is_columns and last.reads[0].shape[-1:] != group.result.shape[-1:]


def _pattern(node: GraphNode) -> str:
    return "opaque" if len(node.outputs) > 1 else pattern_of(node)


def _has_loops(node: GraphNode) -> bool:
    return _pattern(node) not in _CHEAP


def _add_fused(rewriter: GraphRewriter, group: Sequence[GraphNode]) -> None:
    made = {value for node in group for value in node.outputs}
    reads = (value for node in group for value in node.reads)
    given = dict.fromkeys(value for value in reads if value not in made)
    builder = GraphBuilder("_".join(node.operator for node in group))
    inside = {v: builder.input(v.name, v.dtype, v.shape) for v in given}
    for node in group:
        inputs = [None if value is None else inside[value] for value in node.inputs]
        names = [value.name for value in node.outputs]
        outputs = builder.nodes(node.operator, inputs, node.attributes, names)
        inside.update(zip(node.outputs, outputs, strict=True))
    results = group[-1].outputs
    subgraph = builder.finish([inside[value] for value in results])
    names = [value.name for value in results]
    fused = rewriter.nodes(FUSED, rewriter.mapped(list(given)), {}, names, [subgraph])
    rewriter.values.update(zip(results, fused, strict=True))
