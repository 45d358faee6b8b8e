"""The loops of a hybrid function's statement, changed where they stand.

A stage of a hybrid function keeps its statement (`StageLoops.statement`). split, fuse and reorder
rewrite it at once; marks and pragmas are applied when it is lowered. Loops are directly nested if
nothing but the inner loop stands in the outer one. Guards of splits stand inside of all loops that
are directly nested, so that these stay so.

Ensures: iterations of an ordered loop keep their order. Refuses, by `Stage.refuse`: loops that are
not directly nested, extents that depend on a loop that would be inside, and orders that exchange
two ordered loops. An extent that is read from memory stays inside of the loops around it, unless
the element exists and stays the same without them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NoReturn

from refcomp.arith import Facts, prove, simplify
from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import GE, GT, LT, Expr, IntImm, Max, Var
from refcomp.ir.kernels import is_bound
from refcomp.ir.promotion import cast
from refcomp.ir.rewrite import (
    buffers_in,
    child_statements,
    map_children,
    statements_in,
    substitute,
    variables_in,
    walk,
    with_fields,
)
from refcomp.ir.stmt import (
    SERIAL,
    AtomicUpdate,
    BufferStore,
    For,
    IfThenElse,
    Origin,
    Stmt,
    line_of,
)
from refcomp.schedule.relations import Fuse, Split
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.hybrid_operation import HybridOp
from refcomp.te.tensor import ORDERED, IterVar

_ZERO = IntImm(0, I64)


def begin_statement(stage: Stage, op: HybridOp) -> None:
    """Let a fresh stage have the statement of its operation, and the marks of the loops."""
    stage.loops.statement = op.body
    axes = {axis.var: axis for axis in op.axis}
    for loop in statements_in(op.body):
        if isinstance(loop, For) and loop.var in axes and loop.kind != SERIAL:
            line = line_of(loop.origin)
            place = op.line if line is None else line.place
            word = f"the loop over {loop.kind}"
            stage.loops.mark(axes[loop.var], loop.kind, Provenance(word, place))


def split_statement(stage: Stage, relation: Split, provenance: Provenance) -> None:
    """Replace the loop `relation.parent` by two loops, with a guard if it is necessary."""
    statement = stage.loops.statement
    if statement is None:
        return
    parent = relation.parent
    loop = _loop(statement, parent)
    outer = relation.outer
    inner = relation.inner
    facts = _facts_around(stage, statement, loop)
    facts = facts.bind(outer.var, _ZERO, outer.extent)
    facts = facts.bind(inner.var, _ZERO, inner.extent)
    place = simplify(outer.var * inner.extent + inner.var, facts)
    body = substitute(loop.body, {loop.var: _from(loop, place)})
    condition = LT(place, loop.extent)
    if not prove(condition, facts):
        body = _guarded(body, condition, _origin(stage, parent, provenance))
    body = For(
        inner.var, _ZERO, inner.extent, SERIAL, body, _origin(stage, inner, provenance)
    )
    made = For(
        outer.var, _ZERO, outer.extent, SERIAL, body, _origin(stage, outer, provenance)
    )
    stage.loops.statement = _replaced(statement, loop, made)


def fused_extent(stage: Stage, outer: IterVar, inner: IterVar) -> Expr:
    """Return how often the union of two loops iterates.

    The loops of a hybrid function may have negative extents, which mean no iterations. The product
    of two negative extents would mean some.
    """
    statement = stage.loops.statement
    if statement is not None:
        facts = _facts_around(stage, statement, _loop(statement, outer))
        extents = (outer.extent, inner.extent)
        if not any(prove(GE(extent, _ZERO), facts) for extent in extents):
            return simplify(Max(outer.extent, _ZERO) * inner.extent)
    return simplify(outer.extent * inner.extent)


def fuse_statement(stage: Stage, relation: Fuse, provenance: Provenance) -> None:
    """Replace two loops, one directly inside the other, by one loop."""
    statement = stage.loops.statement
    if statement is None:
        return
    outer = _loop(statement, relation.outer)
    inner = _loop(statement, relation.inner)
    fused = relation.fused
    first, second = relation.indices(fused.var, inner.extent)
    values = {outer.var: _from(outer, first), inner.var: _from(inner, second)}
    body = substitute(inner.body, values)
    origin = _origin(stage, fused, provenance)
    made = For(fused.var, _ZERO, fused.extent, SERIAL, body, origin)
    stage.loops.statement = _replaced(statement, outer, made)


def reorder_statement(stage: Stage) -> None:
    """Put directly nested loops into the order that the leaves of the stage have."""
    statement = stage.loops.statement
    if statement is None:
        return
    order = {leaf.var: k for k, leaf in enumerate(stage.loops.leaves)}

    def visit(stmt: Stmt) -> Stmt:
        nest = nest_from(stmt, order)
        if not nest:
            return map_children(stmt, visit, only=Stmt)
        body = visit(nest[-1].body)
        for loop in sorted(nest, key=lambda loop: order[loop.var], reverse=True):
            body = with_fields(loop, body=body)
        return body

    stage.loops.statement = visit(statement)


def surround_statement(stage: Stage, single: IterVar, provenance: Provenance) -> None:
    """Put a loop of one iteration around the statement."""
    statement = stage.loops.statement
    if statement is not None:
        origin = _origin(stage, single, provenance)
        stage.loops.statement = For(
            single.var, _ZERO, single.extent, SERIAL, statement, origin
        )


def check_fusion(stage: Stage, outer: IterVar, inner: IterVar) -> None:
    """Raise UserError unless `inner` is directly inside `outer` and iterates as often always."""
    statement = stage.loops.statement
    if statement is None:
        return
    loop = _loop(statement, outer)
    if not (isinstance(loop.body, For) and loop.body.var is inner.var):
        _refuse_nesting(stage, "fuse", outer, inner)
    if loop.var in _variables_of(loop.body):
        why = f"its iterations depend on {outer.name}"
        stage.refuse("fuse", inner.name, why, "fuse loops of independent extents")
    if buffers_in(loop.body.extent) or buffers_in(loop.body.minimum):
        why = "its number of iterations is read from memory"
        stage.refuse("fuse", inner.name, why, "leave it as it is")


def check_order(stage: Stage, primitive: str, loops: Sequence[IterVar]) -> None:
    """Raise UserError unless `loops` may be put into the given order, outermost first.

    Data-parallel loops may stand anywhere: iterations of the ordered loops that depend on each
    other are of one iteration of every data-parallel loop.
    """
    statement = stage.loops.statement
    if statement is None:
        return
    order = {leaf.var: k for k, leaf in enumerate(stage.loops.leaves)}
    known = {leaf.var: leaf for leaf in stage.loops.leaves}
    wanted = iter(loops)
    named = set(loops)
    first = min(loops, key=lambda loop: order[loop.var])
    nest = nest_from(_outermost(statement, first, order), order)
    inside = [known[loop.var] for loop in nest]
    for loop in loops:
        if loop not in inside:
            _refuse_nesting(stage, primitive, first, loop)
    loops_by_var = {loop.var: loop for loop in nest}
    result = [next(wanted) if axis in named else axis for axis in inside]
    before = [axis for axis in inside if axis.kind == ORDERED]
    after = [axis for axis in result if axis.kind == ORDERED]
    for old, new in zip(before, after, strict=True):
        if old is not new:
            stage.refuse(
                primitive,
                new.name,
                f"it is ordered, and would come before {old.name}, which is ordered, too",
                "keep the order of ordered loops; data-parallel loops may stand anywhere",
                earlier=[stage.declaration()],
            )
    for k, axis in enumerate(result):
        used = _variables_of(loops_by_var[axis.var])
        for later in result[k + 1 :]:
            if later.var in used:
                why = f"its iterations depend on {later.name}, which would be inside it"
                stage.refuse(primitive, axis.name, why, f"keep it inside {later.name}")
    for k, axis in enumerate(result):
        left = [o for o in inside[: inside.index(axis)] if o in result[k + 1 :]]
        if left:
            loops_left = [loops_by_var[o.var] for o in left]
            _check_extent_read(stage, primitive, loops_by_var[axis.var], loops_left)


def _check_extent_read(
    stage: Stage, primitive: str, loop: For, left: Sequence[For]
) -> None:
    """Refuse to read an extent outside of loops if that is another value, or no element.

    `left` are the loops around `loop`, outermost first, that would be inside it. Outside of them
    the extent is read before they write, and also if they have no iterations.
    """
    reads = [
        node
        for bound in (loop.minimum, loop.extent)
        for node in walk(bound)
        if isinstance(node, BufferLoad)
    ]
    if not reads:
        return
    name = loop.var.name
    outer = left[0].var.name
    remedy = f"keep it inside {outer}"
    written = _written_in(left[0].body)
    for read in reads:
        if read.buffer in written:
            why = f"its number of iterations is read from {read.buffer.name}, which {outer} writes"
            stage.refuse(primitive, name, why, remedy, earlier=[stage.declaration()])
    statement = stage.loops.statement
    assert statement is not None
    facts = _facts_around(stage, statement, left[0])
    if all(prove(GT(other.extent, _ZERO), facts) for other in left):
        return
    for read in reads:
        if not all(
            prove(GE(cast(I64, index), _ZERO), facts)
            and prove(LT(cast(I64, index), dim), facts)
            for index, dim in zip(read.indices, read.buffer.shape, strict=True)
        ):
            why = f"its number of iterations is read from {read}, which may lie outside of "
            why += f"{read.buffer.name} if {outer} has no iterations"
            stage.refuse(primitive, name, why, remedy, earlier=[stage.declaration()])


def _written_in(stmt: Stmt) -> set[Buffer]:
    """Return the buffers that `stmt` writes, or passes to functions."""
    found: set[Buffer] = set()
    for node in walk(stmt):
        if isinstance(node, BufferStore | AtomicUpdate | AddressOf):
            found.add(node.buffer)
    return found


def nest_from(stmt: Stmt, known: Container[Var]) -> list[For]:
    """Return the directly nested loops that begin with `stmt`; none for other statements."""
    nest: list[For] = []
    while isinstance(stmt, For) and stmt.var in known:
        nest.append(stmt)
        stmt = stmt.body
    return nest


def _variables_of(loop: For) -> set[Var]:
    """Return the variables on which the iterations of `loop` depend."""
    return {*variables_in(loop.minimum), *variables_in(loop.extent)}


def _facts_around(stage: Stage, statement: Stmt, loop: For) -> Facts:
    """Return what holds where `loop` begins: sizes of inputs are not negative, loops have ranges.

    Other variables, such as a scalar argument, may be negative.
    """
    facts = Facts()
    for tensor in stage.op.inputs:
        for dim in tensor.shape:
            if isinstance(dim, Var):
                facts = facts.nonnegative(dim)
    for stmt in statements_in(statement):
        if isinstance(stmt, For) and any(
            inside is loop for inside in statements_in(stmt.body)
        ):
            facts = facts.bind(stmt.var, stmt.minimum, stmt.extent)
    return facts


def _loop(statement: Stmt, axis: IterVar) -> For:
    loops = (stmt for stmt in statements_in(statement) if isinstance(stmt, For))
    return next(loop for loop in loops if loop.var is axis.var)


def _outermost(statement: Stmt, axis: IterVar, known: Container[Var]) -> Stmt:
    """Return the outermost of the directly nested loops around and inside `axis`."""
    starts: list[Stmt] = [statement]
    while starts:
        stmt = starts.pop()
        nest = nest_from(stmt, known)
        if any(loop.var is axis.var for loop in nest):
            return stmt
        starts += child_statements(nest[-1] if nest else stmt)
    raise AssertionError(axis)


def _replaced(statement: Stmt, old: For, made: Stmt) -> Stmt:
    def visit(stmt: Stmt) -> Stmt:
        return made if stmt is old else map_children(stmt, visit, only=Stmt)

    return visit(statement)


def _guarded(body: Stmt, condition: Expr, origin: Origin) -> Stmt:
    """Return `body` under a condition, which stands inside of all loops that it may enter."""
    # An iteration that is skipped must not read how often the inner loop runs.
    if (
        isinstance(body, For)
        and not is_bound(body)
        and not buffers_in(body.extent)
        and not buffers_in(body.minimum)
    ):
        return with_fields(body, body=_guarded(body.body, condition, origin))
    return IfThenElse(condition, body, None, origin)


def _from(loop: For, place: Expr) -> Expr:
    """Return the value of the loop's variable in iteration `place`."""
    value = place if as_int(loop.minimum) == 0 else loop.minimum + place
    return cast(loop.var.dtype, value)


def _origin(stage: Stage, axis: IterVar, provenance: Provenance) -> Origin:
    return Origin(
        stage.name, axis.name, primitive=provenance.primitive, line=provenance.line
    )


def _refuse_nesting(
    stage: Stage, primitive: str, outer: IterVar, inner: IterVar
) -> NoReturn:
    stage.refuse(
        primitive,
        inner.name,
        f"it is not nested directly with {outer.name}: one of them holds more than the other loop",
        "let nothing but the inner loop stand in the outer one, in the hybrid function",
        earlier=[stage.declaration()],
    )
