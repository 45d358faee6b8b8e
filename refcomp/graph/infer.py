"""Type inference: the dtypes and shapes of a node's outputs, and its te compute.

`FUSED` is the only operator outside of the registry. Its meaning is its subgraph.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import RefcompError
from refcomp.graph.dims import Shape, Symbols, dim_to_expr, expr_to_dim
from refcomp.graph.graph import Attribute, Graph, GraphNode, Value
from refcomp.graph.operators import find_operator
from refcomp.te.operation import placeholder
from refcomp.te.tensor import Tensor

# Several nodes that are one kernel: inputs and outputs are those of its one subgraph.
FUSED = "fused"

Type = tuple[DType, Shape]


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
    symbols = Symbols()
    tensors = [None if v is None else value_to_placeholder(v, symbols) for v in inputs]
    try:
        outputs = _apply(operator, tensors, attributes)
        return [(t.dtype, tuple(map(expr_to_dim, t.shape))) for t in outputs]
    except RefcompError as error:
        error.where = error.where or where or None
        raise


def _apply(
    operator: str, tensors: Sequence[Tensor | None], attributes: Mapping[str, Attribute]
) -> list[Tensor]:
    found = find_operator(operator)
    found.check_inputs(tensors)
    found.check_attributes(attributes)
    made = found.compute(*tensors, **attributes)
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
        outputs = _apply(node.operator, inputs, node.attributes)
    return dict(zip(node.outputs, outputs, strict=True))
