"""Gradients that PyTorch computed (generate_torch_cases.py), and their comparison with graphs.

Both sides compute in f64, and may add in another order. The bound is that of sums of at most some
hundred products: SUM ulps of the largest number among result and gradients.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import refcomp as rc
from refcomp.topi.draws import Sample
from tests.graph.gradients.differences import graph_of

PATH = Path(__file__).parents[2] / "golden" / "gradients" / "torch.npz"
SUM = 512


@dataclass(frozen=True, slots=True)
class TorchCase:
    """A case: operands, the head of the first output, and what PyTorch returned."""

    operator: str
    sample: Sample
    head: np.ndarray
    output: np.ndarray
    gradients: dict[int, np.ndarray]  # by the place of the operand


@cache
def torch_cases() -> tuple[TorchCase, ...]:
    """Return all cases."""
    with np.load(PATH, allow_pickle=False) as file:
        arrays = dict(file)
    found = []
    for number, case in enumerate(json.loads(str(arrays["cases"]))):
        own = {k.partition("/")[2]: a for k, a in arrays.items() if k.startswith(f"{number}/")}
        operands = [own[f"operand{k}"] for k in range(sum("operand" in name for name in own))]
        gradients = {int(k.removeprefix("gradient")): a for k, a in own.items() if "gradient" in k}
        attributes = {
            k: tuple(v) if isinstance(v, list) else v for k, v in case["attributes"].items()
        }
        sample = Sample(tuple(operands), attributes)
        found.append(TorchCase(case["operator"], sample, own["head"], own["output"], gradients))
    return tuple(found)


def check_torch(operators: Sequence[str]) -> int:
    """Compare all cases of some operators; return the number of cases."""
    cases = [case for case in torch_cases() if case.operator in operators]
    for case in cases:
        _check(case)
    return len(cases)


def _check(case: TorchCase) -> None:
    graph, feeds = graph_of(case.operator, case.sample)
    output = graph.outputs[0].name
    wrt = [f"x{place}" for place in case.gradients]
    slopes = rc.graph.gradient(graph, wrt=wrt, head=output)
    results = rc.graph.evaluate_graph(slopes, {**feeds, f"{output}_head": case.head})
    gradients = results[len(graph.outputs) :]
    expected = [case.output, *case.gradients.values()]
    scale = max(float(np.abs(one).max()) for one in expected)
    bound = SUM * np.finfo(np.float64).eps * max(scale, 1.0)
    for name, found, wanted in zip(
        ["output", *wrt], [results[0], *gradients], expected, strict=True
    ):
        assert found.shape == wanted.shape, f"{case.operator}: {name} has shape {found.shape}"
        error = float(np.abs(found - wanted).max())
        message = f"{case.operator} {dict(case.sample.attributes)}: {name} differs by {error:.2e}"
        assert error <= bound, f"{message}, more than {bound:.2e}"
