"""Give convolutions and poolings a layout with channels last, so that vectors run over channels.

Before::

    graph net(x: f32[N, 1, 4, 4]) -> (y) {
      const w: f32[2, 1, 1, 1] = [1.0, 2.0]
      c: f32[N, 2, 4, 4] = conv2d(x, w)
      r: f32[N, 2, 4, 4] = relu(c)
      y: f32[N, 2, 2, 2] = max_pool2d(r) {kernel=[2, 2], strides=[2, 2]}
    }

After::

    graph net(x: f32[N, 1, 4, 4]) -> (y) {
      const w: f32[2, 1, 1, 1] = [1.0, 2.0]
      w.packed: f32[1, 1, 1, 2] = transpose(w) {axes=[2, 3, 1, 0]}
      x.nhwc: f32[N, 4, 4, 1] = transpose(x) {axes=[0, 2, 3, 1]}
      c.nhwc: f32[N, 4, 4, 2] = conv2d_nhwc(x.nhwc, w.packed)
      r.nhwc: f32[N, 4, 4, 2] = relu(c.nhwc)
      y.nhwc: f32[N, 2, 2, 2] = max_pool2d(r.nhwc) {kernel=[2, 2], layout="NHWC", strides=[2, 2]}
      y: f32[N, 2, 2, 2] = transpose(y.nhwc) {axes=[0, 3, 1, 2]}
    }

Elementwise operators, poolings, pads and concatenations keep the layout of their inputs. Operands
that broadcast, such as a number for each channel, are transposed. All other operators read
[n, c, h, w], by a transpose if needed.

Requires: a convolution that is converted has constant weights and one group.
Ensures: each value is transposed at most once each way. The weights are transposed by nodes, which
fold_constants computes. A graph without such a convolution is returned as the same object. Refuses:
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain, is_pointwise
from refcomp.topi.operator import Attribute

_TO_LAST = (0, 2, 3, 1)  # [n, c, h, w] -> [n, h, w, c]
_TO_SECOND = (0, 3, 1, 2)  # [n, h, w, c] -> [n, c, h, w]
WEIGHT_TO_PACKED = (2, 3, 1, 0)  # [o, c, kh, kw] -> [kh, kw, c, o]
# Operators that have a layout as an attribute.
_POOLS = (
    "max_pool2d",
    "avg_pool2d",
    "lp_pool2d",
    "global_avg_pool2d",
    "global_max_pool2d",
    "global_lp_pool2d",
)
_PADS = ("pad", "mirror_pad")


def choose_layout(graph: Graph) -> Graph:
    """Return `graph` with channels last where convolutions profit from it."""
    if not any(_is_convertible(graph, node) for node in graph.nodes):
        return graph
    layout = _LayoutRewriter(graph)
    for node in graph.nodes:
        layout.add(node)
    for value in graph.outputs:
        layout.as_plain(value)
    return layout.rewriter.finish_copy()


def _is_convertible(graph: Graph, node: GraphNode) -> bool:
    if node.operator != "conv2d" or node.attributes.get("groups", 1) != 1:
        return False
    return is_plain(node) and node.inputs[1] in graph.constants


class _LayoutRewriter:
    """A rewriter that knows each value in one or both layouts."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.rewriter = GraphRewriter(graph)
        self.plain = self.rewriter.values  # old value -> new value in the old layout
        self.last: dict[Value, Value] = {}  # old value -> new value with channels last
        # Old value that broadcasts -> new value with the dimensions that it meets.
        self.operands: dict[Value, Value] = {}

    def add(self, node: GraphNode) -> None:
        if _is_convertible(self.graph, node):
            self._add_convolution(node)
        elif self._is_pooling(node):
            self._add_last(node, {**node.attributes, "layout": "NHWC"})
        elif node.operator in _PADS and node.inputs[0] in self.last:
            self._add_last(node, _with_channels_last(node.attributes))
        elif self._is_concatenation(node):
            # Axis 1 of [n, c, h, w] is the last one here.
            self._add_last(node, {"axis": _TO_LAST.index(_axis(node))})
        elif self._follows(node):
            operands = [None if v is None else self._operand(v) for v in node.inputs]
            self._make_last(node, operands, node.attributes)
        else:
            for value in node.reads:
                self.as_plain(value)
            self.rewriter.copy(node)

    def _follows(self, node: GraphNode) -> bool:
        """Return True if the node may work on the layout with channels last."""
        shape = node.outputs[0].shape
        images = [value for value in node.reads if value.shape == shape]
        if not images or not is_pointwise(node):
            return False
        return all(value in self.last for value in images)

    def _operand(self, value: Value) -> Value:
        """Return the operand that meets images with channels last as `value` meets others."""
        if value in self.last:
            return self.last[value]
        if value not in self.operands:
            self.operands[value] = self._broadcast_operand(value)
        return self.operands[value]

    def _broadcast_operand(self, value: Value) -> Value:
        """Return an operand that has no image's shape, transposed if its dimensions matter."""
        plain = self.plain[value]
        if all(dim == 1 for dim in value.shape):
            return plain
        missing = len(_TO_LAST) - len(value.shape)
        if missing:
            axes = tuple(range(missing))
            plain = self.rewriter.node("expand_dims", [plain], {"axis": axes})
        return self._transpose(plain, _TO_LAST, f"{value.name}.nhwc")

    def _is_pooling(self, node: GraphNode) -> bool:
        """Return True for a pooling over [h, w] of a value that has channels last."""
        # A pooling may have a layout that is not that of the convolution before it.
        is_plain_layout = node.attributes.get("layout", "NCHW") == "NCHW"
        return (
            node.operator in _POOLS and is_plain_layout and node.inputs[0] in self.last
        )

    def _is_concatenation(self, node: GraphNode) -> bool:
        """Return True for a concatenation of values that all have channels last."""
        if node.operator != "concatenate" or not is_plain(node):
            return False
        return all(value in self.last for value in node.reads)

    def _add_last(self, node: GraphNode, attributes: Mapping[str, Attribute]) -> None:
        inputs = [None if value is None else self.last[value] for value in node.inputs]
        self._make_last(node, inputs, attributes)

    def _make_last(
        self,
        node: GraphNode,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute],
    ) -> None:
        name = f"{node.name}.nhwc"
        made = self.rewriter.node(node.operator, inputs, attributes, name)
        self.last[node.outputs[0]] = made

    def _add_convolution(self, node: GraphNode) -> None:
        data, weight, *bias = node.inputs
        assert data is not None and weight is not None
        packed = self._transpose(
            self.plain[weight], WEIGHT_TO_PACKED, f"{weight.name}.packed"
        )
        if data not in self.last:
            name = f"{data.name}.nhwc"
            self.last[data] = self._transpose(self.plain[data], _TO_LAST, name)
        inputs = [self.last[data], packed, *self.rewriter.mapped(bias)]
        attributes = {k: v for k, v in node.attributes.items() if k != "groups"}
        self.last[node.outputs[0]] = self.rewriter.node(
            "conv2d_nhwc", inputs, attributes, f"{node.name}.nhwc"
        )

    def as_plain(self, value: Value) -> None:
        """Add a transpose, unless `value` exists in the old layout."""
        if value not in self.plain:
            self.plain[value] = self._transpose(
                self.last[value], _TO_SECOND, value.name
            )

    def _transpose(self, value: Value, axes: tuple[int, ...], name: str) -> Value:
        return self.rewriter.node("transpose", [value], {"axes": axes}, name)


def _axis(node: GraphNode) -> int:
    axis = node.attributes["axis"]
    assert isinstance(axis, int)
    return axis % len(_TO_LAST)


def _with_channels_last(
    attributes: Mapping[str, Attribute],
) -> dict[str, Attribute]:
    """Return the attributes of a pad, whose amounts are in the order of the axes."""
    changed = dict(attributes)
    for name in ("pad_before", "pad_after"):
        amounts = attributes.get(name)
        if isinstance(amounts, tuple):
            changed[name] = tuple(amounts[axis] for axis in _TO_LAST)
    return changed
