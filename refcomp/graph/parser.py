"""Parser of the text form of graphs (the inverse of `str(graph)`, see `refcomp.graph.graph`).

Requires text as `str` prints it. Line breaks, indentation and comments (`# ...`) are free.

Ensures that each value is made before it is read, and that each declared type is the type that the
operator gives. Nodes that no output needs stay.

Refuses everything else with a UserError that shows file, line and column.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from refcomp.foundation.artifacts import Dim
from refcomp.foundation.dtype import STRING, DType, as_dtype, find_dtype, to_numpy
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.near_misses import advise
from refcomp.graph.builder import without_defaults
from refcomp.graph.control.types import NodeType
from refcomp.graph.graph import (
    Array,
    Graph,
    GraphNode,
    Value,
    ValueKind,
    spell,
    type_to_text,
)
from refcomp.graph.infer import infer_types
from refcomp.graph.verify import symbol_fault
from refcomp.ir.tokens import Token, TokenStream
from refcomp.topi.operator import Attribute

MAX_NESTING = 50  # of subgraphs, and of parentheses in an extent

_T = TypeVar("_T")

# Words around a dtype -> the kind of value.
_KINDS = {
    (): ValueKind.TENSOR,
    ("seq",): ValueKind.SEQUENCE,
    ("optional",): ValueKind.OPTIONAL,
    ("optional", "seq"): ValueKind.OPTIONAL_SEQUENCE,
    ("map(i64",): ValueKind.INTEGER_MAP,
    ("map(string",): ValueKind.STRING_MAP,
    ("seq", "map(i64"): ValueKind.INTEGER_MAPS,
    ("seq", "map(string"): ValueKind.STRING_MAPS,
}
# Spelling of a binary operator in an extent -> its name, its precedence.
_DIM_OPERATORS = {
    "or": ("or", 1),
    "and": ("and", 2),
    "<": ("lt", 3),
    "<=": ("le", 3),
    "==": ("eq", 3),
    "!=": ("ne", 3),
    "+": ("add", 4),
    "-": ("sub", 4),
    "*": ("mul", 5),
    "//": ("floordiv", 5),
    "%": ("floormod", 5),
}
_WORDS: dict[str, Attribute] = {
    "True": True,
    "False": False,
    "inf": math.inf,
    "nan": math.nan,
}


def parse_graph(
    text: str,
    constants: Mapping[str, Array] = MappingProxyType({}),
    filename: str = "<graph>",
) -> Graph:
    r"""Return the graph that a text describes.

    Args:
        text: the text of one graph, as `str(graph)` prints it.
        constants: the arrays of the constants whose elements the text does not hold, by name.
        filename: the name of the file in messages.

    Raises:
        UserError: the text is malformed, a declared type is wrong, or a constant has no elements.

    Example::

        >>> text = "graph net(x: f32[N]) -> (y) {\n  y: f32[N] = relu(x)\n}"
        >>> graph = rc.graph.parse_graph(text)
        >>> graph.nodes[0].operator, str(graph) == text
        ('relu', True)
    """
    parser = _GraphParser(TokenStream(text, filename), constants)
    graph = parser.graph(0)
    parser.expect_end()
    return graph


def parse_condition(text: str) -> Dim:
    """Return a condition on symbols as an extent with comparisons.

    Args:
        text: extents with `< <= == != and or` between them, such as `N % 4 == 0`.

    Raises:
        UserError: the text is not a condition.

    Example::

        >>> rc.graph.parse_condition("N % 4 == 0")
        ('eq', ('floormod', 'N', 4), 0)
    """
    parser = _GraphParser(TokenStream(text, "<condition>"), {})
    condition = parser.dim()
    parser.expect_end()
    return condition


class _GraphParser:
    """A recursive-descent parser."""

    def __init__(self, stream: TokenStream, constants: Mapping[str, Array]) -> None:
        self.stream = stream
        self.constants = constants

    def expect_end(self) -> None:
        if self.stream.peek().kind != "end":
            token = self.stream.peek()
            self.stream.fail(token, f"expected the end of the text, found {token}")

    def graph(self, depth: int) -> Graph:
        begin = self.stream.expect("graph", "at the beginning of a graph")
        if depth > MAX_NESTING:
            self.stream.fail(begin, f"more than {MAX_NESTING} graphs are nested")
        return _BodyParser(self, depth).graph()

    def name(self, what: str) -> str:
        """Return a name, which is an identifier or quoted."""
        token = self.stream.peek()
        if token.kind == "text":
            return self.quoted()
        return self.stream.expect_name(what).text

    def quoted(self) -> str:
        token = self.stream.take()
        try:
            return str(json.loads(token.text))
        except ValueError:
            self.stream.fail(token, f"{token} is not a quoted text of JSON")

    def listed(self, item: Callable[[], _T], end: str) -> list[_T]:
        """Return items with commas between them, up to the symbol `end`."""
        items: list[_T] = []
        while not self.stream.take_if(end):
            if items:
                self.stream.expect(",", "between two items of a list")
            items.append(item())
        return items

    def type(self) -> NodeType:
        """Return a type: `f32[N, 4]`, `f32[*]`, `optional(seq(f32))`, `map(i64, f32)`."""
        wrappers = []
        while self.stream.is_next("seq", "optional"):
            wrappers.append(self.stream.take().text)
            self.stream.expect("(", f"after `{wrappers[-1]}`")
        if self.stream.is_next("map"):
            wrappers.append(self.map_key())
        dtype = self.dtype()
        kind = _KINDS.get(tuple(wrappers))
        if kind is None:
            self.stream.fail(
                self.stream.peek(), "a sequence holds neither sequences nor optionals"
            )
        for _ in wrappers:
            self.stream.expect(")", "at the end of the type")
        if kind is not ValueKind.TENSOR:
            return NodeType(dtype, (), kind)
        self.stream.expect("[", "before the extents")
        if self.stream.take_if("*"):
            self.stream.expect("]", "after `*`")
            return NodeType(dtype, (), ValueKind.UNSHAPED)
        if dtype == STRING:
            self.stream.fail(
                self.stream.peek(), "a tensor of strings is written `string[*]`"
            )
        return NodeType(dtype, tuple(self.listed(self.dim, "]")))

    def map_key(self) -> str:
        """Return the beginning of a map's type up to its key, `map(i64`."""
        word = self.stream.take().text
        self.stream.expect("(", f"after `{word}`")
        token = self.stream.expect_name("the dtype of the keys")
        if token.text not in ("i64", "string"):
            self.stream.fail(token, f"keys of a map are i64 or string, not {token}")
        self.stream.expect(",", "after the dtype of the keys")
        return f"{word}({token.text}"

    def dtype(self) -> DType:
        token = self.stream.expect_name("a dtype")
        dtype = STRING if token.text == str(STRING) else find_dtype(token.text)
        if dtype is None or dtype.lanes != 1:
            self.stream.fail(token, f"{token} is not a dtype, such as `f32`")
        return dtype

    def dim(self, binding: int = 0, depth: int = 0) -> Dim:
        """Return an extent whose operators bind more tightly than `binding`."""
        left = self._dim_operand(depth)
        while True:
            token = self.stream.peek()
            if token.kind not in ("symbol", "name") or token.text not in _DIM_OPERATORS:
                return left
            operator, precedence = _DIM_OPERATORS[token.text]
            if precedence <= binding:
                return left
            self.stream.take()
            right = self.dim(precedence, depth + 1)
            if operator == "sub" and isinstance(right, int):
                operator = "add"  # the printer writes N + -1 as N - 1
                right = -right
            left = (operator, left, right)

    def _dim_operand(self, depth: int) -> Dim:
        token = self.stream.peek()
        if depth > MAX_NESTING:
            self.stream.fail(token, f"more than {MAX_NESTING} operators are nested")
        if self.stream.take_if("("):
            inner = self.dim(0, depth + 1)
            self.stream.expect(")", "at the end of a group")
            return inner
        if token.kind == "number" or self.stream.is_next("-"):
            return self.integer()
        name = self.name("an extent")
        is_function = token.kind == "name" and name in ("min", "max")
        if not is_function or not self.stream.take_if("("):
            return name
        left = self.dim(0, depth + 1)
        self.stream.expect(",", f"between the operands of {name}")
        right = self.dim(0, depth + 1)
        self.stream.expect(")", f"after the operands of {name}")
        return (name, left, right)

    def integer(self) -> int:
        number = self.number()
        if not isinstance(number, int):
            self.stream.fail(self.stream.peek(), f"{number} is not an integer")
        return number

    def number(self) -> int | float:
        """Return an integer or a float, maybe with a sign."""
        sign = -1 if self.stream.take_if("-") else 1
        token = self.stream.take()
        word = _WORDS.get(token.text)
        if isinstance(word, float) and token.kind == "name":
            return sign * word
        try:
            return sign * int(token.text)
        except ValueError:
            pass
        try:
            return sign * float(token.text)
        except ValueError:
            self.stream.fail(token, f"expected a number, found {token}")

    def attribute(self) -> Attribute:
        """Return the value of an attribute."""
        token = self.stream.peek()
        if token.kind == "text":
            return self.quoted()
        if self.stream.is_next("True", "False"):
            return _WORDS[self.stream.take().text]
        if self.stream.take_if("["):
            return tuple(self.listed(self.number, "]"))
        return self.number()


