"""Multiply in a narrow dtype and add in f32: convolutions and matrix products read f16 or bf16.

Before::

    graph net(x: f32[N, 2]) -> (y) {
      const w: f32[2, 2] = [1.0, 2.0, 3.0, 4.0]
      p: f32[N, 2] = matmul(x, w)
      r: f32[N, 2] = relu(p)
      y: f32[N, 2] = matmul(r, w)
    }

After::

    graph net(x: f32[N, 2]) -> (y) {
      const w: f32[2, 2] = [1.0, 2.0, 3.0, 4.0]
      x.f16: f16[N, 2] = cast(x) {dtype="f16"}
      w.f16: f16[2, 2] = cast(w) {dtype="f16"}
      p: f32[N, 2] = matmul(x.f16, w.f16) {out_dtype="f32"}
      r: f32[N, 2] = relu(p)
      r.f16: f16[N, 2] = cast(r) {dtype="f16"}
      y: f32[N, 2] = matmul(r.f16, w.f16) {out_dtype="f32"}
    }

All other operators stay in f32: sums, norms, softmax, losses. fold_constants computes the casts of
constants, and fuse_operators joins others to the nodes that make their operands.

Requires: run fold_batch_norm before it, since a narrow weight is not scaled. Ensures: each value is
cast once. Let u be 2^-11 for f16 and 2^-8 for bf16. A sum of products a * b differs from that of
the f32 operands by at most (2 u + u * u) * sum(abs(a * b)), and the rounding of the sums. Operands
beyond the range of the narrow dtype, or subnormal in it, are not covered. Refuses: other dtypes.

Reference: P. Micikevicius et al., "Mixed Precision Training", ICLR 2018.
"""

from __future__ import annotations

from refcomp.foundation.dtype import F32, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import pattern_of
from refcomp.graph.verify import verify_graph
from refcomp.te.tensor import DTypeLike
from refcomp.topi.operator import find_operator

_NARROW = ("float16", "bfloat16")


def mixed_precision(graph: Graph, dtype: DTypeLike = "float16") -> Graph:
    """Return `graph` with products of a narrow dtype; the same object if it has none.

    Args:
        graph: any graph; `optimize(graph, ["fold_constants", "fold_batch_norm"])` prepares it.
        dtype: float16 or bfloat16.

    Raises:
        UserError: the dtype is another one, or `graph` is not a graph.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N", 2))
        >>> w = builder.constant("w", np.eye(2, dtype="float32"))
        >>> net = builder.finish([builder.node("matmul", [x, w], name="y")])
        >>> rc.graph.mixed_precision(net).nodes[-1].attributes
        {'out_dtype': 'f32'}
    """
    verify_graph(graph)
    narrow = as_dtype(dtype)
    if narrow not in map(as_dtype, _NARROW):
        raise UserError(
            f"mixed_precision cannot multiply in {narrow}",
            remedy=f"choose {' or '.join(_NARROW)}",
        )
    if not any(map(_is_convertible, graph.nodes)):
        return graph
    rewriter = GraphRewriter(graph)
    casts: dict[Value, Value] = {}  # new value -> its cast

    def narrowed(value: Value | None) -> Value | None:
        if value is None:
            return None
        new = rewriter.values[value]
        if new not in casts:
            attributes = {"dtype": str(narrow)}
            name = f"{value.name}.{narrow}"
            casts[new] = rewriter.node("cast", [new], attributes, name)
        return casts[new]

    for node in graph.nodes:
        if not _is_convertible(node):
            rewriter.copy(node)
            continue
        factors = [narrowed(value) for value in node.inputs[:2]]
        bias = rewriter.mapped(node.inputs[2:])
        attributes = {**node.attributes, "out_dtype": str(F32)}
        made = rewriter.node(node.operator, [*factors, *bias], attributes, node.name)
        rewriter.values[node.outputs[0]] = made
    return rewriter.finish_copy()


def _is_convertible(node: GraphNode) -> bool:
    """Return True if a node adds up products of two f32 operands in a dtype that it may choose."""
    if pattern_of(node) != "anchor" or len(node.inputs) < 2:
        return False
    operator = find_operator(node.operator)
    can_choose = any(spec.name == "out_dtype" for spec in operator.attributes)
    if not can_choose or node.attributes.get("out_dtype") is not None:
        return False
    return all(value is not None and value.dtype == F32 for value in node.inputs[:2])
