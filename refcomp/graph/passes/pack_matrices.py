"""Lay out constant matrices once as the target reads them.

On a host, the columns of a matrix that one tile of registers reads become a panel (`dense_pack`).
Weights of quantized products become panels of pairs (`quantized_dense_pack`), for the same bits.
A matrix of f16 or bf16 whose products are added up in f32 stays narrow in its panels. Elsewhere,
and for what dense_pack lacks, a matrix is transposed so that its rows are read in order.

Before::

    graph net(x: f32[N, 3]) -> (y) {
      const w: f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
      y: f32[N, 2] = gemm(x, w) {trans_b=True}
    }

After::

    graph net(x: f32[N, 3]) -> (y) {
      const w: f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
      w.packed: f32[3, 2] = transpose(w) {axes=[1, 0]}
      w.split: f32[3, 1, 2] = reshape(w.packed) {shape=[3, 1, 2]}
      w.panels: f32[1, 3, 2] = transpose(w.split) {axes=[1, 0, 2]}
      y: f32[N, 2] = dense_pack(x, w.panels) {units=2}
    }

Requires: the matrix is a constant. Ensures: each sum has the same terms in the same order. The new
nodes are of constants, which fold_constants computes. A matrix whose columns do not fill the last
panel is followed by zeros. Refuses: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.foundation.dtype import F32, F64
from refcomp.foundation.target import Target, as_target
from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain
from refcomp.graph.passes.quantized_panels import (
    QUANTIZED_PRODUCTS,
    QuantizedPanels,
    add_quantized_product,
    find_quantized_panels,
)
from refcomp.graph.passes.widen_products import sums_in_f32
from refcomp.topi.schedules.host_panels import choose_panel_width
from refcomp.topi.schedules.vector_registers import VectorRegisters, vector_registers

# The products whose second operand may lie in panels, and the attributes of a gemm that must have
# their default value. `trans_b` may have either value.
_PRODUCTS = ("gemm", "matmul", "dense")
_PLAIN = {"alpha": 1.0, "beta": 1.0, "trans_a": False, "out_dtype": None}
_DTYPES = (F32, F64)
_MIN_COLUMNS = 2


@dataclass(frozen=True, slots=True)
class _Panels:
    """The panels of a constant matrix.

    Attributes:
        matrix: the constant [depth, columns], or [columns, depth] if it is transposed.
        is_transposed: True if it is.
        depth: the extent that is reduced.
        columns: the other extent.
        width: the columns of a panel.
    """

    matrix: Value
    is_transposed: bool
    depth: int
    columns: int
    width: int

    def add_to(self, rewriter: GraphRewriter) -> Value:
        """Add the nodes that lay out the matrix, and return their result."""
        (matrix,) = rewriter.mapped([self.matrix])
        assert matrix is not None
        name = matrix.name
        if self.is_transposed:
            matrix = _transposed(rewriter, matrix)
        count = -(-self.columns // self.width)
        spare = count * self.width - self.columns
        if spare:
            border = {"pad_before": (0, 0), "pad_after": (0, spare)}
            matrix = rewriter.node("pad", [matrix], border, f"{name}.padded")
        shape = {"shape": (self.depth, count, self.width)}
        split = rewriter.node("reshape", [matrix], shape, f"{name}.split")
        axes = {"axes": (1, 0, 2)}
        return rewriter.node("transpose", [split], axes, f"{name}.panels")


def pack_matrices(graph: Graph, target: Target | str = "llvm") -> Graph:
    """Return `graph` with constant matrices laid out for `target`; the same object if they are.

    Args:
        graph: any graph.
        target: what the graph is compiled for. On hosts, panels fit the registers of its `-mcpu`.

    Raises:
        UserError: the target is unknown, or LLVM does not know its processor.
    """
    chosen = as_target(target)
    candidates = [node for node in graph.nodes if _is_candidate(graph, node)]
    if not candidates:
        return graph
    registers = vector_registers(chosen) if chosen.kind == "llvm" else None
    panels = {node: _panels_of(graph, node, registers) for node in candidates}
    if not any(panels[node] or _is_transposed_gemm(node) for node in candidates):
        return graph
    rewriter = GraphRewriter(graph)
    # Several nodes may read the same panels.
    laid_out: dict[_Panels | QuantizedPanels, Value] = {}
    for node in graph.nodes:
        wanted = panels.get(node)
        if isinstance(wanted, QuantizedPanels):
            if wanted not in laid_out:
                laid_out[wanted] = wanted.add_to(rewriter, graph)
            add_quantized_product(rewriter, node, laid_out[wanted], wanted.columns)
        elif wanted is not None:
            if wanted not in laid_out:
                laid_out[wanted] = wanted.add_to(rewriter)
            _add_packed(rewriter, node, laid_out[wanted], wanted.columns)
        elif node in panels and _is_transposed_gemm(node):
            _add_transposed(rewriter, node)
        else:
            rewriter.copy(node)
    return rewriter.finish_copy()


def _is_candidate(graph: Graph, node: GraphNode) -> bool:
    if node.operator in QUANTIZED_PRODUCTS:
        return True
    return (
        node.operator in _PRODUCTS
        and is_plain(node)
        and node.inputs[1] in graph.constants
    )


def _is_transposed_gemm(node: GraphNode) -> bool:
    return node.operator == "gemm" and bool(node.attributes.get("trans_b"))


def _is_transposed(node: GraphNode) -> bool:
    return node.operator == "dense" or bool(node.attributes.get("trans_b"))


def _panels_of(
    graph: Graph, node: GraphNode, registers: VectorRegisters | None
) -> _Panels | QuantizedPanels | None:
    """Return the panels of a node's matrix; None if it has none."""
    if registers is None:
        return None
    if node.operator in QUANTIZED_PRODUCTS:
        return find_quantized_panels(graph, node, registers)
    data, matrix = node.inputs[:2]
    assert data is not None and matrix is not None
    is_narrow = sums_in_f32(node)
    is_default = all(
        node.attributes.get(name, default) == default
        for name, default in _PLAIN.items()
        if not (is_narrow and name == "out_dtype")
    )
    rank = len(data.shape)
    if not is_default or not (is_narrow or matrix.dtype in _DTYPES):
        return None
    if len(matrix.shape) != 2 or rank < 1:
        return None
    sides = [extent for extent in matrix.shape if isinstance(extent, int)]
    depth, columns = reversed(sides) if _is_transposed(node) else sides
    if depth < 1 or columns < _MIN_COLUMNS:
        return None
    rows = data.shape[-2] if rank > 1 else 1
    known = rows if isinstance(rows, int) else None
    dtype = F32 if is_narrow else matrix.dtype
    width = choose_panel_width(known, depth, columns, dtype, registers)
    return _Panels(matrix, _is_transposed(node), depth, columns, width)


