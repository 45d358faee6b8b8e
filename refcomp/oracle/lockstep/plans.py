"""What of a program may run in step: kernels, and loops whose iterations seem to be apart.

Said of the text alone, so it is found out once for each loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.ir import stmt as st
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Call, Expr, Var
from refcomp.ir.kernels import is_bound, kernel_nest
from refcomp.ir.node import Node
from refcomp.ir.rewrite import variables_in, walk
from refcomp.oracle.interpreter.intrinsics import KNOWN
from refcomp.oracle.lockstep.expressions import EXPRESSIONS
from refcomp.oracle.lockstep.statements import STATEMENTS

_Writer = st.BufferStore | st.Store | st.AtomicUpdate


@dataclass(slots=True, eq=False)
class LockstepPlan:
    """How a kernel, or a nest of loops, runs in step."""

    # The loops whose iterations run in step, outermost first; none where they must not.
    loops: tuple[st.For, ...]
    body: st.Stmt  # what each iteration does
    used: tuple[Buffer, ...] = ()  # the buffers from outside the loops that `body` uses
    written: frozenset[Buffer] = frozenset()  # those of them that `body` writes


def plan_of(loop: st.For) -> LockstepPlan:
    """The plan of the kernel, or of the loops of the host, that begin with `loop`."""
    if is_bound(loop):
        nest = kernel_nest(loop)
        loops, body = nest.loops, nest.body
    else:
        loops, body = _apart(loop)
    nodes = list(walk(body))
    if not loops or not all(map(_is_known, nodes)):
        return LockstepPlan((), body)
    own = {node.buffer for node in nodes if isinstance(node, st.Allocate)}
    users = [node for node in nodes if isinstance(node, _Writer | BufferLoad | Load)]
    used = dict.fromkeys(user.buffer for user in users if user.buffer not in own)
    written = (
        frozenset(user.buffer for user in users if isinstance(user, _Writer)) - own
    )
    return LockstepPlan(loops, body, tuple(used), written)


def _is_known(node: Node) -> bool:
    if isinstance(node, Call) and node.name not in KNOWN:
        return False
    if isinstance(node, st.Stmt):
        return type(node) in STATEMENTS and not is_bound(node)
    return type(node) in EXPRESSIONS or not isinstance(node, Expr)


def _apart(loop: st.For) -> tuple[tuple[st.For, ...], st.Stmt]:
    """The outermost loops, directly nested, on each of which the place of all writes depends."""
    loops: list[st.For] = []
    body: st.Stmt = loop
    depending = _places_of_writes(loop)
    while isinstance(body, st.For) and not is_bound(body):
        outer = {outer.var for outer in loops}
        bounds = {*variables_in(body.minimum), *variables_in(body.extent)}
        if bounds & outer or not all(body.var in place for place in depending):
            break
        loops.append(body)
        body = body.body
    return tuple(loops), body


def _places_of_writes(root: st.Stmt) -> list[set[Var]]:
    """Of each write to memory from outside `root`: the variables that its place may depend on."""
    nodes = list(walk(root))
    own = {node.buffer for node in nodes if isinstance(node, st.Allocate)}
    named = {node.var: node for node in nodes if isinstance(node, st.For | st.LetStmt)}
    places = []
    for node in nodes:
        if isinstance(node, _Writer) and node.buffer not in own:
            indices = (node.index,) if isinstance(node, st.Store) else node.indices
            places.append(
                _closure({v for i in indices for v in variables_in(i)}, named)
            )
    return places


def _closure(variables: set[Var], named: dict[Var, st.For | st.LetStmt]) -> set[Var]:
    """`variables`, and those that the values of these are made of."""
    found, waiting = set(variables), list(variables)
    while waiting:
        binder = named.get(waiting.pop())
        value = (
            binder.value
            if isinstance(binder, st.LetStmt)
            else binder and binder.minimum
        )
        more = set(variables_in(value)) - found if value is not None else set()
        found |= more
        waiting += more
    return found
