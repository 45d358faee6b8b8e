"""Comparing node by node: wrong kernels are named, right ones never are, and each side is told."""

from dataclasses import replace

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.compile import compile_graph, compile_nodes
from refcomp.graph.debug.comparing import (
    Cause,
    compare_nodes,
    find_divergence,
    find_inside,
    operators_of,
)
from refcomp.graph.debug.executor import DebugExecutor, create
from refcomp.graph.debug.peer import Peer
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.graph import Graph
from refcomp.graph.optimize import optimize
from refcomp.topi.operator import find_operator, operator_names, register_operator
from tests.graph.debug.wrong_code import code_of_wrong, with_operator
from tests.strategies.graphs import digits_graph, digits_images, make_graph
from tests.strategies.operands import floats


def small() -> Graph:
    """y = softmax(relu(x w + b)); the product, the sum and the relu are one kernel."""

    def build(builder, x):
        w, b = builder.constant("w", floats(1, 6, 5)), builder.constant("b", floats(2, 5))
        total = builder.node("add", [builder.node("matmul", [x, w], name="m"), b], name="a")
        return builder.node("softmax", [builder.node("relu", [total], name="r")], name="y")

    return make_graph(build, ("N", 6))


X = floats(0, 4, 6)


def wrong_operator(name: str) -> str:
    """Register an operator whose te compute reads the next element; its meaning is right."""
    wrong = f"wrong_{name}"
    if wrong not in operator_names():
        right = find_operator(name)

        def compute(*inputs, **attributes):
            made = right.compute(*inputs, **attributes)
            last = made.shape[-1] - 1
            return rc.compute(made.shape, lambda *i: made[(*i[:-1], rc.minimum(i[-1] + 1, last))])

        register_operator(replace(right, name=wrong, compute=compute))
    return wrong


def with_wrong_code(executor: DebugExecutor, operator: str) -> DebugExecutor:
    """The same graph, but the code of the nodes with `operator` is that of the wrong one."""

    return DebugExecutor(code_of_wrong(executor.module, operator, wrong_operator(operator)))


def run(executor: DebugExecutor) -> DebugExecutor:
    executor.run(x=X)
    return executor


@pytest.mark.parametrize("unfused", [False, True])
def test_right_kernels_are_never_named(unfused: bool) -> None:
    executor = run(create(small(), "interp", unfused=unfused))
    found = find_divergence(executor)
    assert found.first is None
    assert found.inside is None
    assert str(found) == f"no node of {4 if unfused else 2} leaves its bound"
    assert all(0 <= one.ratio <= 1 and one.cause is None for one in found.findings)


@pytest.mark.parametrize(("node", "operator"), [("r", "matmul+add+relu"), ("y", "softmax")])
def test_wrong_code_is_named_and_later_nodes_are_not(node: str, operator: str) -> None:
    executor = run(create(small(), "interp"))
    last = operator.rpartition("+")[2]
    wrong = run(with_wrong_code(executor, last))
    found = find_divergence(wrong, all_nodes=True)
    assert found.first is not None
    assert (found.first.name, found.first.operator) == (node, operator)
    assert found.first.cause is Cause.KERNEL
    assert found.inside is None
    assert [one.name for one in found.findings if one.wrong] == [node]
    text = f"the first wrong node is {node} ({operator}): the kernel is wrong"
    assert str(found).startswith(text)
    assert ("fusing them went wrong" in str(found)) == ("+" in operator)


def test_the_first_wrong_element_is_reported() -> None:
    executor = run(create(small(), "interp"))
    right = executor.outputs["y"].asnumpy()
    wrong = run(with_wrong_code(executor, "softmax"))
    first = find_divergence(wrong).first
    assert first is not None
    assert first.first_wrong is not None
    assert first.first_wrong.index == (0, 0)
    assert first.first_wrong.found == right[0, 1]
    assert first.first_wrong.expected == pytest.approx(right[0, 0], rel=1e-6)
    assert 0 < first.first_wrong.bound < 1e-5
    assert first.ratio > 1
    # The others are right by chance, such as the last one of a row: the next one is itself.
    assert first.wrong == np.count_nonzero(right[:, :-1] != right[:, 1:])


@pytest.mark.parametrize(
    ("operator", "node", "cause"),
    [("relu", "r", Cause.COMPUTE), ("add", "a", Cause.COMPUTE), ("dense_pack", "m", Cause.KERNEL)],
)
def test_a_wrong_te_compute_is_named_inside_of_its_kernel(operator, node, cause) -> None:
    """Sums of products are bounded by their meaning, so the kernel contradicts it."""

    graph = with_operator(optimize(small()), operator, wrong_operator(operator))
    found = find_divergence(run(DebugExecutor(compile_nodes(graph, "interp"))))
    assert found.first is not None
    assert found.inside is not None
    assert found.first.name == "r"
    assert (found.inside.name, found.inside.operator) == (node, f"wrong_{operator}")
    assert found.inside.cause is cause
    assert f"inside of it, node {node} (wrong_{operator}) is wrong" in str(found)


