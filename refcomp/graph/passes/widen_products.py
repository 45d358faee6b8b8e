"""Let hosts add up products of f16 and bf16 by the kernels of f32.

Before::

    graph net(x: f16[N, 2]) -> (y) {
      const w: f16[2, 2] = [1.0, 2.0, 3.0, 4.0]
      y: f32[N, 2] = matmul(x, w) {out_dtype="f32"}
    }

After::

    graph net(x: f16[N, 2]) -> (y) {
      const w.f32: f32[2, 2] = [1.0, 2.0, 3.0, 4.0]
      x.f32: f32[N, 2] = cast(x) {dtype="f32"}
      y: f32[N, 2] = matmul(x.f32, w.f32)
    }

Hosts convert narrow floats to f32 before they multiply. A kernel of narrow operands does so for
each product, and has neither blocks of channels nor panels. After this pass, each element is
converted once; a constant is converted by the pass.

A product of few rows of data stays narrow. It takes the time in which the matrix is read from
memory, and a narrow matrix has half the bytes (see `pack_matrices`).

Requires: a convolution or product with f32 as `out_dtype`, which converts its operands to f32
before it multiplies. Ensures: no bit changes. A graph for another target than a host, or without
such a node, is returned as the same object. Refuses: nothing.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import F32, DType, as_dtype
from refcomp.foundation.target import Target, as_target
from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain, pattern_of
from refcomp.topi.operator import find_operator

# Products with a matrix, and the rows of data up to which they wait for memory.
_MATRIX_PRODUCTS = ("matmul", "dense")
_FEW_ROWS = 4


def widen_products(graph: Graph, target: Target | str = "llvm") -> Graph:
    """Return `graph` with products of f32 instead of f16 and bf16, if `target` is a host.

    Args:
        graph: any graph.
        target: what the graph is compiled for.

    Raises:
        UserError: the target is unknown.
    """
    if as_target(target).kind != "llvm":
        return graph
    wanted = {node for node in graph.nodes if _is_wanted(node)}
    if not wanted:
        return graph
    rewriter = GraphRewriter(graph)
    casts: dict[Value, Value] = {}

    def widened(value: Value | None) -> Value | None:
        if value is None or value.dtype == F32:
            return None if value is None else rewriter.values[value]
        if value not in casts:
            casts[value] = _cast(rewriter, graph, value)
        return casts[value]

    for node in graph.nodes:
        if node not in wanted:
            rewriter.copy(node)
            continue
        factors = [widened(value) for value in node.inputs]
        attributes = {k: v for k, v in node.attributes.items() if k != "out_dtype"}
        made = rewriter.node(node.operator, factors, attributes, node.name)
        rewriter.values[node.outputs[0]] = made
    return rewriter.finish_copy()


def _cast(rewriter: GraphRewriter, graph: Graph, value: Value) -> Value:
    name = f"{value.name}.{F32}"
    if value in graph.constants:
        wide = graph.constants[value].astype(np.float32)
        return rewriter.constant(name, wide, copy=False)
    attributes = {"dtype": str(F32)}
    return rewriter.node("cast", [rewriter.values[value]], attributes, name)


def is_narrow_float(dtype: DType) -> bool:
    """Return True for f16 and bf16."""
    return dtype.is_float and dtype.bits == 16


def sums_in_f32(node: GraphNode) -> bool:
    """Return True if a node adds up products of two narrow floats as f32."""
    dtype = node.attributes.get("out_dtype")
    if dtype is None or as_dtype(str(dtype)) != F32:
        return False
    return all(
        value is not None and is_narrow_float(value.dtype) for value in node.inputs[:2]
    )


def _is_wanted(node: GraphNode) -> bool:
    if not is_plain(node) or pattern_of(node) != "anchor" or len(node.inputs) < 2:
        return False
    operator = find_operator(node.operator)
    can_choose = any(spec.name == "out_dtype" for spec in operator.attributes)
    return can_choose and sums_in_f32(node) and not _has_few_rows(node)


def _has_few_rows(node: GraphNode) -> bool:
    """Return True for the product of few rows with a matrix."""
    data = node.inputs[0]
    assert data is not None
    if node.operator not in _MATRIX_PRODUCTS or node.attributes.get("trans_a"):
        return False
    rows = data.shape[-2] if len(data.shape) > 1 else 1
    return isinstance(rows, int) and rows <= _FEW_ROWS
