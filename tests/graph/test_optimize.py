"""All passes together."""

import warnings
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given

from refcomp.foundation.errors import UserError
from refcomp.foundation.options import build_options
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.optimize import OPTIONAL_STEPS, STEPS, optimize
from refcomp.graph.parser import parse_graph
from refcomp.graph.verify import verify_graph
from tests.strategies.graphs import (
    assert_equivalent,
    digits_graph,
    digits_images,
    make_graph,
    networks,
    operators_of,
)
from tests.strategies.operands import floats


@pytest.mark.search
def test_text_of_the_digit_network(golden) -> None:
    golden(
        "graph/digits_optimized.txt",
        str(optimize(digits_graph(), target="llvm -mcpu=x86-64-v3")) + "\n",
    )


@pytest.mark.search
def test_the_digit_network_keeps_its_meaning() -> None:
    images, labels = digits_images()
    (before,), (after,) = (
        evaluate_graph(graph, {"image": images})
        for graph in (digits_graph(), optimize(digits_graph()))
    )
    assert abs(before - after).max() < 1e-5
    assert (after.argmax(axis=1) == labels).mean() >= 0.97


def test_every_step_has_a_reason() -> None:
    assert all(step.reason for step in (*STEPS, *OPTIONAL_STEPS))


def test_a_graph_with_nothing_to_improve_stays() -> None:
    graph = make_graph(lambda b, x: b.node("relu", [x]))
    assert optimize(graph) is graph


def test_only_nodes_that_a_pass_made_are_verified_after_it(monkeypatch) -> None:
    def build(builder, value):
        for _ in range(10):
            value = builder.node("softmax", [value])
        return builder.node("softmax", [builder.node("identity", [value])], name="last")

    # The name in the package is the function's.
    optimizing = import_module("refcomp.graph.optimize")
    made = []
    monkeypatch.setattr(
        optimizing,
        "verify_graph",
        lambda graph, verified=(): made.append(
            [node.name for node in graph.nodes if node not in verified]
        ),
    )
    graph = make_graph(build, ("N", 4))
    with build_options(verify_steps=False):
        optimize(graph)
    assert [len(made[0]), *made[1:]] == [12, ["last"]]
    made.clear()
    with build_options(verify_steps=True):
        optimize(graph)
    assert [len(names) for names in made] == [12, 11]


def test_damaged_weights_are_folded_in_silence() -> None:
    def build(builder, x):
        weight = builder.constant("w", np.full((4, 3, 1, 1), 3e38, np.float32))
        statistics = [builder.constant("s", np.full(4, v, np.float32)) for v in (9, 1, 1, -2)]
        convolved = builder.node("conv2d", [x, weight, None])
        big = builder.node("multiply", [builder.constant("big", np.float32([3e38])), weight])
        return [builder.node("batch_norm", [convolved, *statistics]), big]

    graph = make_graph(build)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "batch_norm" not in operators_of(optimize(graph))


@pytest.mark.search
@given(networks())
def test_meaning_is_kept_but_for_rounding(graph):
    assert_equivalent(graph, optimize(graph), tolerance=1e-5)


def test_passes_are_chosen_by_name() -> None:
    graph = digits_graph()
    changed = optimize(graph, ["fold_batch_norm", "fuse_operators"])
    assert operators_of(changed).count("fused") == 4
    assert "conv2d_nhwc" not in str(changed)
    assert optimize(graph, []) is graph


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        (["fold_constant"], "(?s)no graph pass is called 'fold_constant'.*did you mean"),
        (["fuse_operators", "fold_constants"], "fold_constants stands behind fuse_operators"),
        ("fold_constants", "passes are given as 'fold_constants'"),
    ],
)
def test_wrong_passes_are_refused(passes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        optimize(digits_graph(), passes)


def test_changes_are_logged(caplog) -> None:
    with caplog.at_level("DEBUG", logger="refcomp.graph"):
        optimize(digits_graph())
    messages = [record.getMessage() for record in caplog.records]
    assert "fold_batch_norm: 14 nodes -> 11 in digits" in messages
    assert not any(message.startswith("fold_scale_axis") for message in messages)


def test_a_graph_with_control_operators_stays() -> None:
    graph = parse_graph("graph g(s: seq(f32)) -> (n) { n: i64[] = sequence_length(s) }")
    assert optimize(graph) is graph


# Control operators, tensors without a shape, late attributes and `narrow`, in the places where
# passes look for something to change.
ALL_KINDS = """
graph g(c: bool[], s: seq(f32), axis: i64[], x: f32[2, 2, 1, 1], w: f32[2, 2]) -> (y, p, h, n, k) {
  const f: f32[2, 2, 1, 1] = [1.0, 2.0, 3.0, 4.0]
  const one: f32[2] = [1.0, 1.0]
  first: f32[*] = if(c, x)
    graph then(x: f32[2, 2, 1, 1]) -> (r) { r: f32[2, 2, 1, 1] = relu(x) }
    graph otherwise(x: f32[2, 2, 1, 1]) -> (r) { r: f32[2, 2] = reshape(x) {shape=[2, 2]} }
  again: f32[*] = if(c, x)
    graph then(x: f32[2, 2, 1, 1]) -> (r) { r: f32[2, 2, 1, 1] = relu(x) }
    graph otherwise(x: f32[2, 2, 1, 1]) -> (r) { r: f32[2, 2] = reshape(x) {shape=[2, 2]} }
  second: f32[*] = reshape(again) {shape=[2, 2]}
  conv: f32[*] = conv2d(first, f)
  norm: f32[*] = batch_norm(conv, one, one, one, one)
  t: f32[*] = transpose(norm) {axes=[0, 2, 3, 1]}
  tt: f32[*] = transpose(t) {axes=[0, 3, 1, 2]}
  same: f32[*] = identity(tt)
  pool: f32[*] = global_avg_pool2d(same)
  y: f32[*] = multiply(pool, one)
  product: f32[*] = gemm(w, second) {trans_b=True}
  p: f32[*] = multiply(product, one)
  e: f32[*] = expand_dims(w) {axis=@axis}
  d: f32[*] = expand_dims(w) {axis=@axis}
  h: f32[*] = add(e, d)
  n: i64[] = sequence_length(s)
  places: i64[4, 4], found: i64[1] = nonzero(x)
  k: i64[4, kept] = narrow(places, found) {axis=1, symbol="kept"}
}
"""


PASSES = {step.function.__name__: step.function for step in (*STEPS, *OPTIONAL_STEPS)}


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_leaves_all_but_plain_tensors_alone(name: str) -> None:
    graph = parse_graph(ALL_KINDS)
    function = PASSES[name]
    changed = function(graph)
    verify_graph(changed)
    operators = [n.operator for n in changed.nodes if n.operator != "identity"]
    assert operators == [n.operator for n in graph.nodes if n.operator != "identity"]
    feeds = {
        "c": np.array(True),
        "s": [np.zeros(2, "float32")],
        "axis": np.array(1),
        "x": floats(1, 2, 2, 1, 1),
        "w": floats(2, 2, 2),
    }
    expected = evaluate_graph(graph, feeds)
    for one, other in zip(expected, evaluate_graph(changed, feeds), strict=True):
        np.testing.assert_array_equal(other, one, strict=True)