def _add_packed(
    rewriter: GraphRewriter, node: GraphNode, panels: Value, columns: int
) -> None:
    """Add the product with panels, and what the node adds to it."""
    data, _, *rest = rewriter.mapped(node.inputs)
    if sums_in_f32(node):
        name = f"{node.name}.data"
        data = rewriter.node("cast", [data], {"dtype": str(F32)}, name)
    added = rest[0] if rest else None
    is_bias = added is not None and tuple(added.shape) == (columns,)
    is_last = added is None or is_bias
    result = rewriter.node(
        "dense_pack",
        [data, panels, *([added] if is_bias else [])],
        {"units": columns},
        node.name if is_last else f"{node.name}.product",
    )
    if not is_last:
        result = rewriter.node("add", [result, added], {}, node.name)
    rewriter.values[node.outputs[0]] = result


def _add_transposed(rewriter: GraphRewriter, node: GraphNode) -> None:
    """Add the gemm with a matrix whose rows are read in order."""
    a, b, *c = rewriter.mapped(node.inputs)
    assert b is not None
    attributes = {**node.attributes, "trans_b": False}
    rewriter.values[node.outputs[0]] = rewriter.node(
        "gemm", [a, _transposed(rewriter, b), *c], attributes, node.name
    )


def _transposed(rewriter: GraphRewriter, matrix: Value) -> Value:
    return rewriter.node(
        "transpose", [matrix], {"axes": (1, 0)}, f"{matrix.name}.packed"
    )
