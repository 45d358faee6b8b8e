"""`vjp`: values worked by hand, inputs that repeat or are left out, text, kernels, refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.gradients.vjp import stop_gradient_numpy, vjp_numpy
from refcomp.topi.draws import Draws
from refcomp.topi.operator import find_operator
from tests.topi.agreement import WAYS, check_on, make_case


def _graph(attributes, shapes=((2,),), head=(2,), dtype="float32"):
    builder = rc.graph.GraphBuilder("net")
    inputs = [builder.input("g", "float32", head)]
    inputs += [builder.input(f"x{k}", dtype, shape) for k, shape in enumerate(shapes)]
    return builder.finish(builder.nodes("vjp", inputs, attributes))


def test_a_repeated_input_has_a_gradient_for_each_place() -> None:
    builder = rc.graph.GraphBuilder("net")
    g, x = builder.input("g", "float32", (1,)), builder.input("x", "float32", (1,))
    outputs = builder.nodes("vjp", [g, x, x], {"of": "subtract", "wrt": (0, 1)})
    graph = builder.finish(outputs)
    feeds = {"g": np.array([3], "float32"), "x": np.array([5], "float32")}
    first, second = rc.graph.evaluate_graph(graph, feeds)
    assert (first.tolist(), second.tolist()) == ([3], [-3])


def test_an_input_that_does_not_count_has_the_gradient_zero() -> None:
    shapes = ((1,), (2,))
    graph = _graph({"of": "broadcast_like", "wrt": (0, 1)}, shapes)
    feeds = {"g": np.array([1, 2], "float32")}
    feeds |= {f"x{k}": np.ones(shape, "float32") for k, shape in enumerate(shapes)}
    data, like = rc.graph.evaluate_graph(graph, feeds)
    assert (data.tolist(), like.tolist()) == ([3], [0, 0])


def test_optional_inputs_may_be_left_out() -> None:
    attention = {"of": "attention", "wrt": (2,)}
    builder = rc.graph.GraphBuilder("net")
    g = builder.input("g", "float32", (1, 1, 1, 2))
    q, k, v = (builder.input(name, "float32", (1, 1, 1, 2)) for name in "qkv")
    node = builder.nodes("vjp", [g, q, k, v, None], attention)
    graph = builder.finish(node)
    feeds = {name: np.ones((1, 1, 1, 2), "float32") for name in "gqkv"}
    assert rc.graph.evaluate_graph(graph, feeds)[0].tolist() == [[[[1, 1]]]]


def test_the_text_of_a_node_parses_back() -> None:
    graph = _graph({"of": "gelu", "wrt": (0,), "approximate": "tanh"})
    text = str(graph)
    assert 'vjp(g, x0) {approximate="tanh", of="gelu", wrt=[0]}' in text
    assert str(rc.graph.parse_graph(text)) == text


def test_interpreted_kernels_compute_the_meaning() -> None:
    graph = _graph({"of": "mish", "wrt": (0,)})
    feeds = {"g": np.array([1, 2], "float32"), "x0": np.array([0.5, -1], "float32")}
    executor = rc.graph.GraphExecutor(rc.graph.compile_graph(graph, "interp"))
    (found,) = executor.run(feeds)
    (expected,) = rc.graph.evaluate_graph(graph, feeds)
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)


def _cases(seeds):
    """Return samples whose operands are floats; other dtypes have no gradient."""
    operator = find_operator("vjp")
    return [
        make_case(operator, seed)
        for seed in seeds
        if operator.sample(Draws(seed)).attributes["wrt"]
    ]


def test_interpreter_computes_legal_results() -> None:
    with np.errstate(all="ignore"):
        cases = _cases(range(24))
        assert len(cases) > 16
        check_on(WAYS["interp"], cases)


@pytest.mark.llvm
def test_host_computes_legal_results() -> None:
    with np.errstate(all="ignore"):
        check_on(WAYS["llvm"], _cases(range(24)))


@pytest.mark.pocl
def test_opencl_computes_legal_results() -> None:
    with np.errstate(all="ignore"):
        check_on(WAYS["opencl"], _cases(range(12)))


def test_other_nodes_do_not_join_its_kernel() -> None:
    """te.gradient would go on into a node that makes an input of `vjp`."""
    builder = rc.graph.GraphBuilder("net")
    g, x = builder.input("g", "float32", (2,)), builder.input("x", "float32", (2,))
    moved = builder.node("flip", [x])
    outputs = builder.nodes("vjp", [g, x, moved], {"of": "multiply", "wrt": (0,)})
    graph = builder.finish(outputs)
    feeds = {"g": np.ones(2, "float32"), "x": np.array([2, 3], "float32")}
    compiled = rc.graph.compile_graph(graph, "interp")
    assert len(compiled.kernels) == 2
    (found,) = rc.graph.GraphExecutor(compiled).run(feeds)
    assert found.asnumpy().tolist() == [3, 2]


def test_a_gradient_that_is_the_head_is_copied() -> None:
    graph = _graph({"of": "identity", "wrt": (0,)})
    feeds = {"g": np.array([1, 2], "float32"), "x0": np.ones(2, "float32")}
    executor = rc.graph.GraphExecutor(rc.graph.compile_graph(graph, "interp"))
    assert executor.run(feeds)[0].asnumpy().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"of": "relu", "wrt": (1,)}, "vjp of relu has no input 1"),
        ({"of": "relu", "wrt": (-1,)}, "vjp of relu has no input -1"),
        ({"of": "relu", "wrt": ()}, r"vjp of relu by the inputs \[\]"),
        ({"of": "relu", "wrt": (0, 0)}, r"vjp of relu by the inputs \[0, 0\]"),
        ({"of": "relu", "wrt": (0,), "output": 1}, "relu has no output 1"),
        ({"of": "relux", "wrt": (0,)}, "unknown operator 'relux'"),
        ({"of": "relu", "wrt": (0,), "alpha": 0.5}, "relu has no attribute 'alpha'"),
        ({"of": "relu"}, "vjp lacks the attribute wrt"),
        ({"of": "sum", "wrt": (0,)}, "the head of vjp has rank 1, but the output of sum rank 0"),
        ({"of": "add", "wrt": (0,)}, "add cannot be applied to 1 inputs"),
    ],
)
def test_wrong_nodes_are_refused(attributes, message):
    with pytest.raises(UserError, match=message):
        _graph(attributes)


def test_integers_have_no_gradient() -> None:
    with pytest.raises(UserError, match="input 0 of add has no gradient, since it holds i32"):
        _graph({"of": "add", "wrt": (0,)}, ((2,), (2,)), dtype="int32")


def test_a_head_of_another_shape_is_refused() -> None:
    with pytest.raises(UserError, match="does not fit the output relu"):
        _graph({"of": "relu", "wrt": (0,)}, head=(3,))


def test_numpy_meanings_return_new_arrays() -> None:
    x = np.ones(2, "float32")
    assert stop_gradient_numpy(x) is not x
    (found,) = vjp_numpy(x, x * 3, of="square", wrt=(0,))
    assert found.tolist() == [6, 6]
