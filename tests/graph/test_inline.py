"""Nodes of a graph in the place of a call: they mean the same."""

import numpy as np

from refcomp.graph.builder import GraphBuilder
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.inline import inline_graph
from refcomp.graph.parser import parse_graph


def test_an_inlined_graph_means_the_same() -> None:
    graph = parse_graph("""
graph g(x: f32[N, 2], c: bool[]) -> (y, z) {
  require N < 9
  const w: f32[2] = [3.0, 4.0]
  y: f32[N, 2] = add(x, w)
  z: f32[*] = if(c, x)
    graph a(x: f32[N, 2]) -> (t) { t: f32[] = max(x) }
    graph b(x: f32[N, 2]) -> (x) { }
}""")
    builder = GraphBuilder("outer")
    condition = builder.input("c", "bool", ())
    x = builder.input("x", "float32", ("N", 2))
    doubled = builder.node("add", [x, x], name="y")  # a name that the graph has, too
    outer = builder.finish(inline_graph(builder, graph, [doubled, condition]))
    assert outer.requires == graph.requires
    values = np.array([[1, -2], [5, 0]], "float32")
    for flag in (np.array(True), np.array(False)):
        expected = evaluate_graph(graph, {"x": values * 2, "c": flag})
        made = evaluate_graph(outer, {"x": values, "c": flag})
        for one, other in zip(made, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_each_copy_finds_its_own_number_of_elements() -> None:
    graph = parse_graph("""
graph g(x: f32[4]) -> (found) {
  places: i64[1, 4], count: i64[1] = nonzero(x)
  found: i64[1, kept] = narrow(places, count) {axis=1, symbol="kept"}
}""")
    builder = GraphBuilder("outer")
    inputs = [builder.input(name, "float32", (4,)) for name in "ab"]
    outputs = [inline_graph(builder, graph, [one])[0] for one in inputs]
    assert len({value.shape for value in outputs}) == 2
    feeds = {"a": np.array([0, 1, 0, 1], "float32"), "b": np.array([1, 0, 0, 0], "float32")}
    first, second = evaluate_graph(builder.finish(outputs), feeds)
    assert (first.tolist(), second.tolist()) == ([[1, 3]], [[0]])
