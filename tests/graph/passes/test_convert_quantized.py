"""convert_quantized: which operators compute in integers, and by how much results differ."""

from importlib import import_module

import numpy as np
import pytest

from refcomp.graph.builder import GraphBuilder
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.graph import Graph
from refcomp.graph.optimize import optimize
from refcomp.graph.parser import parse_graph
from refcomp.graph.passes.convert_quantized import convert_quantized
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds
from tests.strategies.graphs import operators_of

passing = import_module("refcomp.graph.passes.convert_quantized")

# kind -> shape of the data, shape of the weight, axis of its channels, operator, attributes
LAYERS = {
    "conv2d": ((2, 4, 5, 5), (6, 4, 3, 3), 0, "conv2d", {"padding": (1, 0, 1, 0)}),
    "groups": ((2, 4, 5, 5), (6, 2, 3, 3), 0, "conv2d", {"groups": 2, "strides": (2, 2)}),
    "dense": ((2, 3, 7), (6, 7), 0, "dense", {}),
    "gemm": ((5, 7), (7, 6), 1, "gemm", {}),
    "transposed gemm": ((5, 7), (6, 7), 0, "gemm", {"trans_b": True}),
    "matmul": ((2, 5, 7), (7, 6), 1, "matmul", {}),
    "transposed matmul": ((5, 7), (6, 7), 0, "matmul", {"trans_b": True}),
}


class Drawn:
    """A quantized layer of random parameters, which `seed` determines."""

    def __init__(self, kind: str, seed: int, result: str) -> None:
        self.random = np.random.default_rng(seed)
        self.is_exact = bool(self.random.integers(2))
        self.builder = GraphBuilder("g")
        shape, weight_shape, axis, operator, attributes = LAYERS[kind]
        dtype = self.choice("int8", "uint8")
        self.x = self.builder.input("x", dtype, shape)
        data = self.scale()
        value = self.builder.node("dequantize", [self.x, data, self.zero(dtype)])
        of_weight = self.choice("int8", "uint8")
        elements = self.integers(of_weight, weight_shape)
        per_axis = (6,) if self.random.integers(2) else ()
        step = self.scale(per_axis)
        inputs = [self.builder.constant("w", elements), step, self.zero(of_weight, per_axis)]
        weight = self.builder.node("dequantize", inputs, {"axis": axis})
        bias = [self.bias(operator)] if operator != "matmul" else []
        value = self.builder.node(operator, [value, weight, *bias], attributes)
        if self.random.integers(2):
            sizes = (6, 1, 1) if operator == "conv2d" else (6,)
            addend = self.builder.constant("c", self.multiples(sizes))
            value = self.builder.node("add", [addend, value])
        if self.random.integers(2):
            value = self.builder.node("relu", [value])
        step = self.scale(factor=512.0 if result in ("int8", "uint8") else 4.0)
        zero = self.zero(result)
        self.graph = self.builder.finish([self.builder.node("quantize", [value, step, zero])])
        self.feeds = {"x": self.integers(dtype, shape)}

    def choice(self, *options):
        return options[self.random.integers(len(options))]

    def integers(self, dtype, shape):
        limits = np.iinfo(dtype)
        return self.random.integers(limits.min, limits.max, shape, dtype, endpoint=True)

    def scale(self, shape=(), factor=1.0):
        exponents = self.random.integers(-3, 0, shape)
        steps = 2.0**exponents if self.is_exact else self.random.uniform(0.05, 0.5, shape)
        return self.builder.constant("s", np.float32(steps * factor))

    def zero(self, dtype, shape=()):
        if self.random.integers(4) == 0:
            return self.builder.constant("z", np.zeros(shape, dtype))
        limits = np.iinfo("int8" if dtype == "int32" else dtype)
        drawn = self.random.integers(limits.min, limits.max, shape, endpoint=True)
        return self.builder.constant("z", np.asarray(drawn, dtype))

    def multiples(self, shape):
        """Multiples of 1, which are multiples of all products of scales if these are exact."""
        return self.random.integers(-20, 20, shape).astype("float32")

    def bias(self, operator):
        kind = self.choice("none", "floats", "integers")
        if kind == "none":
            return None
        if kind == "floats":
            return self.builder.constant("b", self.multiples((6,)))
        drawn = self.random.integers(-900, 900, (6,), "int32")
        step = self.builder.constant("t", np.float32(1 if self.is_exact else 0.0371))
        return self.builder.node("dequantize", [self.builder.constant("b", drawn), step])


