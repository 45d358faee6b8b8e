"""Gradients, and steps of optimizers, which training adds to a model."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.gradients.gradient import gradient as differentiated
from refcomp.graph.graph import Graph, Value
from refcomp.graph.inline import inline_graph
from refcomp.te.tensor import DTypeLike

DOMAIN = "ai.onnx.preview.training"


class _Arithmetic:
    """Elementwise arithmetic on values, whose numbers are constants of the same dtype."""

    def __init__(self, node: OnnxNode) -> None:
        self.node = node

    def _apply(self, operator: str, a: Value | float, b: Value | float) -> Value:
        like = a if isinstance(a, Value) else b
        assert isinstance(like, Value)
        operands = [
            one if isinstance(one, Value) else self.node.constant(one, like.dtype.dtype)
            for one in (a, b)
        ]
        return self.node.make_fitting(operator, operands)

    def add(self, a: Value | float, b: Value | float) -> Value:
        return self._apply("add", a, b)

    def subtract(self, a: Value | float, b: Value | float) -> Value:
        return self._apply("subtract", a, b)

    def multiply(self, a: Value | float, b: Value | float) -> Value:
        return self._apply("multiply", a, b)

    def divide(self, a: Value | float, b: Value | float) -> Value:
        return self._apply("divide", a, b)

    def power(self, a: Value | float, b: Value | float) -> Value:
        return self._apply("power", a, b)

    def root(self, a: Value) -> Value:
        return self.node.make("sqrt", [a])


def _scalar(node: OnnxNode, place: int, dtype: DTypeLike) -> Value:
    """Return an input of one element as a scalar of a dtype."""
    value = node.required(place)
    if value.shape:
        value = node.make("reshape", [value], shape=())
    return node.cast(value, dtype)


def _rows(node: OnnxNode, parts: int) -> list[Sequence[Value]]:
    """Return what belongs to each optimized tensor: itself, its gradient, and its statistics.

    Args:
        node: an optimizer. Its inputs from the third on are all tensors, then all gradients, ...
        parts: the number of values for each tensor.
    """
    given = node.all_inputs()[2:]
    if not given or len(given) % parts:
        raise UserError(
            f"it has {len(given)} tensors behind the learning rate and the count",
            why=f"each optimized tensor needs {parts}",
            remedy="give all tensors, then all gradients, then all statistics",
        )
    count = len(given) // parts
    return [given[k::count] for k in range(count)]


def _columns(rows: Sequence[Sequence[Value]]) -> list[Value]:
    """Return all first values, then all second values, ..."""
    return [value for column in zip(*rows, strict=True) for value in column]


def _regularized(node: OnnxNode, data: Value, gradient: Value) -> Value:
    """Return the gradient of the loss and of half the weighted square of the tensor."""
    math = _Arithmetic(node)
    factor = float(node.attributes.get("norm_coefficient", 0.0))
    return math.add(math.multiply(factor, data), gradient) if factor else gradient


@converter("Adagrad", domain=DOMAIN)
def adagrad(node: OnnxNode) -> list[Value]:
    """Convert Adagrad-1."""
    math = _Arithmetic(node)
    rate = _scalar(node, 0, "float64")
    count = _scalar(node, 1, "float64")
    decay = float(node.attributes.get("decay_factor", 0.0))
    rate = math.divide(rate, math.add(1.0, math.multiply(count, decay)))
    epsilon = float(node.attributes.get("epsilon", 1e-6))
    made = []
    for data, gradient, squares in _rows(node, 3):
        slope = _regularized(node, data, gradient)
        next_squares = math.add(squares, math.multiply(slope, slope))
        adapted = math.add(math.root(next_squares), epsilon)
        step = math.multiply(node.cast(rate, data.dtype), slope)
        made.append((math.subtract(data, math.divide(step, adapted)), next_squares))
    return _columns(made)


@converter("Adam", domain=DOMAIN)
def adam(node: OnnxNode) -> list[Value]:
    """Convert Adam-1."""
    math = _Arithmetic(node)
    alpha = float(node.attributes.get("alpha", 0.9))
    beta = float(node.attributes.get("beta", 0.999))
    epsilon = float(node.attributes.get("epsilon", 1e-6))
    shrink = 1 - float(node.attributes.get("norm_coefficient_post", 0.0))
    rate = _adam_rate(node, alpha, beta)
    made = []
    for data, gradient, momentum, squares in _rows(node, 4):
        slope = _regularized(node, data, gradient)
        next_momentum = math.add(
            math.multiply(alpha, momentum), math.multiply(1 - alpha, slope)
        )
        square = math.multiply(slope, slope)
        next_squares = math.add(
            math.multiply(beta, squares), math.multiply(1 - beta, square)
        )
        root = math.add(math.root(next_squares), epsilon)
        step = math.multiply(node.cast(rate, data.dtype), next_momentum)
        result = math.subtract(data, math.divide(step, root))
        made.append((math.multiply(shrink, result), next_momentum, next_squares))
    return _columns(made)


def _adam_rate(node: OnnxNode, alpha: float, beta: float) -> Value:
    """Return the learning rate without the bias of the first steps.

    It is computed in f64: 1 - beta ** T has few digits in f32, since beta is close to 1.
    """
    math = _Arithmetic(node)
    rate = _scalar(node, 0, "float64")
    count = _scalar(node, 1, "float64")
    top = math.root(math.subtract(1.0, math.power(beta, count)))
    bottom = math.subtract(1.0, math.power(alpha, count))
    adjusted = math.divide(math.multiply(rate, top), bottom)
    is_later = node.make("greater", [count, node.constant(0.0, "float64")])
    return node.make("where", [is_later, adjusted, rate])


@converter("Momentum", domain=DOMAIN)
def momentum(node: OnnxNode) -> list[Value]:
    """Convert Momentum-1."""
    math = _Arithmetic(node)
    mode = str(node.attributes["mode"])
    if mode not in ("standard", "nesterov"):
        raise UserError(
            f"its attribute mode is {mode!r}", remedy='give "standard" or "nesterov"'
        )
    alpha = float(node.attributes["alpha"])
    count = _scalar(node, 1, "float64")
    is_later = node.make("greater", [count, node.constant(0.0, "float64")])
    betas = [node.constant(one, "float64") for one in (node.attributes["beta"], 1.0)]
    beta = node.make("where", [is_later, *betas])
    made = []
    for data, gradient, speed in _rows(node, 3):
        rate = _scalar(node, 0, data.dtype)
        slope = _regularized(node, data, gradient)
        added = math.multiply(node.cast(beta, data.dtype), slope)
        next_speed = math.add(math.multiply(alpha, speed), added)
        step = next_speed
        if mode == "nesterov":
            step = math.add(slope, math.multiply(alpha, next_speed))
        result = math.subtract(data, math.multiply(rate, step))
        made.append((result, next_speed))
    return _columns(made)


@converter("Gradient", domain=DOMAIN)
def gradient_of_model(node: OnnxNode) -> list[Value]:
    """Convert Gradient-1: derivatives of a value of the model, which other values determine.

    If the value has several elements, the derivatives are those of their sum.
    """
    wanted = tuple(str(name) for name in node.attributes["xs"])
    names = (*wanted, *(str(name) for name in node.attributes.get("zs") or ()))
    values = node.all_inputs()
    if len(values) != len(names) or len(set(names)) != len(names):
        raise UserError(
            f"its attributes xs and zs name {', '.join(map(repr, names))}",
            why=f"it has {len(values)} inputs",
            remedy="name each input once",
        )
    target = str(node.attributes["y"])
    part = node.surroundings.part(dict(zip(names, values, strict=True)), target)
    made = differentiated(_summed(part.graph), list(wanted))
    results = inline_graph(node.builder, made, [*values, *part.captured])
    return results[1:]


def _summed(graph: Graph) -> Graph:
    """Return a graph whose output is the sum of the elements of the output of another."""
    builder = GraphBuilder(graph.name)
    inputs = [
        builder.input(value.name, value.dtype, value.shape, value.kind)
        for value in graph.inputs
    ]
    (output,) = inline_graph(builder, graph, inputs)
    return builder.finish([builder.node("sum", [output]) if output.shape else output])
