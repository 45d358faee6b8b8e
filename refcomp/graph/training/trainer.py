"""The door to training: compile a training step once, run it on batches, keep what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import Target
from refcomp.graph.compile import compile_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.graph import Array, Graph, Value
from refcomp.graph.training.optimizers import Optimizer
from refcomp.graph.training.step import RATE, training_step
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.device import Device


class Trainer:
    """A compiled training step, with the parameters and the states between steps.

    Attributes:
        graph: the graph of a step (see `training_step`), before optimization.
        steps: the number of steps that were made.

    Args:
        model: a graph whose first output is the loss, one number. Its inputs are the parameters
            and the batch.
        optimizer: `Sgd(...)` or `Adam(...)`, or your own Optimizer.
        parameters: name of an input that is trained -> its first value.
        carry: name of an input -> name of the output that replaces it in the next step.
        carried: name of an input in `carry` -> its first value.
        target: what to compile for; see `compile_graph`.
        device: the device; None is number 0 of the kind that the target means.

    Raises:
        UserError: as `training_step`, or a carried input has no first value.

    Source: Keras, Model.train_on_batch.

    Example::

        >>> builder = rc.graph.GraphBuilder("line")
        >>> x, w = builder.input("x", "float32", (4,)), builder.input("w", "float32", ())
        >>> y = builder.input("y", "float32", (4,))
        >>> product = builder.node("multiply", [x, w], name="product")
        >>> model = builder.finish([builder.node("mse_loss", [product, y], name="loss")])
        >>> first = {"w": np.float32(1)}
        >>> trainer = rc.graph.Trainer(model, rc.graph.Sgd(), first, target="interp")
        >>> batch = {"x": np.ones(4, "float32"), "y": np.full(4, 3, "float32")}
        >>> for _ in range(3):
        ...     (loss,) = trainer.step(batch, rate=0.25)
        ...     print(loss)
        4.0
        1.0
        0.25
        >>> print(trainer.values()["w"])
        2.75
    """

    def __init__(
        self,
        model: Graph,
        optimizer: Optimizer,
        parameters: Mapping[str, Array],
        carry: Mapping[str, str] = MappingProxyType({}),
        carried: Mapping[str, Array] = MappingProxyType({}),
        *,
        target: Target | str = "llvm",
        device: Device | None = None,
    ) -> None:
        step = training_step(model, optimizer, list(parameters), carry)
        if set(carried) != set(carry):
            differing = ", ".join(sorted(set(carried) ^ set(carry)))
            raise UserError(
                f"carry and carried name different inputs: {differing}",
                remedy="give a first value for each carried input",
            )
        self.graph = step.graph
        self.steps = 0
        self._next = step.next_outputs
        self._executor = GraphExecutor(compile_graph(step.graph, target), device)
        inputs = {value.name: value for value in step.graph.inputs}
        self._rate_dtype = to_numpy(inputs[RATE].dtype)
        # The values are what the next step takes.
        self._values: dict[str, object] = {**parameters, **carried}
        for name in step.slots:
            self._values[name] = _full(inputs[name], 0.0)
        for name, first in step.counters.items():
            self._values[name] = _full(inputs[name], first)

    def step(self, batch: Mapping[str, object], rate: float) -> list[Array]:
        """Make one step, and return the loss and the other outputs that are not carried.

        Args:
            batch: the inputs that are neither parameters nor states, by name.
            rate: the learning rate.

        Raises:
            UserError: an input is missing or does not fit, or the batch names a parameter.
        """
        kept = sorted(set(batch) & {*self._values, RATE})
        if kept:
            raise UserError(
                f"the batch names {', '.join(kept)}",
                why="the trainer keeps parameters, states and the learning rate",
                remedy="leave them out of the batch",
            )
        feeds = {**self._values, **batch, RATE: np.array(rate, self._rate_dtype)}
        results = self._executor.run(feeds)
        for name, number in self._next.items():
            self._values[name] = results[number]
        self.steps += 1
        first_kept = min(self._next.values())
        return [result.asnumpy() for result in results[:first_kept]]

    def values(self) -> dict[str, Array]:
        """Return the parameters and states as arrays, by name."""
        return {
            name: value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
            for name, value in self._values.items()
        }


def _full(value: Value, number: float) -> Array:
    shape = [extent for extent in value.shape if isinstance(extent, int)]
    return np.full(shape, number, to_numpy(value.dtype))
