"""Give convolutions on the host channels in blocks, so that a block fills vector registers.

Before::

    graph net(x: f32[N, 1, 4, 4], w: f32[8]) -> (y) {
      const k: f32[8, 1, 1, 1] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
      c: f32[N, 8, 4, 4] = conv2d(x, k, w)
      r: f32[N, 8, 4, 4] = relu(c)
      y: f32[N, 8, 2, 2] = max_pool2d(r) {kernel=[2, 2], strides=[2, 2]}
    }

After::

    graph net(x: f32[N, 1, 4, 4], w: f32[8]) -> (y) {
      const k: f32[8, 1, 1, 1] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
      k.packed: f32[1, 1, 1, 1, 1, 8] = \
layout_transform(k) {dst_layout="OIHW1i8o", src_layout="OIHW"}
      w.blocks: f32[1, 8] = reshape(w) {shape=[1, 8]}
      x.nchw1c: f32[N, 1, 4, 4, 1] = \
layout_transform(x) {dst_layout="NCHW1c", src_layout="NCHW"}
      c.nchw8c: f32[N, 1, 4, 4, 8] = conv2d_nchwc(x.nchw1c, k.packed, w.blocks)
      r.nchw8c: f32[N, 1, 4, 4, 8] = relu(c.nchw8c)
      y.nchw8c: f32[N, 1, 2, 2, 8] = \
max_pool2d(r.nchw8c) {kernel=[2, 2], layout="NCHWc", strides=[2, 2]}
      y: f32[N, 8, 2, 2] = layout_transform(y.nchw8c) {dst_layout="NCHW", src_layout="NCHW8c"}
    }

The target's vector registers decide how long a block is; a number of channels that this does not
divide has blocks of half the length. Elementwise operators, poolings, pads and concatenations keep
the blocks of their inputs. All other operators read [n, c, h, w].

If blocks do not divide the channels of groups, a convolution of single pixels becomes a product of
matrices for each group. Reshapes around it cost nothing (see `refcomp.graph.placement`).

`qlinear_conv2d` and `conv2d_integer` get blocks, too (`refcomp.graph.passes.quantized_blocks`).

Requires: a convolution that is converted has constant weights. It adds up f32 in f32, or integers
of 8 bits in i32. Blocks divide its output channels; those of a group, if there are groups. Each
channel may be a group. The images of products have constant extents, no stride and no border.
Ensures: sums have another order, so that results differ by rounding. Weights are packed by nodes,
which fold_constants computes. A graph for another target than a host, or without such a
convolution, is returned as the same object. Refuses: nothing.

Reference: Y. Liu et al., "Optimizing CNN Model Inference on CPUs", USENIX ATC 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refcomp.foundation.dtype import F32
from refcomp.foundation.target import Target, as_target
from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain, pattern_of
from refcomp.graph.passes.quantized_blocks import (
    QUANTIZED_CONVOLUTIONS,
    add_quantized_convolution,
)
from refcomp.topi.operator import Attribute, find_operator
from refcomp.topi.schedules.vector_registers import vector_registers

_POOLS = (
    "max_pool2d",
    "avg_pool2d",
    "lp_pool2d",
    "global_avg_pool2d",
    "global_max_pool2d",
    "global_lp_pool2d",
)
_PADS = ("pad", "mirror_pad")
_CONVOLUTIONS = ("conv2d", *QUANTIZED_CONVOLUTIONS)
# Elementwise operators that have an axis, which only scales per axis need.
_SCALED = ("quantize", "dequantize", "requantize")
_RANK = 4  # of images [n, c, h, w]
_CHANNELS = 1  # their axis of channels


def block_channels(graph: Graph, target: Target | str = "llvm") -> Graph:
    """Return `graph` with channels in blocks around convolutions, if `target` is a host.

    Args:
        graph: any graph.
        target: what the graph is compiled for. Blocks fit the vector registers of its `-mcpu`.

    Raises:
        UserError: the target is unknown, or LLVM does not know its processor.
    """
    chosen = as_target(target)
    if chosen.kind != "llvm":
        return graph
    if all(node.operator not in _CONVOLUTIONS for node in graph.nodes):
        return graph
    block = vector_registers(chosen).channel_block
    blocker = Blocker(graph, (block, block // 2))
    for node in graph.nodes:
        blocker.add(node)
    if not blocker.blocked and not blocker.has_products:
        return graph
    for value in graph.outputs:
        blocker.as_plain(value)
    return blocker.rewriter.finish_copy()


class Blocker:
    """A rewriter that knows each value plainly, in blocks, or both.

    Args:
        graph: the graph to copy.
        lengths: the lengths that blocks may have, the best one first.
    """

    def __init__(self, graph: Graph, lengths: Sequence[int]) -> None:
        self.graph = graph
        self.lengths = lengths
        self.rewriter = GraphRewriter(graph)
        self.plain = self.rewriter.values  # old value -> new value [n, c, h, w]
        # Old value -> new value in blocks, as its node makes it.
        self.blocked: dict[Value, Value] = {}
        # Old value, length of a block -> new value that a change of layout makes.
        self.changed: dict[tuple[Value, int], Value] = {}
        # True once a convolution became products of matrices.
        self.has_products = False

    def add(self, node: GraphNode) -> None:
        is_added = False
        if is_plain(node) and len(node.outputs) == 1:
            is_added = (
                self._add_convolution(node)
                or add_quantized_convolution(self, node)
                or self._add_pooling(node)
                or self._add_pad(node)
                or self._add_concatenation(node)
                or self._add_pointwise(node)
            )
        if not is_added:
            for value in node.reads:
                self.as_plain(value)
            self.rewriter.copy(node)

    def as_plain(self, value: Value) -> None:
        """Add a change of layout, unless `value` exists as [n, c, h, w]."""
        if value not in self.plain:
            block = self._block_of(value)
            self.plain[value] = self._changed(
                self.blocked[value], f"NCHW{block}c", "NCHW", value.name
            )

    def _changed(self, value: Value, source: str, target: str, name: str) -> Value:
        layouts = {"src_layout": source, "dst_layout": target}
        return self.rewriter.node("layout_transform", [value], layouts, name)

    def _block_of(self, value: Value) -> int:
        """Return the length of the blocks in which the node of `value` makes it."""
        length = self.blocked[value].shape[-1]
        assert isinstance(length, int)
        return length

    def length(self, channels: int) -> int:
        """Return the best length of blocks for a number of channels; 0 if none divides it."""
        fitting = [length for length in self.lengths if channels % length == 0]
        return fitting[0] if fitting and channels else 0

    def in_blocks(self, value: Value, block: int) -> Value:
        """Return `value` in blocks of this length, by a change of layout if needed."""
        if value in self.blocked and self._block_of(value) == block:
            return self.blocked[value]
        if (value, block) not in self.changed:
            source, layout = self.plain.get(value), "NCHW"
            if source is None:
                source = self.blocked[value]
                layout = f"NCHW{self._block_of(value)}c"
            name = f"{value.name}.nchw{block}c"
            changed = self._changed(source, layout, f"NCHW{block}c", name)
            self.changed[value, block] = changed
        return self.changed[value, block]

    def make(
        self,
        node: GraphNode,
        block: int,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute],
        operator: str = "",
    ) -> bool:
        """Add the node that computes a node's result in blocks."""
        name = f"{node.name}.nchw{block}c"
        made = self.rewriter.node(operator or node.operator, inputs, attributes, name)
        self.blocked[node.outputs[0]] = made
        return True

    def _add_convolution(self, node: GraphNode) -> bool:
        if node.operator != "conv2d" or node.attributes.get("out_dtype") is not None:
            return False
        data, weight, *rest = node.inputs
        assert data is not None and weight is not None
        if weight not in self.graph.constants or data.dtype != F32:
            return False
        outs, depth, *_ = self.graph.constants[weight].shape
        groups = node.attributes.get("groups", 1)
        assert isinstance(groups, int)
        if groups == outs and depth == 1 and groups > 1:
            return self._add_depthwise(node, groups)
        block = self.length(outs // groups)
        read = self.read_length(data, depth, groups)
        if not block or not read:
            return self._add_products(node, groups)
        layout = f"OIHW{read}i{block}o"
        packed = self._changed(
            self.plain[weight], "OIHW", layout, f"{weight.name}.packed"
        )
        bias = self._bias(rest, outs, block)
        inputs = [self.in_blocks(data, read), packed, bias]
        return self.make(node, block, inputs, node.attributes, "conv2d_nchwc")

    def _add_products(self, node: GraphNode, groups: int) -> bool:
        """Add a convolution of single pixels in groups as products of matrices.

        The weights of a group are a matrix, and so are its pixels, of which each is a column.
        """
        data, weight, *rest = node.inputs
        assert data is not None and weight is not None
        outs, depth, *kernel = self.graph.constants[weight].shape
        images, _, *pixels = data.shape
        extents = (images, outs, depth, *pixels)
        sizes = [size for size in extents if isinstance(size, int) and size > 0]
        is_single = (
            kernel == [1, 1]
            and node.attributes.get("strides", (1, 1)) == (1, 1)
            and not any(_numbers(node.attributes.get("padding")))
        )
        if groups == 1 or not is_single or len(sizes) < len(extents):
            return False
        images, *_, height, width = sizes
        group = outs // groups
        matrices = self._reshaped(weight, (groups, group, depth))
        columns = self._reshaped(data, (images, groups, depth, height * width))
        name = node.name
        sums = self.rewriter.node("matmul", [matrices, columns], {}, f"{name}.groups")
        if rest and rest[0] is not None:
            bias = self._reshaped(rest[0], (groups, group, 1))
            sums = self.rewriter.node("add", [sums, bias], {}, f"{name}.biased")
        shape = {"shape": (images, outs, height, width)}
        self.plain[node.outputs[0]] = self.rewriter.node("reshape", [sums], shape, name)
        self.has_products = True
        return True

    def _reshaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        self.as_plain(value)
        name = f"{value.name}.groups"
        return self.rewriter.node(
            "reshape", [self.plain[value]], {"shape": shape}, name
        )

    def read_length(self, data: Value, depth: int, groups: int) -> int:
        """Return the length of the blocks that a convolution reads; 0 if none is possible."""
        if groups == 1 and data in self.blocked:
            return self._block_of(data)
        # One block may hold all channels, such as the three of a picture.
        return self.length(depth) or (depth if groups == 1 else 0)

    def _bias(
        self, rest: Sequence[Value | None], outs: int, block: int
    ) -> Value | None:
        bias = rest[0] if rest else None
        if bias is None:
            return None
        self.as_plain(bias)
        shape = {"shape": (outs // block, block)}
        return self.rewriter.node(
            "reshape", [self.plain[bias]], shape, f"{bias.name}.blocks"
        )

    def _add_depthwise(self, node: GraphNode, channels: int) -> bool:
        data, weight, *rest = node.inputs
        assert data is not None and weight is not None
        block = self.depthwise_length(data, channels)
        if not block:
            return False
        packed = self._changed(
            self.plain[weight], "OIHW", f"OIHW{block}o", f"{weight.name}.packed"
        )
        kernel = self.graph.constants[weight].shape[2:]
        shape = {"shape": (channels // block, *kernel, block)}
        factors = self.rewriter.node(
            "reshape", [packed], shape, f"{weight.name}.blocks"
        )
        inputs = [
            self.in_blocks(data, block),
            factors,
            self._bias(rest, channels, block),
        ]
        attributes = {k: v for k, v in node.attributes.items() if k != "groups"}
        return self.make(node, block, inputs, attributes, "depthwise_conv2d_nchwc")

    def depthwise_length(self, data: Value, channels: int) -> int:
        """Return the length of the blocks of channels that are convolved alone; 0 for none."""
        block = self.length(channels)
        if data in self.blocked:
            block = self._block_of(data)
        return block if block and channels % block == 0 else 0

    def _add_pooling(self, node: GraphNode) -> bool:
        if node.operator not in _POOLS or node.inputs[0] not in self.blocked:
            return False
        # A pooling may have a layout that is not that of the convolution before it.
        if node.attributes.get("layout", "NCHW") != "NCHW":
            return False
        block = self._block_of(node.inputs[0])
        inputs = [self.blocked[node.inputs[0]]]
        return self.make(node, block, inputs, {**node.attributes, "layout": "NCHWc"})

    def _add_pad(self, node: GraphNode) -> bool:
        if node.operator not in _PADS or node.inputs[0] not in self.blocked:
            return False
        attributes = dict(node.attributes)
        for name in ("pad_before", "pad_after"):
            amounts = attributes.get(name)
            if not isinstance(amounts, tuple):
                continue
            if amounts[_CHANNELS]:
                return False
            attributes[name] = (*amounts, 0)
        block = self._block_of(node.inputs[0])
        inputs = [self.blocked[node.inputs[0]], *self._others(node)]
        return self.make(node, block, inputs, attributes)

    def _others(self, node: GraphNode) -> list[Value | None]:
        """Return all inputs but the first one, plainly."""
        for value in node.reads[1:]:
            self.as_plain(value)
        return self.rewriter.mapped(node.inputs[1:])

    def _add_concatenation(self, node: GraphNode) -> bool:
        if node.operator != "concatenate":
            return False
        lengths = [self._block_of(v) for v in node.reads if v in self.blocked]
        axis = node.attributes["axis"]
        assert isinstance(axis, int)
        if not lengths or len(node.outputs[0].shape) != _RANK:
            return False
        block = min(lengths)
        channels = [value.shape[_CHANNELS] for value in node.reads]
        if not all(isinstance(c, int) and c % block == 0 for c in channels):
            return False
        inputs = [self.in_blocks(value, block) for value in node.reads]
        return self.make(node, block, inputs, {"axis": axis % _RANK})

    def _add_pointwise(self, node: GraphNode) -> bool:
        if pattern_of(node) not in ("elementwise", "broadcast"):
            return False
        operator = find_operator(node.operator)
        shape = node.outputs[0].shape
        lengths = [
            self._block_of(value)
            for value in node.reads
            if value in self.blocked and value.shape == shape
        ]
        has_axis = any(spec.name == "axis" for spec in operator.attributes)
        if not lengths or (has_axis and not _has_one_scale(node)):
            return False
        block = min(lengths)
        if not all(_broadcasts(value, shape) for value in node.reads):
            return False
        inputs = [
            None if value is None else self._operand(value, block)
            for value in node.inputs
        ]
        return self.make(node, block, inputs, node.attributes)

    def _operand(self, value: Value, block: int) -> Value:
        """Return an operand that broadcasts over images in blocks as `value` does over others."""
        rank = len(value.shape)
        if all(dim == 1 for dim in value.shape):
            self.as_plain(value)
            return self.plain[value]
        if rank == _RANK and value.shape[_CHANNELS] != 1:
            return self.in_blocks(value, block)
        self.as_plain(value)
        plain = self.plain[value]
        name = f"{value.name}.chw{block}c"
        if rank == _RANK - 1 and value.shape[0] != 1:
            return self._changed(plain, "CHW", f"CHW{block}c", name)
        # The place within a block is a last axis, along which the operand is repeated.
        return self.rewriter.node("expand_dims", [plain], {"axis": rank}, name)


def _has_one_scale(node: GraphNode) -> bool:
    """Return True for a change of quantization by scales and zero points for the whole tensor."""
    shapes = [value.shape for value in node.inputs[1:] if value is not None]
    # A scale for a block of the data has the rank of the data, even if all is one block.
    return node.operator in _SCALED and all(s in ((), (1,)) for s in shapes)


def _numbers(attribute: Attribute | None) -> tuple[object, ...]:
    return attribute if isinstance(attribute, tuple) else ()


def _broadcasts(value: Value, shape: Sequence[object]) -> bool:
    """Return True if an operand has the channels of images of `shape`, or one for all."""
    if len(value.shape) > _RANK:
        return False
    place = _CHANNELS - (_RANK - len(value.shape))
    return place < 0 or value.shape[place] in (1, shape[_CHANNELS])
