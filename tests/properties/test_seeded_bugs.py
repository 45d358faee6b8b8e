"""The properties find compiler bugs: each bug of a list, switched on alone, is found."""

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from refcomp.errors import RefcompError
from tests.properties.differential import check_interpreted
from tests.properties.seeded_bugs import SeededBug, switched_on
from tests.properties.test_schedules import cases

_LOWER, _PASSES = "refcomp.lower", "refcomp.passes"

# Found by the interpreter, which runs what every pass made: none of them can harm this process.
INTERPRETED = (
    SeededBug(
        *("lost tail guard", "refcomp.schedule.infer_bounds", "_needed"),
        *("if not prove(guard, facts):", "if False:"),
    ),
    SeededBug(
        *("guard one too far", "refcomp.schedule.infer_bounds", "root_indices"),
        *("LT(value, extents[relation.parent])", "LT(value, extents[relation.parent] + 1)"),
    ),
    SeededBug(
        *("wrong step of a split", "refcomp.schedule.infer_bounds", "root_indices"),
        *("step = extents[relation.inner]", "step = extents[relation.outer]"),
    ),
    SeededBug(
        *("fused indices mixed up", "refcomp.schedule.relations", "Fuse.indices"),
        *(
            "FloorDiv(fused, inner_extent), FloorMod(fused, inner_extent)",
            "FloorMod(fused, inner_extent), FloorDiv(fused, inner_extent)",
        ),
    ),
    SeededBug(
        *("split rounds down", "refcomp.schedule.relations", "ceil_div"),
        *("value + (divisor - 1)", "value"),
    ),
    SeededBug(
        *("missing initialisation of a reduction", f"{_LOWER}.nest", "_lower_reduction"),
        *("block([init, update])", "block([update])"),
    ),
    SeededBug(
        *("initialisation without guards", f"{_LOWER}.nest", "_lower_reduction"),
        *("if g[0].kind != REDUCTION]", "if False]"),
    ),
    SeededBug(
        *("condition of a reduction lost", f"{_LOWER}.nest", "_update"),
        *("if isinstance(condition, IntImm) and condition.value:", "if True:"),
    ),
    SeededBug(
        *("tuple stored piece by piece", f"{_LOWER}.nest", "_store_together"),
        *(
            "if len(values) == 1:\n        return _store(nest, 0, values[0])",
            "return block([_store(nest, k, value) for k, value in enumerate(values)])",
        ),
    ),
    SeededBug(
        *("inlined at the consumer's index", f"{_LOWER}.inline", "inline_reads"),
        *("substitute(op.body[node.tensor.value_index], at)", "op.body[node.tensor.value_index]"),
    ),
    SeededBug(
        *("wrong stride", f"{_PASSES}.flatten_storage", "_offset"),
        *(
            "zip(buffer.shape[1:], indices[1:], strict=True)",
            "zip(buffer.shape[:-1], indices[1:], strict=True)",
        ),
    ),
    SeededBug(
        *("off by one in unroll", f"{_PASSES}.unroll_loops", "_unroll"),
        *("for k in range(copies)]", "for k in range(copies - 1)]"),
    ),
    SeededBug(
        *("mask of a vector store lost", f"{_PASSES}.vectorize_loops", "_Widening._store"),
        *("self.with_mask(predicate))", "None)"),
    ),
    SeededBug(
        *("mask of a vector load lost", f"{_PASSES}.vectorize_loops", "_Widening._load"),
        *("self.with_mask(predicate))", "predicate)"),
    ),
    SeededBug(
        *("vectors one lane short", f"{_PASSES}.vectorize_loops", "_vectorize"),
        *(
            "Ramp(loop.minimum, IntImm(1, loop.var.dtype), lanes)",
            "Ramp(loop.minimum + 1, IntImm(1, loop.var.dtype), lanes)",
        ),
    ),
)


def _is_found(check, examples=400):
    @seed(7)
    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    @given(cases())
    def hunt(case):
        check(*case)

    try:
        hunt()
    except (AssertionError, RefcompError):
        return True
    return False


@pytest.mark.parametrize("bug", INTERPRETED, ids=lambda bug: bug.name)
def test_the_interpreter_finds(bug):
    with switched_on(bug):
        assert _is_found(check_interpreted), f"{bug.name} goes unseen"


def test_a_bug_is_gone_when_it_is_switched_off():
    with switched_on(INTERPRETED[0]):
        pass
    assert not _is_found(check_interpreted, examples=30)


def test_a_bug_whose_line_is_gone_is_an_error():
    stale = SeededBug("stale", "refcomp.lower.nest", "_update", "no such line", "")
    expected = pytest.raises(AssertionError, match="stale: its line is not in _update once")
    with expected, switched_on(stale):
        pass
