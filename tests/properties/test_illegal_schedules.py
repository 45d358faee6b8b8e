"""Whatever is asked of a schedule: it is refused with a message, or the result is numpy's."""

import re
from collections.abc import Mapping

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import refcomp
from refcomp.driver.pipeline import passes_for
from refcomp.driver.steps import run_pass
from refcomp.foundation.errors import CompilerBug, RefcompError, Unsupported, UserError
from refcomp.ir.expr import Var
from refcomp.ir.kernels import kernels_in
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children, variables_in
from refcomp.ir.stmt import For, Stmt
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.passes.refuse_bound_loops import refuse_bound_loops
from refcomp.passes.split_host_device import split_host_device
from tests.properties.differential import check_interpreted, expected
from tests.strategies.blind_calls import blind_call
from tests.strategies.bounded_schedules import state_of
from tests.strategies.computation import Computation
from tests.strategies.computes import FEW_STAGES, computations
from tests.strategies.lowered_once import lowered_once

_SHARDS = 2
_MOST_TRIPS = 200_000  # a few seconds of interpreting


def check_refusal(error: RefcompError) -> None:
    """A refusal is the user's, says where (by the quoted call, too) or why, and what to do."""
    assert isinstance(error, UserError | Unsupported), repr(error)
    assert not isinstance(error, CompilerBug)
    assert error.where or error.why or error.call, str(error)
    assert error.remedy, str(error)
    assert "Traceback" not in str(error)
    assert not re.search(r"object at 0x[0-9a-f]+", str(error)), str(error)


def _build(computation: Computation, schedule: refcomp.Schedule) -> RefcompError | None:
    """Runs every pass; what one of them refuses."""
    try:
        func = lowered_once(schedule, computation.args)
        kind = "opencl" if any(kernels_in(func.body)) else "llvm"
        for step in passes_for(kind):
            if step.function is not refuse_bound_loops:
                func = run_pass(step, func)
        if kind == "opencl":
            split_host_device(func)
    except (UserError, Unsupported) as error:
        return error
    return None


def _trips(node: Node, sizes: Mapping[Var, int]) -> int:
    """About how often the innermost statements run: to split by 2 ** 40 is legal, and endless."""
    trips = sum(_trips(child, sizes) for child in children(node) if isinstance(child, Stmt))
    if isinstance(node, For):
        outer = dict.fromkeys(variables_in(node.extent), 0)
        trips *= max(int(evaluate_expr(node.extent, outer | sizes)), 1)
    return max(trips, 1)


def _run(shard: int, examples: int) -> dict[str, int]:
    names = ("refused", "legal", "wholes refused", "wholes right", "wholes too long")
    counts = dict.fromkeys(names, 0)

    @seed(shard)
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(computations(FEW_STAGES), st.data())
    def run(computation, data):
        schedule = refcomp.create_schedule([tensor.op for tensor in computation.outputs])
        for _ in range(12):
            before = state_of(schedule)
            error = blind_call(data.draw, schedule)
            counts["legal" if error is None else "refused"] += 1
            if error is not None:
                check_refusal(error)
                assert state_of(schedule) == before, f"a refused call changed something: {error}"
        refusal = _build(computation, schedule)
        if refusal is not None:
            check_refusal(refusal)
            counts["wholes refused"] += 1
            return
        func = lowered_once(schedule, computation.args)
        if _trips(func.body, computation.sizes) > _MOST_TRIPS:
            counts["wholes too long"] += 1
            return
        counts["wholes right"] += 1
        if any(kernels_in(func.body)):
            certificate = refcomp.certify(schedule, computation.args)
            assert certificate.holds, str(certificate)
        else:
            check_interpreted(computation, schedule)
        assert expected(computation)

    run()
    return counts


def test_illegal_schedules_are_refused_and_others_are_right(record_property, request):
    examples = 2000 if request.config.getoption("--nightly") else 120
    total: dict[str, int] = {}
    for shard in range(_SHARDS):
        for name, count in _run(shard, examples).items():
            total[name] = total.get(name, 0) + count
    record_property("summary", f"blind calls of primitives: {total}")
    assert total["refused"] >= 2000, total
    assert total["legal"] >= 250, total
    assert total["wholes right"] >= 100, total
