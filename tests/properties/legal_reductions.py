"""Reductions that are both built as te and evaluated legally, with random licences taken."""

import numpy as np

import refcomp
from tests.properties.legal_forms import Tensors

# The reducer, its term, and what becomes of the result.
REDUCTIONS = {
    "sum(a)": ("sum", lambda o, a, b: a, lambda o, x: x),
    "sum(a * b)": ("sum", lambda o, a, b: a * b, lambda o, x: x),
    "sum(a + b)": ("sum", lambda o, a, b: a + b, lambda o, x: x),
    "sum(a * b * a)": ("sum", lambda o, a, b: a * b * a, lambda o, x: x),
    "sum((a * b) * 1)": ("sum", lambda o, a, b: (a * b) * 1.0, lambda o, x: x),
    "sum((a * b) / 1)": ("sum", lambda o, a, b: (a * b) / 1.0, lambda o, x: x),
    "sum((a * b) - 0)": ("sum", lambda o, a, b: (a * b) - 0.0, lambda o, x: x),
    "sum(max(a * b, a * b))": ("sum", lambda o, a, b: o.maximum(a * b, a * b), lambda o, x: x),
    "sum(select(a > b, a * b, b))": (
        *("sum", lambda o, a, b: o.select(a > b, a * b, b), lambda o, x: x),
    ),
    "sum(if(a > b, b, a * b))": (
        *("sum", lambda o, a, b: o.if_then_else(a > b, b, a * b), lambda o, x: x),
    ),
    "sum(exp(a))": ("sum", lambda o, a, b: o.exp(a), lambda o, x: x),
    "1 / sum(a)": ("sum", lambda o, a, b: a, lambda o, x: 1.0 / x),
    "sum(a * b) / 3": ("sum", lambda o, a, b: a * b, lambda o, x: x / 3.0),
    "sqrt(sum(a * a))": ("sum", lambda o, a, b: a * a, lambda o, x: o.sqrt(x)),
    "prod(a)": ("prod", lambda o, a, b: a, lambda o, x: x),
    "prod(a * b)": ("prod", lambda o, a, b: a * b, lambda o, x: x),
    "1 / prod(a)": ("prod", lambda o, a, b: a, lambda o, x: 1.0 / x),
    "max(a * b)": ("max", lambda o, a, b: a * b, lambda o, x: x),
    "1 / max(a)": ("max", lambda o, a, b: a, lambda o, x: 1.0 / x),
    "1 / min(a)": ("min", lambda o, a, b: a, lambda o, x: 1.0 / x),
    "exp(min(a + b))": ("min", lambda o, a, b: a + b, lambda o, x: o.exp(x)),
}


def te_of_reduction(name, dtype, shape):
    """The te of a reduction over the second axis of two placeholders."""
    reducer, term, finish = REDUCTIONS[name]
    build = Tensors(dtype)
    a, b = (refcomp.placeholder(shape, dtype, letter) for letter in "AB")
    k = refcomp.reduce_axis((0, shape[1]), "k")
    reduced = refcomp.compute(
        shape[:1], lambda i: getattr(refcomp, reducer)(term(build, a[i, k], b[i, k]), axis=k)
    )
    return refcomp.compute(shape[:1], lambda i: finish(build, reduced[i])), [a, b]


def evaluate_reduction(name, evaluation, x, y, *, in_order=False, accumulate=None):
    """A legal value of each row: one tree for all of them, each with its own contractions."""
    reducer, term, finish = REDUCTIONS[name]
    combine = _COMBINE[reducer]
    identity = evaluation.value(np.full(len(x), _IDENTITIES[reducer]).astype(x.dtype))
    with np.errstate(all="ignore"):
        nodes = [
            term(evaluation, evaluation.value(x[:, k]), evaluation.value(y[:, k]))
            for k in range(x.shape[1])
        ]
        if accumulate is not None:
            nodes = [_in_another(evaluation, node, accumulate) for node in nodes]
            identity = evaluation.convert(identity, accumulate)
        if in_order or evaluation.rng.random() < 0.5:
            nodes.insert(0, identity)
        total = _folded(evaluation, nodes, combine, in_order)
        return finish(evaluation, evaluation.convert(total, str(x.dtype))).value


def _in_another(evaluation, node, dtype):
    """A term in another dtype: rounded before, or a product of factors in that dtype."""
    wider = dtype == "float32" and node.value.dtype != np.float64
    if node.factors is not None and wider and evaluation.rng.random() < 0.5:
        x, y = (evaluation.convert(evaluation.value(factor), dtype) for factor in node.factors)
        return x * y
    return evaluation.convert(node, dtype)


def _folded(evaluation, nodes, combine, in_order):
    rng = evaluation.rng
    chain = rng.random() < 0.5
    while len(nodes) > 1:
        if in_order:
            first, second = nodes.pop(0), nodes.pop(0)
            nodes.insert(0, combine(evaluation, first, second))
            continue
        first = nodes.pop(rng.integers(len(nodes)))
        second = nodes.pop(-1 if chain else rng.integers(len(nodes)))
        pair = (first, second) if rng.random() < 0.5 else (second, first)
        nodes.append(combine(evaluation, *pair))
    return nodes[0]


_COMBINE = {
    "sum": lambda o, a, b: a + b,
    "prod": lambda o, a, b: a * b,
    "max": lambda o, a, b: o.maximum(a, b),
    "min": lambda o, a, b: o.minimum(a, b),
}
_IDENTITIES = {"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}
