"""Plans: which kernels may run in lockstep, and which loops, if iterations seem independent.

A plan depends on the text of the program alone, so each loop is looked at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from refcomp.ir import stmt as st
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import C_FUNCTION, Call, Expr, PureExtern, Var
from refcomp.ir.kernels import is_bound, kernel_nest
from refcomp.ir.node import Node
from refcomp.ir.rewrite import variables_in, walk
from refcomp.oracle.interpreter.intrinsics import KNOWN
from refcomp.oracle.lockstep.expressions import EXPRESSIONS
from refcomp.oracle.lockstep.folds import Fold, fold_of, indices_of
from refcomp.oracle.lockstep.statements import STATEMENTS

_Writer = st.BufferStore | st.Store | st.AtomicUpdate


@dataclass(slots=True, eq=False)
class LockstepPlan:
    """A kernel, or a nest of loops, that may run in lockstep."""

    # Loops whose iterations run in lockstep, outermost first. Empty if none may.
    loops: tuple[st.For, ...]
    body: st.Stmt  # of the innermost of them
    used: tuple[Buffer, ...] = ()  # buffers from outside the loops that `body` accesses
    written: frozenset[Buffer] = frozenset()  # those of `used` that `body` writes
    folds: Mapping[st.For, Fold] = field(default_factory=dict)  # of loops in `body`


def plan_of(loop: st.For) -> LockstepPlan:
    """Return the plan of the kernel, or of the loops of the host, that begin with `loop`."""
    if is_bound(loop):
        nest = kernel_nest(loop)
        loops = nest.loops
        body = nest.body
    else:
        loops, body = _independent_loops(loop)
    nodes = list(walk(body))
    if not loops or not all(map(_is_known, nodes)):
        return LockstepPlan((), body)
    own = _allocated_in(nodes)
    used: dict[Buffer, None] = {}  # a set that keeps the order
    written = set()
    for node in nodes:
        if isinstance(node, _Writer | BufferLoad | Load) and node.buffer not in own:
            used[node.buffer] = None
            if isinstance(node, _Writer):
                written.add(node.buffer)
    inner = [node for node in nodes if isinstance(node, st.For)]
    folds = {loop: fold for loop in inner if (fold := fold_of(loop)) is not None}
    return LockstepPlan(loops, body, tuple(used), frozenset(written), folds)


def _is_known(node: Node) -> bool:
    """Return True if lockstep has a meaning for `node`."""
    if isinstance(node, Call) and node.name not in KNOWN:
        return False
    # Lockstep may give up and begin again, and a Python function would notice that.
    if isinstance(node, PureExtern) and node.callee != C_FUNCTION:
        return False
    if isinstance(node, st.Stmt):
        return type(node) in STATEMENTS and not is_bound(node)
    return type(node) in EXPRESSIONS or not isinstance(node, Expr)


def _allocated_in(nodes: list[Node]) -> set[Buffer]:
    return {node.buffer for node in nodes if isinstance(node, st.Allocate)}


def _independent_loops(loop: st.For) -> tuple[tuple[st.For, ...], st.Stmt]:
    """Return loops whose iterations may be independent, and the body of the innermost.

    These are the outermost loops, directly nested, as long as the place of every write depends on
    each of them.
    """
    loops: list[st.For] = []
    body: st.Stmt = loop
    places = _places_of_writes(loop)
    while isinstance(body, st.For) and not is_bound(body):
        outer = {outer.var for outer in loops}
        bounds = {*variables_in(body.minimum), *variables_in(body.extent)}
        if bounds & outer or not all(body.var in place for place in places):
            break
        loops.append(body)
        body = body.body
    return tuple(loops), body


def _places_of_writes(root: st.Stmt) -> list[set[Var]]:
    """Return the variables that the place of each write to memory from outside depends on."""
    nodes = list(walk(root))
    own = _allocated_in(nodes)
    binders = {
        node.var: node for node in nodes if isinstance(node, st.For | st.LetStmt)
    }
    places = []
    for node in nodes:
        if not isinstance(node, _Writer) or node.buffer in own:
            continue
        place: set[Var] = set()
        waiting = list(indices_of(node))
        while waiting:
            for var in set(variables_in(waiting.pop())) - place:
                place.add(var)
                match binders.get(var):
                    case st.LetStmt(value=value) | st.For(minimum=value):
                        waiting.append(value)
        places.append(place)
    return places
