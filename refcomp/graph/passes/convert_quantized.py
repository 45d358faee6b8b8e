"""Compute in integers between `dequantize` and `quantize`.

Before::

    graph net(x: u8[N, 2]) -> (y) {
      const half: f32[] = [0.5]
      const one: u8[] = [1]
      const w: i8[2, 2] = [1, 2, 3, 4]
      const quarter: f32[] = [0.25]
      xf: f32[N, 2] = dequantize(x, half, one)
      wf: f32[2, 2] = dequantize(w, quarter)
      d: f32[N, 2] = matmul(xf, wf)
      y: u8[N, 2] = quantize(d, half, one)
    }

After::

    graph net(x: u8[N, 2]) -> (y) {
      const w: i8[2, 2] = [1, 2, 3, 4]
      const y.sx: f32[] = [0.5]
      const y.zx: u8[] = [1]
      const y.sw: f32[] = [0.25]
      const y.zw: i8[] = [0]
      const y.sy: f32[] = [0.5]
      const y.zy: u8[] = [1]
      y: u8[N, 2] = qlinear_matmul(x, y.sx, y.zx, w, y.sw, y.zw, y.sy, y.zy)
    }

A `conv2d`, `dense`, `gemm` or `matmul` of dequantized operands that is quantized again becomes
`qlinear_conv2d`, `quantized_dense` or `qlinear_matmul`. If the result has more than 8 bits, it
becomes `conv2d_integer` or `matmul_integer`, and `requantize`. A bias and a `relu` after it are
part of it. `relu`, `max_pool2d`, `concatenate` and operators that only move elements stay in
integers if scale and zero point are the same before and after. A change of scale becomes
`requantize`.

Requires: scales, zero points, weights and biases are constants. Run it before fold_constants, which
computes dequantized weights. Ensures: results differ by at most one quantum. Let q be the exact
quotient of an element, n the sum of the absolute values of its products and bias, both in quanta,
and r the error of the bias as an integer. Both graphs round a number within 12 * 2^-24 * n + r of
q, together. Only an anchor for which this is less than 1 is converted. Bits are equal if all scales
are powers of two, all sums are less than 2^24, and r is 0. They are also equal for what only moves
elements, for `max_pool2d` and for `relu`. Refuses: nothing.

Reference: B. Jacob et al., "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference", CVPR 2018; ONNX Runtime, QDQ fusion.
"""

from __future__ import annotations

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain
from refcomp.graph.passes.quantized_layers import (
    QuantizedLayer,
    Scale,
    find_layer,
    scale_of,
)
from refcomp.graph.verify import verify_graph

# Operators that move elements or choose among them, whatever the elements are.
_MOVES = {
    "depth_to_space",
    "expand_dims",
    "flatten",
    "flip",
    "identity",
    "max_pool2d",
    "moveaxis",
    "repeat",
    "reshape",
    "space_to_depth",
    "squeeze",
    "strided_slice",
    "swap_axes",
    "tile",
    "transpose",
}
_MAX_WAY = 32  # operators between dequantize and quantize
_EXACT_BITS = 16  # of integers that come back from floats unchanged


def convert_quantized(graph: Graph) -> Graph:
    """Return `graph` with operators on integers; the same object if none can be converted.

    Args:
        graph: any graph.

    Raises:
        UserError: `graph` is not a graph.

    Example::

        >>> graph = rc.graph.parse_graph('''
        ... graph net(x: i8[4]) -> (y) {
        ...   const s: f32[] = [0.5]
        ...   f: f32[4] = dequantize(x, s)
        ...   r: f32[4] = relu(f)
        ...   y: i8[4] = quantize(r, s) {dtype="int8"}
        ... }''')
        >>> print(rc.graph.convert_quantized(graph))
        graph net(x: i8[4]) -> (y) {
          const y.zy: i8[] = [0]
          y: i8[4] = maximum(x, y.zy)
        }
    """
    verify_graph(graph)
    if not any(node.operator == "quantize" for node in graph.nodes):
        return graph
    converter = _Converter(graph)
    for node in graph.nodes:
        converter.add(node)
    return converter.rewriter.finish_copy() if converter.is_changed else graph


