"""Shapes of the operands of ONNX's element by element operators.

Since version 7, operands broadcast as in numpy. Before, the attribute `broadcast` allowed it for
the second operand, and `axis` said with which axes of the first one its axes are aligned.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from refcomp.foundation.artifacts import Dim
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.graph.graph import Value
from refcomp.graph.macros import NotKnownError


def require_alignment(values: Sequence[Value]) -> None:
    """Raise NotKnownError if only a run knows which axes of the values are repeated.

    Extents that differ may still be equal in a run if one of them is a symbol.
    """
    shapes = [value.shape[::-1] for value in values]
    for extents in zip_longest(*shapes, fillvalue=1):
        known: set[Dim] = {extent for extent in extents if extent != 1}
        if len(known) > 1 and not all(isinstance(one, int) for one in known):
            raise NotKnownError


def combined(node: OnnxNode, operator: str, values: Sequence[Value]) -> Value:
    """Return the result of an operator of refcomp on values that broadcast as in numpy."""
    require_alignment(values)
    return node.make(operator, values)


def legacy_operands(node: OnnxNode) -> tuple[Value, Value]:
    """Return the two operands of a version before 7, so that they broadcast as in numpy.

    Raises:
        UserError: the shapes do not fit each other by the rules of that version.
    """
    first = node.required(0)
    second = node.required(1)
    rank = len(first.shape)
    if not node.attributes.get("broadcast", 0):
        if len(second.shape) != rank:
            raise UserError(
                f"its inputs {first} and {second} differ in rank",
                why="before version 7, its attribute broadcast must allow that",
                remedy="set broadcast to 1",
            )
        return first, second
    if len(second.shape) > rank:
        raise UserError(
            f"its second input {second} has more axes than its first, {first}",
            why="before version 7, only the second input is repeated",
            remedy="exchange the inputs, or reshape one",
        )
    if "axis" not in node.attributes or not second.shape:
        return first, second
    axis = node.axis(int(node.attributes["axis"]), rank)
    following = rank - axis - len(second.shape)
    if following < 0:
        raise UserError(
            f"its second input {second} has too many axes for axis {axis} of {first}",
            remedy="correct the attribute axis",
        )
    if following == 0:
        return first, second
    axes = tuple(range(len(second.shape), len(second.shape) + following))
    return first, node.make("expand_dims", [second], axis=axes)
