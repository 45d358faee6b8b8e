"""Input of rules: a node, the adjoints of its outputs, and shorthand for nodes of a graph.

A rule takes a `Pullback` and returns an adjoint for each input of the node: None for an input that
has none, such as indices. A rule returns None if it does not cover the node, for example because
an extent is a symbol. Then `vjp` differentiates the node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.dims import Shape
from refcomp.graph.graph import GraphNode, Value
from refcomp.topi.operator import Attribute, find_operator


class Numbers:
    """The scalar constants of a graph under construction, each made once."""

    def __init__(self, builder: GraphBuilder) -> None:
        self._builder = builder
        self._made: dict[tuple[str, DType], Value] = {}

    def value(self, number: float, dtype: DType) -> Value:
        """Return the constant of rank 0."""
        key = (repr(number), dtype)
        if key not in self._made:
            name = {0.0: "zero", 1.0: "one"}.get(number, "number")
            array = np.array(number, to_numpy(dtype))
            self._made[key] = self._builder.constant(name, array)
        return self._made[key]


@dataclass(frozen=True, slots=True)
class Pullback:
    """A node to differentiate.

    Attributes:
        builder: takes the nodes that the rule adds.
        numbers: the scalar constants of the builder.
        node: the node.
        heads: for each output its adjoint; None if it has none. At least one is given.
    """

    builder: GraphBuilder = field(repr=False)
    numbers: Numbers = field(repr=False)
    node: GraphNode
    heads: tuple[Value | None, ...]

    @property
    def head(self) -> Value:
        """Return the adjoint of the first output."""
        head = self.heads[0]
        assert head is not None
        return head

    @property
    def output(self) -> Value:
        """Return the first output."""
        return self.node.outputs[0]

    def input(self, place: int) -> Value:
        """Return an input that is not left out."""
        value = self.node.inputs[place]
        assert value is not None
        return value

    def has_input(self, place: int) -> bool:
        """Return True if an optional input is given."""
        inputs = self.node.inputs
        return place < len(inputs) and inputs[place] is not None

    def attribute(self, name: str) -> Attribute | None:
        """Return an attribute of the node, or its default."""
        if name in self.node.attributes:
            return self.node.attributes[name]
        specs = find_operator(self.node.operator).attributes
        (default,) = (spec.default for spec in specs if spec.name == name)
        return default

    def given(self, *names: str) -> dict[str, Attribute]:
        """Return those attributes with these names that the node has."""
        present = self.node.attributes
        return {name: present[name] for name in names if name in present}

    def integer(self, name: str) -> int:
        """Return an attribute that is an int."""
        value = self.attribute(name)
        assert isinstance(value, int)
        return value

    def real(self, name: str) -> float:
        """Return an attribute that is a number."""
        value = self.attribute(name)
        assert isinstance(value, int | float)
        return float(value)

    def integers(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a tuple of ints."""
        value = self.attribute(name)
        assert isinstance(value, tuple)
        return tuple(map(int, value))

    def add(
        self, operator: str, *inputs: Value | None, **attributes: Attribute
    ) -> Value:
        """Add a node with one output to the graph, and return that output."""
        return self.builder.node(operator, inputs, attributes)

    def number(self, number: float, like: Value) -> Value:
        """Return a scalar constant of the dtype of `like`."""
        return self.numbers.value(number, like.dtype)

    def times(self, a: Value, b: Value) -> Value:
        """Return a * b."""
        return self.add("multiply", a, b)

    def scaled(self, value: Value, factor: float) -> Value:
        """Return the value times a number; the value itself for the number 1."""
        return value if factor == 1 else self.add("scale", value, factor=factor)

    def where(self, condition: Value, value: Value) -> Value:
        """Return the value where a condition holds, else 0."""
        return self.add("where", condition, value, self.number(0.0, value))

    def like_input(self, value: Value, place: int) -> Value:
        """Return the sums of `value` along the axes on which an input was broadcast."""
        return self.summed_to(value, self.input(place).shape)

    def summed_to(self, value: Value, shape: Shape) -> Value:
        """Return the sums of `value` along axes, so that it has a shape."""
        extra = len(value.shape) - len(shape)
        if extra:
            value = self.add("sum", value, axis=tuple(range(extra)))
        pairs = zip(value.shape, shape, strict=True)
        axes = tuple(k for k, (wide, own) in enumerate(pairs) if wide != own)
        return self.add("sum", value, axis=axes, keepdims=True) if axes else value


Adjoints = Sequence[Value | None]
Rule = Callable[[Pullback], Adjoints | None]


def constant_extents(shape: Shape) -> tuple[int, ...] | None:
    """Return the extents of a shape; None if one is not known before a run."""
    extents = [extent for extent in shape if isinstance(extent, int)]
    return tuple(extents) if len(extents) == len(shape) else None


def element_count(value: Value, axes: Sequence[int]) -> int | None:
    """Return the number of elements along axes; None if only a run determines it."""
    extents = constant_extents(tuple(value.shape[axis] for axis in axes))
    return None if extents is None else int(np.prod(extents, dtype=np.int64))
