"""Facts about integers at a place of a function, derived from what stands around the place."""

from __future__ import annotations

from refcomp.arith import Facts
from refcomp.ir.expr import IfThenElseExpr, Let, Not
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import variables_in
from refcomp.ir.stmt import For, IfThenElse, LetStmt


def facts_of(func: PrimFunc) -> Facts:
    """Return what the header implies: variables in shapes are not negative."""
    facts = Facts()

    for buffer in func.buffers:
        for dim in buffer.shape:
            for var in variables_in(dim):
                facts = facts.nonnegative(var)
    return facts


def facts_in(node: Node, child: Node, facts: Facts) -> Facts:
    """Return what is known in `child`, a child of `node`, where `facts` hold around `node`.

    The facts are about the variable of a loop or a let, and about the condition of a choice.
    """
    match node:
        case For() if child is node.body:
            return facts.bind(node.var, node.minimum, node.extent)
        case Let() | LetStmt() if child is node.body:
            return facts.let(node.var, node.value)
        case (
            IfThenElse(condition=condition, then_case=first)
            | IfThenElseExpr(condition=condition, true_value=first)
        ) if child is not condition:
            holds = condition if child is first else Not(condition)
            return facts.assume(holds)
    return facts
