"""Asserts of hybrid functions: decided while compiling, or checked by each call at its entry.

A condition on numbers that are known while compiling is decided at once. A condition on symbolic
sizes and scalar arguments becomes a requirement of the compiled function. A call that does not
fulfil it is refused before anything runs. All other conditions are refused: compiled code has no
way to stop in the middle.
"""

from __future__ import annotations

import ast

from refcomp.foundation.dtype import BOOL
from refcomp.hybrid.expressions import Evaluator
from refcomp.hybrid.source import PythonSource
from refcomp.ir.expr import And, Expr, IfThenElseExpr, IntImm, Or
from refcomp.ir.func import Requirement, RequirementOrigin
from refcomp.ir.node import Node
from refcomp.ir.promotion import cast
from refcomp.ir.rewrite import Rewrite, map_children, rewriter
from refcomp.ir.type_rules import type_fault

_BEFORE_THE_CALL = (
    "check it with numpy before the call, or let it depend on shapes and integer "
    "arguments only, outside of all loops and branches"
)


def requirement_of(
    source: PythonSource, evaluator: Evaluator, node: ast.Assert, *, is_outermost: bool
) -> Requirement | None:
    """Return what an assert requires of a call; None if it holds while compiling.

    Args:
        source: the function that holds the assert.
        evaluator: the names in scope.
        node: the assert.
        is_outermost: True if no loop and no branch surrounds the assert.

    Raises:
        UserError: the assert fails while compiling, or no call can check its condition.
    """
    text = ast.unparse(node.test)
    failure = f"{text} does not hold"
    if node.msg is not None:
        message = evaluator.value(node.msg)
        if isinstance(message, Expr):
            source.refuse(
                node.msg,
                "the message of an assert is not known while compiling",
                "write a text",
            )
        failure = str(message)
    condition = evaluator.value(node.test)
    if not isinstance(condition, Expr):
        if not condition:
            source.refuse(
                node, f"assert fails: {failure}", "pass what the function asserts"
            )
        return None
    if not is_outermost:
        source.refuse(
            node,
            f"no call can check {text} at its entry: the assert is in a loop or branch",
            _BEFORE_THE_CALL,
        )
    by = f"assert of hybrid function {source.name}"
    origin = RequirementOrigin(text, by, source.place(node), failure=failure)
    # Python's `and` and `or` are lazy. A requirement reads no memory: it needs no laziness.
    as_logic = rewriter(_visit)
    requirement = Requirement(as_logic(cast(BOOL, condition)), origin)
    fault = type_fault(requirement)
    if fault is not None:
        source.refuse(
            node, f"no call can check {text} at its entry: {fault}", _BEFORE_THE_CALL
        )
    return requirement


def _visit(recurse: Rewrite, node: Node) -> Node:
    node = map_children(node, recurse)
    match node:
        case IfThenElseExpr(a, IntImm(1), b) if node.dtype == BOOL:
            return Or(a, b)
        case IfThenElseExpr(a, b, IntImm(0)) if node.dtype == BOOL:
            return And(a, b)
    return node