class _BodyParser:
    """A parser of one graph, whose values it knows by name."""

    def __init__(self, outer: _GraphParser, depth: int) -> None:
        self.outer = outer
        self.stream = outer.stream
        self.depth = depth
        self.values: dict[str, Value] = {}
        self.constants: dict[Value, Array] = {}
        self.nodes: list[GraphNode] = []
        self.requires: list[Dim] = []

    def graph(self) -> Graph:
        name = self.outer.name("the name of the graph")
        self.stream.expect("(", "before the inputs")
        inputs = self.outer.listed(self._declared, ")")
        self.stream.expect("-", "after the inputs")
        self.stream.expect(">", "after `-`")
        self.stream.expect("(", "before the outputs")
        outputs = self.outer.listed(self._output, ")")
        self.stream.expect("{", "before the body")
        while not self.stream.take_if("}"):
            self._line()
        end = self.stream.peek()
        graph = Graph(
            name,
            tuple(inputs),
            tuple(self._value(token, text) for token, text in outputs),
            tuple(self.nodes),
            self.constants,
            tuple(self.requires),
        )
        fault = symbol_fault(graph)
        if fault:
            self.stream.fail(end, fault, "give each symbol one value")
        return graph

    def _output(self) -> tuple[Token, str]:
        token = self.stream.peek()
        return token, self.outer.name("the name of an output")

    def _line(self) -> None:
        if self.stream.peek(1).text == ":":
            self._node()
        elif self.stream.take_if("require"):
            self.requires.append(self.outer.dim())
        elif self.stream.take_if("const"):
            self._constant()
        else:
            token = self.stream.peek()
            self.stream.fail(
                token, f"expected a node, `const`, `require` or `}}`, found {token}"
            )

    def _declared(self) -> Value:
        """Return a new value, from `NAME: TYPE`."""
        token = self.stream.peek()
        name = self.outer.name("the name of a value")
        if name in self.values:
            self.stream.fail(
                token, f"two values are named {name!r}", "rename one of them"
            )
        self.stream.expect(":", "after the name of a value")
        dtype, shape, kind = self.outer.type()
        value = self.values[name] = Value(name, dtype, shape, kind)
        return value

    def _constant(self) -> None:
        token = self.stream.peek()
        value = self._declared()
        if self.stream.take_if("="):
            self.stream.expect("[", "before the elements")
            elements = self.outer.listed(self._element, "]")
            array = self._array(token, value, elements)
        else:
            array = self._given(token, value)
        array.flags.writeable = False
        self.constants[value] = array

    def _element(self) -> int | float | bool:
        if self.stream.is_next("True", "False"):
            return self.stream.take().text == "True"
        return self.outer.number()

    def _array(
        self, token: Token, value: Value, elements: list[int | float | bool]
    ) -> Array:
        extents = [dim for dim in value.shape if isinstance(dim, int)]
        is_complete = math.prod(extents) == len(elements)
        if len(extents) != len(value.shape) or not value.is_tensor or not is_complete:
            self.stream.fail(
                token, f"constant {value} cannot have {len(elements)} elements"
            )
        try:
            with np.errstate(over="ignore"):
                return np.array(elements, to_numpy(value.dtype)).reshape(extents)
        except (ValueError, OverflowError) as error:
            self.stream.fail(token, f"constant {value}: {error}")

    def _given(self, token: Token, value: Value) -> Array:
        """Return a view of the array that the caller gave for a constant."""
        given = self.outer.constants.get(value.name)
        if given is None:
            known = f"arrays are given for {', '.join(self.outer.constants) or 'none'}"
            self.stream.fail(
                token,
                f"no array is given for constant {value.name!r}",
                advise(value.name, self.outer.constants, known),
            )
        array = np.asarray(given)
        if as_dtype(array.dtype) != value.dtype or array.shape != value.shape:
            self.stream.fail(
                token,
                f"constant {value} is given {as_dtype(array.dtype)}{list(array.shape)}",
                "give an array of the declared type",
            )
        return array.view()

    def _node(self) -> None:
        begin = self.stream.peek()
        # Declared later: a node does not read its own outputs.
        known = dict(self.values)
        outputs = [self._declared()]
        while self.stream.take_if(","):
            outputs.append(self._declared())
        self.stream.expect("=", "after the outputs of a node")
        operator = self.outer.name("an operator")
        self.stream.expect("(", "before the inputs of a node")
        declared = self.values
        self.values = known
        inputs = self.outer.listed(self._input, ")")
        attributes, late = self._attributes()
        self.values = declared
        subgraphs = []
        while self.stream.is_next("graph") and self.stream.peek(1).text != ":":
            subgraphs.append(self.outer.graph(self.depth + 1))
        try:
            given = without_defaults(operator, attributes)
            node = GraphNode(
                operator,
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                attributes=given,
                subgraphs=tuple(subgraphs),
                late=late,
            )
            self._check_types(begin, node)
        except RefcompError as error:
            if isinstance(error, UserError) and error.at is not None:
                raise
            self.stream.fail(
                begin,
                f"node {spell(outputs[0].name)}: {error.what}",
                error.remedy,
            )
        self.nodes.append(node)

    def _input(self) -> Value | None:
        token = self.stream.peek()
        name = self.outer.name("the name of an input, or `_`")
        if token.kind == "name" and name == "_":
            return None
        return self._value(token, name)

    def _value(self, token: Token, name: str) -> Value:
        if name not in self.values:
            self.stream.fail(
                token,
                f"no value before this place is named {name!r}",
                advise(name, self.values, "make a value before it is read"),
            )
        return self.values[name]

    def _attributes(self) -> tuple[dict[str, Attribute], dict[str, Value]]:
        """Return the attributes in braces, if any, and those that are values."""
        attributes: dict[str, Attribute] = {}
        late: dict[str, Value] = {}

        def attribute() -> None:
            token = self.stream.expect_name("the name of an attribute")
            self.stream.expect("=", "after the name of an attribute")
            if token.text in attributes or token.text in late:
                self.stream.fail(token, f"the attribute {token} is given twice")
            if self.stream.take_if("@"):
                place = self.stream.peek()
                name = self.outer.name("the value of an attribute")
                late[token.text] = self._value(place, name)
            else:
                attributes[token.text] = self.outer.attribute()

        if self.stream.take_if("{"):
            self.outer.listed(attribute, "}")
        return attributes, late

    def _check_types(self, begin: Token, node: GraphNode) -> None:
        declared = [NodeType(v.dtype, v.shape, v.kind) for v in node.outputs]
        types = infer_types(
            node.operator,
            node.inputs,
            node.attributes,
            node.subgraphs,
            late=node.late,
            declared=declared,
        )
        if types != declared:
            found = ", ".join(type_to_text(*one) for one in types)
            given = ", ".join(type_to_text(*one) for one in declared)
            self.stream.fail(
                begin,
                f"node {spell(node.name)} is declared as {given}, "
                f"but {node.operator} makes {found}",
                "correct the declared types, or the node's inputs and attributes",
            )
