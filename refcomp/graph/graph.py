"""A graph: applications of operators to tensors, each value made before it is read.

The grammar of `str(graph)`, in which names that are not identifiers are quoted::

    graph NAME(VALUE, ...) -> (NAME, ...) {
      require CONDITION
      const VALUE = [element, ...]     # elements of small constants only
      VALUE, ... = OPERATOR(NAME or _, ...) {attribute=value or @NAME, ...}
        graph ... { ... }              # subgraphs of the node above
    }
    VALUE: NAME: TYPE
    TYPE: DTYPE[DIM, ...] | DTYPE[*] | seq(DTYPE) | optional(DTYPE) | optional(seq(DTYPE))
          | map(KEY, DTYPE) | seq(map(KEY, DTYPE))
    KEY: i64 | string

`refcomp.graph.parser` reads this text. A graph is immutable: a pass builds another one
(`refcomp.graph.builder`). Values are compared by identity. Names are unique within a graph. They
come from model files, so text and messages only contain them quoted or escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from refcomp.foundation.artifacts import Dim, dim_to_plain_text, dim_to_text
from refcomp.foundation.dtype import DType
from refcomp.graph.dims import Shape
from refcomp.topi.operator import Attribute

Array = np.ndarray[Any, np.dtype[Any]]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")
# Constants of at most so many elements are printed with them.
MAX_PRINTED_ELEMENTS = 8


class ValueKind(StrEnum):
    """The kind of thing that a value holds. Only tensors have a shape before a run."""

    TENSOR = "tensor"
    UNSHAPED = "unshaped tensor"  # a tensor whose rank and extents a run determines
    SEQUENCE = "sequence"  # of tensors, which may have different shapes
    OPTIONAL = "optional"  # a tensor, or nothing
    OPTIONAL_SEQUENCE = "optional sequence"  # a sequence, or nothing
    # A map holds one element for each of its keys. The dtype is that of the elements.
    INTEGER_MAP = "map from integers"
    STRING_MAP = "map from strings"
    INTEGER_MAPS = "sequence of maps from integers"
    STRING_MAPS = "sequence of maps from strings"


_KIND_TEXTS = {
    ValueKind.UNSHAPED: "{}[*]",
    ValueKind.SEQUENCE: "seq({})",
    ValueKind.OPTIONAL: "optional({})",
    ValueKind.OPTIONAL_SEQUENCE: "optional(seq({}))",
    ValueKind.INTEGER_MAP: "map(i64, {})",
    ValueKind.STRING_MAP: "map(string, {})",
    ValueKind.INTEGER_MAPS: "seq(map(i64, {}))",
    ValueKind.STRING_MAPS: "seq(map(string, {}))",
}


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A value of a graph, mostly a tensor. Two values are equal only if they are the same object.

    Attributes:
        name: unique within the graph.
        dtype: the dtype of the elements.
        shape: one extent for each dimension: an int, the name of a symbol, or a tree of operators
            (`refcomp.graph.dims`). It is empty for all kinds but tensors.
        kind: what the value holds; a tensor by default.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N", 2))
        >>> print(x)
        x: f32[N, 2]
        >>> x.name, str(x.dtype), x.shape
        ('x', 'f32', ('N', 2))
    """

    name: str
    dtype: DType
    shape: Shape
    kind: ValueKind = ValueKind.TENSOR

    @property
    def is_tensor(self) -> bool:
        """Return True for a tensor whose shape is known before a run, but for its symbols.

        Example::

            >>> rc.graph.GraphBuilder("net").input("x", "float32", ("N", 2)).is_tensor
            True
        """
        return self.kind is ValueKind.TENSOR

    def __str__(self) -> str:
        return f"{spell(self.name)}: {type_to_text(self.dtype, self.shape, self.kind)}"


