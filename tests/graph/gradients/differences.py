"""Gradients of graphs against central differences, in f64, away from kinks.

`refcomp.testing.central_difference` bounds the truncation error of D(h / 2). Rounding adds at most
ULPS ulps of each term of L, divided by h / 2. At a kink or a jump within h, the difference does not
shrink with h: such an element is not compared. Nothing else is tolerated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

import refcomp as rc
from refcomp.graph.graph import Graph
from refcomp.testing import central_difference
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import find_operator

STEP = 1e-4
ULPS = 256  # of a term of L: operators are sums of at most some hundred rounded numbers
MOST = 5  # elements of an operand that are compared
# A larger relative change from h to h / 2 means that a kink is near: the third derivative of
# smooth functions of numbers near 1 changes it by about STEP**2.
LARGEST_CHANGE = 1e-4

# Operands on which an operator is defined and moderate; by operator, for each input.
_POSITIVE = ((0.2, 3.0),)
_DOMAINS = {
    **dict.fromkeys(("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "log_sum"), _POSITIVE),
    **dict.fromkeys(("acos", "asin", "atanh"), ((-0.9, 0.9),)),
    **dict.fromkeys(("exp", "exp2", "exp10", "expm1", "sinh", "cosh", "tan"), ((-1.3, 1.3),)),
    "acosh": ((1.2, 4.0),),
    "power": ((0.2, 2.0), (-2.0, 2.0)),
    "binary_cross_entropy": ((0.1, 0.9), (0.1, 0.9)),
    "kl_div": ((-2.0, -0.1), (0.1, 0.9)),
    "batch_norm": (None, None, None, None, (0.2, 3.0)),
    "batch_norm_train": (None, None, None, None, (0.2, 3.0)),
}
# Operands are boxes, whose last two numbers are greater than the first two.
_OF_CORNERS = ("box_encode", "box_iou")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was compared of one sample."""

    compared: dict[int, int] = field(default_factory=dict)  # input -> number of elements
    faults: list[str] = field(default_factory=list)


def smooth_sample(name: str, seed: int) -> Sample:
    """Return a sample of an operator whose floats are f64, finite, and not near 0 or each other."""
    sample = find_operator(name).sample(Draws(seed))
    random = np.random.default_rng(seed)
    domains = _DOMAINS.get(name, ())
    operands = []
    for place, operand in enumerate(sample.operands):
        if operand is None or operand.dtype.kind != "f":
            operands.append(operand)
            continue
        domain = domains[place] if place < len(domains) else None
        chosen = _smooth(operand, random, domain)
        if name in _OF_CORNERS:
            chosen[..., 2:] = chosen[..., :2] + random.uniform(0.5, 3, chosen[..., 2:].shape)
        operands.append(chosen)
    wide = {"float16": "float64", "float32": "float64", "bfloat16": "float64"}
    attributes = dict(sample.attributes)
    if any(o is not None and o.dtype == np.float64 for o in operands):
        for key in ("dtype", "out_dtype"):
            if key in attributes:
                attributes[key] = wide.get(attributes[key], attributes[key])
    return Sample(tuple(operands), attributes)


def _smooth(operand, random, domain):
    if domain is not None:
        return np.asarray(random.uniform(*domain, operand.shape))
    values = operand.astype(np.float64)
    size = np.abs(values)
    is_moderate = np.isfinite(values) & (size > 0.05) & (size < 8)
    jitter = random.uniform(-0.02, 0.02, operand.shape)
    chosen = np.where(is_moderate, values, random.standard_normal(operand.shape))
    return np.asarray(chosen + jitter)


def graph_of(name: str, sample: Sample) -> tuple[Graph, dict[str, np.ndarray]]:
    """Return a graph of one node, and its feeds. Outputs that hold no floats are cast to f64."""
    builder = rc.graph.GraphBuilder(name)
    values = [
        None if a is None else builder.input(f"x{k}", a.dtype, a.shape)
        for k, a in enumerate(sample.operands)
    ]
    attributes = {key: v for key, v in sample.attributes.items() if v is not None}
    outputs = builder.nodes(name, values, attributes)
    cast = [
        v if v.dtype.is_float else builder.node("cast", [v], {"dtype": "float64"}) for v in outputs
    ]
    feeds = {f"x{k}": a for k, a in enumerate(sample.operands) if a is not None}
    return builder.finish(cast), feeds


def compare(name: str, seed: int) -> Comparison:
    """Compare the gradients of all outputs of a sample, by all its floats."""
    sample = smooth_sample(name, seed)
    graph, feeds = graph_of(name, sample)
    wrt = [value.name for value in graph.inputs if value.dtype.is_float]
    result = Comparison()
    if not wrt:
        return result
    random = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        values = rc.graph.evaluate_graph(graph, feeds)
        for number, output in enumerate(graph.outputs):
            head = random.standard_normal(values[number].shape).astype(output.dtype.dtype)
            slopes = rc.graph.gradient(graph, wrt=wrt, head=output.name)
            given = {**feeds, f"{output.name}_head": head}
            found = rc.graph.evaluate_graph(slopes, given)[len(values) :]
            loss = _Loss(name, sample, number, head)
            for input_name, slope in zip(wrt, found, strict=True):
                place = int(input_name[1:])
                assert slope.shape == feeds[input_name].shape, f"{name}: {slope.shape}"
                assert slope.dtype == feeds[input_name].dtype, f"{name}: {slope.dtype}"
                chosen = random.permutation(slope.size)[:MOST]
                for element in chosen:
                    _compare_element(loss, place, int(element), slope, result)
    return result


@dataclass(frozen=True, slots=True)
class _Loss:
    """The sum of an output times its head, by the numpy meaning of an operator."""

    name: str
    sample: Sample
    output: int
    head: np.ndarray

    def terms(self, place: int, element: int, step: float) -> np.ndarray:
        """Return the terms of the sum, if one element of an operand is changed by a step."""
        operands = list(self.sample.operands)
        moved = np.array(operands[place])
        moved.reshape(-1)[element] += step
        operands[place] = moved
        made = find_operator(self.name).numpy(*operands, **self.sample.attributes)
        one = made[self.output] if isinstance(made, list) else made
        # Where the head is weighted by an infinite result, only finite terms count.
        return np.where(np.isfinite(one), one * self.head, np.nan)


def _compare_element(loss: _Loss, place: int, element: int, slope, result: Comparison) -> None:
    size = abs(loss.sample.operands[place].reshape(-1)[element])
    step = STEP * max(1.0, float(size))
    difference = central_difference(lambda h: loss.terms(place, element, h), step)
    close = difference.close
    found = slope.reshape(-1)[element]
    change = difference.change
    if not np.isfinite(close) or change > LARGEST_CHANGE * (1 + abs(close)):
        return
    magnitude = np.abs(loss.terms(place, element, 0.0)).sum()
    rounding = ULPS * np.finfo(np.float64).eps * (magnitude / (step / 2) + abs(close))
    if not abs(found - close) <= change + rounding:
        result.faults.append(
            f"{loss.name}: output {loss.output} by element {element} of input {place} "
            f"is {found}, but its difference is {close} +- {change + rounding:.1e}; "
            f"{dict(loss.sample.attributes)}"
        )
    result.compared[place] = result.compared.get(place, 0) + 1


def by_place(comparisons: list[Comparison]) -> Mapping[int, int]:
    """Return the number of compared elements of each input."""
    total: dict[int, int] = {}
    for one in comparisons:
        for place, count in one.compared.items():
            total[place] = total.get(place, 0) + count
    return total
