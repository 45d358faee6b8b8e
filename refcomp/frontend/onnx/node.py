"""One ONNX node, as its converter sees it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from refcomp.foundation.artifacts import Dim
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.attributes import Attributes
from refcomp.frontend.onnx.element_types import ELEMENT_TYPES, STRINGS, code_of
from refcomp.graph.control.types import NodeType
from refcomp.graph.folding import FoldingBuilder
from refcomp.graph.graph import Array, Graph, Value
from refcomp.graph.macros import NotKnownError
from refcomp.te.tensor import DTypeLike
from refcomp.topi.operator import Attribute


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A graph in an attribute of a node, converted.

    Attributes:
        graph: its inputs are the declared ones, then one for each value in `captured`.
        captured: the values outside that it reads.
        element_types: numbers of the element types of its outputs.
    """

    graph: Graph
    captured: tuple[Value, ...]
    element_types: tuple[int, ...]


class SurroundingModel(Protocol):
    """The model around a node."""

    def element_type(self, value: Value) -> int:
        """Return the number of the element type of a value."""

    def set_element_type(self, value: Value, code: int) -> None:
        """Say which element type a value has."""

    def subgraph(
        self, proto: object, inputs: Sequence[tuple[NodeType, int]]
    ) -> Subgraph:
        """Return a graph of an attribute, given the types of its inputs."""

    def part(self, inputs: Mapping[str, Value], output: str) -> Subgraph:
        """Return the part of the model that computes one value from others, all by name."""


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """An ONNX node to convert. Inputs are tensors of known rank, but for operators of control.

    Attributes:
        builder: what gets the nodes of the graph.
        operator: the name of the ONNX operator.
        version: the version in which the operator got its meaning.
        inputs: the values that it reads; None for an optional input that is left out.
        outputs: the names of its outputs; empty for an output that nothing reads.
        attributes: by name, with the defaults of those that are left out. An attribute without a
            value and a default is absent.
        surroundings: the model around it.
        elements: returns the elements of a value, or raises NotKnownError.
        is_in_run: True if a run converts it. Then no node of control may be added.
    """

    builder: FoldingBuilder
    operator: str
    version: int
    inputs: tuple[Value | None, ...]
    outputs: tuple[str, ...]
    attributes: Attributes
    surroundings: SurroundingModel
    elements: Callable[[Value], Array]
    is_in_run: bool = False

    def input(self, place: int) -> Value | None:
        """Return input number `place`, or None if it is left out."""
        return self.inputs[place] if place < len(self.inputs) else None

    def required(self, place: int) -> Value:
        """Return input number `place`, or raise UserError if it is left out."""
        value = self.input(place)
        if value is None:
            raise UserError(f"its input {place} is missing")
        return value

    def all_inputs(self) -> list[Value]:
        """Return all inputs, none of which may be left out."""
        return [self.required(place) for place in range(len(self.inputs))]

    def is_used(self, place: int) -> bool:
        """Return True if the model names output number `place`."""
        return place < len(self.outputs) and bool(self.outputs[place])

    def element_type(self, value: Value) -> int:
        """Return the number of a value's element type (see `element_types`)."""
        return self.surroundings.element_type(value)

    def shared_element_type(self, values: Sequence[Value]) -> int:
        """Return the number of the element type that all values have, or raise UserError."""
        codes = [self.element_type(value) for value in values]
        if len(set(codes)) != 1:
            names = " and ".join(
                sorted({ELEMENT_TYPES[code].name for code in codes}) or ["none"]
            )
            raise UserError(f"its inputs have the element types {names}, not one type")
        return codes[0]

    def flag(self, name: str) -> bool:
        """Return True if an attribute is a number other than 0; it is 0 if it is absent."""
        return bool(self.attributes.get(name, 0))

    def is_string(self, value: Value | None) -> bool:
        """Return True if a value holds strings."""
        return value is not None and self.element_type(value) == STRINGS

    def known(self, value: Value) -> Array:
        """Return the elements of a value that decides which nodes are needed.

        A value that a run computes raises NotKnownError, which the importer handles: the node is
        converted in the run.
        """
        return self.elements(value)

    def integers(self, value: Value, what: str) -> tuple[int, ...]:
        """Return the elements of an integer tensor of at most one dimension.

        Raises:
            UserError: the tensor is another one. `what` is its name in the message.
            NotKnownError: only a run computes it.
        """
        if not value.dtype.is_int or len(value.shape) > 1:
            raise UserError(f"its {what} is {value}, not a list of integers")
        return tuple(int(one) for one in self.known(value).reshape(-1))

    def optional_integers(self, place: int, what: str) -> tuple[int, ...] | None:
        """Return what `integers` returns for an input; None if the input is left out."""
        value = self.input(place)
        return None if value is None else self.integers(value, what)

    def integer(self, value: Value, what: str) -> int:
        """Return the one element of an integer tensor; errors are those of `integers`."""
        if not value.dtype.is_int:
            raise UserError(f"its {what} is {value}, not an integer")
        return int(self._single(value, what))

    def number(self, value: Value, what: str) -> float:
        """Return the one element of a tensor of numbers; errors are those of `integers`."""
        return float(self._single(value, what))

    def truncated(self, value: Value, what: str) -> int:
        """Return the one element of a tensor of numbers without its fraction.

        A float that is not finite is a UserError; other errors are those of `integers`.
        """
        number = self._single(value, what)
        if not math.isfinite(number):
            raise UserError(f"its {what} is {number}, not an integer")
        return int(number)

    def _single(self, value: Value, what: str) -> float:
        elements = self.known(value)
        if elements.size != 1:
            raise UserError(f"its {what} has {elements.size} elements, not one")
        return elements.reshape(-1)[0].item()  # type: ignore[no-any-return]

    def extents(self, value: Value) -> tuple[int, ...]:
        """Return the extents of a tensor as numbers, or raise NotKnownError."""
        extents = [dim for dim in value.shape if isinstance(dim, int)]
        if len(extents) != len(value.shape):
            raise NotKnownError
        return tuple(extents)

    def extents_in(self, value: Value, what: str) -> tuple[Dim, ...]:
        """Return what `integers` does, but an element may be an extent that has symbols."""
        if len(value.shape) <= 1 and value.dtype.is_int:
            found = self.builder.extents_in(value)
            if found is not None:
                return found
        return self.integers(value, what)

    def extent(self, value: Value, axis: int) -> int:
        """Return one extent of a tensor as a number, or raise NotKnownError.

        Args:
            value: the tensor.
            axis: counted from the end if negative; UserError if it is out of range.
        """
        dim = value.shape[self.axis(axis, len(value.shape))]
        if not isinstance(dim, int):
            raise NotKnownError
        return dim

    def size(self, value: Value) -> int:
        """Return the number of elements of a tensor, or raise NotKnownError."""
        return math.prod(self.extents(value))

    def axis(self, axis: int, rank: int, *, ends: bool = False) -> int:
        """Return an axis counted from the first; UserError if it is out of range.

        Args:
            axis: counted from the end if negative.
            rank: the number of axes.
            ends: True if `rank` itself is allowed, for the place behind the last axis.
        """
        most = rank + 1 if ends else rank
        if not -rank <= axis < most:
            raise UserError(f"its axis {axis} is out of range for {rank} dimensions")
        return axis + rank if axis < 0 else axis

    def make(
        self, operator: str, inputs: Sequence[Value | None], **attributes: Attribute
    ) -> Value:
        """Add a node of an operator of refcomp, and return its only output."""
        return self.builder.node(operator, inputs, attributes)

    def make_fitting(
        self, operator: str, inputs: Sequence[Value | None], **attributes: Attribute
    ) -> Value:
        """Add a node as `make` does; NotKnownError if only a run knows that its inputs fit.

        Two symbols may have the same value, although nothing says so before the run.
        """
        (made,) = self.make_all_fitting(operator, inputs, **attributes)
        return made

    def make_all_fitting(
        self, operator: str, inputs: Sequence[Value | None], **attributes: Attribute
    ) -> tuple[Value, ...]:
        """Add a node as `make_fitting` does, and return all its outputs."""
        try:
            return self.make_all(operator, inputs, **attributes)
        except UserError:
            for value in inputs:
                if value is not None:
                    self.extents(value)
            raise

    def make_all(
        self, operator: str, inputs: Sequence[Value | None], **attributes: Attribute
    ) -> tuple[Value, ...]:
        """Add a node of an operator of refcomp, and return all its outputs."""
        return self.builder.nodes(operator, inputs, attributes)

    def constant(self, elements: Any, dtype: Any = None) -> Value:
        """Add a constant, and return its value.

        Args:
            elements: a number, nested lists of numbers, or an array.
            dtype: a DType, or anything that numpy takes; None for that of an array.
        """
        array = np.asarray(elements, dtype)
        return self.builder.constant("constant", array)

    def cast(self, value: Value, dtype: DTypeLike) -> Value:
        """Return a value converted to a dtype; the value itself if it has it."""
        wanted = as_dtype(dtype)
        if value.dtype == wanted:
            return value
        return self.make("cast", [value], dtype=str(wanted))

    def subgraph(
        self, name: str, inputs: Sequence[tuple[NodeType, int]] = ()
    ) -> Subgraph:
        """Return the graph of an attribute, converted.

        Args:
            name: the name of the attribute.
            inputs: for each declared input, its type, and the number of its element type.
        """
        if name not in self.attributes:
            raise UserError(f"its attribute {name} is missing")
        return self.surroundings.subgraph(self.attributes[name], inputs)

    def typed(self, value: Value, code: int) -> Value:
        """Return `value`, after noting that it has an element type of ONNX."""
        assert code_of(value.dtype) is not None
        self.surroundings.set_element_type(value, code)
        return value

    def all_typed(self, values: Sequence[Value], codes: Sequence[int]) -> list[Value]:
        """Return values, after noting the element type of each."""
        pairs = zip(values, codes, strict=True)
        return [self.typed(value, code) for value, code in pairs]
