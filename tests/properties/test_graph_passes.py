"""Random graphs keep their meaning under any passes in any legal order.

After each pass, outputs have the same bits, or are legal by derived bounds if the pass rounds.
"""

import random
from collections import Counter

import numpy as np
import pytest

from refcomp.graph.equivalence import UNKNOWN, difference
from refcomp.graph.graph import Graph
from refcomp.graph.optimize import OPTIONAL_STEPS, STEPS, GraphStep, Rounding, optimize
from refcomp.graph.passes.fold_scale_axis import fold_scale_axis
from refcomp.graph.random_graphs import RandomGraph, random_graph
from refcomp.graph.verify import verify_graph
from tests.samples import sample_count

_SHARDS = sample_count(by_day=2, nightly=10)
_SEEDS = sample_count(by_day=350, nightly=10_000)  # of a shard
PASSES = sorted({step.name: step for step in (*STEPS, *OPTIONAL_STEPS)}.items())


def chosen_steps(seed: int) -> list[GraphStep]:
    """A subset of all passes in random order, some twice; fuse_operators is the last one."""
    rng = random.Random(seed)
    drawn = rng.choices([step for _, step in PASSES], k=rng.randint(1, 2 * len(PASSES)))
    last = [step for step in drawn if step.name == "fuse_operators"][:1]
    return [step for step in drawn if step.name != "fuse_operators"] + last


def fault(drawn: RandomGraph, steps: list[GraphStep], fired: Counter) -> str:
    """How a pass changes the meaning of a graph; '' if none does."""
    graph = drawn.graph
    names: list[str] = []
    for step in steps:
        names.append(step.name)
        changed, text = _apply(step, graph, drawn)
        if text not in ("", UNKNOWN):
            made = "" if changed is None else f"\n{changed}"
            return f"{', '.join(names)}: {text}\n{graph}{made}"
        if changed is graph:
            continue
        fired[step.name] += 1
        fired[UNKNOWN] += text == UNKNOWN
        assert changed is not None
        graph = changed
    return ""


def _apply(step: GraphStep, graph: Graph, drawn: RandomGraph) -> tuple[Graph | None, str]:
    try:
        with np.errstate(all="ignore"):
            changed = step.function(graph)
        if changed is graph:
            return graph, ""
        verify_graph(changed)
        return changed, difference(graph, changed, drawn.feeds, rounding=step.rounding)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


@pytest.mark.search
@pytest.mark.parametrize("shard", range(_SHARDS))
def test_meaning_is_kept(shard: int, record_property) -> None:
    """Passes keep the meaning of random graphs: of 700 by day, of 100,000 with --nightly."""
    fired: Counter = Counter()
    for seed in range(shard * _SEEDS, (shard + 1) * _SEEDS):
        text = fault(random_graph(seed), chosen_steps(seed), fired)
        assert not text, f"seed {seed}: {text}"
    changes = sum(fired.values()) - fired[UNKNOWN]
    # A bound that never decides would accept anything.
    assert fired[UNKNOWN] <= changes // 50
    assert all(fired[name] > 0 for name, _ in PASSES)
    record_property("summary", f"{_SEEDS} graphs, {changes} changed by a pass, {dict(fired)}")


def off_by(factor: float):
    """fold_scale_axis, with a factor in one weight."""

    def function(graph: Graph) -> Graph:
        changed = fold_scale_axis(graph)
        for value, array in changed.constants.items():
            if value.name.endswith(".scaled_weight"):
                elements = array.copy()
                elements.reshape(-1)[0] *= np.float32(factor)
                constants = {**changed.constants, value: elements}
                return Graph(
                    changed.name, changed.inputs, changed.outputs, changed.nodes, constants
                )
        return changed

    return function


def without_a_transpose(graph: Graph) -> Graph:
    """Leave out the first transpose of a square, as a wrong cancellation would."""
    for place, node in enumerate(graph.nodes):
        made = node.outputs[0]
        read = node.inputs[0] if node.inputs else None
        if node.operator == "transpose" and read is not None and read.shape == made.shape:
            nodes = [*graph.nodes]
            nodes[place] = type(node)("identity", node.inputs, node.outputs)
            return Graph(graph.name, graph.inputs, graph.outputs, tuple(nodes), graph.constants)
    return graph


@pytest.mark.parametrize(
    "step",
    [
        GraphStep(off_by(1 + 2.0**-10), "broken", Rounding.ROUNDS),
        GraphStep(off_by(0.0), "broken", Rounding.ROUNDS),
        GraphStep(without_a_transpose, "broken"),
        GraphStep(lambda graph: optimize(graph, ["fold_batch_norm"]), "rounds, but says no"),
    ],
    ids=["slightly wrong weight", "lost weight", "lost transpose", "rounding that is not declared"],
)
def test_a_broken_pass_is_found(step: GraphStep) -> None:
    faults = [fault(random_graph(seed), [step], Counter()) for seed in range(400)]
    found = [text for text in faults if text]
    assert found
    # The passes, what is wrong, and both graphs.
    assert "output" in found[0] and found[0].count("graph random(") == 2


def test_a_pass_that_fails_is_found() -> None:
    def failing(graph: Graph) -> Graph:
        raise IndexError("no such axis")

    text = fault(random_graph(0), [GraphStep(failing, "broken")], Counter())
    assert text.startswith("failing: IndexError: no such axis\ngraph random(")
