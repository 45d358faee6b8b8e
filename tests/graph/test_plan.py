"""Plans: what lives when, where it lies, and that kernels are bound once."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.plan import MemoryPool, make_plan, recent_plan, value_lives
from refcomp.runtime.arrays.ndarray import array
from refcomp.runtime.device import cpu
from tests.strategies.graphs import make_graph
from tests.strategies.operands import floats, integers


def chain(builder, x):
    value = x
    for _ in range(4):
        value = builder.node("softmax", [value])
    return value


def test_values_live_from_their_kernel_to_their_last_reader() -> None:
    module = compile_graph(make_graph(chain, ("N", 3)), "interp")
    lives = value_lives(module.graph, module.kernels)
    inputs, outputs = module.graph.inputs, module.graph.outputs
    assert lives[inputs[0]] == (-1, 0)
    assert lives[module.kernels[1].outputs[0]] == (1, 2)
    assert lives[module.kernels[1].workspaces[0]] == (1, 1)
    assert lives[outputs[0]] == (3, 4)


def test_a_chain_shares_its_memory_and_runs() -> None:
    module = compile_graph(make_graph(chain, ("N", 3)), "interp")
    plan = make_plan(module, {"N": 64}, {}, cpu())
    # One input, one output and the four workspaces of a single kernel.
    assert plan.bytes == 3 * 64 * 3 * 4 + 3 * 64 * 4
    assert len(plan.launches) == 4


def test_constants_are_not_planned() -> None:
    def build(builder, x):
        return builder.node("add", [x, builder.constant("c", integers(1, 4))])

    module = compile_graph(make_graph(build, ("N", 4)), "interp")
    constants = {v: array(a) for v, a in module.graph.constants.items()}
    assert not set(constants) & set(value_lives(module.graph, module.kernels))
    plan = make_plan(module, {"N": 3}, constants, cpu())
    x = floats(0, 3, 4)
    plan.inputs["x"].copyfrom(x)
    for launch in plan.launches:
        launch()
    assert (plan.outputs[0].asnumpy() == x + integers(1, 4)).all()


def test_memory_that_cannot_be_had_is_told() -> None:
    module = compile_graph(make_graph(chain, ("N", 3)), "interp")
    with pytest.raises(UserError, match="bytes of memory, which cpu:0 does not give") as info:
        make_plan(module, {"N": 1 << 58}, {}, cpu())
    assert f"N = {1 << 58}" in str(info.value)


def test_plans_of_several_sizes_share_the_block_of_the_largest() -> None:
    module = compile_graph(make_graph(chain, ("N", 3)), "interp")
    blocks, plans = [], {}

    class WatchedPool(MemoryPool):
        def block(self, *given):
            blocks.append(super().block(*given))
            return blocks[-1]

    pool = WatchedPool()

    def plan_for(n: int):
        return recent_plan(plans, n, lambda: make_plan(module, {"N": n}, {}, cpu(), pool))

    small, large, middle = plan_for(16), plan_for(64), plan_for(32)
    assert blocks[2] is blocks[1]
    assert blocks[0] is not blocks[1]  # it was there before the large block
    assert plan_for(64) is large
    assert plan_for(16) is small
    # All of them run, one after the other.
    for plan, n in ((small, 16), (large, 64), (middle, 32), (large, 64)):
        x = floats(n, n, 3)
        plan.inputs["x"].copyfrom(x)
        for launch in plan.launches:
            launch()
        (y,) = evaluate_graph(module.graph, {"x": x})
        np.testing.assert_allclose(plan.outputs[0].asnumpy(), y, rtol=1e-5)


def test_plans_without_a_pool_share_nothing() -> None:
    module = compile_graph(make_graph(chain, ("N", 3)), "interp")
    first, second = (make_plan(module, {"N": 4}, {}, cpu()) for _ in range(2))
    first.inputs["x"].numpy()[...] = 1
    second.inputs["x"].numpy()[...] = 2
    assert (first.inputs["x"].numpy() == 1).all()
