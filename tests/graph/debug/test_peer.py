"""Peers: which array belongs to which compiled value, and arrays that do not fit."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.debug.executor import create
from refcomp.graph.debug.peer import Peer, views_of
from refcomp.graph.debug.unfuse import unfuse
from refcomp.graph.graph import Graph
from refcomp.graph.optimize import optimize
from refcomp.oracle.floats.error_bounds import Bounded
from tests.strategies.graphs import digits_graph, digits_images, make_graph
from tests.strategies.operands import floats


def values_of(graph: Graph, feeds: dict) -> dict[str, np.ndarray]:
    """All values of a graph, by numpy."""
    from refcomp.graph.evaluate import evaluate_node  # noqa: PLC0415

    known = {v: feeds[v.name] for v in graph.inputs} | dict(graph.constants)
    for node in graph.nodes:
        known |= dict(zip(node.outputs, evaluate_node(node, known), strict=True))
    return {value.name: array for value, array in known.items()}


def test_layouts_that_passes_chose_are_undone() -> None:
    """Each view of the digit network's compiled values holds the same numbers."""
    images, _ = digits_images()
    feeds = {"image": images[:3]}
    model = digits_graph()
    compiled = unfuse(optimize(model))
    theirs, ours = values_of(model, feeds), values_of(compiled, feeds)
    views = views_of(compiled, model)
    assert sum(view.block > 0 for view in views.values()) > 5
    for value, view in views.items():
        turned = view.turned(theirs[view.of.name])
        np.testing.assert_allclose(ours[value.name], turned, rtol=1e-4, atol=1e-5)
    # All that the compiled nodes make has a view, but for what a pass added.
    made = {value for node in compiled.nodes for value in node.outputs}
    assert {value.name for value in made - views.keys()} <= {"image.nchw1c"}


def test_square_images_are_turned_though_their_shapes_fit_unturned() -> None:
    def build(builder, x):
        w = builder.constant("w", floats(1, 4, 4, 1, 1))
        return builder.node("relu", [builder.node("conv2d", [x, w], name="c")], name="y")

    model = make_graph(build, (1, 4, 4, 4))
    compiled = unfuse(optimize(model))
    views = {value.name: view.is_last for value, view in views_of(compiled, model).items()}
    assert views["x.nhwc"]
    assert views["c.nhwc"]
    assert views["y.nhwc"]
    assert not views["y"]


def test_channels_in_blocks_are_undone() -> None:
    def build(builder, x):
        w = builder.constant("w", floats(1, 8, 8, 1, 1))
        return builder.node("relu", [builder.node("conv2d", [x, w], name="c")], name="y")

    model = make_graph(build, (1, 8, 8, 8))
    compiled = unfuse(optimize(model, target="llvm -mcpu=x86-64-v3"))
    feeds = {"x": floats(0, 1, 8, 8, 8)}
    theirs, ours = values_of(model, feeds), values_of(compiled, feeds)
    views = views_of(compiled, model)
    assert {value.name: view.block for value, view in views.items() if view.block} == {
        "x.nchw8c": 8,
        "c.nchw8c": 8,
        "y.nchw8c": 8,
    }
    for value, view in views.items():
        turned = view.turned(theirs[view.of.name])
        np.testing.assert_allclose(ours[value.name], turned, rtol=1e-4, atol=1e-5)


def test_names_that_only_look_like_a_layout_have_no_view() -> None:
    def build(builder, x):
        flat = builder.node("flatten", [x], name="x.nchw3c")
        return builder.node("relu", [flat], name="y")

    model = make_graph(build, (1, 2, 2, 2))
    compiled = make_graph(build, (1, 2, 2, 2))
    views = views_of(compiled, model)
    assert all(not view.block and not view.is_last for view in views.values())
    other = make_graph(lambda b, x: b.node("exp", [x], name="x.nchw2c"), (1, 2, 2, 2))
    assert not [v for v in views_of(other, model).values() if v.block]


def test_a_transpose_of_the_model_is_not_turned() -> None:
    def build(builder, x):
        return builder.node("transpose", [x], {"axes": (0, 2, 3, 1)}, name="x.nhwc")

    model = make_graph(build, (1, 2, 2, 2))
    assert not any(view.is_last for view in views_of(optimize(model), model).values())


