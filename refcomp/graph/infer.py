"""Type inference: the types of a node's outputs, and its te compute.

`FUSED` and the operators that an executor runs itself (`refcomp.graph.control`) are outside of the
registry. The meaning of a fused node is its subgraph.

A node that reads an unshaped tensor, or an attribute that only a run determines, makes unshaped
tensors. Their dtypes have to be declared.

The te compute is the only rule for types, and building it takes about a millisecond: each index is
proved to be in bounds. So the types are memoised by all that decides them: the record of the
operator, the types of the inputs, and the attributes. An operator that is registered anew is
another record. Errors are not memoised, as they name the node.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.near_misses import advise
from refcomp.graph.control.operator import NodeParts
from refcomp.graph.control.operators import find_control
from refcomp.graph.control.types import NodeType
from refcomp.graph.dims import Symbols, dim_to_expr, expr_to_dim
from refcomp.graph.graph import Graph, GraphNode, Value, ValueKind, is_macro
from refcomp.graph.structure import application_key
from refcomp.te.operation import placeholder
from refcomp.te.tensor import Tensor
from refcomp.topi.operator import Attribute, Operator, find_operator

# Several nodes that are one kernel: inputs and outputs are those of its one subgraph.
FUSED = "fused"


class _Inferred(NamedTuple):
    """The types of an application of an operator."""

    operator: Operator  # kept alive, so that no other record has its `id`
    types: list[NodeType]


_MAX_APPLICATIONS = 4096
# The longest key that is kept, in extents, attributes and characters. A model of unknown origin
# may have shapes and attributes of any size, and the memo outlives the model.
_MAX_KEY = 1000
_APPLICATIONS: dict[Hashable, _Inferred] = {}


def infer_types(
    operator: str,
    inputs: Sequence[Value | None],
    attributes: Mapping[str, Attribute],
    subgraphs: Sequence[Graph] = (),
    where: str = "",
    *,
    late: Mapping[str, Value] = MappingProxyType({}),
    declared: Sequence[NodeType] = (),
) -> list[NodeType]:
    """Return the type of each output of a node.

    Args:
        operator: the name of the operator.
        inputs: the values that the node reads; None for an input that is left out.
        attributes: by name.
        subgraphs: the graphs that the operator runs itself.
        where: the place of the node, for messages.
        late: name -> the value that holds an attribute which only a run determines.
        declared: the types of the outputs, which a node needs if only a run determines them.

    Raises:
        UserError: the operator does not take these inputs or attributes. The error names `where`.
    """
    if operator == FUSED:
        if len(subgraphs) != 1:
            raise UserError(
                f"{FUSED} has {len(subgraphs)} subgraphs",
                where=where or None,
                remedy="give it the graph that it computes",
            )
        return [NodeType.of(value) for value in subgraphs[0].outputs]
    try:
        control = find_control(operator)
        if control is not None:
            return control.types(NodeParts(inputs, attributes, subgraphs))
        if is_macro(operator):
            return _checked_declaration(operator, declared)
        if _is_deferred(operator, inputs, late):
            _check_late(operator, inputs, attributes, late)
            return _checked_declaration(operator, declared)
        found = _applicable(operator, inputs, attributes)
        key = _kept_key(found, inputs, attributes)
        kept = None if key is None else _APPLICATIONS.get(key)
        if kept is not None:
            return list(kept.types)
        types = _types_of_compute(found, inputs, attributes)
    except RefcompError as error:
        error.where = error.where or where or None
        raise
    if key is not None:
        # Threads may meet here. Each access to a dict is atomic, and equal keys have equal types.
        if len(_APPLICATIONS) >= _MAX_APPLICATIONS:
            _APPLICATIONS.clear()
        _APPLICATIONS[key] = _Inferred(found, types)
    return list(types)


def _is_deferred(
    operator: str, inputs: Sequence[Value | None], late: Mapping[str, Value]
) -> bool:
    """Return True if only a run determines the types of a node's outputs."""
    given = [value for value in inputs if value is not None]
    wrong = [v for v in given if v.kind not in (ValueKind.TENSOR, ValueKind.UNSHAPED)]
    if wrong:
        raise UserError(
            f"{operator} takes tensors, but {wrong[0]} is a {wrong[0].kind}",
            remedy="take an element of it first: sequence_at, optional_get_element",
        )
    return bool(late) or any(value.kind is ValueKind.UNSHAPED for value in given)


