"""A training step as one graph: the loss, its gradients, and the parameters after the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.graph.builder import GraphRewriter
from refcomp.graph.gradients.gradient import gradient
from refcomp.graph.graph import Graph, Value, spell
from refcomp.graph.rename import renamed
from refcomp.graph.training.optimizers import Optimizer

RATE = "rate"


@dataclass(frozen=True, slots=True, eq=False)
class TrainingStep:
    """A graph that computes one step.

    Attributes:
        graph: takes parameters, states, a batch, and the learning rate `rate`. It returns the loss,
            the other outputs of the model, and then each parameter and state after the step.
        next_outputs: name of a parameter or state -> the number of the output that holds it after
            the step.
        slots: name of a slot of the optimizer -> the parameter that it belongs to.
        counters: name of a counter of the optimizer -> its first value.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> w = builder.input("w", "float32")
        >>> model = builder.finish([builder.node("square", [w], name="loss")])
        >>> step = rc.graph.training_step(model, rc.graph.Adam(), ["w"])
        >>> step.slots, dict(step.counters)["beta1_power"]
        ({'w_mean': 'w', 'w_square': 'w'}, 1.0)
        >>> step.graph.outputs[step.next_outputs["w"]].name
        'w_next'
    """

    graph: Graph
    next_outputs: Mapping[str, int]
    slots: Mapping[str, str]
    counters: Mapping[str, float]


def training_step(
    model: Graph,
    optimizer: Optimizer,
    parameters: Sequence[str],
    carry: Mapping[str, str] = MappingProxyType({}),
) -> TrainingStep:
    """Return the graph of a training step: forward, loss, backward and update.

    Args:
        model: a graph whose first output is the loss, one number. Its inputs are the parameters
            and the batch.
        optimizer: `Sgd(...)` or `Adam(...)`, or your own Optimizer.
        parameters: the names of the inputs that are trained.
        carry: name of an input -> name of the output that replaces it in the next step, such as
            the running statistics of `batch_norm_train`.

    Raises:
        UserError: a name is unknown, or an input is named `rate`. Or a parameter does not hold
            floats, has symbols as extents, or differs in dtype from the others. Or the first output
            is not one number, or the types of a carried input and its output differ.

    Example::

        >>> builder = rc.graph.GraphBuilder("line")
        >>> x, w = builder.input("x", "float32", (4,)), builder.input("w", "float32", ())
        >>> y = builder.input("y", "float32", (4,))
        >>> product = builder.node("multiply", [x, w], name="product")
        >>> model = builder.finish([builder.node("mse_loss", [product, y], name="loss")])
        >>> step = rc.graph.training_step(model, rc.graph.Sgd(), ["w"])
        >>> print(step.graph)
        graph line(x: f32[4], w: f32[], y: f32[4], rate: f32[]) -> (loss, w_next) {
          const loss_grad: f32[] = [1.0]
          product: f32[4] = multiply(x, w)
          loss: f32[] = mse_loss(product, y)
          scale: f32[] = scale(loss_grad) {factor=0.25}
          subtract: f32[4] = subtract(product, y)
          scale.1: f32[] = scale(scale) {factor=2.0}
          product_grad: f32[4] = multiply(subtract, scale.1)
          multiply.2: f32[4] = multiply(product_grad, x)
          w_grad: f32[] = sum(multiply.2) {axis=[0]}
          multiply: f32[] = multiply(w_grad, rate)
          w_next: f32[] = subtract(w, multiply)
        }
        >>> feeds = {"x": np.ones(4, "float32"), "y": np.full(4, 3, "float32")}
        >>> feeds |= {"w": np.float32(1), "rate": np.float32(0.25)}
        >>> loss, w = rc.graph.evaluate_graph(step.graph, feeds)
        >>> print(loss, w)
        4.0 2.0
    """
    trained = _trained(model, parameters)
    moved = _carried(model, carry, parameters)
    if any(value.name == RATE for value in model.inputs):
        raise UserError(
            f"the graph {spell(model.name)} has an input named {RATE!r}",
            why="a training step takes the learning rate by this name",
            remedy="rename the input",
        )
    slopes = gradient(model, wrt=list(parameters))
    rewriter = _StepBuilder(slopes, len(model.outputs))
    rewriter.update_all(trained, optimizer)
    kept = [v for v in model.outputs if v not in moved.values()]
    for name, output in moved.items():
        rewriter.after[name] = rewriter.values[output]
    return rewriter.finish_step(kept)


def _trained(model: Graph, parameters: Sequence[str]) -> list[Value]:
    inputs = {value.name: value for value in model.inputs}
    if not parameters or isinstance(parameters, str):
        raise UserError(
            f"parameters are {parameters!r}",
            remedy="give a list with the name of at least one input",
        )
    for name in parameters:
        _require_name(model, name, inputs, "input")
    trained = [inputs[name] for name in dict.fromkeys(parameters)]
    _check_parameters(trained)
    return trained


def _check_parameters(parameters: Sequence[Value]) -> None:
    for value in parameters:
        if not all(isinstance(extent, int) for extent in value.shape):
            raise UserError(
                f"the parameter {value} has no fixed shape",
                remedy="let the extents of parameters be numbers",
            )
    dtypes = dict.fromkeys(str(value.dtype) for value in parameters)
    if len(dtypes) > 1:
        raise UserError(
            f"parameters hold {' and '.join(dtypes)}",
            why="one learning rate is given, in their dtype",
            remedy="use parameters of one dtype, and cast them where they are read",
        )


def _carried(
    model: Graph, carry: Mapping[str, str], parameters: Sequence[str]
) -> dict[str, Value]:
    """Return the output that replaces each input."""
    inputs = {value.name: value for value in model.inputs}
    outputs = {value.name: value for value in model.outputs[1:]}
    found = {}
    for name, source in carry.items():
        _require_name(model, name, inputs, "input")
        _require_name(model, source, outputs, "output after the loss")
        before, after = inputs[name], outputs[source]
        if (
            name in parameters
            or before.dtype != after.dtype
            or before.shape != after.shape
        ):
            raise UserError(
                f"the output {after} cannot replace the input {before}",
                why="a parameter is replaced by its update, and types must be equal",
                remedy="carry an output of the input's dtype and shape",
            )
        found[name] = after
    return found


def _require_name(
    model: Graph, name: str, known: Mapping[str, Value], what: str
) -> None:
    if name not in known:
        listed = ", ".join(map(spell, known)) or "none"
        raise UserError(
            f"the graph {spell(model.name)} has no {what} named {name!r}",
            remedy=advise(name, known, f"it has {listed}"),
        )


class _StepBuilder(GraphRewriter):
    """The graph of a step under construction; `after` holds what a step changes."""

    def __init__(self, slopes: Graph, outputs: int) -> None:
        super().__init__(slopes)
        self.after: dict[str, Value] = {}  # by the name before the step
        self.slots: dict[str, str] = {}
        self.counters: dict[str, float] = {}
        self._gradients = slopes.outputs[outputs:]
        for node in slopes.nodes:
            self.copy(node)

    def update_all(self, parameters: Sequence[Value], optimizer: Optimizer) -> None:
        """Add the updates of all parameters, and the inputs that they read."""
        kind = parameters[0].dtype
        rate = self.input(RATE, kind)
        inputs = {}
        for counter, first in optimizer.counters.items():
            inputs[counter] = self.input(counter, kind)
            self.counters[counter] = first
        counters = optimizer.count(self, inputs)
        self.after.update(counters)
        for parameter, slope in zip(parameters, self._gradients, strict=True):
            states = dict(counters)
            for slot in optimizer.slots:
                name = f"{parameter.name}_{slot}"
                states[slot] = self.input(name, parameter.dtype, parameter.shape)
                self.slots[name] = parameter.name
            after, slots = optimizer.update(self, parameter, slope, rate, states)
            self.after[parameter.name] = after
            for slot, value in slots.items():
                self.after[f"{parameter.name}_{slot}"] = value

    def finish_step(self, kept: Sequence[Value]) -> TrainingStep:
        """Return the step, whose outputs are `kept`, and then what the step changes."""
        outputs = [self.values[value] for value in kept]
        next_outputs = {}
        for name, value in self.after.items():
            next_outputs[name] = len(outputs)
            outputs.append(value)
        names = {value: f"{name}_next" for name, value in self.after.items()}
        graph = renamed(self.finish(outputs), names)
        return TrainingStep(graph, next_outputs, self.slots, self.counters)