def chain(builder, x):
    w = builder.constant("w", floats(1, 6, 5))
    return builder.node("relu", [builder.node("matmul", [x, w], name="m")], name="y")


def test_the_nodes_of_the_model_between_two_values_are_found() -> None:
    model = make_graph(chain, ("N", 6))
    compiled = optimize(model)
    x, y = floats(0, 2, 6), floats(3, 2, 5)
    reading = Peer("other", {"x": x, "y": y}, model).reading(compiled.nodes[0], compiled)
    assert reading is not None
    assert [node.name for node in reading.nodes] == ["m", "y"]
    assert {value.name for value in reading.known} == {"x", "w"}
    assert [value.name for value in reading.inputs] == ["x"]


def test_a_node_whose_values_the_peer_lacks_has_no_reading() -> None:
    model = make_graph(chain, ("N", 6))
    compiled = optimize(model)
    assert Peer("other", {"y": floats(3, 2, 5)}, model).reading(compiled.nodes[0], compiled) is None


def test_inputs_that_the_peer_lacks_are_those_of_the_run() -> None:
    executor = create(make_graph(chain, ("N", 6)), "interp")
    executor.run(x=floats(0, 2, 6))
    peer = Peer("other", {"y": floats(3, 2, 5)}).with_inputs(executor.inputs)
    assert np.array_equal(peer.arrays["x"], floats(0, 2, 6))


def test_names_that_do_not_match_are_refused() -> None:
    compiled = optimize(make_graph(chain, ("N", 6)))
    with pytest.raises(UserError) as info:
        Peer("x.npz", {"yy": np.ones(1), "q": np.ones(1)}).check_names(compiled)
    error = info.value
    assert error.what == "no array of x.npz is a value that the model computes"
    assert error.where == "it has yy, q"
    assert error.why == "the model computes y"
    with pytest.raises(UserError) as info:
        Peer("x.npz", {}).check_names(compiled)
    assert info.value.where == "it has no arrays"
    assert info.value.remedy == "name the arrays as the model does"


def test_a_near_name_is_offered() -> None:
    model = make_graph(lambda b, x: b.node("relu", [x], name="activation"), ("N", 6))
    with pytest.raises(UserError) as info:
        Peer("x.npz", {"activatoin": np.ones(1)}).check_names(optimize(model))
    assert info.value.remedy == "did you mean activation?"


@pytest.mark.parametrize(
    ("y", "where"),
    [
        (np.ones((2, 5), np.float64), "it is float64[2, 5]"),
        (np.ones((2, 4), np.float32), "it is float32[2, 4]"),
        (np.ones(5, np.float32), "it is float32[5]"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(y, where: str) -> None:
    model = make_graph(chain, ("N", 6))
    compiled = optimize(model)
    with pytest.raises(UserError) as info:
        Peer("x.npz", {"x": floats(0, 2, 6), "y": y}, model).reading(compiled.nodes[0], compiled)
    assert info.value.what == "the array y of x.npz does not fit"
    assert info.value.where == where
    assert info.value.why == "the model has y: f32[N, 5]"
    assert info.value.remedy == "give arrays of the same model and of the same inputs"


def test_bounds_are_turned_as_their_values_are() -> None:
    def build(builder, x):
        w = builder.constant("w", floats(1, 3, 2, 1, 1))
        return builder.node("softmax", [builder.node("conv2d", [x, w], name="c")], {"axis": 1})

    model = make_graph(build, (1, 2, 4, 5))
    compiled = unfuse(optimize(model))
    arrays = values_of(model, {"x": floats(0, 1, 2, 4, 5)})
    peer = Peer("other", arrays, model)
    node = next(node for node in compiled.nodes if node.name == "c.nhwc")
    reading = peer.reading(node, compiled)
    assert reading is not None
    value = arrays["c"].astype(np.longdouble)
    zero = np.zeros(())
    bounded = Bounded(node.outputs[0].dtype, value, value, zero != 0, zero)
    turned = reading.turned(node.outputs[0], bounded)
    assert turned.error.shape == (1, 4, 5, 3)
    assert np.array_equal(turned.value, value.transpose(0, 2, 3, 1))
    assert turned.doubtful.shape == turned.others.shape == (1, 4, 5, 3)