def _check_late(
    name: str,
    inputs: Sequence[Value | None],
    attributes: Mapping[str, Attribute],
    late: Mapping[str, Value],
) -> None:
    """Raise UserError if the operator does not take these inputs or attributes."""
    operator = find_operator(name)
    operator.check_inputs(inputs)
    known = {spec.name for spec in operator.attributes}
    for attribute, value in late.items():
        if attribute not in known:
            raise UserError(
                f"{name} has no attribute {attribute!r}",
                remedy=advise(attribute, known, f"attributes: {', '.join(known)}"),
            )
        if attribute in attributes:
            raise UserError(
                f"the attribute {attribute} of {name} is given twice",
                remedy="give it as a constant or as a value, not both",
            )
        if value.dtype.is_bool or not value.is_tensor or len(value.shape) > 1:
            raise UserError(
                f"the attribute {attribute} of {name} cannot be read from {value}",
                remedy="give a number, or a vector of numbers",
            )
    lacking = {spec.name for spec in operator.attributes if spec.required}
    operator.check_attributes(
        {k: v for k, v in attributes.items() if k not in late},
        given_later=lacking & set(late),
    )


def _checked_declaration(operator: str, declared: Sequence[NodeType]) -> list[NodeType]:
    """Return the declared types of outputs that only a run determines."""
    if not declared:
        raise UserError(
            f"only a run determines the results of {operator}",
            why="it reads a tensor without a shape, or an attribute that is a value",
            remedy="declare their dtypes: node(..., dtypes=['float32'])",
        )
    return [NodeType(one.dtype, (), ValueKind.UNSHAPED) for one in declared]


def _applicable(
    name: str, inputs: Sequence[object], attributes: Mapping[str, Attribute]
) -> Operator:
    """Return the operator `name`; UserError if it does not take such inputs or attributes."""
    operator = find_operator(name)
    operator.check_inputs(inputs)
    operator.check_attributes(attributes)
    return operator


def _kept_key(
    operator: Operator,
    inputs: Sequence[Value | None],
    attributes: Mapping[str, Attribute],
) -> Hashable | None:
    """Return the key of an application; None if it is too long, or cannot be compared."""
    key = application_key(operator, inputs, attributes)
    if key is None:
        return None
    size = len(key) + sum(len(part) for part in key if isinstance(part, str))
    return key if size <= _MAX_KEY else None


def _types_of_compute(
    operator: Operator,
    inputs: Sequence[Value | None],
    attributes: Mapping[str, Attribute],
) -> list[NodeType]:
    symbols = Symbols()
    tensors = [None if v is None else value_to_placeholder(v, symbols) for v in inputs]
    made = _compute(operator, tensors, attributes)
    return [NodeType(t.dtype, tuple(map(expr_to_dim, t.shape))) for t in made]


def _compute(
    operator: Operator,
    tensors: Sequence[Tensor | None],
    attributes: Mapping[str, Attribute],
) -> list[Tensor]:
    made = operator.compute(*tensors, **attributes)
    return made if isinstance(made, list) else [made]


def value_to_placeholder(value: Value, symbols: Symbols) -> Tensor:
    """Return a placeholder of the value's dtype and shape.

    Its name is the value's name, in which `_` replaces all but letters, digits and `_`.
    """
    shape = tuple(dim_to_expr(dim, symbols) for dim in value.shape)
    # Names of models may be hostile, and long.
    name = re.sub(r"\W", "_", value.name, flags=re.ASCII)[:40]
    return placeholder(shape, value.dtype, name)


def node_to_te(node: GraphNode, tensors: Mapping[Value, Tensor]) -> dict[Value, Tensor]:
    """Return the tensors of the node's outputs, computed from the tensors of its inputs."""
    if node.operator == FUSED:
        (graph,) = node.subgraphs
        given = [tensors[value] for value in node.inputs if value is not None]
        inner = dict(zip(graph.inputs, given, strict=True))
        for member in graph.nodes:
            inner |= node_to_te(member, inner)
        outputs = [inner[value] for value in graph.outputs]
    else:
        inputs = [None if value is None else tensors[value] for value in node.inputs]
        operator = _applicable(node.operator, inputs, node.attributes)
        outputs = _compute(operator, inputs, node.attributes)
    return dict(zip(node.outputs, outputs, strict=True))