@pytest.mark.parametrize("result", ["int8", "uint8", "int16", "int32"])
@pytest.mark.parametrize("kind", LAYERS)
def test_layers_differ_by_at_most_one_quantum(kind: str, result: str) -> None:
    varied = 0
    for seed in range(24):
        drawn = Drawn(kind, seed, result)
        changed = convert_quantized(drawn.graph)
        verify_graph(changed)
        kinds = operators_of(changed)
        assert not {"dequantize", "quantize", LAYERS[kind][3]} & set(kinds), seed
        (expected,) = evaluate_graph(drawn.graph, drawn.feeds)
        (actual,) = evaluate_graph(changed, drawn.feeds)
        assert actual.dtype == expected.dtype == np.dtype(result)
        off = np.abs(actual.astype("i8") - expected.astype("i8"))
        assert off.max() <= (0 if drawn.is_exact else 1), seed
        varied += np.unique(expected).size > 4
        assert changed.outputs[0].name == drawn.graph.outputs[0].name
        assert convert_quantized(changed) is changed
    # The others saturate, or are negative before a relu.
    assert varied >= 8


def test_one_quantum_is_reached() -> None:
    """If no result ever differed, the contract would promise too little."""
    differences = 0
    for seed in range(24):
        drawn = Drawn("conv2d", seed, "int32")
        (expected,) = evaluate_graph(drawn.graph, drawn.feeds)
        (actual,) = evaluate_graph(convert_quantized(drawn.graph), drawn.feeds)
        differences += int((actual != expected).any())
    assert differences > 0


def test_the_docstring_holds() -> None:
    assert_docstring_holds(passing, convert_quantized)


MOVED = """
graph g(x: i8[2, 4, 4, 4], z: i8[2, 4, 4, 4]) -> (y) {{
  const s: f32[1] = [0.37]
  const p: i8[1] = [{zero}]
  a: f32[2, 4, 4, 4] = dequantize(x, s, p)
  b: f32[2, 4, 4, 4] = dequantize(z, s, p)
{lines}
  y: i8[{shape}] = quantize(v, s, p)
}}"""
MOVES = {
    "relu": ("  v: f32[2, 4, 4, 4] = relu(a)", "2, 4, 4, 4"),
    "max_pool2d": (
        "  v: f32[2, 4, 3, 3] = max_pool2d(a) {kernel=[3, 3], padding=[1, 1, 1, 1], strides=[2, 2]}"
        .replace("3, 3] = ", "2, 2] = "),
        "2, 4, 2, 2",
    ),
    "reshape": ("  v: f32[8, 16] = reshape(a) {shape=[8, 16]}", "8, 16"),
    "transpose": ("  v: f32[2, 4, 4, 4] = transpose(a) {axes=[0, 2, 1, 3]}", "2, 4, 4, 4"),
    "concatenate": ("  v: f32[4, 4, 4, 4] = concatenate(a, b) {axis=0}", "4, 4, 4, 4"),
    "several": (
        "  r: f32[2, 4, 4, 4] = relu(a)\n  t: f32[2, 4, 4, 4] = flip(b) {axis=3}\n"
        "  c: f32[2, 8, 4, 4] = concatenate(r, t) {axis=1}\n"
        "  v: f32[2, 128] = flatten(c)",
        "2, 128",
    ),
}  # fmt: skip


