"""Macros: nodes that become other nodes when a run knows what they depend on.

A frontend makes such a node if an operator of another system has no meaning yet. Then a shape, an
axis or a count is a value that only a run determines. The name of its operator is `FAMILY.NAME`,
and the family expands it::

    y: f32[*] = onnx.Reshape(x, shape) {opset=17}

In a run, all extents are numbers, and the elements of small tensors can be asked for. Then the
family adds the nodes that compute the outputs (`refcomp.graph.stages.segments`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from refcomp.foundation.errors import RefcompError, UserError
from refcomp.graph.folding import FoldingBuilder
from refcomp.graph.graph import Array, GraphNode, Value, spell
from refcomp.topi.operator import Attribute


class NotKnownError(Exception):
    """Raised for a value whose elements or extents are needed and not known yet."""


@dataclass(frozen=True, slots=True)
class MacroCall:
    """A macro to expand.

    Attributes:
        operator: the name behind the family, such as `Reshape`.
        builder: what gets the nodes.
        inputs: values of the builder, whose extents are numbers; None for an absent input.
        outputs: the names of the outputs.
        attributes: those of the node.
        known: returns the elements of a value of the builder, or raises NotKnownError.
    """

    operator: str
    builder: FoldingBuilder
    inputs: tuple[Value | None, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    known: Callable[[Value], Array]


Expand = Callable[[MacroCall], Sequence[Value]]

_FAMILIES: dict[str, Expand] = {}


def register_macros(family: str, expand: Expand) -> None:
    """Let `expand` add the nodes of all macros `family.NAME`, and return their outputs."""
    _FAMILIES[family] = expand


def expand_node(
    node: GraphNode,
    builder: FoldingBuilder,
    inputs: Sequence[Value | None],
    known: Callable[[Value], Array],
) -> list[Value]:
    """Add the nodes of a macro, and return the values of its outputs.

    Args:
        node: the macro.
        builder: what gets the nodes.
        inputs: the values of the builder that stand for the node's inputs.
        known: returns the elements of a value of the builder, or raises NotKnownError.

    Raises:
        UserError: no such family is registered, or the macro does not take these inputs. The error
            names the node.
        NotKnownError: it needs elements that are not known yet.
    """
    family, name = node.operator.split(".", 1)
    expand = _FAMILIES.get(family)
    if expand is None:
        raise UserError(
            f"the macros {family!r} are not known",
            where=f"node {spell(node.name)}",
            remedy="import refcomp.frontend first",
        )
    call = MacroCall(
        name,
        builder,
        tuple(inputs),
        tuple(value.name for value in node.outputs),
        node.attributes,
        known,
    )
    try:
        made = list(expand(call))
    except RefcompError as error:
        error.where = error.where or f"node {spell(node.name)}"
        raise
    return made
