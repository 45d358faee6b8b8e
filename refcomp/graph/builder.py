"""Build a graph step by step. Every pass and frontend makes its graphs this way.

    builder = GraphBuilder("net")
    x = builder.input("x", "f32", ("N", 4))
    builder.finish([builder.node("relu", [x])])

The builder infers types, keeps names unique, and drops what no output needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from itertools import zip_longest
from types import MappingProxyType

import numpy as np

from refcomp.foundation.artifacts import Dim, names_in_dim
from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import UniqueNames
from refcomp.foundation.near_misses import advise
from refcomp.graph.control.operators import find_control
from refcomp.graph.control.types import NodeType
from refcomp.graph.graph import (
    Array,
    Graph,
    GraphNode,
    Value,
    ValueKind,
    is_macro,
)
from refcomp.graph.infer import FUSED, infer_types
from refcomp.graph.narrow import NARROW
from refcomp.graph.verify import symbol_fault
from refcomp.te.tensor import DTypeLike
from refcomp.topi.operator import Attribute, find_operator


class GraphBuilder:
    """A graph under construction. The values that it returns belong to it alone.

    Args:
        name: the name of the graph.
        outer: the builder of the graph around a subgraph. `narrow` makes no symbol that this graph
            has, since the subgraph may read any of its values later.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N", 2))
        >>> w = builder.constant("w", np.ones((2, 3), "float32"))
        >>> y = builder.node("matmul", [x, w], name="y")
        >>> sizes = {"axis": 1, "sizes": (1, 2)}
        >>> first, rest = builder.nodes("split", [y], sizes, ["first", "rest"])
        >>> print(builder.finish([builder.node("relu", [rest])]))
        graph net(x: f32[N, 2]) -> (relu) {
          const w: f32[2, 3] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
          y: f32[N, 3] = matmul(x, w)
          first: f32[N, 1], rest: f32[N, 2] = split(y) {axis=1, sizes=[1, 2]}
          relu: f32[N, 2] = relu(rest)
        }
    """

    def __init__(self, name: str, outer: GraphBuilder | None = None) -> None:
        self.name = name  # of the graph
        self._inputs: list[Value] = []
        self._constants: dict[Value, Array] = {}
        self._nodes: list[GraphNode] = []
        self._requires: list[Dim] = []
        self._names = UniqueNames(separator=".")
        # Of the inputs, of `narrow`, and of the graph around.
        self._symbols = UniqueNames(separator=".")
        if outer is not None:
            if not isinstance(outer, GraphBuilder):
                raise UserError(
                    f"{outer!r} is not the builder of a graph",
                    remedy="pass the GraphBuilder of the graph around this one",
                )
            self._symbols = deepcopy(outer._symbols)

    def input(
        self,
        name: str,
        dtype: DTypeLike,
        shape: Sequence[Dim] = (),
        kind: str = ValueKind.TENSOR,
    ) -> Value:
        """Add an input, and return its value.

        Args:
            name: the name of the input.
            dtype: a DType or its name.
            shape: ints, names of symbols, or trees of operators (`refcomp.graph.dims`); empty for
                all kinds but tensors.
            kind: what the input holds: tensor, unshaped tensor, sequence, optional, optional
                sequence, or one of the maps of `ValueKind`.

        Raises:
            UserError: another input has the name, or the kind is unknown.

        Example::

            >>> builder = rc.graph.GraphBuilder("net")
            >>> print(builder.input("frames", "float32", kind="sequence"))
            frames: seq(f32)
        """
        kinds = [one.value for one in ValueKind]
        if kind not in kinds:
            raise UserError(
                f"input {name!r} cannot be a {kind!r}",
                remedy=advise(str(kind), kinds, f"kinds: {', '.join(kinds)}"),
            )
        if name in self._names:
            raise UserError(
                f"the graph has two inputs named {name!r}", remedy="rename one of them"
            )
        value = Value(
            self._names.take(name), as_dtype(dtype), tuple(shape), ValueKind(kind)
        )
        self._inputs.append(value)
        self._take_symbols([value])
        return value

    def require(self, condition: Dim) -> None:
        """Add a condition on symbols, which each run checks before it begins.

        Args:
            condition: an extent whose operators include comparisons: `("eq", ("floormod", "N", 4),
                0)`. `refcomp.graph.parse_condition("N % 4 == 0")` makes it from text.

        Example::

            >>> builder = rc.graph.GraphBuilder("net")
            >>> x = builder.input("x", "float32", ("N",))
            >>> builder.require(rc.graph.parse_condition("N % 4 == 0"))
            >>> print(builder.finish([builder.node("relu", [x])]))
            graph net(x: f32[N]) -> (relu) {
              require N % 4 == 0
              relu: f32[N] = relu(x)
            }
        """
        self._requires.append(condition)

    def _take_symbols(self, values: Iterable[Value]) -> None:
        dims = (dim for value in values for dim in value.shape)
        for name in {name for dim in dims for name in names_in_dim(dim)}:
            if name not in self._symbols:
                self._symbols.take(name)

    def constant(self, name: str, array: Array, *, copy: bool = True) -> Value:
        """Add a constant, and return its value. The constant holds a read-only copy of the array.

        Args:
            name: the name of the value, if no other value has it.
            array: a numpy array.
            copy: False to hold the array's own memory, in its order. Nobody may write to it later.
        """
        dtype = as_dtype(array.dtype)
        if copy:
            kept = np.array(array, to_numpy(dtype), order="C")
        else:
            # A view: the flag of the caller's array stays as it is.
            kept = np.asarray(array, to_numpy(dtype)).view()
        kept.flags.writeable = False  # graphs share constants, passes included
        value = Value(self._names.take(name), dtype, array.shape)
        self._constants[value] = kept
        return value

    def nodes(
        self,
        operator: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute] | None = None,
        names: Sequence[str] = (),
        subgraphs: Sequence[Graph] = (),
        *,
        late: Mapping[str, Value] = MappingProxyType({}),
        dtypes: Sequence[DTypeLike] = (),
    ) -> tuple[Value, ...]:
        """Add a node and return all its outputs.

        Args:
            operator: name of a registered operator.
            inputs: values of this builder; None for an optional input that is left out.
            attributes: by name; attributes with their default value may be left out.
            names: of the outputs, as far as no other value has them.
            subgraphs: the graphs that the operator runs itself.
            late: name of an attribute -> the value that holds it. It is read in each run.
            dtypes: of the outputs. Needed if only a run determines the shapes: the node has `late`
                attributes, or reads an unshaped tensor.

        Raises:
            UserError: the operator is unknown, or does not take these inputs or attributes.
        """
        given = without_defaults(operator, attributes or {})
        where = f"node {names[0]!r}" if names else ""
        declared = [NodeType(as_dtype(dtype), ()) for dtype in dtypes]
        types = infer_types(
            operator, inputs, given, subgraphs, where, late=late, declared=declared
        )
        outputs = []
        for one, name in zip_longest(types, names[: len(types)]):
            taken = self._names.take(operator if name is None else name)
            outputs.append(Value(taken, *one))
        node = GraphNode(
            operator,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            attributes=given,
            subgraphs=tuple(subgraphs),
            late=dict(late),
        )
        self._nodes.append(node)
        return node.outputs

    def node(
        self,
        operator: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute] | None = None,
        name: str = "",
        subgraphs: Sequence[Graph] = (),
        *,
        late: Mapping[str, Value] = MappingProxyType({}),
        dtype: DTypeLike | None = None,
    ) -> Value:
        """Add a node with one output, and return that output.

        Args:
            operator: name of a registered operator.
            inputs: values of this builder; None for an optional input that is left out.
            attributes: by name; attributes with their default value may be left out.
            name: the name of the output, if no other value has it.
            subgraphs: the graphs that the operator runs itself.
            late: name of an attribute -> the value that holds it (see `nodes`).
            dtype: of the output, if only a run determines its shape.

        Raises:
            UserError: the operator is unknown, or does not take these inputs or attributes.

        Example::

            >>> builder = rc.graph.GraphBuilder("net")
            >>> x = builder.input("x", "float32", (8,))
            >>> axis = builder.input("axis", "int64", ())
            >>> y = builder.node("expand_dims", [x], name="y", late={"axis": axis}, dtype="f32")
            >>> print(builder.finish([y]).nodes[0])
            y: f32[*] = expand_dims(x) {axis=@axis}
        """
        (output,) = self.nodes(
            operator,
            inputs,
            attributes,
            [name] if name else [],
            subgraphs,
            late=late,
            dtypes=() if dtype is None else (dtype,),
        )
        return output

    def narrow(self, data: Value, count: Value, axis: int = 0, name: str = "") -> Value:
        """Add a node that keeps elements along an axis, as many as a run counts.

        The extent is a new symbol, which no input determines. All inputs must have been added.

        Args:
            data: a value with room for all elements.
            count: an integer with one element, such as the last result of `nonzero`.
            axis: the axis that is shortened; a negative one counts from the end.
            name: the name of the output, if no other value has it.

        Raises:
            UserError: `data` has no such axis, or `count` is not one integer.

        Example::

            >>> builder = rc.graph.GraphBuilder("net")
            >>> x = builder.input("x", "float32", (4,))
            >>> indices, count = builder.nodes("nonzero", [x])
            >>> net = builder.finish([builder.narrow(indices, count, axis=1, name="found")])
            >>> print(net)
            graph net(x: f32[4]) -> (found) {
              nonzero: i64[1, 4], nonzero.1: i64[1] = nonzero(x)
              found: i64[1, kept] = narrow(nonzero, nonzero.1) {axis=1, symbol="kept"}
            }
            >>> x = np.array([0, 5, 0, 7], "float32")
            >>> rc.graph.evaluate_graph(net, {"x": x})[0].tolist()
            [[1, 3]]
        """
        attributes: dict[str, Attribute] = {"axis": axis}
        attributes["symbol"] = self._symbols.take("kept")
        return self.node(NARROW, [data, count], attributes, name)

    def finish(self, outputs: Sequence[Value]) -> Graph:
        """Return the graph that computes `outputs`. Nodes that no output needs are left out.

        Args:
            outputs: values of this builder.

        Raises:
            UserError: a condition has a symbol that no input has.
        """
        needed = set(outputs)
        kept: list[GraphNode] = []
        for node in reversed(self._nodes):
            if needed & set(node.outputs):
                kept.append(node)
                needed |= set(node.reads)
        constants = {
            value: a for value, a in self._constants.items() if value in needed
        }
        graph = Graph(
            self.name,
            tuple(self._inputs),
            tuple(outputs),
            tuple(reversed(kept)),
            constants,
            tuple(self._requires),
        )
        fault = symbol_fault(graph) if self._requires else ""
        if fault:
            raise UserError(fault, remedy="use symbols of the inputs in conditions")
        return graph


def without_defaults(
    operator: str, attributes: Mapping[str, Attribute]
) -> dict[str, Attribute]:
    """Return the attributes whose values are not the defaults.

    So two nodes that mean the same have equal attributes.
    """
    if operator == FUSED or is_macro(operator):
        return dict(attributes)
    signature = find_control(operator) or find_operator(operator)
    defaults = {spec.name: spec.default for spec in signature.attributes}
    # None: the attribute has no default, or is unknown and refused later. As texts: 0.0 and -0.0
    # differ, and so do 1 and True.
    return {
        name: value
        for name, value in attributes.items()
        if defaults.get(name) is None or repr(value) != repr(defaults[name])
    }


class GraphRewriter(GraphBuilder):
    """A builder that copies another graph node by node, changing some of them.

    What does not change is not copied. Inputs, constants, and nodes whose inputs all stay, are the
    same objects in both graphs. So a change costs as much as the nodes that it concerns.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.name)
        self.graph = graph
        self._inputs = list(graph.inputs)
        self._constants = dict(graph.constants)
        self._requires = list(graph.requires)
        self.values: dict[Value, Value] = {}  # of the copied graph -> of this graph
        for value in (*graph.inputs, *graph.constants):
            self.values[value] = value
            self._names.take(value.name)
        self._take_symbols(graph.values())

    def mapped(self, values: Sequence[Value | None]) -> list[Value | None]:
        """Return the values of this graph that replace values of the copied graph."""
        return [None if value is None else self.values[value] for value in values]

    def copy(self, node: GraphNode) -> None:
        """Keep a node of the copied graph, or repeat it on the values that replace its inputs."""
        names = [value.name for value in node.outputs]
        inputs = self.mapped(node.inputs)
        # A new node may have taken a name. Then the value, and all that reads it, is repeated.
        are_kept = all(self.values[value] is value for value in node.reads)
        if are_kept and not any(name in self._names for name in names):
            self._nodes.append(node)
            self.values.update((value, value) for value in node.outputs)
            for name in names:
                self._names.take(name)
            return
        made = self.nodes(
            node.operator,
            inputs,
            node.attributes,
            names,
            node.subgraphs,
            late={name: self.values[value] for name, value in node.late.items()},
            dtypes=[value.dtype for value in node.outputs],
        )
        self.values.update(zip(node.outputs, made, strict=True))

    def finish_copy(self) -> Graph:
        """Return the graph, whose outputs replace the outputs of the copied graph."""
        return self.finish([self.values[value] for value in self.graph.outputs])
