"""How graphs are cut into stages."""

from refcomp.graph.parser import parse_graph
from refcomp.graph.stages.stages import ControlStage, TensorStage, has_stages, stages_of
from tests.strategies.graphs import digits_graph

TEXT = """
graph g(x: f32[N], s: seq(f32)) -> (d) {
  const w: f32[1] = [2]
  a: f32[N] = relu(x)
  b: f32[N] = add(a, w)
  t: seq(f32) = sequence_insert(s, b)
  n: i64[] = sequence_length(t)
  c: f32[*] = concat_from_sequence(t) {axis=0}
  e: f32[*] = add(c, w)
  d: f32[*] = expand_dims(e) {axis=@n}
}"""


def test_control_operators_stand_alone() -> None:
    stages = stages_of(parse_graph(TEXT))
    kinds = [type(stage) for stage in stages]
    assert kinds == [TensorStage, ControlStage, ControlStage, ControlStage, TensorStage]
    first, *_, last = stages
    assert [value.name for value in first.graph.inputs] == ["x"]
    assert [value.name for value in first.graph.outputs] == ["b"]
    assert [value.name for value in first.graph.constants] == ["w"]
    assert first.is_typed
    assert [value.name for value in last.graph.inputs] == ["c", "n"]
    assert not last.is_typed


def test_an_attribute_that_the_stage_makes_begins_another_stage() -> None:
    text = """
graph g(x: f32[2], n: i64[]) -> (y) {
  m: i64[] = negative(n)
  y: f32[*] = expand_dims(x) {axis=@m}
}"""
    first, second = stages_of(parse_graph(text))
    assert [node.name for node in first.graph.nodes] == ["m"]
    assert [node.name for node in second.graph.nodes] == ["y"]


def test_a_symbol_that_inputs_of_the_stage_do_not_determine_makes_it_untyped() -> None:
    text = """
graph g(x: f32[N], y: f32[(N + N)], s: seq(f32)) -> (z) {
  n: i64[] = sequence_length(s)
  z: f32[(N + N)] = relu(y)
}"""
    graph = parse_graph(text)
    assert has_stages(graph)
    assert not stages_of(graph)[1].is_typed


def test_a_graph_of_tensors_is_one_stage() -> None:
    graph = digits_graph()
    assert not has_stages(graph)
    (stage,) = stages_of(graph)
    assert stage.graph.nodes == graph.nodes
    assert stage.is_typed
