"""Lay out constant weights of quantized products in panels of pairs (`quantized_dense_pack`).

`matmul_integer`, `qlinear_matmul` and `quantized_dense` subtract a zero point from each weight that
they read, and read it once for each row of the data. Panels hold the differences, and two of them
in each i32. So a host adds the products of whole vectors of pairs by one instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain
from refcomp.topi.contraction.quantized_packed_dense import pack_pairs_numpy
from refcomp.topi.schedules.host_panels import choose_pair_panel_width
from refcomp.topi.schedules.vector_registers import VectorRegisters


@dataclass(frozen=True, slots=True)
class _Operands:
    """The places of a product's operands among its inputs; None for those that it lacks."""

    weight: int
    weight_zero: int
    data_zero: int
    data_scale: int | None = None
    weight_scale: int | None = None
    scale: int | None = None
    bias: int | None = None
    zero: int | None = None
    is_transposed: bool = False


_OPERANDS = {
    "matmul_integer": _Operands(weight=1, data_zero=2, weight_zero=3),
    "qlinear_matmul": _Operands(
        data_scale=1,
        data_zero=2,
        weight=3,
        weight_scale=4,
        weight_zero=5,
        scale=6,
        zero=7,
    ),
    "quantized_dense": _Operands(
        weight=1,
        data_scale=2,
        weight_scale=3,
        scale=4,
        bias=5,
        data_zero=6,
        weight_zero=7,
        zero=8,
        is_transposed=True,
    ),
}
QUANTIZED_PRODUCTS = tuple(_OPERANDS)


@dataclass(frozen=True, slots=True)
class QuantizedPanels:
    """The panels of the weights of a quantized product. Equal ones can be shared.

    Attributes:
        weight: the constant.
        zero: its zero points, a constant; None for 0.
        is_transposed: True if the weight is [columns, depth].
        columns: of the result.
        width: the columns of a panel.
    """

    weight: Value
    zero: Value | None
    is_transposed: bool
    columns: int
    width: int

    def add_to(self, rewriter: GraphRewriter, graph: Graph) -> Value:
        """Add the constant that holds the panels of a constant of `graph`."""
        matrix = graph.constants[self.weight].astype(np.int32)
        if self.is_transposed:
            matrix = matrix.T
        if self.zero is not None:
            matrix = matrix - graph.constants[self.zero].astype(np.int32)
        name = f"{self.weight.name}.panels"
        return rewriter.constant(name, pack_pairs_numpy(matrix, self.width), copy=False)


def find_quantized_panels(
    graph: Graph, node: GraphNode, registers: VectorRegisters
) -> QuantizedPanels | None:
    """Return the panels of a node's weights; None if it has none.

    Args:
        graph: the graph of the node.
        node: any node.
        registers: of the processor.
    """
    places = _OPERANDS.get(node.operator)
    if places is None or not is_plain(node):
        return None
    data = node.inputs[0]
    weight = _input(node, places.weight)
    zero = _input(node, places.weight_zero)
    assert data is not None and weight is not None
    is_known = weight in graph.constants and (zero is None or zero in graph.constants)
    if not is_known or len(weight.shape) != 2:
        return None
    # One for all rows.
    for place in (places.data_zero, places.data_scale):
        given = _input(node, place)
        if given is not None and given.shape not in ((), (1,)):
            return None
    sides = graph.constants[weight].shape
    depth, columns = sides[::-1] if places.is_transposed else sides
    if depth < 1 or columns < 1:
        return None
    rows = data.shape[-2]
    known = rows if isinstance(rows, int) else None
    width = choose_pair_panel_width(known, -(-depth // 2), columns, registers)
    return QuantizedPanels(weight, zero, places.is_transposed, columns, width)


def add_quantized_product(
    rewriter: GraphRewriter, node: GraphNode, panels: Value, columns: int
) -> None:
    """Add the product of the node's data with `panels`, which replaces the node."""
    places = _OPERANDS[node.operator]
    data, *_ = rewriter.mapped(node.inputs)
    order = (
        places.data_scale,
        places.weight_scale,
        places.scale,
        places.bias,
        places.data_zero,
        places.zero,
    )
    rest = rewriter.mapped([_input(node, place) for place in order])
    rewriter.values[node.outputs[0]] = rewriter.node(
        "quantized_dense_pack", [data, panels, *rest], {"units": columns}, node.name
    )


def _input(node: GraphNode, place: int | None) -> Value | None:
    if place is None or place >= len(node.inputs):
        return None
    return node.inputs[place]
