"""Shapes and dtypes of symbols, and their conversion to graphs.

The dtypes are found first, by rules of the operators. Then each node becomes graph nodes, whose
types the graph infers. A variable without a shape gets one from the first node that reads it, by
the rule of its operator. For example, `fc_weight` gets its shape from the width of `fc`'s data.

Refuses variables whose shape or dtype nothing determines, and names that no variable has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from refcomp.foundation.dtype import DType, as_dtype
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.near_misses import advise
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.dims import Shape
from refcomp.graph.graph import Array, Graph, Value
from refcomp.graph.symbol.attributes import kind_of_hint
from refcomp.graph.symbol.nodes import (
    SymbolEntry,
    SymbolNode,
    ordered_nodes,
    variables_of,
)
from refcomp.graph.symbol.operator import NodeMaker

SHAPE_NOTE = "__shape__"
DTYPE_NOTE = "__dtype__"

_MAX_RANK = 64
_DIMS_KIND = kind_of_hint(tuple[int | str, ...])
_NONE: Mapping[str, object] = MappingProxyType({})


class VariableType(NamedTuple):
    """The type of a variable."""

    dtype: DType
    shape: Shape


class Inferred(NamedTuple):
    """The types of a symbol."""

    variables: Mapping[str, VariableType]  # by name, in order
    outputs: Sequence[VariableType]


def infer_dtypes(
    entries: Sequence[SymbolEntry], given: Mapping[str, object] = _NONE
) -> dict[SymbolEntry, DType]:
    """Return the dtype of each variable and each output.

    A variable without a dtype has that of the first input of the node that reads it which has one,
    else f32.

    Args:
        entries: the outputs of a symbol.
        given: name of a variable -> its dtype.

    Raises:
        UserError: no variable has a name, or a dtype does not exist.
    """
    check_names(entries, given)
    known: dict[SymbolEntry, DType] = {}
    for node in ordered_nodes(entries):
        if node.operator is None:
            dtype = given.get(node.name, node.notes.get(DTYPE_NOTE))
            if dtype is not None:
                known[SymbolEntry(node)] = checked_dtype(node, dtype)
            continue
        found = [known[entry] for entry in node.inputs if entry in known]
        for entry in node.inputs:
            known.setdefault(entry, found[0] if found else as_dtype("float32"))
        inputs = [known[entry] for entry in node.inputs]
        made = node.operator.dtypes(inputs, node.attributes)
        known.update(
            (SymbolEntry(node, place), dtype) for place, dtype in enumerate(made)
        )
    for entry in entries:
        known.setdefault(entry, as_dtype("float32"))
    return known


def infer_types(
    entries: Sequence[SymbolEntry],
    shapes: Mapping[str, object] = _NONE,
    dtypes: Mapping[str, object] = _NONE,
) -> Inferred:
    """Return the types of the variables and the outputs.

    Args:
        entries: the outputs of a symbol.
        shapes: name of a variable -> its shape.
        dtypes: name of a variable -> its dtype.

    Raises:
        UserError: a name is unknown, nothing determines the shape of a variable, or an operator
            does not take these types.
    """
    check_names(entries, shapes)
    known = infer_dtypes(entries, dtypes)
    tracer = _Tracer(GraphBuilder("net"), known, shapes, _NO_ARRAYS)
    outputs = tracer.trace(entries)
    variables = {
        node.name: VariableType(*tracer.types[node]) for node in variables_of(entries)
    }
    return Inferred(variables, [VariableType(v.dtype, v.shape) for v in outputs])


def to_graph(
    entries: Sequence[SymbolEntry],
    shapes: Mapping[str, object],
    dtypes: Mapping[str, object] = _NONE,
    constants: Mapping[str, Array] = MappingProxyType({}),
    name: str = "net",
) -> Graph:
    """Return the graph of a symbol. Its inputs are the variables, in order, but for constants.

    Args:
        entries: the outputs of the symbol.
        shapes: name of a variable -> its shape.
        dtypes: name of a variable -> its dtype.
        constants: name of a variable -> its array, which the graph shares.
        name: the name of the graph.

    Raises:
        UserError: as for `infer_types`, or an array has another type than its variable.
    """
    types = infer_types(entries, shapes, dtypes).variables
    for label, array in constants.items():
        _check_constant(label, types[label], array)
    builder = GraphBuilder(name)
    all_shapes = {label: each.shape for label, each in types.items()}
    known = infer_dtypes(entries, dtypes)
    tracer = _Tracer(builder, known, all_shapes, constants)
    tracer.declare_all(variables_of(entries))
    return builder.finish(tracer.trace(entries))


_NO_ARRAYS: Mapping[str, Array] = MappingProxyType({})


class _Tracer:
    """A walk over nodes that adds them to the builder of a graph."""

    def __init__(
        self,
        builder: GraphBuilder,
        dtypes: Mapping[SymbolEntry, DType],
        shapes: Mapping[str, object],
        constants: Mapping[str, Array],
    ) -> None:
        self.builder = builder
        self.dtypes = dtypes
        self.shapes = shapes
        self.constants = constants
        self.values: dict[SymbolEntry, Value] = {}
        self.types: dict[SymbolNode, VariableType] = {}
        self._node_names: set[str] = set()

    def declare_all(self, variables: Iterable[SymbolNode]) -> None:
        """Add all variables before any node, so that no node takes the name of one."""
        for variable in variables:
            self._declare(variable, checked_shape(variable, self.shapes[variable.name]))

    def trace(self, entries: Sequence[SymbolEntry]) -> list[Value]:
        variables_of(entries)  # two variables of one name are refused
        for node in ordered_nodes(entries):
            if SymbolEntry(node) in self.values:
                continue
            if node.operator is not None:
                self._apply(node)
                continue
            shape = self.shapes.get(node.name, node.notes.get(SHAPE_NOTE))
            if shape is not None:
                self._declare(node, checked_shape(node, shape))
        missing = [entry.node for entry in entries if entry not in self.values]
        if missing:
            raise _unknown_shape(missing[0], "no operator reads it")
        return [self.values[entry] for entry in entries]

    def _declare(self, variable: SymbolNode, shape: Shape) -> None:
        dtype = self.dtypes[SymbolEntry(variable)]
        self.types[variable] = VariableType(dtype, shape)
        array = self.constants.get(variable.name)
        if array is None:
            # A variable that is met late: a node may have its name.
            is_taken = variable.name in self._node_names
            name = f"{variable.name}.variable" if is_taken else variable.name
            value = self.builder.input(name, dtype, shape)
        else:
            value = self.builder.constant(variable.name, array, copy=False)
        self.values[SymbolEntry(variable)] = value

    def _apply(self, node: SymbolNode) -> None:
        operator = node.operator
        assert operator is not None
        if any(entry not in self.values for entry in node.inputs):
            self._infer_inputs(node)
        inputs: list[Value | None] = [self.values[entry] for entry in node.inputs]
        if not operator.is_variadic:
            inputs += [None] * (len(operator.inputs) - len(inputs))
        maker = NodeMaker(self.builder, node.name)
        self._node_names.add(node.name)
        try:
            made = operator.convert(maker, *inputs, **node.attributes)
        except RefcompError as error:
            error.where = f"{node.place}; {_listed(inputs)}"
            raise
        outputs = made if isinstance(made, tuple) else (made,)
        for place, value in enumerate(outputs):
            self.values[SymbolEntry(node, place)] = value

    def _infer_inputs(self, node: SymbolNode) -> None:
        """Give shapes to the variables that a node reads first."""
        operator = node.operator
        assert operator is not None
        names = operator.input_names(node.attributes)
        if operator.is_variadic:
            names = tuple(f"{names[0]}{place}" for place in range(len(node.inputs)))
        pairs = list(zip(names, node.inputs, strict=True))
        known = {
            name: self.values[entry].shape
            for name, entry in pairs
            if entry in self.values
        }
        try:
            found = operator.shapes(known, node.attributes)
        except (IndexError, KeyError):
            found = {}  # too few dimensions, or an unknown shape on which others depend
        for name, entry in pairs:
            if entry in self.values:
                continue
            if name not in found:
                raise _unknown_shape(
                    entry.node,
                    f"{node.place} does not determine the shape of its {name}",
                )
            self._declare(entry.node, tuple(found[name]))


def _listed(inputs: Iterable[Value | None]) -> str:
    return "inputs: " + ", ".join(str(v) for v in inputs if v is not None)


def _unknown_shape(variable: SymbolNode, why: str) -> UserError:
    name = variable.name
    return UserError(
        f"the shape of the variable {name!r} is unknown",
        why=why,
        remedy=f"give the shape of {name!r}",
    )


def check_names(entries: Iterable[SymbolEntry], given: object) -> None:
    """Raise UserError unless `given` is a mapping by names of variables."""
    if not isinstance(given, Mapping):
        raise UserError(
            f"{given!r} does not map names of variables",
            remedy='give a dict such as {"data": (1, 3, 32, 32)}',
        )
    names = [variable.name for variable in variables_of(entries)]
    for name in given:
        if name not in names:
            raise UserError(
                f"the symbol has no variable {name!r}",
                remedy=advise(name, names, f"variables: {', '.join(names) or 'none'}"),
            )


def checked_shape(variable: SymbolNode, shape: object) -> Shape:
    """Return the shape of a variable, of ints and names of symbols; UserError for another."""
    dims: list[int | str] = []
    try:
        for dim in _listed_dims(shape):
            is_name = isinstance(dim, str) and dim.isidentifier()
            dims.append(str(dim) if is_name else _checked_extent(dim))
        if len(dims) > _MAX_RANK:
            raise ValueError
    except (TypeError, ValueError):
        raise UserError(
            f"{shape!r} is not a shape for {variable.place}",
            remedy="give a tuple of extents, such as (1, 3, 32, 32)",
        ) from None
    return tuple(dims)


def _listed_dims(shape: object) -> Iterable[object]:
    if isinstance(shape, str):
        return _DIMS_KIND.read(shape)  # type: ignore[return-value]  # a tuple
    if isinstance(shape, int | np.integer):
        return (shape,)
    if not isinstance(shape, Iterable) or isinstance(shape, Mapping):
        raise TypeError
    return list(islice(shape, _MAX_RANK + 1))


def _checked_extent(dim: object) -> int:
    if not isinstance(dim, int | np.integer) or isinstance(dim, bool):
        raise TypeError
    if not 0 <= dim < 2**31:
        raise ValueError
    return int(dim)


def checked_dtype(variable: SymbolNode, dtype: object) -> DType:
    """Return the dtype of a variable; UserError for another."""
    try:
        return as_dtype(dtype)
    except RefcompError as error:
        error.where = error.where or variable.place
        raise


def _check_constant(name: str, declared: VariableType, array: Array) -> None:
    found = VariableType(as_dtype(array.dtype), array.shape)
    if found != declared:
        value = Value(name, *declared)
        raise UserError(
            f"the parameter {value} cannot be {found.dtype}{list(found.shape)}",
            remedy="give an array of the variable's dtype and shape",
        )
