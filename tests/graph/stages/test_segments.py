"""Segments: what they compile, where they end, and when they are taken again."""

import numpy as np
import pytest

from refcomp.foundation.errors import CompilerBug, UserError
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.graph import Value
from refcomp.graph.macros import MacroCall, NotKnownError, register_macros
from refcomp.graph.parser import parse_graph
from refcomp.graph.stages.executor import StagedExecutor
from tests.graph.control.runs import f32, i64, run_text


def expand(call: MacroCall) -> list[Value]:
    """The macros of these tests."""
    data = call.inputs[0]
    assert data is not None
    if call.operator == "Reshape":
        wanted = call.inputs[1]
        assert wanted is not None
        shape = tuple(int(one) for one in call.known(wanted))
        return [call.builder.node("reshape", [data], {"shape": shape}, call.outputs[0])]
    if call.operator == "Extents":
        return [call.builder.constant(call.outputs[0], np.array(data.shape, np.int64))]
    if call.operator == "Inner":
        call.known(call.builder.node("negative", [data]))
    raise UserError("this macro is never right")


register_macros("segments", expand)

RESHAPE = """
graph g(x: f32[N], s: i64[2]) -> (z) {
  y: f32[*] = segments.Reshape(x, s)
  z: f32[*] = softmax(y) {axis=1}
}"""


def test_elements_of_an_input_decide_what_is_compiled() -> None:
    x = f32(1, 2, 3, 4, 5, 6)
    (z,) = run_text(RESHAPE, x=x, s=np.array([2, 3]))
    assert z.shape == (2, 3)
    executor = StagedExecutor(parse_graph(RESHAPE), "interp")
    for shape in ([2, 3], [3, 2], [2, 3], [3, 2]):
        assert executor.run(x=x, s=np.array(shape))[0].shape == tuple(shape)
    assert executor.compilations == 2
    assert executor.launches == 4  # the reshape is fused with the softmax


def test_elements_that_a_node_computes_end_the_segment_before() -> None:
    text = """
graph g(x: f32[*], s: i64[2]) -> (z) {
  n: i64[*] = segments.Extents(x)
  t: i64[2] = add(s, s)
  z: f32[*] = segments.Reshape(x, t)
}"""
    (z,) = run_text(text, x=np.ones((4, 4), "float32"), s=np.array([1, 4]))
    assert z.shape == (2, 8)
    executor = StagedExecutor(parse_graph(text), "interp")
    executor.run(x=np.ones((4, 4), "float32"), s=np.array([1, 4]))
    assert executor.compilations == 2


def test_nodes_on_shapes_become_constants() -> None:
    text = """
graph g(x: f32[*]) -> (y) {
  const two: i64[2] = [1, 0]
  n: i64[*] = segments.Extents(x)
  s: i64[*] = take(n, two)
  y: f32[*] = segments.Reshape(x, s)
}"""
    (y,) = run_text(text, x=np.arange(6, dtype="float32").reshape(2, 3))
    assert y.shape == (3, 2)
    executor = StagedExecutor(parse_graph(text), "interp")
    executor.run(x=np.ones((2, 3), "float32"))
    # The reshape has the place of its input.
    assert (executor.compilations, executor.launches) == (1, 0)


def test_extents_that_a_run_counts_end_the_segment() -> None:
    text = """
graph g(x: f32[*]) -> (n) {
  i: i64[*], c: i64[*] = nonzero(x)
  k: i64[*] = narrow(i, c) {axis=1, symbol="kept"}
  n: i64[*] = segments.Extents(k)
}"""
    (n,) = run_text(text, x=f32(0, 5, 0, 7, 9))
    assert n.tolist() == [1, 3]


def test_a_node_that_does_not_take_what_it_meets_is_named() -> None:
    graph = parse_graph("graph g(x: f32[*]) -> (y) { y: f32[*] = softmax(x) {axis=1} }")
    with pytest.raises(UserError) as caught:
        StagedExecutor(graph, "interp").run(x=f32(0))
    assert caught.value.where == "node 'y'"


def test_a_macro_that_refuses_is_named() -> None:
    graph = parse_graph("graph g(x: f32[*]) -> (y) { y: f32[*] = segments.Wrong(x) }")
    for run in (StagedExecutor(graph, "interp").run, lambda feeds: evaluate_graph(graph, feeds)):
        with pytest.raises(UserError, match="never right") as caught:
            run({"x": f32(1)})
        assert caught.value.where == "node y"


def test_a_macro_cannot_wait_for_its_own_nodes() -> None:
    graph = parse_graph("graph g(x: f32[*]) -> (y) { y: f32[*] = segments.Inner(x) }")
    with pytest.raises(CompilerBug, match="elements that its own nodes compute"):
        StagedExecutor(graph, "interp").run(x=f32(1))
    with pytest.raises(NotKnownError):
        evaluate_graph(graph, {"x": f32(1)})


def test_an_unknown_family_is_refused() -> None:
    graph = parse_graph("graph g(x: f32[*]) -> (y) { y: f32[*] = nobody.Knows(x) }")
    with pytest.raises(UserError, match="(?s)macros 'nobody' are not known.*refcomp.frontend"):
        StagedExecutor(graph, "interp").run(x=f32(1))


def test_late_attributes_and_macros_share_a_segment() -> None:
    text = """
graph g(x: f32[N], s: i64[2], k: i64[]) -> (z) {
  y: f32[*] = segments.Reshape(x, s)
  z: f32[*] = expand_dims(y) {axis=@k}
}"""
    (z,) = run_text(text, x=f32(1, 2, 3, 4), s=np.array([2, 2]), k=i64(2))
    assert z.shape == (2, 2, 1)
    executor = StagedExecutor(parse_graph(text), "interp")
    executor.run(x=f32(1, 2, 3, 4), s=np.array([2, 2]), k=i64(2))
    assert executor.compilations == 1
