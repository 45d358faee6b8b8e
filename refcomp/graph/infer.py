"""Type inference: the dtypes and shapes of a node's outputs, and its te compute.

`FUSED` is the only operator outside of the registry. Its meaning is its subgraph.

The te compute is the only rule for types, and building it takes about a millisecond: each index is
proved to be in bounds. So the types are memoised by all that decides them: the record of the
operator, the types of the inputs, and the attributes. An operator that is registered anew is
another record. Errors are not memoised, as they name the node.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import RefcompError
from refcomp.graph.dims import Shape, Symbols, dim_to_expr, expr_to_dim
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.structure import application_key
from refcomp.te.operation import placeholder
from refcomp.te.tensor import Tensor
from refcomp.topi.operator import Attribute, Operator, find_operator

# Several nodes that are one kernel: inputs and outputs are those of its one subgraph.
FUSED = "fused"

Type = tuple[DType, Shape]


class _Inferred(NamedTuple):
    """The types of an application of an operator."""

    operator: Operator  # kept alive, so that no other record has its `id`
    types: list[Type]


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
) -> list[Type]:
    """Return the dtype and shape of each output of a node.

    Raises:
        UserError: the operator does not take these inputs or attributes. The error names `where`.
    """
    if operator == FUSED:
        return [(value.dtype, value.shape) for value in subgraphs[0].outputs]
    try:
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
) -> list[Type]:
    symbols = Symbols()
    tensors = [None if v is None else value_to_placeholder(v, symbols) for v in inputs]
    made = _compute(operator, tensors, attributes)
    return [(t.dtype, tuple(map(expr_to_dim, t.shape))) for t in made]


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
