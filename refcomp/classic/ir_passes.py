"""Passes of `tvm.ir_pass` that a program calls itself: visits, rewrites and simplification.

They take nodes of refcomp's loop IR, whose classes differ in part from the classic ones. The other
passes are commands: `refcomp pass NAME`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from refcomp import arith
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.ir import expr as expressions
from refcomp.ir import stmt as statements
from refcomp.ir.expr import Expr, FloatImm, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, children, map_children, rewriter, variables_in
from refcomp.ir.rewrite import substitute as substitute_variables
from refcomp.ir.stmt import Stmt
from refcomp.ir.structure import structurally_equal
from refcomp.passes.simplify_expressions import simplify_expressions, simplify_statement
from refcomp.te.conversion import convert

_N = TypeVar("_N", bound=Node)
_NODES = {
    name: value
    for module in (expressions, statements)
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, Expr | Stmt)
}


def Simplify(node: object) -> Any:
    """Return a simpler expression, statement or function of the same meaning.

    Args:
        node: an expression, a number, a statement or a function of the loop IR.

    Raises:
        UserError: `node` is none of these.

    Example::

        >>> x = rc.var("x")
        >>> rc.classic.ir_pass.Simplify(x * 0 + 1 + 2)
        3
    """
    made = convert(node)
    if isinstance(made, PrimFunc):
        return simplify_expressions(made)
    if isinstance(made, Stmt):
        return simplify_statement(made, arith.Facts())
    if isinstance(made, Expr):
        return arith.simplify(made)
    raise _not_a_node(node)


def CanonicalSimplify(node: object) -> Any:
    """Return what `Simplify` returns. refcomp has one simplifier.

    Args:
        node: as for `Simplify`.

    Example::

        >>> x = rc.var("x")
        >>> rc.classic.ir_pass.CanonicalSimplify(x + x - x * 2)
        0
    """
    return Simplify(node)


def Equal(lhs: object, rhs: object) -> bool:
    """Return True if two nodes are the same up to the names of what they bind.

    Args:
        lhs: an expression, a number, a statement or a function. A constant has the
            dtype of the other side.
        rhs: likewise.

    Raises:
        UserError: a side is none of these.

    Example::

        >>> x = rc.var("x")
        >>> rc.classic.ir_pass.Equal(x + 1, x + 1), rc.classic.ir_pass.Equal(x + 1, x)
        (True, False)
    """
    left, right = _as_node(lhs), _as_node(rhs)
    left = _like(left, right)
    return structurally_equal(left, _like(right, left))


def _like(node: Node, other: Node) -> Node:
    """Return a constant with the dtype of the other node; any other node as it is."""
    if isinstance(node, IntImm | FloatImm) and isinstance(other, Expr):
        return node.astype(other.dtype)
    return node


def Substitute(node: Node, vmap: Mapping[Var, object]) -> Node:
    """Return a node with its free variables replaced.

    Args:
        node: an expression or a statement.
        vmap: variable -> the expression or number that replaces it.

    Raises:
        UserError: `node` is not a node, `vmap` is not a dictionary, a key is not a variable, or a
            value is not an expression.

    Example::

        >>> x, y = rc.var("x"), rc.var("y")
        >>> rc.classic.ir_pass.Substitute(x + 1, {x: y * 2})
        y * 2 + 1
    """
    if not isinstance(vmap, Mapping):
        raise UserError(
            f"{vmap!r} does not say which variables to replace",
            remedy="pass a dictionary, such as {x: y + 1}",
        )
    for var in vmap:
        _check_variable(var)
    replacements = {var: _same_dtype(var, convert(to)) for var, to in vmap.items()}
    return substitute_variables(_as_node(node), replacements)


def _check_variable(var: object) -> None:
    if not isinstance(var, Var):
        raise UserError(
            f"{var!r} is not a variable", remedy='pass one such as rc.var("n")'
        )


def _same_dtype(var: Var, value: object) -> Expr:
    if not isinstance(value, Expr):
        raise UserError(
            f"{value!r} cannot replace the variable {var.name}",
            remedy="pass an expression or a number",
        )
    return value if value.dtype == var.dtype else value.astype(var.dtype)


def ExprUseVar(expr: object, var: Var) -> bool:
    """Return True if an expression uses a variable.

    Args:
        expr: an expression or a number.
        var: the variable.

    Raises:
        UserError: `expr` is not an expression, or `var` is not a variable.

    Example::

        >>> x, y = rc.var("x"), rc.var("y")
        >>> rc.classic.ir_pass.ExprUseVar(x + 1, x), rc.classic.ir_pass.ExprUseVar(x + 1, y)
        (True, False)
    """
    _check_variable(var)
    return var in set(variables_in(_as_node(expr)))


def PostOrderVisit(stmt: Node, fvisit: Callable[[Any], object]) -> None:
    """Call a function on each expression and statement, children first, each object once.

    Args:
        stmt: a statement or an expression; or a function, such as `tvm.lower` returns, whose body
            is visited.
        fvisit: the function. Its result is ignored.

    Raises:
        UserError: `stmt` is not a node, or `fvisit` is not a function.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.compute((4,), lambda i: A[i] * 2.0, name="B")
        >>> func = rc.lower(rc.create_schedule(B), [A, B])
        >>> loops = []
        >>> def visit(node):
        ...     if isinstance(node, rc.ir.stmt.For):
        ...         loops.append(node.var)
        >>> rc.classic.ir_pass.PostOrderVisit(func, visit)
        >>> loops
        [i]
    """
    root = _as_node(stmt)
    _check_function(fvisit)
    seen: set[int] = set()
    todo = [(root.body if isinstance(root, PrimFunc) else root, False)]
    while todo:
        node, is_visited = todo.pop()
        if is_visited:
            fvisit(node)
        elif id(node) not in seen:
            seen.add(id(node))
            todo.append((node, True))
            todo += [(child, False) for child in reversed(children(node))]


def IRTransform(
    stmt: _N,
    preorder: Callable[[Any], Any] | None,
    postorder: Callable[[Any], Any] | None,
    only_enable: Sequence[str] | None = None,
) -> _N:
    """Return a node with some of its expressions and statements replaced.

    Args:
        stmt: a statement, an expression or a function, such as `tvm.lower` returns.
        preorder: a function of a node, called before its children are replaced. If it returns a
            node, that one is kept as it is. If it returns None, the children are visited.
        postorder: a function of a node whose children are replaced already. None keeps the node.
        only_enable: the names of the classes of nodes for which both functions are called, such as
            `["For", "BufferStore"]`; None for all.

    Raises:
        UserError: `stmt` is not a node, no class has such a name, or a function returns something
            else than a node of the same sort: an expression or a statement.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.compute((4,), lambda i: A[i] * 2.0, name="B")
        >>> func = rc.lower(rc.create_schedule(B), [A, B])
        >>> def triple(factor):
        ...     return rc.const(3.0) if factor.value == 2.0 else None
        >>> print(rc.classic.ir_pass.IRTransform(func, None, triple, ["FloatImm"]))
        func main(A: f32[4], B: f32[4] out) {
          for i in range(4) {
            B[i] = A[i] * 3.0f32
          }
        }
    """
    for function in (preorder, postorder):
        if function is not None:
            _check_function(function)
    for name in only_enable or ():
        if name not in _NODES:
            known = sorted(_NODES)
            raise UserError(
                f"no node has the class {name!r}",
                remedy=advise(name, known, f"use one of {', '.join(known)}"),
            )
    chosen = tuple(_NODES[name] for name in only_enable or _NODES)

    def visit(recurse: Rewrite, node: Node) -> Node:
        is_chosen = isinstance(node, chosen)
        if preorder is not None and is_chosen:
            before = _checked_result(preorder(node), node)
            if before is not None:
                return before
        made = map_children(node, recurse)
        if postorder is None or not is_chosen:
            return made
        after = _checked_result(postorder(made), made)
        return made if after is None else after

    return rewriter(visit)(_as_node(stmt))  # type: ignore[return-value]


def _check_function(value: object) -> None:
    if not callable(value):
        raise UserError(
            f"{value!r} is not a function of a node",
            remedy="pass a function, such as lambda node: None",
        )


def _checked_result(made: object, node: Node) -> Node | None:
    """Return the node that takes the place of another one, or None. UserError if it cannot."""
    sort = Expr if isinstance(node, Expr) else Stmt
    if made is None or isinstance(made, sort):
        return made
    raise UserError(
        f"the function of IRTransform returns {made!r} for a {type(node).__name__}",
        where=repr(node),
        remedy="return an expression for an expression, a statement for a statement, or None "
        "to keep the node",
    )


def _as_node(value: object) -> Node:
    made = convert(value)
    if not isinstance(made, Expr | Stmt | PrimFunc):
        raise _not_a_node(value)
    return made


def _not_a_node(value: object) -> UserError:
    return UserError(
        f"{value!r} is neither an expression nor a statement nor a function",
        remedy="pass what tvm.lower returns, its body, or an expression",
    )