def test_a_wrong_te_compute_does_not_hide_in_the_bound_of_a_long_sum() -> None:
    """Its bound lies about the wrong value. The right one is 1.5 bounds away."""
    right = find_operator("relu")

    def compute(data):
        made = right.compute(data)
        return rc.compute(made.shape, lambda *i: made[i] * rc.const(1.001, "float32"))

    if "scaled_relu" not in operator_names():
        register_operator(replace(right, name="scaled_relu", compute=compute))
    builder = GraphBuilder("net")
    x = builder.input("x", "float32", (1, 2000))
    # 360 = 1180 - 820: the bound is some 2000 u times 2000, the mistake 0.36.
    signs = np.repeat(np.array([1, -1], np.float32), [1180, 820]).reshape(2000, 1)
    product = builder.node("matmul", [x, builder.constant("w", signs)])
    graph = optimize(builder.finish([builder.node("relu", [product], name="y")]))
    assert len(graph.nodes) == 1
    wrong = with_operator(graph, "relu", "scaled_relu")
    executor = DebugExecutor(compile_nodes(wrong, "interp"))
    executor.run(x=np.ones((1, 2000), np.float32))
    found = find_divergence(executor)
    assert found.first is not None
    assert found.inside is not None
    assert found.first.cause is Cause.COMPUTE
    assert 1 < found.first.ratio < 2
    assert found.inside.operator == "scaled_relu"


def test_a_node_that_is_not_fused_has_nothing_inside() -> None:
    assert find_inside(run(create(small(), "interp")), "y") is None


def test_a_peer_that_agrees_is_within_both_bounds() -> None:
    executor = run(create(small(), "interp", unfused=True))
    graph = executor.module.graph
    values = {**executor.recording().outputs, "x": X}
    values["y"] = np.nextafter(values["y"], np.float32(9))
    found = find_divergence(executor, Peer("other", values))
    assert found.first is None
    assert {one.against for one in found.findings} == {"other"}
    assert len(found.findings) == len(graph.nodes)


def test_an_error_of_the_peer_is_its_own_and_hides_nothing() -> None:
    executor = run(create(small(), "interp", unfused=True))
    values = dict(executor.recording().outputs)
    values["a"] = values["a"] + np.float32(0.5)
    found = find_divergence(executor, Peer("other", values), all_nodes=True)
    assert found.first is not None
    # Node r reads the peer's wrong a, and does not make of it what the peer has.
    wrong = {one.name: one.cause for one in found.findings if one.wrong}
    assert wrong == {"a": Cause.PEER, "r": Cause.PEER}
    assert str(found) == "the first wrong node is a (add): the peer is wrong"


def test_a_wrong_kernel_is_named_against_a_right_peer() -> None:
    executor = run(create(small(), "interp"))
    right = Peer("other", executor.recording().outputs)
    wrong = run(with_wrong_code(executor, "relu"))
    found = find_divergence(wrong, right, all_nodes=True)
    assert [(one.name, one.cause) for one in found.findings if one.wrong] == [("r", Cause.KERNEL)]


def test_a_wrong_conversion_is_told_from_a_wrong_kernel() -> None:
    """The compiled graph adds the negated constant: kernel and peer are right, each for itself."""

    def build(sign: float):
        def nodes(builder, x):
            return builder.node("add", [x, builder.constant("c", sign * floats(1, 6))], name="y")

        return make_graph(nodes, ("N", 6))

    executor = run(create(build(-1), "interp"))
    (y,) = evaluate_graph(build(1), {"x": X})
    found = find_divergence(executor, Peer("other", {"y": y}, build(1)))
    assert found.first is not None
    assert found.first.cause is Cause.CONVERSION


def test_values_that_the_peer_lacks_are_judged_by_their_meaning() -> None:
    executor = run(create(small(), "interp", unfused=True))
    values = {k: v for k, v in executor.recording().outputs.items() if k != "a"}
    found = find_divergence(executor, Peer("other", values))
    assert found.first is None
    against = {one.name: (one.against, bool(one.remark)) for one in found.findings}
    assert against["m"] == ("other", False)
    assert against["a"] == against["r"] == ("evaluate", True)
    assert found.findings[1].remark == "other does not have what the node reads or makes"


def test_nan_is_right_where_it_is_meant_and_wrong_elsewhere() -> None:
    x = X.copy()
    x[1, 2] = np.nan
    executor = create(small(), "interp")
    executor.run(x=x)
    assert find_divergence(executor).first is None
    values = dict(executor.recording().outputs)
    values["y"] = values["y"].copy()
    values["y"][0, 0] = np.nan
    first = find_divergence(executor, Peer("other", values)).first
    assert first is not None
    assert first.first_wrong is not None
    assert np.isnan(first.first_wrong.expected)
    assert (first.name, first.wrong, first.cause) == ("y", 1, Cause.PEER)


def test_an_executor_that_has_not_run_is_refused() -> None:
    with pytest.raises(UserError) as info:
        find_divergence(create(small(), "interp"))
    assert info.value.what == "there is nothing to compare"
    assert info.value.why == "the graph has not been run"
    assert info.value.remedy == "call run() first"


def test_narrowed_values_are_compared() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", "float32", (4,))
    indices, count = builder.nodes("nonzero", [x])
    graph = builder.finish([builder.narrow(indices, count, axis=1, name="found")])
    executor = create(graph, "interp")
    executor.run(x=np.array([0, 5, 0, 7], np.float32))
    found = list(compare_nodes(executor))
    assert [one.name for one in found] == ["nonzero", "nonzero.1", "found"]
    assert all(one.wrong == 0 for one in found)
    assert found[-1].elements == 2


@pytest.mark.llvm
@pytest.mark.parametrize("unfused", [False, True])
def test_the_digit_network_agrees_with_its_meaning(unfused: bool) -> None:
    images, _ = digits_images()
    executor = create(digits_graph(), unfused=unfused)
    executor.run(image=images[:8])
    found = find_divergence(executor)
    assert found.first is None
    assert max(one.ratio for one in found.findings) > 0


def test_fused_operators_are_joined() -> None:
    nodes = compile_graph(small(), "interp").graph.nodes
    assert [operators_of(node) for node in nodes] == ["matmul+add+relu", "softmax"]
