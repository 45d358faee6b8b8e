"""Operators that reduce along axes: sums, means, norms, extrema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import Convert, converter
from refcomp.graph.graph import Value


@dataclass(frozen=True, slots=True)
class _Axes:
    """The axes that a node reduces.

    Attributes:
        axis: the axes; None for all of them.
        keepdims: True if they stay, with the extent 1.
    """

    axis: tuple[int, ...] | None
    keepdims: bool

    def reduce(self, node: OnnxNode, operator: str, data: Value) -> Value:
        """Add a node that reduces `data` by an operator of refcomp."""
        if self.axis is None:
            return node.make(operator, [data], keepdims=self.keepdims)
        return node.make(operator, [data], axis=self.axis, keepdims=self.keepdims)


Reduce = Callable[[OnnxNode, Value, _Axes], Value]


def _axes_by_attribute(node: OnnxNode) -> _Axes:
    return _Axes(node.attributes.get("axes"), node.attributes["keepdims"] == 1)


def _axes_by_input(node: OnnxNode) -> _Axes:
    axes = node.optional_integers(1, "axes")
    keepdims = node.attributes["keepdims"] == 1
    if axes:
        return _Axes(axes, keepdims)
    is_noop = bool(node.attributes["noop_with_empty_axes"])
    return _Axes(() if is_noop else None, keepdims)


def _converts(reduce: Reduce, read: Callable[[OnnxNode], _Axes]) -> Convert:
    """Return the converter of a reduction, whose axes are read by `read`."""

    def convert(node: OnnxNode) -> Value:
        return reduce(node, node.required(0), read(node))

    return convert


def _register(operator: str, reduce: Reduce, first_with_input: int) -> None:
    """Register a reduction whose axes are an input from version `first_with_input` on."""
    converter(operator)(_converts(reduce, _axes_by_attribute))
    by_input = _converts(reduce, _axes_by_input)
    converter(operator, since=first_with_input)(by_input)


def _same(operator: str) -> Reduce:
    """Return a reduction by an operator of refcomp that takes all numbers."""

    def reduce(node: OnnxNode, data: Value, axes: _Axes) -> Value:
        return axes.reduce(node, operator, data)

    return reduce


def _as_floats(operator: str) -> Reduce:
    """Return a reduction by an operator that takes floats only; integers become f64."""

    def reduce(node: OnnxNode, data: Value, axes: _Axes) -> Value:
        if data.dtype.is_float:
            return axes.reduce(node, operator, data)
        reduced = axes.reduce(node, operator, node.cast(data, "float64"))
        return node.cast(reduced, data.dtype)

    return reduce


def _extremum(operator: str, of_bools: str) -> Reduce:
    def reduce(node: OnnxNode, data: Value, axes: _Axes) -> Value:
        return axes.reduce(node, of_bools if data.dtype.is_bool else operator, data)

    return reduce


def _l2_norm(node: OnnxNode, data: Value, axes: _Axes) -> Value:
    """Return the L2 norm; integers are squared and summed as integers, which wrap."""
    if data.dtype.is_float:
        return axes.reduce(node, "l2_norm", data)
    squares = axes.reduce(node, "sum_square", data)
    root = node.make("sqrt", [node.cast(squares, "float64")])
    return node.cast(root, data.dtype)


def _mean(node: OnnxNode, data: Value, axes: _Axes) -> Value:
    """Return the mean; that of integers is rounded towards zero."""
    if data.dtype.is_float:
        return axes.reduce(node, "mean", data)
    rank = len(data.shape)
    named = range(rank) if axes.axis is None else axes.axis
    count = 1
    for axis in named:
        count *= node.extent(data, axis)
    total = axes.reduce(node, "sum", data)
    return node.make("trunc_divide", [total, node.constant(count, data.dtype.dtype)])


_register("ReduceSum", _same("sum"), 13)
for _operator, _reduce in {
    "ReduceL1": _same("l1_norm"),
    "ReduceL2": _l2_norm,
    "ReduceLogSum": _as_floats("log_sum"),
    "ReduceLogSumExp": _as_floats("logsumexp"),
    "ReduceMax": _extremum("max", "any"),
    "ReduceMean": _mean,
    "ReduceMin": _extremum("min", "all"),
    "ReduceProd": _same("prod"),
    "ReduceSumSquare": _same("sum_square"),
}.items():
    _register(_operator, _reduce, 18)


@converter("CumSum")
def cumsum(node: OnnxNode) -> Value:
    """Convert CumSum of any version."""
    return _accumulated(node, "cumsum")


@converter("CumProd")
def cumprod(node: OnnxNode) -> Value:
    """Convert CumProd."""
    return _accumulated(node, "cumprod")


def _accumulated(node: OnnxNode, operator: str) -> Value:
    return node.make(
        operator,
        [node.required(0)],
        axis=node.integer(node.required(1), "axis"),
        exclusive=bool(node.attributes["exclusive"]),
        reverse=bool(node.attributes["reverse"]),
    )
