"""How far a network computed in f32 can be from the same network in real numbers.

A running error analysis: each value carries a bound of its absolute error, which every operator
propagates and adds to. With u = 2^-24, k roundings in any order give a factor of at most
1 + gamma(k), gamma(k) = k u / (1 - k u). Weights count one rounding more: folding rounds them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.infer import FUSED
from refcomp.topi.operator import find_operator

_UNIT = 2.0**-24
Exact = np.ndarray[Any, np.dtype[np.float64]]
# A value in f64, which stands for the real one, and the bound of its error in f32.
Bounded = tuple[Exact, Exact]


def _gamma(roundings: int) -> float:
    return roundings * _UNIT / (1 - roundings * _UNIT)


def bound_outputs(graph: Graph, feeds: dict[str, np.ndarray]) -> list[Bounded]:
    """The outputs in f64 and the bounds of their errors; the inputs are exact.

    Errors are carried from kernel to kernel as if all of them conspired, so this bound is loose.
    """
    known = _as_exact({v: feeds[v.name] for v in graph.inputs} | dict(graph.constants))
    for node in graph.nodes:
        _add_node(node, known)
    return [known[value] for value in graph.outputs]


def bound_node(node: GraphNode, inputs: dict[Value, np.ndarray]) -> Bounded:
    """The same for one node, of which `inputs` are taken to be exact: a tight bound."""
    known = _as_exact({value: inputs[value] for value in node.reads})
    _add_node(node, known)
    return known[node.outputs[0]]


def _as_exact(arrays: dict[Value, np.ndarray]) -> dict[Value, Bounded]:
    return {value: (a.astype(np.float64), np.zeros(a.shape)) for value, a in arrays.items()}


def _add_node(node: GraphNode, known: dict[Value, Bounded]) -> None:
    given = [known[value] for value in node.reads]
    if node.operator == FUSED:
        (inner,) = node.subgraphs
        inside = dict(zip(inner.inputs, given, strict=True))
        for inner_node in inner.nodes:
            _add_node(inner_node, inside)
        known[node.outputs[0]] = inside[inner.outputs[0]]
        return
    numpy = find_operator(node.operator).numpy
    attributes = dict(node.attributes)
    values = [value for value, _ in given]
    exact = numpy(*values, **attributes)
    known[node.outputs[0]] = exact, _BOUNDS[node.operator](exact, given, attributes, numpy)


def _moved(exact: Exact, given: list[Bounded], attributes: dict, numpy: Callable) -> Exact:
    """Also for maxima: they differ by no more than their operands do."""
    return numpy(given[0][1], **attributes)


def _kept(exact: Exact, given: list[Bounded], attributes: dict, numpy: Callable) -> Exact:
    return given[0][1]


def _convolution(exact: Exact, given: list[Bounded], attributes: dict, numpy: Callable) -> Exact:
    (x, error), (weight, _), (bias, _) = given
    weight = np.abs(weight)
    size = numpy(np.abs(x) + error, weight, np.abs(bias), **attributes)
    carried = numpy(error, weight, **attributes)
    products = weight.size // bias.size  # of one sum
    return carried * (1 + _gamma(1)) + _gamma(products + 4) * size


def _mean(exact: Exact, given: list[Bounded], attributes: dict, numpy: Callable) -> Exact:
    x, error = given[0]
    size = numpy(np.abs(x) + error, **attributes)
    return numpy(error, **attributes) + _gamma(x.size // exact.size + 2) * size


def _product(exact: Exact, given: list[Bounded], attributes: dict, numpy: Callable) -> Exact:
    (x, error), (weight, _), (bias, _) = given
    weight = np.abs(weight)
    size = numpy(np.abs(x) + error, weight, np.abs(bias), **attributes)
    terms = weight.shape[-2]  # of a matrix and of its panels
    return numpy(error, weight, None, **attributes) + _gamma(terms + 4) * size


def _softmax(exact: Exact, given: list[Bounded], attributes: dict, numpy: Callable) -> Exact:
    """Each exponent is off by the errors of x and of the greatest x and by one rounding; the
    exponential by 4 ulp, or 8 u; then come a sum and a division."""
    x, error = given[0]
    spread = x.max(axis=1, keepdims=True) - x.min(axis=1, keepdims=True)
    off = 2 * error.max(axis=1, keepdims=True)
    exponent = off + _UNIT * (spread + off)
    relative = np.expm1(2 * exponent) + _gamma(2 * 8 + exact.shape[1] + 1)
    return exact * relative * 1.001 + 2.0**-126


_BOUNDS: dict[str, Callable[..., Exact]] = {
    "layout_transform": _moved,
    "transpose": _moved,
    "flatten": _moved,
    "max_pool2d": _moved,
    "relu": _kept,
    "conv2d_nchwc": _convolution,
    "conv2d_nhwc": _convolution,
    "global_avg_pool2d": _mean,
    "dense_pack": _product,
    "gemm": _product,
    "softmax": _softmax,
}
