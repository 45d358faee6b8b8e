"""Give convolutions and poolings a layout with channels last, so that vectors run over channels.

Before:  y = conv2d(x, w); z = relu(y); out = max_pool2d(z)                      [n, c, h, w]
After:   t = transpose(x); y = conv2d_nhwc(t, transpose(w)); z = relu(y);        [n, h, w, c]
         p = max_pool2d(z, layout="NHWC"); out = transpose(p)

Elementwise operators follow the layout of their inputs. All other operators read [n, c, h, w],
after a transpose where one is needed.

Requires: a convolution that is changed has constant weights and one group.
Ensures: each value is transposed at most once in each direction. Transposes of weights are nodes of
constants, which fold_constants computes. Without such a convolution the graph is unchanged.
"""

from __future__ import annotations

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.operators import find_operator

_TO_LAST = (0, 2, 3, 1)
_TO_SECOND = (0, 3, 1, 2)
_WEIGHT_TO_PACKED = (2, 3, 1, 0)
_POOLS = ("max_pool2d", "avg_pool2d", "global_avg_pool2d")


def choose_layout(graph: Graph) -> Graph:
    """Return `graph` with channels last where convolutions profit from it."""
    if not any(_is_convertible(graph, node) for node in graph.nodes):
        return graph
    layout = _LayoutRewriter(graph)
    for node in graph.nodes:
        layout.add(node)
    return layout.finish()


def _is_convertible(graph: Graph, node: GraphNode) -> bool:
    if node.operator != "conv2d" or node.attributes.get("groups", 1) != 1:
        return False
    return node.inputs[1] in graph.constants


class _LayoutRewriter:
    """A rewriter that knows each value in one or both layouts."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.rewriter = GraphRewriter(graph)
        self.plain = self.rewriter.values  # old value -> its form [n, c, h, w]
        self.last: dict[Value, Value] = {}  # old value -> its form with channels last

    def finish(self) -> Graph:
        for value in self.graph.outputs:
            self._as_plain(value)
        return self.rewriter.finish_copy()

    def add(self, node: GraphNode) -> None:
        if _is_convertible(self.graph, node):
            self._add_convolution(node)
        elif node.operator in _POOLS and node.inputs[0] in self.last:
            self._add_last(node, node.operator, {**node.attributes, "layout": "NHWC"})
        elif self._follows(node):
            self._add_last(node, node.operator, dict(node.attributes))
        else:
            for value in node.reads:
                self._as_plain(value)
            self.rewriter.copy(node)

    def _follows(self, node: GraphNode) -> bool:
        """Return True if the node may work on the layout with channels last."""
        if not node.reads or node.operator == "batch_norm" or node.subgraphs:
            return False
        if find_operator(node.operator).pattern != "elementwise":
            return False
        shape = node.outputs[0].shape
        return all(value in self.last and value.shape == shape for value in node.reads)

    def _add_last(
        self, node: GraphNode, operator: str, attributes: dict[str, object]
    ) -> None:
        inputs = [None if value is None else self.last[value] for value in node.inputs]
        made = self.rewriter.node(operator, inputs, attributes, node.name)  # type: ignore[arg-type]
        self.last[node.outputs[0]] = made

    def _add_convolution(self, node: GraphNode) -> None:
        data, weight, *bias = node.inputs
        assert data is not None and weight is not None
        packed = self.rewriter.node(
            "transpose",
            [self.plain[weight]],
            {"axes": _WEIGHT_TO_PACKED},
            f"{weight.name}.packed",
        )
        inputs = [self._as_last(data), packed, *self.rewriter.mapped(bias)]
        attributes = {k: v for k, v in node.attributes.items() if k != "groups"}
        self.last[node.outputs[0]] = self.rewriter.node(
            "conv2d_nhwc", inputs, attributes, node.name
        )

    def _as_last(self, value: Value) -> Value:
        if value not in self.last:
            plain = self.plain[value]
            self.last[value] = self.rewriter.node(
                "transpose", [plain], {"axes": _TO_LAST}, f"{value.name}.nhwc"
            )
        return self.last[value]

    def _as_plain(self, value: Value) -> Value:
        if value not in self.plain:
            self.plain[value] = self.rewriter.node(
                "transpose",
                [self.last[value]],
                {"axes": _TO_SECOND},
                f"{value.name}.nchw",
            )
        return self.plain[value]
