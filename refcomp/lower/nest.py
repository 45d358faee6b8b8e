"""The loop nest of one stage.

A stage without a reduction becomes its loops around one store per output. A reduction becomes,
inside the loops that stand outside its outermost reduction loop, an initialisation over the
remaining output loops and then the update over all remaining loops:

    for i { for j.init { C[i, j] = 0 }  for k { for j { C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }

A guard stands directly inside the innermost loop it depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refcomp.arith import Facts, simplify
from refcomp.dtype import I64
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.expr import And, Expr, IntImm, Var
from refcomp.ir.rewrite import map_children, memoised, substitute, variables_in
from refcomp.ir.stmt import SERIAL, BufferStore, For, IfThenElse, LetStmt, Origin, Stmt, block
from refcomp.schedule.infer_bounds import Indices, infer_extents, root_indices
from refcomp.schedule.stage import Made, Stage
from refcomp.te.operation import ComputeOp
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import REDUCTION, IterVar, Tensor, TensorRead

_UNMADE = Made("", "")
_Guard = tuple[IterVar, Expr]


@dataclass(frozen=True, slots=True)
class _Nest:
    """What the functions below share about one stage: all read-only."""

    stage: Stage
    op: ComputeOp
    extents: Mapping[IterVar, Expr]
    indices: Indices
    facts: Facts
    buffers: Mapping[Tensor, Buffer]

    def origin(self, axis: IterVar | None = None) -> Origin:
        if axis is None:
            return Origin(self.stage.name, line=self.op.line)
        made = self.stage.made.get(axis, _UNMADE)
        return Origin(self.stage.name, axis.name, made.primitive, made.line or self.op.line)


def lower_stage(
    stage: Stage, bodies: Sequence[Expr], buffers: Mapping[Tensor, Buffer], facts: Facts
) -> Stmt:
    """The statement that computes the stage.

    `bodies` are the operation's bodies after inlining, `buffers` where every tensor that is read or
    written lives, `facts` what is known about the shape variables.
    """
    op = stage.op
    assert isinstance(op, ComputeOp)
    extents = infer_extents(stage)
    for leaf in stage.leaves:
        facts = facts.bind(leaf.var, leaf.minimum, extents[leaf])
    nest = _Nest(stage, op, extents, root_indices(stage, extents, facts), facts, buffers)
    first = bodies[0]
    if isinstance(first, Reduce):
        return _lower_reduction(nest, first)
    stores = _store_together(nest, [_value(nest, body) for body in bodies])
    return _wrap(nest, stage.leaves, stores, nest.indices.guards)


def _lower_reduction(nest: _Nest, reduce: Reduce) -> Stmt:
    leaves = nest.stage.leaves
    first = next((k for k, leaf in enumerate(leaves) if leaf.kind == REDUCTION), len(leaves))
    outside, inside = leaves[:first], leaves[first:]
    within = {leaf.var for leaf in inside}
    guards = nest.indices.guards
    # A guard of a reduction axis never keeps the initialisation from running, not even one that
    # was simplified until it reads no loop (over an empty axis it is false).
    reduction_guards = [guard for guard in guards if guard[0].kind == REDUCTION]
    output_guards = [
        guard
        for guard in guards
        if guard[0].kind != REDUCTION and within & set(variables_in(guard[1]))
    ]
    deeper = [*output_guards, *reduction_guards]
    shared = [guard for guard in guards if guard not in deeper]
    init = _initialisation(nest, reduce, [a for a in inside if a.kind != REDUCTION], output_guards)
    update = _wrap(nest, inside, _update(nest, reduce), deeper)
    return _wrap(nest, outside, block([init, update]), shared)


def _initialisation(
    nest: _Nest, reduce: Reduce, axes: Sequence[IterVar], guards: Sequence[_Guard]
) -> Stmt:
    stores = [_store(nest, k, value) for k, value in enumerate(reduce.reducer.identities)]
    loops = _wrap(nest, axes, block(stores), guards)
    return _rebind(loops, {leaf.var: Var(f"{leaf.name}.init", I64) for leaf in axes})


def _rebind(loops: Stmt, fresh: Mapping[Var, Var]) -> Stmt:
    """`loops` with other loop variables: a variable is bound only once in a function."""

    def visit(recurse: Callable[[Any], Any], node: Any) -> Any:
        if isinstance(node, For):
            extent, body = recurse(node.extent), recurse(node.body)
            return For(fresh[node.var], node.minimum, extent, node.kind, body, node.origin)
        return fresh.get(node, node) if isinstance(node, Var) else map_children(node, recurse)

    result: Stmt = memoised(visit)(loops)
    return result


def _update(nest: _Nest, reduce: Reduce) -> Stmt:
    tensors = nest.op.outputs
    at = _output_indices(nest)
    so_far = [BufferLoad(nest.buffers[tensor], at) for tensor in tensors]
    combined = reduce.reducer.combine(so_far, [_value(nest, s) for s in reduce.sources])
    stmt = _store_together(nest, combined)
    condition = _value(nest, reduce.condition)
    if isinstance(condition, IntImm) and condition.value:
        return stmt
    return IfThenElse(condition, stmt, None, nest.origin())


def _store_together(nest: _Nest, values: Sequence[Expr]) -> Stmt:
    """Stores to all outputs, several only after all values are known: they may read each other."""
    if len(values) == 1:
        return _store(nest, 0, values[0])
    names = [Var(f"{tensor.name}.next", tensor.dtype) for tensor in nest.op.outputs]
    stmt = block([_store(nest, k, name) for k, name in enumerate(names)])
    for name, value in zip(reversed(names), reversed(values), strict=True):
        stmt = LetStmt(name, value, stmt, nest.origin())
    return stmt


def _store(nest: _Nest, output: int, value: Expr) -> Stmt:
    buffer = nest.buffers[nest.op.outputs[output]]
    return BufferStore(buffer, _output_indices(nest), value, nest.origin())


def _output_indices(nest: _Nest) -> tuple[Expr, ...]:
    return tuple(nest.indices.values[axis] for axis in nest.op.axis)


def _value(nest: _Nest, body: Expr) -> Expr:
    """`body` in terms of loop variables and buffers."""
    roots = {axis.var: nest.indices.values[axis] for axis in nest.stage.roots}

    def visit(recurse: Callable[[Any], Any], node: Any) -> Any:
        if isinstance(node, TensorRead):
            indices = (simplify(recurse(index), nest.facts) for index in node.indices)
            return BufferLoad(nest.buffers[node.tensor], tuple(indices))
        return map_children(node, recurse)

    result: Expr = memoised(visit)(substitute(body, roots))
    return result


def _wrap(nest: _Nest, axes: Sequence[IterVar], body: Stmt, guards: Sequence[_Guard]) -> Stmt:
    """`body` inside loops over `axes` and `guards`, each guard inside the last loop it reads."""
    pending = list(guards)
    for axis in reversed(axes):
        mine = [guard for guard in pending if axis.var in variables_in(guard[1])]
        pending = [guard for guard in pending if guard not in mine]
        body = _loop(nest, axis, _guarded(nest, mine, body))
    return _guarded(nest, pending, body)


def _guarded(nest: _Nest, guards: Sequence[_Guard], body: Stmt) -> Stmt:
    if not guards:
        return body
    condition = guards[0][1]
    for _, guard in guards[1:]:
        condition = And(condition, guard)
    return IfThenElse(condition, body, None, nest.origin(guards[0][0]))


def _loop(nest: _Nest, axis: IterVar, body: Stmt) -> Stmt:
    kind = nest.stage.marks.get(axis, SERIAL)
    return For(axis.var, axis.minimum, nest.extents[axis], kind, body, nest.origin(axis))