@dataclass(frozen=True, slots=True, eq=False)
class GraphNode:
    """An application of an operator. Two nodes are equal only if they are the same object.

    Attributes:
        operator: the name of the operator (`find_operator`), or `fused`.
        inputs: the values that are read; None for an optional input that is left out.
        outputs: the values that are made, at least one.
        attributes: name -> value, without attributes that have their default.
        subgraphs: the graphs that the operator runs itself; empty for most nodes.
        late: name -> the value that holds an attribute which only a run determines. Such a node
            makes unshaped tensors.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N", 2))
        >>> net = builder.finish([builder.node("add", [x, x], name="twice")])
        >>> (node,) = net.nodes
        >>> print(node)
        twice: f32[N, 2] = add(x, x)
        >>> node.name, node.operator, len(node.inputs)
        ('twice', 'add', 2)
        >>> [value.name for value in node.reads]
        ['x']
    """

    operator: str
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    subgraphs: tuple[Graph, ...] = ()
    late: Mapping[str, Value] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the name of the first output, which identifies the node."""
        return self.outputs[0].name

    @property
    def reads(self) -> tuple[Value, ...]:
        """Return the inputs and late attributes that are present, each once, in order."""
        given = (*self.inputs, *self.late.values())
        return tuple(dict.fromkeys(value for value in given if value is not None))

    def __str__(self) -> str:
        outputs = ", ".join(map(str, self.outputs))
        inputs = ", ".join("_" if v is None else spell(v.name) for v in self.inputs)
        text = f"{outputs} = {self.operator}({inputs})"
        given = {name: _spell_attribute(v) for name, v in self.attributes.items()}
        given |= {name: f"@{spell(value.name)}" for name, value in self.late.items()}
        if not given:
            return text
        return f"{text} {{{', '.join(f'{k}={given[k]}' for k in sorted(given))}}}"


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The computation of outputs from inputs and constants. It is immutable.

    A `GraphBuilder` or `from_onnx` makes it, and `str` prints it.

    Attributes:
        name: the name of the graph.
        inputs: the values that the caller provides.
        outputs: the values that a run returns.
        nodes: the applications of operators; each value is made before it is read.
        constants: value -> its array, which is read-only.
        requires: conditions on the symbols, which each run checks before it begins. A condition is
            an extent whose operators include comparisons; it holds if it is not 0.

    Source: ONNX, GraphProto.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N", 2))
        >>> w = builder.constant("w", np.ones((2, 3), "float32"))
        >>> net = builder.finish([builder.node("matmul", [x, w], name="y")])
        >>> print(net)
        graph net(x: f32[N, 2]) -> (y) {
          const w: f32[2, 3] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
          y: f32[N, 3] = matmul(x, w)
        }
        >>> [value.name for value in net.values()]
        ['x', 'w', 'y']
        >>> [node.name for node in net.readers()[w]]
        ['y']
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[GraphNode, ...]
    constants: Mapping[Value, Array] = field(default_factory=dict)
    requires: tuple[Dim, ...] = ()

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def values(self) -> Iterable[Value]:
        """Yield every value, inputs first, each before the nodes that read it."""
        yield from self.inputs
        yield from self.constants
        for node in self.nodes:
            yield from node.outputs

    def readers(self) -> dict[Value, list[GraphNode]]:
        """Return the nodes that read each value, in order."""
        readers: dict[Value, list[GraphNode]] = {value: [] for value in self.values()}
        for node in self.nodes:
            for value in node.reads:
                readers[value].append(node)
        return readers


def is_macro(operator: str) -> bool:
    """Return True for the name of a macro, `FAMILY.NAME` (see `refcomp.graph.macros`)."""
    return "." in operator


def spell(name: str) -> str:
    """Return a name as text: an identifier itself, any other name quoted and escaped."""
    return name if _IDENTIFIER.match(name) else json.dumps(name)


def spell_dim(dim: Any) -> str:
    """Return an extent as text."""
    return spell(dim) if isinstance(dim, str) else dim_to_text(_spelled(dim))


def spell_condition(condition: Dim) -> str:
    """Return a condition on symbols as text."""
    return dim_to_plain_text(_spelled(condition))


def type_to_text(dtype: DType, shape: Shape, kind: ValueKind) -> str:
    """Return the type of a value as text, such as `f32[N, 4]` or `seq(f32)`."""
    if kind is ValueKind.TENSOR:
        return f"{dtype}[{', '.join(map(spell_dim, shape))}]"
    return _KIND_TEXTS[kind].format(dtype)


def elements_to_text(array: Array) -> str:
    """Return the elements of an array, row by row, as text."""
    return f"[{', '.join(map(str, array.reshape(-1)))}]"


def _spelled(dim: Dim) -> Dim:
    """Return `dim` with quoted symbols, if they are not identifiers."""
    if isinstance(dim, tuple):
        operator, left, right = dim
        return (operator, _spelled(left), _spelled(right))
    return spell(dim) if isinstance(dim, str) else dim


def _spell_attribute(value: Attribute) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value)


def _lines(graph: Graph) -> Iterable[str]:
    inputs = ", ".join(map(str, graph.inputs))
    outputs = ", ".join(spell(value.name) for value in graph.outputs)
    yield f"graph {spell(graph.name)}({inputs}) -> ({outputs}) {{"
    for condition in graph.requires:
        yield f"  require {spell_condition(condition)}"
    for value, array in graph.constants.items():
        is_small = array.size <= MAX_PRINTED_ELEMENTS
        elements = f" = {elements_to_text(array)}" if is_small else ""
        yield f"  const {value}{elements}"
    for node in graph.nodes:
        yield f"  {node}"
        for subgraph in node.subgraphs:
            yield from (f"    {line}" for line in _lines(subgraph))
    yield "}"
