"""Operators with drawn shapes and attributes, and one network of many, against ONNX Runtime."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor
from tests.frontend.models import make_model, one_node_model, single
from tests.strategies.operands import batches, extents, floats, integers, kernels, pairs, seeds

FEW = settings(max_examples=15)
onnxruntime.set_default_logger_severity(4)


def run_onnxruntime(model: Any, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


def check(model: Any, feeds: dict[str, np.ndarray], tolerance: float = 0.0) -> None:
    """The model's meaning in numpy is what ONNX Runtime computes."""
    meant = evaluate_graph(from_onnx(model.SerializeToString()), feeds)
    for one, other in zip(meant, run_onnxruntime(model, feeds), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def check_node(
    operator: str, feeds: dict[str, np.ndarray], tolerance: float = 0.0, **options: Any
) -> None:
    check(one_node_model(operator, feeds, **options), feeds, tolerance)


@st.composite
def windows(draw: Any, size: tuple[int, int]) -> dict[str, Any]:
    """Attributes of a convolution or pooling that fits in `size`."""
    kernel, dilations = draw(kernels), draw(pairs)
    attributes = {"kernel_shape": kernel, "strides": draw(pairs), "dilations": dilations}
    mode = draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    pads = [0] * 4
    if mode == "NOTSET":
        pads = [draw(st.integers(0, kernel[k % 2] - 1)) for k in range(4)]
        attributes["pads"] = pads
    else:
        attributes["auto_pad"] = mode
    if mode.startswith("SAME"):  # ONNX Runtime refuses more here
        dilations = attributes["dilations"] = (1, 1)
        assume(all(attributes["strides"][k] <= kernel[k] for k in (0, 1)))
    reach = [dilations[k] * (kernel[k] - 1) + 1 for k in (0, 1)]
    assume(all(size[k] + pads[k] + pads[k + 2] >= reach[k] for k in (0, 1)))
    return attributes


sizes = st.tuples(st.integers(3, 7), st.integers(3, 7))


@pytest.mark.search
@FEW
@given(st.data(), st.integers(1, 3), sizes, st.integers(1, 2), st.booleans(), seeds)
def test_conv(data, n, size, group, biased, seed):
    attributes = data.draw(windows(size))
    x = integers(seed, n, 2 * group, *size)
    constants = {"w": integers(seed + 1, 3 * group, 2, *attributes["kernel_shape"])}
    if biased:
        constants["b"] = integers(seed + 2, 3 * group)
    check_node("Conv", {"x": x}, constants=constants, group=group, **attributes)


@pytest.mark.search
@FEW
@given(st.data(), st.integers(1, 3), sizes, seeds)
def test_max_pool(data, n, size, seed):
    attributes = data.draw(windows(size))
    check_node("MaxPool", {"x": integers(seed, n, 2, *size)}, **attributes)


@pytest.mark.search
@FEW
@given(st.data(), st.integers(1, 3), sizes, st.integers(0, 1), seeds)
def test_average_pool(data, n, size, count_include_pad, seed):
    attributes = data.draw(windows(size))
    del attributes["dilations"]
    attributes["count_include_pad"] = count_include_pad
    check_node("AveragePool", {"x": integers(seed, n, 2, *size)}, 1e-6, **attributes)


@pytest.mark.search
@FEW
@given(st.integers(1, 3), extents, sizes, seeds)
def test_global_average_pool(n, channels, size, seed):
    check_node("GlobalAveragePool", {"x": integers(seed, n, channels, *size)}, 1e-6)


@pytest.mark.search
@FEW
@given(batches, extents, st.lists(extents, max_size=2), seeds)
def test_batch_normalization(n, channels, rest, seed):
    constants = {name: floats(seed + k, channels) for k, name in enumerate("sbm")}
    constants["v"] = np.abs(floats(seed + 9, channels)) + np.float32(0.1)
    feeds = {"x": floats(seed, n, channels, *rest)}
    check_node("BatchNormalization", feeds, 1e-4, constants=constants, epsilon=1e-3)


@pytest.mark.search
@pytest.mark.parametrize("operator", ["Relu", "Sigmoid", "Tanh", "Identity"])
@FEW
@given(batches, st.lists(extents, max_size=3), seeds)
def test_unary(operator, n, rest, seed):
    check_node(operator, {"x": floats(seed, n, *rest)}, 1e-6)


@FEW
@given(batches, extents, st.booleans(), st.booleans(), seeds)
def test_clip(n, m, has_minimum, has_maximum, seed):
    constants, names = {}, ["x", "", ""]
    if has_minimum:
        constants["low"], names[1] = np.array(-0.5, np.float32), "low"
    if has_maximum:
        constants["high"], names[2] = np.array(0.75, np.float32), "high"
    while not names[-1]:
        names.pop()
    check_node("Clip", {"x": floats(seed, n, m)}, constants=constants, inputs=names)


@pytest.mark.search
@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div"])
@FEW
@given(batches, extents, st.sampled_from([(), (1,), (0,), (1, 1)]), st.booleans(), seeds)
def test_binary(operator, n, m, form, is_swapped, seed):
    x = floats(seed, n, m)
    shape = [m if extent == 0 else extent for extent in form]
    names = ["c", "x"] if is_swapped else ["x", "c"]
    constants = {"c": floats(seed + 1, *shape) + np.float32(4)}
    with np.errstate(all="ignore"):
        check_node(operator, {"x": x}, 1e-6, constants=constants, inputs=names)


@pytest.mark.parametrize("operator", ["Add", "Div"])
def test_binary_of_integers(operator):
    feeds = {name: integers(k, 4, 3).astype(np.int32) for k, name in enumerate("ab")}
    feeds["b"][feeds["b"] == 0] = 3
    check_node(operator, feeds)


@pytest.mark.search
@FEW
@given(batches, extents, extents, st.booleans(), st.sampled_from([1.0, 0.5]), st.booleans(), seeds)
def test_gemm(n, k, m, trans_b, factor, biased, seed):
    weight = integers(seed + 1, m, k) if trans_b else integers(seed + 1, k, m)
    constants = {"w": weight, **({"c": integers(seed + 2, m)} if biased else {})}
    attributes = {"transB": int(trans_b), "alpha": factor, "beta": 2.0}
    check_node("Gemm", {"x": integers(seed, n, k)}, constants=constants, **attributes)


def test_gemm_of_a_transposed_first_matrix():
    feeds, constants = {"x": integers(0, 4, 3)}, {"w": integers(1, 4, 2)}
    model = make_model([single("Gemm", "x", "w", transA=1)], {"x": (4, 3)}, ["y"], constants)
    check(model, feeds)


@FEW
@given(st.lists(extents, max_size=2), extents, extents, extents, seeds)
def test_matmul(outer, i, k, j, seed):
    feeds = {"x": integers(seed, 2, *outer, i, k)}
    check_node("MatMul", feeds, constants={"w": integers(seed + 1, k, j)})


@pytest.mark.search
@FEW
@given(batches, st.lists(extents, min_size=1, max_size=2), st.data(), seeds)
def test_softmax(n, rest, data, seed):
    axis = data.draw(st.integers(-len(rest), -1))
    check_node("Softmax", {"x": floats(seed, n, *rest)}, 1e-6, axis=axis)


@pytest.mark.search
@FEW
@given(batches, st.lists(extents, max_size=3), st.data(), seeds)
def test_flatten(n, rest, data, seed):
    axis = data.draw(st.integers(0, len(rest) + 1))
    check_node("Flatten", {"x": integers(seed, n, *rest)}, axis=axis)


@pytest.mark.search
@FEW
@given(st.integers(1, 3), st.sampled_from([(0, -1), (-1, 4), (0, 2, 2, 3), (0, 0, -1)]), seeds)
def test_reshape(n, shape, seed):
    constants = {"shape": np.array(shape, np.int64)}
    check_node("Reshape", {"x": integers(seed, n, 4, 3)}, constants=constants)


@pytest.mark.search
@FEW
@given(batches, st.lists(extents, max_size=3), st.data(), seeds)
def test_transpose(n, rest, data, seed):
    order = data.draw(st.none() | st.permutations(range(len(rest) + 1)))
    attributes = {} if order is None else {"perm": order}
    check_node("Transpose", {"x": integers(seed, n, *rest)}, **attributes)


@FEW
@given(batches, st.lists(extents, min_size=1, max_size=3), seeds)
def test_concat(n, widths, seed):
    feeds = {f"x{k}": integers(seed + k, n, width, 2) for k, width in enumerate(widths)}
    check_node("Concat", feeds, axis=1)


@pytest.mark.parametrize("given_sizes", [True, False])
def test_split(given_sizes):
    feeds = {"x": integers(0, 3, 6)}
    constants = {"split": np.array([1, 5], np.int64)} if given_sizes else {}
    check_node("Split", feeds, constants=constants, outputs=("a", "b"), axis=1)


def test_dropout_and_constants():
    nodes = [
        single("Constant", outputs=["c"], value_floats=[1.0, 2.0]),
        single("Constant", outputs=["off"], value_int=0),
        single("Dropout", "x", outputs=["d"]),
        single("Add", "d", "c"),
    ]
    check(make_model(nodes, {"x": ("N", 2)}, ["y"]), {"x": floats(0, 3, 2)})


@pytest.mark.llvm
def test_machine_code_agrees_with_onnx_runtime():
    """One network with every kind of operator, as machine code."""
    constants = {
        "w": floats(1, 6, 3, 3, 3) * np.float32(0.2),
        "g": floats(2, 6, 1, 3, 3),
        "s": np.array([0, -1], np.int64),
        "m": floats(3, 48, 8) * np.float32(0.1),
        "low": np.array(-2, np.float32),
    }
    nodes = [
        single("Conv", "x", "w", outputs=["a"], auto_pad="SAME_UPPER"),
        single("Sigmoid", "a", outputs=["b"]),
        single("Mul", "a", "b", outputs=["c"]),
        single("Conv", "c", "g", outputs=["d"], group=6, pads=[1, 1, 1, 1]),
        single("Add", "c", "d", outputs=["e"]),
        single("AveragePool", "e", outputs=["f"], kernel_shape=[2, 2], strides=[2, 2]),
        single("MaxPool", "e", outputs=["g2"], kernel_shape=[2, 2], strides=[2, 2]),
        single("Concat", "f", "g2", outputs=["h"], axis=1),
        single("Transpose", "h", outputs=["i"], perm=[0, 2, 3, 1]),
        single("Reshape", "i", "s", outputs=["j"]),
        single("MatMul", "j", "m", outputs=["k"]),
        single("Clip", "k", "low", outputs=["l"]),
        single("Split", "l", outputs=["p", "q"], axis=1),
        single("Tanh", "p", outputs=["t"]),
        single("Softmax", "q", outputs=["z"]),
    ]
    model = make_model(nodes, {"x": ("N", 3, 4, 4)}, ["t", "z"], constants)
    feeds = {"x": floats(0, 5, 3, 4, 4)}
    executor = GraphExecutor(compile_graph(from_onnx(model.SerializeToString())))
    for actual, expected in zip(executor.run(feeds), run_onnxruntime(model, feeds), strict=True):
        np.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("operator", "shape", "options", "reason"),
    [
        ("AveragePool", (2, 5, 5), {"kernel_shape": [2, 2], "dilations": [2, 2]}, "'dilations' is"),
        ("Flatten", (5,), {"other": 1}, "its attribute 'other' is unknown"),
    ],
)
def test_attributes_that_the_version_lacks_are_not_supported(operator, shape, options, reason):
    model = one_node_model(operator, {"x": floats(0, 2, *shape)}, **options)
    with pytest.raises(Unsupported) as info:
        from_onnx(model.SerializeToString())
    assert reason in str(info.value)


@pytest.mark.parametrize(
    ("operator", "shape", "options", "message"),
    [
        ("MaxPool", (2, 5, 5), {}, "its attribute kernel_shape is missing"),
        ("Concat", (2,), {}, "its attribute axis is missing"),
        ("Softmax", (2,), {"axis": 4}, "axis 4 is out of range"),
        ("Softmax", (2,), {"axis": 1.5}, "attribute 'axis' is not of type int"),
        ("Add", (2,), {}, "its input 1 is missing"),
        ("Conv", (2, 5, 5), {"constants": {"w": floats(0, 3, 4, 1, 1)}}, "is 2 instead of 4"),
    ],
)
def test_what_is_ill_formed(operator, shape, options, message):
    feeds = {"x": floats(0, 2, *shape)}
    model = one_node_model(operator, feeds, **options)
    with pytest.raises(UserError, match=message) as info:
        # With a symbolic batch, some nodes are converted in the run.
        evaluate_graph(from_onnx(model.SerializeToString()), feeds)
    assert operator in info.value.where or info.value.where in ("node 'y'", "node y")