class _Converter:
    """A rewriter that computes the operand of each `quantize` in integers where it can."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.rewriter = GraphRewriter(graph)
        self.makers = {value: n for n in graph.nodes for value in n.outputs}
        self.readers = graph.readers()
        self.is_changed = False

    def add(self, node: GraphNode) -> None:
        made = self._converted(node)
        if made is None:
            self.rewriter.copy(node)
            return
        self.is_changed = True
        self.rewriter.values[node.outputs[0]] = made

    def _converted(self, node: GraphNode) -> Value | None:
        """Return the result of a `quantize` that is computed in integers; None if it cannot be."""
        if node.operator != "quantize" or not is_plain(node):
            return None
        scale = scale_of(self.graph, node)
        read = node.inputs[0]
        if scale is None or scale.is_per_axis or read is None:
            return None
        if self._may_stay(read, scale, _MAX_WAY):
            made = self._stay(read, scale, node.name)
            is_new = made not in self.rewriter.values.values()
            # An output needs memory and a name of its own.
            if not is_new and node.outputs[0] in self.graph.outputs:
                made = self.rewriter.node("identity", [made], name=node.name)
            return made
        maker = self.makers.get(read)
        if maker is not None and maker.operator == "dequantize":
            return self._rescaled(maker, scale, node.name)
        layer = find_layer(self.graph, self.makers, self._is_inside, node, scale)
        return None if layer is None else self._add_layer(layer, node.name)

    def _is_inside(self, value: Value) -> bool:
        """Return True if one node reads the value, and no caller does."""
        return len(self.readers[value]) == 1 and value not in self.graph.outputs

    def _may_stay(self, value: Value, scale: Scale, left: int) -> bool:
        """Return True if floats are integers of this scale that were only moved or chosen."""
        node = self.makers.get(value)
        if node is None or not left or not is_plain(node):
            return False
        if node.operator == "dequantize":
            found = scale_of(self.graph, node)
            is_same = found is not None and found.is_same(scale)
            return is_same and scale.dtype.bits <= _EXACT_BITS
        if node.operator not in {*_MOVES, "relu", "concatenate"}:
            return False
        if not self._is_inside(value):
            return False
        return all(self._may_stay(read, scale, left - 1) for read in node.reads)

    def _stay(self, value: Value, scale: Scale, name: str) -> Value:
        """Return the integers of such floats."""
        node = self.makers[value]
        if node.operator == "dequantize":
            integers = node.inputs[0]
            assert integers is not None
            return self.rewriter.values[integers]
        given = [read for read in node.inputs if read is not None]
        inputs = [self._stay(read, scale, f"{read.name}.integers") for read in given]
        if node.operator == "relu":
            return self._clamped(inputs[0], scale, name)
        return self.rewriter.node(node.operator, inputs, node.attributes, name)

    def _clamped(self, integers: Value, scale: Scale, name: str) -> Value:
        """Return the integers of relu's results: none is less than the zero point."""
        if int(scale.zero.reshape(())) == scale.dtype.min_value:
            return integers
        zero = self.rewriter.constant(f"{name}.zy", scale.zero)
        return self.rewriter.node("maximum", [integers, zero], name=name)

    def _rescaled(self, maker: GraphNode, scale: Scale, name: str) -> Value | None:
        """Return the integers of a `dequantize` in another scale."""
        given = scale_of(self.graph, maker)
        if given is None or given.is_per_axis or not scale.is_near(given):
            return None
        integers = maker.inputs[0]
        assert integers is not None
        inputs = [self.rewriter.values[integers]]
        for operand, one in (("x", given), ("y", scale)):
            inputs.append(self.rewriter.constant(f"{name}.s{operand}", one.floats))
            inputs.append(self.rewriter.constant(f"{name}.z{operand}", one.zero))
        return self.rewriter.node("requantize", inputs, name=name)

    def _add_layer(self, layer: QuantizedLayer, name: str) -> Value:
        is_clamped = layer.has_relu and (
            int(layer.result.zero.reshape(())) != layer.result.dtype.min_value
        )
        made = layer.add(self.rewriter, f"{name}.product" if is_clamped else name)
        return self._clamped(made, layer.result, name) if is_clamped else made