@pytest.mark.parametrize("zero", [-128, 0, 5])
@pytest.mark.parametrize("kind", MOVES)
def test_moved_elements_keep_all_bits(kind: str, zero: int) -> None:
    lines, shape = MOVES[kind]
    graph = parse_graph(MOVED.format(zero=zero, lines=lines, shape=shape))
    changed = convert_quantized(graph)
    verify_graph(changed)
    assert not {"dequantize", "quantize", "relu"} & set(operators_of(changed))
    random = np.random.default_rng(0)
    feeds = {k: random.integers(-128, 128, (2, 4, 4, 4)).astype("int8") for k in "xz"}
    (expected,) = evaluate_graph(graph, feeds)
    (actual,) = evaluate_graph(changed, feeds)
    np.testing.assert_array_equal(actual, expected, strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("scale", [0.37, 1.1754944e-38, 1e33])
def test_each_integer_returns_from_floats(dtype: str, scale: float) -> None:
    builder = GraphBuilder("g")
    limits = np.iinfo(dtype)
    every = np.arange(limits.min, limits.max + 1).astype(dtype)
    x = builder.input("x", dtype, every.shape)
    step, zero = builder.constant("s", np.float32(scale)), builder.constant("z", every[7])
    value = builder.node("dequantize", [x, step, zero])
    graph = builder.finish([builder.node("quantize", [value, step, zero], name="y")])
    changed = convert_quantized(graph)
    assert operators_of(changed) == ["identity"]
    assert changed.outputs[0].name == "y"
    (same,) = evaluate_graph(graph, {"x": every})
    np.testing.assert_array_equal(same, every)


def test_another_scale_is_a_requantization() -> None:
    builder = GraphBuilder("g")
    every = np.arange(-128, 128, dtype=np.int8)
    value = builder.input("x", "int8", (256,))
    for step, point in ((0.3, 5), (0.7, -3)):
        scale = builder.constant("s", np.float32(step))
        zero = builder.constant("z", np.int8(point))
        operator = "dequantize" if value.dtype.is_int else "quantize"
        value = builder.node(operator, [value, scale, zero])
    graph = builder.finish([value])
    changed = convert_quantized(graph)
    assert operators_of(changed) == ["requantize"]
    (expected,) = evaluate_graph(graph, {"x": every})
    (actual,) = evaluate_graph(changed, {"x": every})
    assert np.abs(actual.astype("i4") - expected).max() <= 1


def quantized(build, weight_is_input: bool = False) -> Graph:
    builder = GraphBuilder("g")
    scale = builder.constant("s", np.float32(0.5))
    x = builder.node("dequantize", [builder.input("x", "int8", (2, 3)), scale])
    elements = np.ones((4, 3), np.int8)
    w = builder.input("w", "int8", (4, 3)) if weight_is_input else builder.constant("w", elements)
    outputs = build(builder, x, builder.node("dequantize", [w, scale]), scale)
    return builder.finish(outputs)


def ended(builder, value, scale):
    return builder.node("quantize", [value, scale], {"dtype": "int8"})


@pytest.mark.parametrize(
    "graph",
    [
        quantized(lambda b, x, w, s: [d := b.node("dense", [x, w]), ended(b, d, s)]),
        quantized(lambda b, x, w, s: [ended(b, b.node("tanh", [x]), s)]),
        quantized(lambda b, x, w, s: [ended(b, b.node("dense", [x, w]), s)], True),
        quantized(lambda b, x, w, s: [ended(b, b.node("dense", [b.node("exp", [x]), w]), s)]),
        quantized(lambda b, x, w, s: [b.node("dense", [x, w])]),
    ],
    ids=["floats are read too", "tanh", "weights are an input", "floats", "not quantized"],
)
def test_what_is_not_between_integers_stays(graph: Graph) -> None:
    assert convert_quantized(graph) is graph


def test_a_layer_in_the_middle_of_a_network() -> None:
    """Two layers with a pooling between them: all of it stays in integers."""
    builder = GraphBuilder("g")
    random = np.random.default_rng(1)
    scale = builder.constant("s", np.float32(0.125))
    value = builder.node("dequantize", [builder.input("x", "int8", (1, 3, 8, 8)), scale])
    for channels in (3, 4):
        elements = random.integers(-9, 9, (4, channels, 3, 3)).astype("int8")
        weight = builder.node("dequantize", [builder.constant("w", elements), scale])
        value = builder.node("relu", [builder.node("conv2d", [value, weight])])
        value = builder.node("dequantize", [ended(builder, value, scale), scale])
        value = builder.node("max_pool2d", [value], {"kernel": (2, 2)})
        value = builder.node("dequantize", [ended(builder, value, scale), scale])
    graph = builder.finish([value])
    changed = convert_quantized(graph)
    verify_graph(changed)
    assert operators_of(changed).count("dequantize") == 1
    assert not any(v.dtype.is_float for n in changed.nodes[:-1] for v in n.outputs)
    feeds = {"x": random.integers(-128, 128, (1, 3, 8, 8)).astype("int8")}
    (expected,) = evaluate_graph(graph, feeds)
    (actual,) = evaluate_graph(changed, feeds)
    # All scales are powers of two, so that all sums are exact.
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.llvm
def test_compiled_integers_are_those_of_the_meaning() -> None:
    drawn = Drawn("conv2d", 0, "int8")
    prepared = optimize(drawn.graph, ["convert_quantized", "fold_constants"])
    assert "qlinear_conv2d" in operators_of(prepared)
    (expected,) = evaluate_graph(drawn.graph, drawn.feeds)
    (actual,) = GraphExecutor(compile_graph(prepared, "llvm")).run(**drawn.feeds)
    assert np.abs(actual.asnumpy().astype("i4") - expected).max() <= 1
