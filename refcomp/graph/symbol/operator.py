"""The registry of classic operators: inputs, attributes, types of parameters, and conversion.

A family's file declares an operator as one function, whose signature says what the operator takes::

    @classic(shapes=...)
    def dense(make: NodeMaker, data: Value, weight: Value, *, units: int) -> Value:

Parameters before the `*` are inputs, the others attributes. The function makes the graph nodes of
one application; its docstring is the operator's manual page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.foundation.near_misses import advise
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.dims import Shape
from refcomp.graph.graph import Value
from refcomp.graph.symbol.attributes import (
    AttributeKind,
    SymbolAttribute,
    attribute_to_text,
)
from refcomp.topi.operator import Attribute

Attributes = Mapping[str, SymbolAttribute]
# Returns the shapes of inputs that are unknown, by name, from those that are known.
ShapeRule = Callable[[Mapping[str, Shape], Attributes], Mapping[str, Shape]]
# Returns the dtypes of the outputs, from those of the inputs.
DTypeRule = Callable[[Sequence[DType], Attributes], Sequence[DType]]
# The files that declare operators.
FAMILIES = (
    "layers",
    "images",
    "elementwise",
    "broadcast",
    "scalars",
    "reductions",
    "movement",
    "slices",
    "creation",
    "detection",
)


class NodeMaker:
    """The maker of the graph nodes of one application of a classic operator.

    Args:
        builder: the builder of the graph.
        name: the name of the symbol, which its last node gets.
    """

    def __init__(self, builder: GraphBuilder, name: str) -> None:
        self._builder = builder
        self.name = name

    def last(
        self,
        operator: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute] = MappingProxyType({}),
    ) -> Value:
        """Add the node that computes the result, and return its output."""
        return self._builder.node(operator, _trimmed(inputs), attributes, self.name)

    def last_of_several(
        self,
        operator: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute],
        count: int,
    ) -> tuple[Value, ...]:
        """Add the node that computes `count` results, and return its outputs."""
        names = [f"{self.name}_output{place}" for place in range(count)]
        return self._builder.nodes(operator, inputs, attributes, names)

    def step(
        self,
        operator: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute] = MappingProxyType({}),
    ) -> Value:
        """Add a node that prepares the result, and return its output."""
        return self._builder.node(
            operator, _trimmed(inputs), attributes, f"{self.name}.{operator}"
        )

    def steps(
        self,
        operator: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute],
    ) -> tuple[Value, ...]:
        """Add a node with several outputs that prepares the result, and return its outputs."""
        return self._builder.nodes(
            operator, inputs, attributes, [f"{self.name}.{operator}"]
        )

    def scalar(self, number: float, dtype: DType) -> Value:
        """Add a constant of rank 0, and return its value.

        Raises:
            UserError: the dtype does not hold the number.
        """
        element = to_numpy(dtype)
        whole = dtype.is_float or float(number).is_integer()
        if not whole:
            raise UserError(
                f"node {self.name!r}: {number} is not a value of {dtype}",
                remedy="give a whole number, or cast the data to floats first",
            )
        try:
            with np.errstate(over="ignore"):
                array = np.array(number if dtype.is_float else int(number), element)
        except OverflowError as error:
            raise UserError(
                f"node {self.name!r}: {number} is not a value of {dtype}",
                remedy="give a smaller number, or cast the data first",
            ) from error
        return self._builder.constant(f"{self.name}.scalar", array)

    def constant(
        self, label: str, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
    ) -> Value:
        """Add a constant, and return its value."""
        return self._builder.constant(f"{self.name}.{label}", array)


def _trimmed(inputs: Sequence[Value | None]) -> Sequence[Value | None]:
    """Return inputs without those at the end that are left out."""
    last = max(
        (place for place, one in enumerate(inputs) if one is not None), default=-1
    )
    return inputs[: last + 1]


@dataclass(frozen=True, slots=True)
class InputSpec:
    """An input of a classic operator.

    Attributes:
        name: the name of the input, which ends the name of an automatic variable.
        given_if: the attribute that must be True for the input to exist; empty if it always does.
    """

    name: str
    given_if: str = ""


@dataclass(frozen=True, slots=True)
class SymbolAttributeSpec:
    """An attribute of a classic operator.

    Attributes:
        name: the name of the attribute.
        kind: the values that it may have.
        default: its value if it is not given.
        required: True if it must be given.
    """

    name: str
    kind: AttributeKind
    default: SymbolAttribute = None
    required: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class SymbolOperator:
    """A classic operator.

    Attributes:
        name: the classic name.
        inputs: the inputs, in order.
        attributes: the attributes, in order.
        convert: makes graph nodes from a NodeMaker, the input values and the attributes.
        is_variadic: True if the operator takes any number of inputs, at least one.
        shapes: returns the shapes of inputs that are unknown.
        dtypes: returns the dtypes of the outputs.
        count_outputs: returns the number of outputs.
        hidden_outputs: the number of outputs after these that only the classic JSON form counts.
    """

    name: str
    inputs: tuple[InputSpec, ...]
    attributes: tuple[SymbolAttributeSpec, ...]
    convert: Callable[..., Value | tuple[Value, ...]]
    is_variadic: bool
    shapes: ShapeRule
    dtypes: DTypeRule
    count_outputs: Callable[[Attributes], int]
    hidden_outputs: int = 0
    aliases: tuple[str, ...] = field(default=())

    def input_names(self, attributes: Attributes) -> tuple[str, ...]:
        """Return the names of the inputs that exist for these attributes."""
        return tuple(
            spec.name
            for spec in self.inputs
            if not spec.given_if or attributes[spec.given_if]
        )

    def checked_attributes(
        self, given: Mapping[str, object], where: str
    ) -> dict[str, SymbolAttribute]:
        """Return the values of all attributes, with defaults for those that are not given.

        Args:
            given: name -> a Python value or a text.
            where: the place for messages.

        Raises:
            UserError: an attribute is unknown, missing or of another kind.
        """
        specs = {spec.name: spec for spec in self.attributes}
        for name in given:
            if name not in specs:
                known = f"attributes: {', '.join(specs) or 'none'}"
                raise UserError(
                    f"{self.name} has no attribute {name!r}",
                    where=where,
                    remedy=advise(name, specs, known),
                )
        return {name: self._value(spec, given, where) for name, spec in specs.items()}

    def _value(
        self, spec: SymbolAttributeSpec, given: Mapping[str, object], where: str
    ) -> SymbolAttribute:
        if spec.name not in given:
            if spec.required:
                raise UserError(
                    f"{self.name} lacks the attribute {spec.name}",
                    where=where,
                    remedy=f"give {spec.name}: {spec.kind.text}",
                )
            return spec.default
        value = given[spec.name]
        try:
            return spec.kind.read(value)
        except (ValueError, TypeError, RecursionError):
            text = repr(value)
            shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise UserError(
            f"the attribute {spec.name} of {self.name} is {shown}",
            where=where,
            remedy=f"give {spec.kind.text}",
        )


_KNOWN: dict[str, SymbolOperator] = {}


def register_symbol_operator(operator: SymbolOperator) -> None:
    """Make a classic operator known by its name and its aliases."""
    for name in (operator.name, *operator.aliases):
        _KNOWN[name] = operator


def known_operators() -> Mapping[str, SymbolOperator]:
    """Return all classic operators by name and alias."""
    for family in FAMILIES:
        import_module(f"refcomp.graph.symbol.{family}")
    return MappingProxyType(_KNOWN)


def find_symbol_operator(name: str, where: str = "") -> SymbolOperator:
    """Return a classic operator by its name.

    Args:
        name: the classic name, such as `conv2d`, or an alias.
        where: the place for messages.

    Raises:
        UserError: the name is unknown.
    """
    known = known_operators()
    operator = known.get(checked_name(name, "an operator"))
    if operator is None:
        listed = f"classic operators: {', '.join(sorted(known))}"
        shown = name if len(name) <= 60 else f"{name[:60]}..."
        raise UserError(
            f"unknown operator {shown!r}",
            where=where or None,
            remedy=advise(name[:60], known, listed),
        )
    return operator


def attribute_texts(attributes: Attributes) -> dict[str, str]:
    """Return the attributes as texts, as the classic JSON form holds them."""
    return {name: attribute_to_text(value) for name, value in attributes.items()}
