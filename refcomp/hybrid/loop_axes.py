"""Find the axes of a hybrid function: its loops, and whether their iterations are independent.

Each loop of the statement is an axis, from the first line to the last. An axis is data-parallel if
its iterations provably access different elements of all that they write. It is ordered otherwise,
and `conflicts` says why. Loops over `bind` are not among the axes.
"""

from __future__ import annotations

from collections.abc import Mapping

from refcomp.arith import simplify
from refcomp.foundation.names import UniqueNames
from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.kernels import is_bound
from refcomp.ir.node import Bindable, Node, bound_by
from refcomp.ir.rewrite import (
    Rewrite,
    buffers_in,
    map_children,
    rewriter,
    statements_in,
    substitute,
    variables_in,
    walk,
    with_changes,
)
from refcomp.ir.stmt import (
    CALLS,
    Allocate,
    AtomicUpdate,
    BufferStore,
    For,
    LetStmt,
    Stmt,
)
from refcomp.ir.structure import structurally_equal
from refcomp.te.hybrid_operation import HybridOp
from refcomp.te.tensor import DATA_PARALLEL, ORDERED, IterVar


def find_axes(op: HybridOp) -> None:
    """Set the axes and the conflicts by the statement. Loops of one name get numbers."""
    op.body = _with_unique_loops(op.body)
    lets = _plain_lets(op.body)
    bound = {item for node in walk(op.body) for item in bound_by(node)}
    axes: list[IterVar] = []
    conflicts: list[str] = []
    for loop in statements_in(op.body):
        if isinstance(loop, For) and not is_bound(loop):
            conflict = _conflict(loop, lets, bound)
            kind = ORDERED if conflict else DATA_PARALLEL
            axes.append(IterVar(loop.var, loop.minimum, loop.extent, kind))
            conflicts.append(conflict)
    op.axis = tuple(axes)
    op.conflicts = tuple(conflicts)


def _with_unique_loops(body: Stmt) -> Stmt:
    """Return `body` with another variable for each loop whose name is taken."""
    names = UniqueNames(separator=".")
    fresh: dict[Var, Var] = {}
    for stmt in statements_in(body):
        if isinstance(stmt, For):
            name = names.take(stmt.var.name)
            if name != stmt.var.name:
                fresh[stmt.var] = Var(name, stmt.var.dtype)

    def visit(recurse: Rewrite, node: Node) -> Node:
        if isinstance(node, Var):
            return fresh.get(node, node)
        node = map_children(node, recurse)
        if isinstance(node, For):
            return with_changes(node, var=fresh.get(node.var, node.var))
        return node

    return rewriter(visit)(body) if fresh else body


def _plain_lets(body: Stmt) -> dict[Var, Expr]:
    """Return the values of names that read no memory, as expressions of loops."""
    values: dict[Var, Expr] = {}
    for stmt in statements_in(body):  # an outer name before the names that use it
        if isinstance(stmt, LetStmt) and not buffers_in(stmt.value):
            values[stmt.var] = substitute(stmt.value, values)
    return values


def _conflict(loop: For, lets: Mapping[Var, Expr], bound: set[Bindable]) -> str:
    """Describe why iterations of `loop` may depend on each other; '' if they cannot.

    They cannot if each buffer that they write has a dimension with indices c * i + r only. Here i
    is the loop's variable, c a constant other than 0, and r a value that no loop changes. All
    accesses of the buffer share c and r.
    """
    own: set[Buffer] = set()  # memory of one iteration
    written: dict[Buffer, None] = {}
    accesses: dict[Buffer, list[tuple[Expr, ...]]] = {}
    for node in walk(loop.body):
        match node:
            case Allocate(buffer):
                own.add(buffer)
            case BufferStore(buffer, indices) | AtomicUpdate(_, buffer, indices):
                written[buffer] = None
                accesses.setdefault(buffer, []).append(indices)
            case BufferLoad(buffer, indices):
                accesses.setdefault(buffer, []).append(indices)
            case AddressOf():
                return "they pass memory to a function"
        if isinstance(node, CALLS):
            return "they call a function"
    for buffer in written:
        dims = range(len(buffer.shape))
        if buffer not in own and not any(
            _keeps_apart(
                [indices[k] for indices in accesses[buffer]], loop, lets, bound
            )
            for k in dims
        ):
            return f"no index of {buffer.name} keeps apart what they access"
    return ""


def _keeps_apart(
    indices: list[Expr], loop: For, lets: Mapping[Var, Expr], bound: set[Bindable]
) -> bool:
    """Return True if different iterations certainly have different indices."""
    var = loop.var
    first: tuple[int, Expr] | None = None
    for given in indices:
        index = substitute(given, lets)
        if buffers_in(index):
            return False
        step = as_int(simplify(substitute(index, {var: var + 1}) - index))
        rest = simplify(substitute(index, {var: IntImm(0, var.dtype)}))
        if not step or not bound.isdisjoint(variables_in(rest)):
            return False
        if first is None:
            first = (step, rest)
        elif step != first[0] or not structurally_equal(rest, first[1]):
            return False
    return True
