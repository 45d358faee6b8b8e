"""Gradients of whole graphs: sums of adjoints, heads, constants, stops, and each refusal."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.graph.graph import Graph
from refcomp.topi.operator import _OPERATORS as OPERATORS


def _graph(make, *outputs, shapes=None, dtype="float64"):
    """Return a graph of inputs x, w, ... with the outputs of a function of builder and values."""
    builder = rc.graph.GraphBuilder("net")
    values = [
        builder.input(name, dtype, shape)
        for name, shape in (shapes or {"x": (2,), "w": (2,)}).items()
    ]
    made = make(builder, *values)
    return builder.finish(made if isinstance(made, tuple) else (made,))


def _loss(builder, value):
    return builder.node("sum", [value], name="loss")


def _product():
    return _graph(lambda b, x, w: _loss(b, b.node("multiply", [x, w], name="product")))


_FEEDS = {"x": np.array([2.0, 3.0]), "w": np.array([5.0, 7.0])}


def test_the_example_in_the_docstring_is_what_is_printed() -> None:
    page = rc.graph.gradient.__doc__
    text = "\n".join(line[8:] for line in page.splitlines() if line.startswith(" " * 8))
    before, _, rest = text.partition("\n}\n")
    after, _, _ = rest.partition("\n}\n")
    graph = rc.graph.parse_graph(f"{before}\n}}")
    assert str(rc.graph.gradient(graph, wrt="w")) == f"{after}\n}}"


def test_all_inputs_of_floats_are_the_default() -> None:
    slopes = rc.graph.gradient(_product())
    assert [value.name for value in slopes.outputs] == ["loss", "x_grad", "w_grad"]
    loss, x, w = rc.graph.evaluate_graph(slopes, _FEEDS)
    assert (float(loss), x.tolist(), w.tolist()) == (31, [5, 7], [2, 3])


def test_the_nodes_of_the_graph_stay() -> None:
    graph = _product()
    slopes = rc.graph.gradient(graph)
    assert slopes.nodes[: len(graph.nodes)] == graph.nodes
    rc.graph.verify_graph(slopes)


def test_a_value_that_is_read_twice_adds_what_both_contribute() -> None:
    def make(builder, x, _w):
        square = builder.node("multiply", [x, x])
        return _loss(builder, builder.node("add", [square, builder.node("sin", [x])]))

    slopes = rc.graph.gradient(_graph(make), wrt="x")
    _, x = rc.graph.evaluate_graph(slopes, _FEEDS)
    np.testing.assert_allclose(x, 2 * _FEEDS["x"] + np.cos(_FEEDS["x"]), rtol=1e-15)


def test_a_value_that_no_output_depends_on_has_zeros() -> None:
    graph = _graph(lambda b, x, w: _loss(b, x))
    _, x, w = rc.graph.evaluate_graph(rc.graph.gradient(graph), _FEEDS)
    assert (x.tolist(), w.tolist()) == ([1, 1], [0, 0])


def test_constants_can_be_differentiated_by() -> None:
    builder = rc.graph.GraphBuilder("net")
    x = builder.input("x", "float64", (2,))
    w = builder.constant("w", np.array([5.0, 7.0]))
    graph = builder.finish([_loss(builder, builder.node("multiply", [x, w]))])
    slopes = rc.graph.gradient(graph, wrt=["w"])
    _, found = rc.graph.evaluate_graph(slopes, {"x": _FEEDS["x"]})
    assert found.tolist() == [2, 3]


def test_heads_weigh_several_outputs() -> None:
    def make(builder, x, w):
        return builder.node("add", [x, w], name="a"), builder.node("multiply", [x, w], name="b")

    slopes = rc.graph.gradient(_graph(make), wrt="x", head=["a", "b"])
    assert [value.name for value in slopes.inputs] == ["x", "w", "a_head", "b_head"]
    heads = {"a_head": np.array([1.0, 0.0]), "b_head": np.array([0.0, 10.0])}
    *_, x = rc.graph.evaluate_graph(slopes, {**_FEEDS, **heads})
    assert x.tolist() == [1, 70]


def test_an_output_without_a_head_does_not_count() -> None:
    def make(builder, x, w):
        return builder.node("add", [x, w], name="a"), builder.node("multiply", [x, w], name="b")

    slopes = rc.graph.gradient(_graph(make), wrt="x", head="a")
    *_, x = rc.graph.evaluate_graph(slopes, {**_FEEDS, "a_head": np.ones(2)})
    assert x.tolist() == [1, 1]


def test_values_share_one_adjoint() -> None:
    graph = _graph(lambda b, x, w: b.node("add", [x, w], name="y"))
    slopes = rc.graph.gradient(graph, head="y")
    compiled = rc.graph.compile_graph(slopes, "interp")
    feeds = {**_FEEDS, "y_head": np.array([1.0, 2.0])}
    _, x, w = rc.graph.GraphExecutor(compiled).run(feeds)
    assert x.asnumpy().tolist() == w.asnumpy().tolist() == [1, 2]


def test_several_outputs_of_a_node_add_their_adjoints() -> None:
    def make(builder, x, _w):
        values, _ = builder.nodes("topk", [x], {"k": 1}, ["greatest", "place"])
        first, second = builder.nodes("split", [x], {"axis": 0, "sizes": (1, 1)})
        weighted = builder.node("multiply", [first, second])
        return _loss(builder, builder.node("add", [weighted, values]))

    slopes = rc.graph.gradient(_graph(make), wrt="x")
    _, x = rc.graph.evaluate_graph(slopes, _FEEDS)
    assert x.tolist() == [3, 3]


def test_vjp_of_two_outputs_is_added() -> None:
    names = {"x": (1, 2), "h": (1, 1), "c": (1, 1), "w": (4, 2), "r": (4, 1)}

    def make(builder, x, h, c, w, r):
        hidden, cell = builder.nodes("lstm_cell", [x, h, c, w, r])
        return _loss(builder, builder.node("multiply", [hidden, cell]))

    graph = _graph(make, shapes=names)
    feeds = {name: np.full(shape, 0.3) for name, shape in names.items()}
    slopes = rc.graph.gradient(graph, wrt="c")
    assert str(slopes).count("= vjp(") == 2
    _, slope = rc.graph.evaluate_graph(slopes, feeds)
    step = 1e-5
    after, before = (
        rc.graph.evaluate_graph(graph, {**feeds, "c": feeds["c"] + sign * step})[0]
        for sign in (1, -1)
    )
    np.testing.assert_allclose(slope.item(), (after - before) / (2 * step), rtol=1e-8)


def test_nothing_passes_stop_gradient() -> None:
    def make(builder, x, w):
        stopped = builder.node("stop_gradient", [builder.node("exp", [w])])
        return _loss(builder, builder.node("multiply", [x, stopped]))

    slopes = rc.graph.gradient(_graph(make))
    _, x, w = rc.graph.evaluate_graph(slopes, _FEEDS)
    np.testing.assert_allclose(x, np.exp(_FEEDS["w"]), rtol=1e-15)
    assert w.tolist() == [0, 0]


def test_straight_through_rounding_can_be_written() -> None:
    def make(builder, x, _w):
        error = builder.node("subtract", [builder.node("round", [x]), x])
        return _loss(builder, builder.node("add", [x, builder.node("stop_gradient", [error])]))

    _, x, _ = rc.graph.evaluate_graph(rc.graph.gradient(_graph(make)), _FEEDS)
    assert x.tolist() == [1, 1]


def test_comparisons_count_as_constants() -> None:
    def make(builder, x, w):
        is_greater = builder.node("greater", [x, w])
        ones = builder.node("cast", [is_greater], {"dtype": "float64"})
        return _loss(builder, builder.node("multiply", [x, ones]))

    _, x, w = rc.graph.evaluate_graph(rc.graph.gradient(_graph(make)), {**_FEEDS, "w": np.zeros(2)})
    assert (x.tolist(), w.tolist()) == ([1, 1], [0, 0])


def test_indices_that_depend_on_a_value_need_no_gradient() -> None:
    def make(builder, x, w):
        place = builder.node("argmax", [x], {"axis": 0, "keepdims": True})
        return _loss(builder, builder.node("index_select", [w, place]))

    slopes = rc.graph.gradient(_graph(make), wrt="w")
    assert rc.graph.evaluate_graph(slopes, _FEEDS)[1].tolist() == [0, 1]


def test_symbols_stay_symbols() -> None:
    def make(builder, x, w):
        return _loss(builder, builder.node("multiply", [x, w], name="product"))

    graph = _graph(make, shapes={"x": ("N", 2), "w": (2,)})
    slopes = rc.graph.gradient(graph)
    assert str(slopes.outputs[1]) == "x_grad: f64[N, 2]"
    feeds = {"x": np.ones((3, 2)), "w": _FEEDS["w"]}
    assert rc.graph.evaluate_graph(slopes, feeds)[2].tolist() == [3, 3]


def test_a_gradient_can_be_differentiated_again() -> None:
    graph = _graph(lambda b, x, w: _loss(b, b.node("exp", [b.node("multiply", [x, w])])))
    second = rc.graph.gradient(_total_slope(graph), wrt="x")
    feeds = {"x": np.array([0.5, 1.0]), "w": np.array([3.0, 2.0])}
    _, found = rc.graph.evaluate_graph(second, feeds)
    np.testing.assert_allclose(found, [9 * np.exp(1.5), 4 * np.exp(2)], rtol=1e-14)


def _total_slope(graph: Graph) -> Graph:
    """Return the graph of the sum of the gradient by x."""
    first = rc.graph.gradient(graph, wrt="x")
    builder = rc.graph.builder.GraphRewriter(first)
    for node in first.nodes:
        builder.copy(node)
    return builder.finish([builder.node("sum", [first.outputs[1]], name="total")])


def test_vjp_is_not_differentiated_again() -> None:
    graph = _graph(lambda b, x, w: _loss(b, b.node("atan", [x])))
    error = _refused(_total_slope(graph), r"no gradient passes the node x_grad \(vjp\)")
    assert error.why == "second derivatives pass only operators that have a rule"


def test_names_of_adjoints_do_not_clash() -> None:
    def make(builder, x, w):
        taken = builder.node("multiply", [x, w], name="x_grad")
        return _loss(builder, taken)

    slopes = rc.graph.gradient(_graph(make))
    assert [value.name for value in slopes.outputs] == ["loss", "x_grad.1", "w_grad"]


def _refused(graph: Graph, match: str, **arguments: object) -> UserError:
    with pytest.raises(UserError, match=match) as info:
        rc.graph.gradient(graph, **arguments)
    return info.value


def test_unknown_names_are_refused() -> None:
    graph = _product()
    error = _refused(graph, "has no input or constant 'v'", wrt="v")
    assert "it has x, w" in error.remedy
    error = _refused(graph, "has no output 'los'", head="los")
    assert "loss" in error.remedy


def test_what_is_not_a_graph_is_refused() -> None:
    _refused("net", "is not a graph")


def test_integers_have_no_gradient() -> None:
    builder = rc.graph.GraphBuilder("net")
    x = builder.input("x", "int32", (2,))
    total = builder.node("sum", [x], name="total")
    integers = builder.finish([total])
    _refused(integers, "x: i32\\[2\\] has no gradient", wrt="x")
    _refused(integers, "the graph net has no input of floats")
    w = builder.input("w", "float32", ())
    mixed = builder.finish([total, builder.node("square", [w], name="y")])
    error = _refused(mixed, "the output total: i32\\[\\] has no gradient", wrt="w")
    assert "by head=" in error.remedy
    _refused(mixed, "the output total: i32\\[\\] has no gradient", wrt="w", head="total")


def test_a_loss_of_several_elements_needs_a_head() -> None:
    graph = _graph(lambda b, x, w: b.node("add", [x, w], name="y"))
    error = _refused(graph, r"the output y: f64\[2\] is not one number")
    assert 'head="y"' in error.remedy


def test_an_operator_without_a_gradient_is_named_with_the_reason() -> None:
    def make(builder, x, w):
        return _loss(builder, builder.node("fake_quantize", [x, w], name="rounded"))

    shapes = {"x": (2,), "w": ()}
    graph = _graph(make, shapes=shapes, dtype="float32")
    error = _refused(graph, r"no gradient passes the node rounded \(fake_quantize\)")
    assert error.why.startswith("rounding hides its slope")
    assert "stop_gradient" in error.remedy


def test_a_value_that_only_indices_depend_on_is_refused() -> None:
    def make(builder, x, w):
        place = builder.node("argmax", [x], {"axis": 0, "keepdims": True}, name="best")
        return _loss(builder, builder.node("index_select", [w, place]))

    error = _refused(_graph(make), r"no gradient passes the node best \(argmax\)")
    assert error.why == "it makes indices or counts"


def test_optimized_graphs_are_refused() -> None:
    graph = _graph(lambda b, x, w: b.node("relu", [b.node("add", [x, w])], name="y"))
    error = _refused(rc.graph.optimize(graph), r"the node y \(fused\)", head="y")
    assert error.remedy == "take the gradient of the graph before optimize"


def test_what_a_run_determines_is_refused() -> None:
    builder = rc.graph.GraphBuilder("net")
    x = builder.input("x", "float32", (4,))
    indices, count = builder.nodes("nonzero", [x])
    kept = builder.narrow(indices, count, axis=1)
    found = builder.node("cast", [kept], {"dtype": "float32"})
    graph = builder.finish([builder.node("sum", [found], name="loss")])
    error = _refused(graph, r"no gradient passes the node nonzero \(nonzero\)")
    assert error.why == "it makes indices or counts"
    data = builder.input("data", "float32", (4,))
    part = builder.narrow(data, count, name="part")
    graph = builder.finish([builder.node("sum", [part], name="loss")])
    error = _refused(graph, r"no gradient passes the node part \(narrow\)", wrt="data")
    assert error.why == "only a run determines what it makes"


def _compound(data):
    """Return a reduction that te cannot differentiate."""
    reducer = rc.comm_reducer(lambda a, b: a + b + a * b, lambda dtype: 0, name="weighted")
    k = rc.reduce_axis(data.shape[0], "k")
    return rc.compute((), lambda: reducer(data[k], axis=k), name="weighted")


def test_an_operator_that_te_cannot_differentiate_names_the_node(monkeypatch) -> None:
    operator = rc.graph.Operator("weighted", ("data",), compute=_compound, numpy=np.sum)
    monkeypatch.setitem(OPERATORS, "weighted", operator)
    graph = _graph(lambda b, x, w: b.node("weighted", [x], name="loss"))
    with pytest.raises(Unsupported, match="gradient through the reduction weighted") as info:
        rc.graph.gradient(graph, wrt="x")
    assert info.value.where == "gradient of node loss"
