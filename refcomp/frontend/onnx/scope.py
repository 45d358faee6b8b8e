"""The values of a model by their names, as one graph or function sees them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.attributes import Proto
from refcomp.frontend.onnx.element_types import ELEMENT_TYPES, STRINGS, code_of
from refcomp.graph.control.types import NodeType
from refcomp.graph.folding import FoldingBuilder
from refcomp.graph.graph import Array, Value
from refcomp.graph.macros import NotKnownError


class ValueScope:
    """The names of a graph, of a function, or of a subgraph.

    A subgraph also sees the names of the graphs around it. What it reads of them becomes an input
    of its own, and is noted in `captured`.

    Args:
        builder: what gets the nodes. A function has the builder of the graph that calls it.
        versions: domain -> version of its operator set.
        parent: the scope around a subgraph; None for a model or a function.
        prefix: stands before the names of values in the graph.
    """

    def __init__(
        self,
        builder: FoldingBuilder,
        versions: Mapping[str, int],
        parent: ValueScope | None,
        prefix: str = "",
    ) -> None:
        self.builder = builder
        self.versions = versions
        self.parent = parent
        self.prefix = prefix
        self.captured: dict[Value, Value] = {}  # of the parent -> of this builder
        # Outputs of nodes that could not be converted. Nodes that read them are only checked.
        self.lost: set[str] = set()
        self.nodes: Sequence[Proto] = ()  # NodeProtos of the graph or the function
        self._values: dict[str, Value | None] = {}
        self._codes: dict[Value, int] = {}  # of values whose dtype does not say it

    def add(self, name: str, value: Value | None) -> None:
        """Let `name` stand for `value`; None for an input of a function that is left out."""
        if name in self._values:
            raise UserError(
                f"two values of the model are named {name!r}",
                remedy="the file is damaged: export it again",
            )
        self._values[name] = value

    def add_constant(self, name: str, array: Array, code: int) -> Value:
        """Add a constant of the model. The graph holds the memory of `array`."""
        if code == STRINGS:
            texts = json.dumps(array.reshape(-1).tolist())
            attributes = {"elements": texts, "shape": array.shape}
            (value,) = self.builder.nodes(
                "string_constant", [], attributes, [self.prefix + name]
            )
        else:
            value = self.builder.constant(self.prefix + name, array, copy=False)
        self.add(name, value)
        self.set_element_type(value, code)
        return value

    def knows(self, name: str) -> bool:
        """Return True if a value with this name has been made."""
        if name in self._values or name in self.lost:
            return True
        return self.parent is not None and self.parent.knows(name)

    def defines(self, name: str) -> bool:
        """Return True if this scope itself has made a value with this name."""
        return name in self._values or name in self.lost

    def is_lost(self, name: str) -> bool:
        """Return True if the node that makes a value could not be converted."""
        if name in self._values:
            return False
        if name in self.lost:
            return True
        return self.parent is not None and self.parent.is_lost(name)

    def value(self, name: str) -> Value | None:
        """Return the value of a name that is known and not lost."""
        if name in self._values:
            return self._values[name]
        assert self.parent is not None, name
        outer = self.parent.value(name)
        if outer is None:
            return None
        if outer in self.captured:
            return self.captured[outer]
        elements = self.parent.builder.elements(outer)
        if elements is not None:
            value = self.builder.constant(outer.name, elements, copy=False)
        else:
            value = self.builder.input(outer.name, outer.dtype, outer.shape, outer.kind)
            self.captured[outer] = value
        self._values[name] = value
        self.set_element_type(value, self.parent.element_type(outer))
        return value

    def output(self, name: str) -> Value:
        """Return the value of an output. In the graph, it has the name of the output."""
        value = self.value(name) if self.knows(name) else None
        if value is None:
            raise UserError(
                f"nothing makes the output {name!r} of the model",
                remedy="the file is damaged or incomplete: export it again",
            )
        is_tensor = not NodeType.of(value).is_container and value.dtype != _STRING
        if value.name == name or not is_tensor:
            return value
        dtypes = () if value.is_tensor else (value.dtype,)
        (named,) = self.builder.nodes("identity", [value], names=[name], dtypes=dtypes)
        self.set_element_type(named, self.element_type(value))
        return named

    def element_type(self, value: Value) -> int:
        """Return the number of the element type of a value."""
        return self._codes.get(value) or code_of(value.dtype)

    def set_element_type(self, value: Value, code: int) -> None:
        """Say which element type a value has. Its dtype must hold such elements."""
        assert ELEMENT_TYPES[code].storage == value.dtype, (str(value), code)
        self._codes[value] = code

    def elements(self, value: Value) -> Array:
        """Return the elements of a constant, or raise NotKnownError for any other value."""
        found = self.builder.elements(value)
        if found is None:
            raise NotKnownError
        return np.asarray(found)


_STRING = ELEMENT_TYPES[STRINGS].storage
