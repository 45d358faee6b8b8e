"""Wrong kernels are seeded in small networks, and the debugger names each of them."""

import json
from dataclasses import replace

import onnx
import pytest

import refcomp as rc
from benchmarks import made_models, seed_wrong_kernels
from benchmarks.seed_wrong_kernels import (
    MISTAKES,
    Outcome,
    feeds_of,
    main,
    members,
    seeded,
    with_mistake,
)
from refcomp.graph.graph import Graph
from refcomp.graph.optimize import optimize
from tests.strategies.graphs import digits_graph

pytestmark = pytest.mark.llvm


def outcomes(name: str, graph: Graph, count: int) -> list[Outcome]:
    module = rc.compile_graph(graph)
    return list(seeded(name, module, feeds_of(graph, 0), count, seed=0))


def small_lstm() -> Graph:
    return rc.from_onnx(made_models.lstm(steps=2, size=8, hidden=12).SerializeToString())


def test_every_wrong_kernel_of_the_digit_network_is_named() -> None:
    found = outcomes("digits", digits_graph(), 10)
    assert len(found) == 10
    assert [one for one in found if not one.is_found] == []
    assert len({one.mistake for one in found}) >= 8
    assert any(one.inside for one in found)


def test_every_wrong_kernel_of_an_lstm_is_named() -> None:
    found = outcomes("lstm", small_lstm(), 8)
    assert len(found) == 8
    assert [one for one in found if not one.is_found] == []


def test_a_mistake_that_changes_nothing_is_not_counted(monkeypatch) -> None:
    same = [mistake for mistake in MISTAKES if mistake.name == "lost activation"]
    monkeypatch.setattr(seed_wrong_kernels, "MISTAKES", same)
    # All activations of this network are of positive numbers.
    builder = rc.graph.GraphBuilder("net")
    x = builder.input("x", "float32", (4,))
    y = builder.node("relu", [builder.node("exp", [x])])
    assert outcomes("net", builder.finish([y]), 5) == []


def test_a_mistake_that_rounding_could_make_is_listed_apart(monkeypatch, tmp_path) -> None:
    tiny = 1 + 2.0**-22

    def nearly(compute):
        def wrong(*inputs, **given):
            made = compute(*inputs, **given)
            return rc.compute(made.shape, lambda *i: made[i] * rc.const(tiny, "float32"))

        return wrong

    applies = seed_wrong_kernels._is_product
    mistake = replace(MISTAKES[0], name="nearly right", applies=applies, wrong=nearly)
    monkeypatch.setattr(seed_wrong_kernels, "MISTAKES", (mistake,))
    model, report = tmp_path / "lstm.onnx", tmp_path / "report.json"
    onnx.save(made_models.lstm(steps=2, size=8, hidden=12), model)
    main([str(model), "--count", "1", "--json", str(report)])
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["seeded"] == 0
    assert found["within_bound"]
    assert all(0 < one["error_over_bound"] <= 1 for one in found["within_bound"])


def test_one_node_alone_becomes_wrong() -> None:
    graph = optimize(digits_graph())
    right = [member.operator for member, _ in members(graph)]
    member = next(m for m, kernel in members(graph) if m.operator == "relu" and m is not kernel)
    mistake = next(one for one in MISTAKES if one.name == "lost activation")
    wrong = [one.operator for one, _ in members(with_mistake(graph, member, mistake))]
    differs = [(a, b) for a, b in zip(right, wrong, strict=True) if a != b]
    assert differs == [("relu", "wrong_relu_lost_activation")]


def test_the_report_holds_the_command_and_each_outcome(tmp_path, capsys) -> None:
    model, report = tmp_path / "lstm.onnx", tmp_path / "report.json"
    onnx.save(made_models.lstm(steps=2, size=4, hidden=4), model)
    assert main([str(model), "--count", "2", "--json", str(report)]) == 0
    assert "2 of 2 named" in capsys.readouterr().out
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["command"] == "benchmarks/seed_wrong_kernels.py lstm.onnx --count 2 --seed 0"
    assert (found["named"], found["seeded"], len(found["outcomes"])) == (2, 2, 2)
    assert {one["model"] for one in found["outcomes"]} == {"lstm"}
