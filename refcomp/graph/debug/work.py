"""Count the work of a node: its operations on floats, and the bytes that it has to move.

Operations are counted in the te compute: the operators of each element, times the number of
elements, and of a reduction times its steps. So the count is exact for the definition; a schedule
may compute a value twice, or skip zeros of a padding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add

from refcomp.foundation.artifacts import evaluate_dim
from refcomp.graph.dims import Symbols, expr_to_dim
from refcomp.graph.graph import GraphNode, Value
from refcomp.graph.infer import node_to_te, value_to_placeholder
from refcomp.graph.kernels import NodeKernel
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr
from refcomp.ir.rewrite import walk
from refcomp.te.operation import ComputeOp, PlaceholderOp, reachable_operations
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import IterVar

# One operation each. Comparisons, choices, minima, maxima and conversions are none.
_ARITHMETIC = (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.Call)


@dataclass(frozen=True, slots=True)
class Flops:
    """Numbers of operations on floats."""

    multiply_adds: int = 0  # a product that is added to a sum: two operations
    others: int = 0  # all other sums, differences, products, quotients and functions

    @property
    def total(self) -> int:
        """Return the number of operations."""
        return 2 * self.multiply_adds + self.others

    def __add__(self, other: Flops) -> Flops:
        return Flops(
            self.multiply_adds + other.multiply_adds, self.others + other.others
        )


def count_flops(node: GraphNode, symbols: Mapping[str, int]) -> Flops | None:
    """Return the operations of a node; None if it has operations that are not computes.

    Args:
        node: a node of a compiled graph.
        symbols: the sizes of the symbols.
    """
    names = Symbols()
    inputs = {value: value_to_placeholder(value, names) for value in node.reads}
    outputs = [made.op for made in node_to_te(node, inputs).values()]
    operations = [
        op for op in reachable_operations(outputs) if not isinstance(op, PlaceholderOp)
    ]
    if not all(isinstance(op, ComputeOp) for op in operations):
        return None
    counted = (
        _of_compute(op, symbols) for op in operations if isinstance(op, ComputeOp)
    )
    return reduce(add, counted, Flops())


def _of_compute(op: ComputeOp, symbols: Mapping[str, int]) -> Flops:
    elements = _points(op.axis, symbols)
    reduction = op.reduction
    if reduction is None:
        return Flops(others=elements * sum(map(_operations, op.body)))
    steps = elements * _points(reduction.axes, symbols)
    # Bodies of one reduction have the same sources. Each is evaluated once.
    sources = sum(map(_operations, reduction.sources))
    combined = sum(map(_operations, reduction.reducer.results))
    if _is_sum_of_products(reduction):
        return Flops(steps, steps * (sources - 1))
    return Flops(others=steps * (sources + combined))


def _is_sum_of_products(reduction: Reduce) -> bool:
    if len(reduction.sources) != 1:
        return False
    (source,) = reduction.sources
    (result,) = reduction.reducer.results
    is_float = source.dtype.is_float
    return is_float and isinstance(source, ir.Mul) and isinstance(result, ir.Add)


def _operations(expr: Expr) -> int:
    """Return the operations on floats in an expression, each node counted once."""
    nodes = (node for node in walk(expr) if isinstance(node, _ARITHMETIC))
    return sum(node.dtype.is_float for node in nodes)


def _points(axes: Iterable[IterVar], symbols: Mapping[str, int]) -> int:
    extents = (evaluate_dim(expr_to_dim(axis.extent), symbols) for axis in axes)
    return math.prod(max(0, extent) for extent in extents)


def count_bytes(kernel: NodeKernel, symbols: Mapping[str, int]) -> int:
    """Return the bytes of what a kernel reads and writes, each value once, constants too."""
    values = dict.fromkeys((*kernel.inputs, *kernel.outputs))
    return sum(value_bytes(value, symbols) for value in values)


def value_bytes(value: Value, symbols: Mapping[str, int]) -> int:
    """Return the bytes of a value."""
    elements = math.prod(evaluate_dim(dim, symbols) for dim in value.shape)
    return elements * value.dtype.bytes
