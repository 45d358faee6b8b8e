"""Building graphs: unique names, nothing needless, constants that nobody can change."""

import numpy as np
import pytest

import refcomp.graph.builder as building
from refcomp.foundation.errors import UserError
from refcomp.graph.builder import GraphBuilder, GraphRewriter
from refcomp.graph.graph import Graph
from refcomp.graph.infer import infer_types
from refcomp.graph.verify import verify_graph
from tests.strategies.graphs import assert_equivalent, digits_graph, make_graph, operators_of
from tests.strategies.operands import floats


def test_names_are_made_unique() -> None:
    builder = GraphBuilder("g")
    x = builder.input("relu", "f32", (2,))
    first = builder.node("relu", [x])
    second = builder.node("relu", [first], name="relu")
    assert [v.name for v in (x, first, second)] == ["relu", "relu.1", "relu.2"]
    verify_graph(builder.finish([second]))


def test_inputs_are_not_renamed() -> None:
    builder = GraphBuilder("g")
    builder.input("x", "f32", (2,))
    with pytest.raises(UserError, match="two inputs named 'x'"):
        builder.input("x", "f32", (2,))


def test_what_no_output_needs_is_dropped() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", "f32", (2,))
    builder.node("add", [x, builder.constant("c", floats(0, 2))])
    graph = builder.finish([builder.node("relu", [x])])
    assert operators_of(graph) == ["relu"]
    assert not graph.constants


def test_constants_are_read_only_copies() -> None:
    builder = GraphBuilder("g")
    array = floats(0, 3)[::2]
    value = builder.constant("c", array)
    x = builder.input("x", "f32", (2,))
    graph = builder.finish([builder.node("add", [x, value])])
    kept = graph.constants[value]
    assert kept is not array and kept.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 1


def test_attributes_that_say_nothing_are_left_out() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", "f32", ("N", 2))
    graph = builder.finish([builder.node("softmax", [x], {"axis": -1})])
    assert graph.nodes[0].attributes == {}


def test_a_node_of_other_types_is_refused_where_it_is_made() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", "f32", ("N", 2))
    with pytest.raises(UserError, match="axis 7 is out of range") as info:
        builder.node("softmax", [x], {"axis": 7}, name="s")
    assert info.value.where == "node 's'"


def test_a_constant_may_hold_the_array_itself() -> None:
    builder = GraphBuilder("g")
    array = floats(0, 2, 3).T
    value = builder.constant("c", array, copy=False)
    x = builder.input("x", "f32", (2,))
    kept = builder.finish([builder.node("add", [x, value])]).constants[value]
    assert np.shares_memory(kept, array) and kept.strides == array.strides
    assert array.flags.writeable and not kept.flags.writeable


def _chain(length: int) -> Graph:
    def build(builder, value):
        for k in range(length):
            bias = builder.constant(f"b{k}", floats(k, 6))
            value = builder.node("add", [value, bias], name=f"y{k}")
        return value

    return make_graph(build)


def _copied(rewriter: GraphRewriter) -> Graph:
    for node in rewriter.graph.nodes:
        rewriter.copy(node)
    return rewriter.finish_copy()


def test_rewriter_keeps_what_does_not_change() -> None:
    graph = _chain(3)
    copied = _copied(GraphRewriter(graph))
    assert copied.nodes == graph.nodes
    assert copied.inputs == graph.inputs and copied.outputs == graph.outputs
    assert list(copied.constants.items()) == list(graph.constants.items())


def test_rewriter_infers_only_nodes_that_change(monkeypatch) -> None:
    graph = _chain(100)
    inferred = []
    monkeypatch.setattr(
        building,
        "infer_types",
        lambda *given, **named: inferred.append(given[0]) or infer_types(*given, **named),
    )
    rewriter = GraphRewriter(graph)
    *kept, last = graph.nodes
    for node in kept:
        rewriter.copy(node)
    replaced = rewriter.node("relu", rewriter.mapped(last.inputs[:1]), name=last.name)
    rewriter.values[last.outputs[0]] = replaced
    changed = rewriter.finish_copy()
    assert inferred == ["relu"]
    assert list(changed.nodes[:-1]) == kept
    verify_graph(changed)


