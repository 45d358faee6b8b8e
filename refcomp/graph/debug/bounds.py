"""Bound the values that the nodes of a graph may have, given the arrays that they read.

The oracle bounds every operator by its te compute (`refcomp.oracle.bound_errors`). For the products
of large tensors this would take minutes. So convolutions and products of matrices are bounded by
the standard analysis of sums (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd
edition, section 3.1), with u the unit roundoff and gamma(k) = k u / (1 - k u):

    |computed - A B| <= gamma(k + 4) |A| |B|,   for sums of k products in any order

Both products are evaluated by the operator's numpy meaning in f64. The four more roundings cover a
bias, the factors of a gemm, and a pass that scaled A or B and rounded it once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from refcomp.graph.dims import Symbols
from refcomp.graph.graph import Array, GraphNode, Value
from refcomp.graph.infer import FUSED, node_to_te, value_to_placeholder
from refcomp.ir.rewrite import variables_in
from refcomp.oracle.floats.error_bounds import Bounded, bound_errors
from refcomp.oracle.floats.legal_values import MINUS_INF, NAN, PLUS_INF
from refcomp.oracle.floats.rounding import (
    WIDE,
    ZERO,
    half_ulp,
    overflow_limit,
    unit_roundoff,
)
from refcomp.te.operation import reachable_operations
from refcomp.te.tensor import Tensor
from refcomp.topi.operator import find_operator

_Attributes = Mapping[str, Any]
_Shapes = Sequence[tuple[int, ...]]
_Terms = Callable[[_Shapes, _Attributes], int]

_MORE_ROUNDINGS = 4
_FACTORS = {"alpha", "beta"}  # attributes of a gemm that may be negative
_F64_UNIT = 2.0**-53
_NOT_FINITE = PLUS_INF | MINUS_INF | NAN


def _terms_of_gemm(shapes: _Shapes, attributes: _Attributes) -> int:
    return shapes[0][0 if attributes.get("trans_a") else 1]


def _columns(shapes: _Shapes, _: _Attributes) -> int:
    return shapes[0][-1]


def _window(shapes: _Shapes, _: _Attributes) -> int:
    """Return the elements that a weight [o, c, ...] has for one output channel."""
    return math.prod(shapes[1][1:])


def _window_of_nhwc(shapes: _Shapes, _: _Attributes) -> int:
    """Return the elements that a weight [kh, kw, c, o] has for one output channel."""
    return math.prod(shapes[1][:-1])


def _window_of_nchwc(shapes: _Shapes, _: _Attributes) -> int:
    """Return the elements that a weight [O, C, kh, kw, c, o] has for one output channel."""
    return math.prod(shapes[1][1:-1])


def _window_of_depthwise_nchwc(shapes: _Shapes, _: _Attributes) -> int:
    """Return the elements that a weight [C, kh, kw, c] has for one channel."""
    return math.prod(shapes[1][1:3])


# Operators that add up products of their first two inputs, and then add their third: the number of
# products in one sum.
_TERMS: Mapping[str, _Terms] = {
    "gemm": _terms_of_gemm,
    "matmul": _columns,
    "batch_matmul": _columns,
    "dense": _columns,
    "dense_pack": _columns,
    "conv1d": _window,
    "conv2d": _window,
    "conv3d": _window,
    "group_conv2d_nchw": _window,
    "conv2d_nhwc": _window_of_nhwc,
    "conv2d_nchwc": _window_of_nchwc,
    "depthwise_conv2d_nchwc": _window_of_depthwise_nchwc,
}


@cache
def _terms_by_meaning() -> Mapping[Callable[..., object], _Terms]:
    """Return `_TERMS` by numpy meaning, from which alone the analysis follows."""
    return {find_operator(name).numpy: terms for name, terms in _TERMS.items()}


def bound_values(
    nodes: Iterable[GraphNode],
    known: Mapping[Value, Array],
    wanted: Sequence[Value],
    symbols: Mapping[str, int] = MappingProxyType({}),
) -> list[Bounded]:
    """Return the legal values of some outputs of nodes.

    Args:
        nodes: the nodes that compute `wanted`, in an order in which they can run.
        known: the exact arrays of all values that come from outside of the nodes.
        wanted: outputs of the nodes.
        symbols: the sizes of the symbols that no array determines.

    Raises:
        UserError: an array does not fit the type of its value.
        Unsupported: no bound is known for an operator.
    """
    analysis = _Analysis(symbols)
    for value, array in known.items():
        analysis.give(value, array)
    for node in nodes:
        analysis.add(node, analysis.tensors)
    return [analysis.legal(analysis.tensors[value]) for value in wanted]


class _Analysis:
    """The tensors of a part of a graph, and what is known of their legal values."""

    def __init__(self, symbols: Mapping[str, int]) -> None:
        self.tensors: dict[Value, Tensor] = {}
        self._symbols = Symbols()
        self._sizes = symbols
        self._feeds: dict[Tensor, Array | Bounded] = {}

    def give(self, value: Value, array: Array) -> None:
        """Add a value that is exact."""
        tensor = value_to_placeholder(value, self._symbols)
        self.tensors[value] = tensor
        self._feeds[tensor] = array

    def add(self, node: GraphNode, tensors: dict[Value, Tensor]) -> None:
        """Add the outputs of a node to `tensors`, which holds its inputs."""
        if node.operator == FUSED:
            (graph,) = node.subgraphs
            given = (tensors[value] for value in node.inputs if value is not None)
            inner = dict(zip(graph.inputs, given, strict=True))
            for member in graph.nodes:
                self.add(member, inner)
            made = [inner[value] for value in graph.outputs]
            tensors.update(zip(node.outputs, made, strict=True))
            return
        fresh = node_to_te(node, tensors)
        tensors.update(fresh)
        output = node.outputs[0]
        terms = _terms_by_meaning().get(find_operator(node.operator).numpy)
        if terms is not None and output.dtype.is_float:
            inputs = [
                None if value is None else self.legal(tensors[value])
                for value in node.inputs
            ]
            self._feeds[fresh[output]] = _bound_products(node, inputs, terms)

    def legal(self, tensor: Tensor) -> Bounded:
        """Return the legal values of a tensor, and keep them."""
        feed = self._feeds.get(tensor)
        if isinstance(feed, Bounded):
            return feed
        if feed is not None:
            return _exactly(feed, tensor)
        # By name: the symbol of `narrow` is a variable of its own.
        dims = (
            dim
            for op in reachable_operations([tensor.op])
            for made in op.outputs
            for dim in made.shape
        )
        scalars = {
            var: self._sizes[var.name]
            for dim in dims
            for var in variables_in(dim)
            if var.name in self._sizes
        }
        (found,) = bound_errors([tensor], self._feeds, scalars)
        self._feeds[tensor] = found
        return found


def _exactly(array: Array, tensor: Tensor) -> Bounded:
    nothing = np.broadcast_to(ZERO, array.shape)
    is_float = tensor.dtype.is_float
    return Bounded(
        dtype=tensor.dtype,
        value=array.astype(WIDE) if is_float else array,
        error=nothing,
        doubtful=np.broadcast_to(np.False_, array.shape),
        condition=np.broadcast_to(np.float64(1), array.shape),
    )


@np.errstate(all="ignore")
def _bound_products(
    node: GraphNode, inputs: Sequence[Bounded | None], terms: _Terms
) -> Bounded:
    """Return the legal values of sums of products; `terms` counts the products of one sum."""
    dtype = node.outputs[0].dtype
    operator = find_operator(node.operator)
    # In f64 throughout: the reference is not rounded to a narrower dtype.
    attributes: dict[str, Any] = dict(node.attributes)
    attributes.pop("out_dtype", None)
    value = _f64(operator.numpy(*map(_values, inputs), **attributes))
    sizes = dict(attributes)
    for factor_name in _FACTORS & attributes.keys():
        sizes[factor_name] = abs(attributes[factor_name])
    magnitudes = [None if one is None else np.abs(_values(one)) for one in inputs]
    size = _f64(operator.numpy(*magnitudes, **sizes))
    carried = np.zeros(())
    if any(one is not None and np.any(one.error) for one in inputs):
        widest = [
            None if one is None else np.abs(_values(one)) + _f64(one.error)
            for one in inputs
        ]
        grown = _f64(operator.numpy(*widest, **sizes))
        # The difference cancels. So the roundings of both sides are added again.
        carried = grown - size + 2 * _gamma(8, _F64_UNIT) * grown
        size = grown
    shapes = [() if one is None else one.value.shape for one in inputs]
    roundings = terms(shapes, attributes) + _MORE_ROUNDINGS
    factor = _gamma(roundings, float(unit_roundoff(dtype)))
    reference = 2 * _gamma(roundings, _F64_UNIT)
    least = 2 * roundings * half_ulp(ZERO, dtype)
    error = (size * (factor + reference) + carried).astype(WIDE) + least
    # All terms are finite, or the sum is not.
    overflows = size * (1 + factor) >= overflow_limit(dtype)
    is_finite = np.isfinite(size)
    return Bounded(
        dtype=dtype,
        value=value.astype(WIDE),
        error=np.where(is_finite, error, ZERO),
        doubtful=~is_finite | overflows,
        condition=np.where(value == 0, 1.0, size / np.abs(value)),
        others=np.where(is_finite & ~overflows, np.uint8(0), _NOT_FINITE),
    )


def _values(bounded: Bounded | None) -> Any:
    return None if bounded is None else _f64(bounded.value)


def _f64(array: Any) -> Array:
    return np.asarray(array, np.float64)


def _gamma(roundings: int, unit: float) -> float:
    # With k u >= 1, which takes 16 million terms in f32, nothing is known.
    product = roundings * unit
    return product / (1 - product) if product < 1 else math.inf
