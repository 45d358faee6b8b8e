"""Compute 3 x 3 convolutions by Winograd's filtering where an estimate says that it is faster.

Before::

    graph net(x: f32[N, 2, 56, 56, 16]) -> (y) {
      const k: f32[1] = [0.5]
      w: f32[2, 2, 3, 3, 16, 16] = broadcast_to(k) {shape=[2, 2, 3, 3, 16, 16]}
      y: f32[N, 2, 56, 56, 16] = conv2d_nchwc(x, w) {padding=[1, 1, 1, 1]}
    }

After::

    graph net(x: f32[N, 2, 56, 56, 16]) -> (y) {
      const k: f32[1] = [0.5]
      w: f32[2, 2, 3, 3, 16, 16] = broadcast_to(k) {shape=[2, 2, 3, 3, 16, 16]}
      w.winograd: f32[4, 4, 2, 2, 16, 16] = conv2d_nchwc_winograd_weight(w)
      y: f32[N, 2, 56, 56, 16] = conv2d_nchwc_winograd(x, w.winograd) {padding=[1, 1, 1, 1]}
    }

The estimate (`refcomp.topi.schedules.convolution_cost`) must promise a gain of 15 percent:
transformed weights take 16/9 of the memory.

Requires: channels in blocks, strides and dilation of 1, one group, f32 or f64, images of constant
height and width, and weights that depend on constants only. Ensures: results differ by rounding,
and a NaN or an infinity may make all results of its 2 x 2 tile NaN. The weights are transformed by
a node, which fold_constants computes. A graph for another target than a host is returned as the
same object. Refuses: nothing.

Reference: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.
"""

from __future__ import annotations

from refcomp.foundation.dtype import F32, F64
from refcomp.foundation.target import Target, as_target
from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain
from refcomp.topi.schedules.convolution_cost import ConvolutionSize, winograd_gain
from refcomp.topi.schedules.vector_registers import VectorRegisters, vector_registers

_MIN_GAIN = 1.15
_WINDOW = 3


def use_winograd(graph: Graph, target: Target | str = "llvm") -> Graph:
    """Return `graph` with Winograd's filtering where it pays, if `target` is a host.

    Args:
        graph: any graph.
        target: what the graph is compiled for. The gain depends on the vectors of its `-mcpu`.

    Raises:
        UserError: the target is unknown, or LLVM does not know its processor.
    """
    chosen = as_target(target)
    if chosen.kind != "llvm":
        return graph
    candidates = _candidates(graph)
    if not candidates:
        return graph
    registers = vector_registers(chosen)
    winning = {node for node in candidates if _is_faster(node, registers)}
    if not winning:
        return graph
    rewriter = GraphRewriter(graph)
    kernels: dict[Value, Value] = {}
    for node in graph.nodes:
        if node not in winning:
            rewriter.copy(node)
            continue
        data, weight, *bias = rewriter.mapped(node.inputs)
        assert weight is not None
        if weight not in kernels:
            kernels[weight] = rewriter.node(
                "conv2d_nchwc_winograd_weight",
                [weight],
                {},
                f"{weight.name}.winograd",
            )
        padding = node.attributes.get("padding", (0, 0, 0, 0))
        rewriter.values[node.outputs[0]] = rewriter.node(
            "conv2d_nchwc_winograd",
            [data, kernels[weight], *bias],
            {"padding": padding},
            node.name,
        )
    return rewriter.finish_copy()


def _candidates(graph: Graph) -> list[GraphNode]:
    """Return the convolutions that Winograd's filtering can compute."""
    known = set(graph.constants)  # values that depend on constants only
    found = []
    for node in graph.nodes:
        if node.reads and known.issuperset(node.reads):
            known.update(node.outputs)
        elif node.operator == "conv2d_nchwc" and is_plain(node):
            weight = node.inputs[1]
            if weight in known and _is_possible(node):
                found.append(node)
    return found


def _is_possible(node: GraphNode) -> bool:
    attributes = node.attributes
    result, weight = node.outputs[0], node.reads[1]
    pairs = [tuple(_pair(node, name)) for name in ("strides", "dilation")]
    return (
        pairs == [(1, 1), (1, 1)]
        and attributes.get("groups", 1) == 1
        and weight.shape[2:4] == (_WINDOW, _WINDOW)
        and result.dtype in (F32, F64)
        and all(isinstance(extent, int) for extent in result.shape[1:])
    )


def _pair(node: GraphNode, name: str) -> tuple[int | float, ...]:
    pair = node.attributes.get(name, (1, 1))
    assert isinstance(pair, tuple)
    return pair


def _is_faster(node: GraphNode, registers: VectorRegisters) -> bool:
    weight = [extent for extent in node.reads[1].shape if isinstance(extent, int)]
    # The batch may be symbolic.
    result = [extent for extent in node.outputs[0].shape if isinstance(extent, int)]
    outs, blocks, _, _, lanes, out = weight
    _, height, width, _ = result[-4:]
    if 0 in (*weight, *result):
        return False
    size = ConvolutionSize(
        channels=blocks * lanes,
        outs=outs * out,
        height=height,
        width=width,
        element_bytes=node.outputs[0].dtype.bytes,
    )
    return winograd_gain(size, registers) >= _MIN_GAIN