def test_rewriter_repeats_what_reads_a_changed_value() -> None:
    graph = _chain(4)
    rewriter = GraphRewriter(graph)
    first, second, third, last = graph.nodes
    rewriter.copy(first)
    replaced = rewriter.node("relu", rewriter.mapped(second.inputs[:1]), name=second.name)
    rewriter.values[second.outputs[0]] = replaced
    rewriter.copy(third)
    rewriter.copy(last)
    changed = rewriter.finish_copy()
    assert [node.name for node in changed.nodes] == ["y0", "y1", "y2", "y3"]
    assert changed.nodes[0] is first
    assert not {third, last} & set(changed.nodes)
    verify_graph(changed)


def test_rewriter_repeats_a_node_whose_name_is_taken() -> None:
    graph = _chain(2)
    rewriter = GraphRewriter(graph)
    rewriter.node("relu", [graph.inputs[0]], name="y0")
    changed = _copied(rewriter)
    assert [node.name for node in changed.nodes] == ["y0.1", "y1"]
    assert not set(graph.nodes) & set(changed.nodes)
    verify_graph(changed)


def test_a_subgraph_has_no_symbol_that_only_the_graph_around_it_has() -> None:
    outer = GraphBuilder("outer")
    found, count = outer.nodes("nonzero", [outer.input("x", "float32", (4,))])
    kept = outer.narrow(found, count, 1)
    inner = GraphBuilder("inner", outer)
    found, count = inner.nodes("nonzero", [inner.input("x", "float32", (4,))])
    own = inner.narrow(found, count, 1)
    captured = inner.input("kept", "int64", kept.shape)
    assert own.shape != kept.shape
    verify_graph(inner.finish([own, captured]))
    assert outer.narrow(*outer.nodes("nonzero", [outer.input("y", "float32", (4,))]), 1).shape == (
        1,
        "kept.1",
    )


@pytest.mark.search
def test_rewriter_copies_a_graph() -> None:
    graph = digits_graph()
    copied = _copied(GraphRewriter(graph))
    assert str(copied) == str(graph)
    assert_equivalent(graph, copied)


def test_inputs_of_other_kinds_and_late_attributes() -> None:
    builder = GraphBuilder("net")
    frames = builder.input("frames", "f32", kind="sequence")
    place = builder.input("place", "i64")
    x = builder.node("sequence_at", [frames, place], name="x")
    y = builder.node("softmax", [x], name="y", late={"axis": place}, dtype="f32")
    graph = builder.finish([y])
    verify_graph(graph)
    assert str(graph).splitlines()[1:3] == [
        "  x: f32[*] = sequence_at(frames, place)",
        "  y: f32[*] = softmax(x) {axis=@place}",
    ]
    copied = GraphRewriter(graph)
    for node in graph.nodes:
        copied.copy(node)
    assert str(copied.finish_copy()) == str(graph)
    with pytest.raises(UserError, match="(?s)input 'z' cannot be a 'sequenc'.*did you mean"):
        builder.input("z", "f32", kind="sequenc")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"late": {"axs": "place"}}, "softmax has no attribute 'axs'.*did you mean axis"),
        ({"late": {"axis": "flag"}}, "axis of softmax cannot be read from flag: bool"),
        ({"late": {"axis": "x"}}, "axis of softmax cannot be read from x: f32.2, 2"),
        ({"attributes": {"axis": 1}}, "the attribute axis of softmax is given twice"),
        ({"dtype": None}, "(?s)only a run determines the results of softmax.*dtypes="),
    ],
)
def test_wrong_late_attributes_are_refused(changed: dict[str, object], message: str) -> None:
    builder = GraphBuilder("net")
    values = {
        "x": builder.input("x", "f32", (2, 2)),
        "place": builder.input("place", "i64"),
        "flag": builder.input("flag", "bool"),
    }
    given = {"late": {"axis": "place"}, "dtype": "f32", **changed}
    late = {name: values[value] for name, value in given.pop("late").items()}
    with pytest.raises(UserError, match=f"(?s){message}"):
        builder.node("softmax", [values["x"]], late=late, **given)


def test_a_condition_on_an_unknown_symbol_is_refused() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", "f32", ("N",))
    builder.require(("lt", "M", 3))
    with pytest.raises(UserError, match="no input has the symbol M of the condition M < 3"):
        builder.finish([x])


def test_a_default_is_left_out_only_if_it_is_the_same_to_the_bit() -> None:
    def given(value):
        graph = make_graph(lambda b, x: b.node("shrink", [x], {"bias": value}), ("N",))
        return graph.nodes[0].attributes

    assert "bias" not in given(0.0)
    assert str(given(-0.0)["bias"]) == "-0.0"
