"""Extents that only a run determines: graphs, plans in parts, and errors."""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import CompilerBug, UserError
from refcomp.graph.builder import GraphBuilder, GraphRewriter
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.graph import Graph
from refcomp.graph.optimize import optimize
from refcomp.graph.plan import value_lives
from refcomp.graph.verify import verify_graph
from tests.strategies.operands import floats


def positive_rows(rows=6, columns=3) -> Graph:
    """The rows of x whose first element is positive, twice as large, and their column sums."""
    builder = GraphBuilder("net")
    x = builder.input("x", "float32", (rows, columns))
    first = builder.node("strided_slice", [x], {"begin": (0, 0), "end": (rows, 1)})
    flags = builder.node("squeeze", [builder.node("relu", [first])], {"axis": (1,)})
    indices, count = builder.nodes("nonzero", [flags])
    found = builder.narrow(indices, count, axis=1)
    chosen = builder.node(
        "take", [x, builder.node("squeeze", [found], {"axis": (0,)})], {"axis": 0}
    )
    doubled = builder.node("relu", [builder.node("add", [chosen, chosen])])
    total = builder.node("sum", [doubled], {"axis": (0,)})
    # Read in the last part, made in the first.
    return builder.finish([doubled, builder.node("add", [total, builder.node("sum", [x])])])


def run_all(graph, target, feeds, device=None):
    executor = GraphExecutor(compile_graph(graph, target), device)
    return executor, [result.asnumpy() for result in executor.run(feeds)]


TARGETS = [
    "interp",
    pytest.param("llvm", marks=pytest.mark.llvm),
    pytest.param("opencl", marks=pytest.mark.pocl),
    pytest.param("rocm -mcpu=gfx942", marks=pytest.mark.rocm),
]


@pytest.mark.parametrize("target", TARGETS)
def test_a_run_goes_on_for_the_counts_that_it_meets(target) -> None:
    device = refcomp.rocm_emulator("gfx942") if target.startswith("rocm") else None
    executor = GraphExecutor(compile_graph(positive_rows(), target), device)
    for seed in range(4):
        x = floats(seed, 6, 3)
        expected = evaluate_graph(executor.module.graph, {"x": x})
        found = [result.asnumpy() for result in executor.run(x=x)]
        assert [a.shape for a in found] == [a.shape for a in expected]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("count", [0, 6])
def test_nothing_and_all_may_be_kept(count) -> None:
    x = np.full((6, 3), 1.0 if count else -1.0, np.float32)
    _, (rows, _) = run_all(positive_rows(), "interp", {"x": x})
    (meant, _) = evaluate_graph(positive_rows(), {"x": x})
    assert rows.shape == meant.shape == (count, 3)


def test_a_plan_is_made_once_for_each_count() -> None:
    executor = GraphExecutor(compile_graph(positive_rows(), "interp"))
    inputs = [np.where(np.arange(6)[:, None] < n, 1, -1) * np.ones((6, 3)) for n in (2, 3)]
    rests = []
    for x in (*inputs, *inputs):
        executor.run(x=x.astype(np.float32))
        pause = executor.plan_for({}).pause
        rests.append(pause.rests[int(pause.count.asnumpy()[0])])
    assert rests[0] is rests[2] and rests[1] is rests[3] and rests[0] is not rests[1]
    assert sorted(pause.rests) == [2, 3]


def test_a_count_may_be_an_input_and_is_checked() -> None:
    builder = GraphBuilder("net")
    x, count = builder.input("x", "float32", (4, "N")), builder.input("c", "int32", ())
    net = builder.finish([builder.node("tanh", [builder.narrow(x, count, name="few")])])
    x = floats(0, 4, 2)
    executor, (few,) = run_all(net, "interp", {"x": x, "c": np.int32(3)})
    assert few.shape == (3, 2)
    for wrong in (5, -1):
        with pytest.raises(UserError, match=f"few cannot keep {wrong} of 4 elements") as info:
            executor.run(x=x, c=np.array(wrong, np.int32))
        assert info.value.remedy == "let the count be from 0 to 4"


def test_two_extents_may_depend_on_data() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", "float32", (8,))
    values, _, _, _, count = builder.nodes("unique", [x])
    once = builder.narrow(values, count, name="once")
    indices, number = builder.nodes("nonzero", [once])
    net = builder.finish([once, builder.narrow(indices, number, axis=-1)])
    x = np.array([0, 2, 2, 0, 5, 7, 7, 7], np.float32)
    executor, (once, found) = run_all(net, "interp", {"x": x})
    assert once.tolist() == [0, 2, 5, 7] and found.tolist() == [[1, 2, 3]]
    assert [value.shape for value in executor.module.graph.outputs] == [("kept",), (1, "kept.1")]


def test_symbols_are_new() -> None:
    builder = GraphBuilder("net")
    x, count = builder.input("x", "float32", ("kept", "kept.1")), builder.input("c", "int64", (1,))
    few = builder.narrow(x, count)
    assert few.shape == ("kept.2", "kept.1")
    rewriter = GraphRewriter(builder.finish([few]))
    assert rewriter.narrow(x, count).shape == ("kept.3", "kept.1")


def test_a_symbol_with_two_values_is_ill_formed() -> None:
    builder = GraphBuilder("net")
    x, count = builder.input("x", "float32", ("N", 2)), builder.input("c", "int64", (1,))
    net = builder.finish([builder.node("narrow", [x, count], {"symbol": "N"})])
    with pytest.raises(CompilerBug, match="gives N a second value"):
        verify_graph(net)


def test_the_count_lives_until_it_is_read_and_narrow_stays_alone() -> None:
    graph = optimize(positive_rows())
    assert "narrow" in [node.operator for node in graph.nodes]
    module = compile_graph(positive_rows(), "interp")
    place = [node.operator for node in module.graph.nodes].index("narrow")
    narrow = module.graph.nodes[place]
    assert value_lives(module.graph, module.kernels)[narrow.inputs[1]][1] == place
    assert module.kernels[place].inputs == (narrow.inputs[0],)


def test_a_wrong_count_or_axis_is_refused() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", "float32", (4, 2))
    with pytest.raises(UserError, match="narrow takes one integer as its count, not f32") as info:
        builder.narrow(x, x)
    assert info.value.remedy == "give the count that operators such as nonzero return"
    count = builder.input("c", "int64", (1,))
    with pytest.raises(UserError, match="narrow: axis 2 is out of range for 2 dimensions"):
        builder.narrow(x, count, axis=2)


def test_the_last_eight_rests_are_kept() -> None:
    executor = GraphExecutor(compile_graph(positive_rows(12), "interp"))
    for count in range(12):
        x = np.where(np.arange(12)[:, None] < count, 1, -1) * np.ones((12, 3))
        executor.run(x=x.astype(np.float32))
    assert list(executor.plan_for({}).pause.rests) == list(range(4, 12))
