"""The memory of a scan: its init, its state and its update are all in that of the result.

Row t of the update is written where row t of the result lies, and what the update reads of the
state are rows that lie there already. An init that nobody else needs is computed right into the
first rows; another one is copied there.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from refcomp.arith import Facts, prove
from refcomp.dtype import I64
from refcomp.errors import UserError
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.expr import LE, Expr, IntImm, Min, Var
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import SERIAL, BufferStore, For, IfThenElse, Origin, Stmt, block
from refcomp.schedule.placement import loops_around
from refcomp.schedule.stage import Stage
from refcomp.te.operation import ComputeOp
from refcomp.te.scan import ScanOp
from refcomp.te.tensor import Tensor, TensorRead

Bodies = Mapping[Stage, Sequence[Expr]]


@dataclass(frozen=True, slots=True)
class ScanMemory:
    """`borrowed` are the tensors that lie in a scan's result; `conditions` says of some of the
    stages that compute an init when there is room for it."""

    borrowed: frozenset[Tensor] = frozenset()
    conditions: Mapping[Stage, Expr] = field(default_factory=dict)

    def guarded(self, stage: Stage, stmt: Stmt) -> Stmt:
        """The statement of a stage, where there is room for what it computes."""
        condition = self.conditions.get(stage)
        return stmt if condition is None else IfThenElse(condition, stmt, None, stmt.origin)


def reads_of_scan(op: ScanOp) -> list[Expr]:
    """What the scan reads for a row: that row of each update; and all of its inits."""
    rows: list[Expr] = []
    for k, (init, update) in enumerate(zip(op.init, op.update, strict=True)):
        row = tuple(axis.var for axis in op.row_axes(k))
        rows.append(TensorRead(update, (op.scan_axis.var, *row)))
        rows.append(TensorRead(init, (IntImm(0, I64), *row)))
    return rows


def place_scans(
    stages: Sequence[Stage],
    bodies: Bodies,
    arguments: Mapping[Tensor, Buffer],
    buffers: MutableMapping[Tensor, Buffer],
    regions: MutableMapping[Tensor, Any],
    facts: Facts,
) -> ScanMemory:
    """Puts states, updates and inits where the results lie, in `buffers`; UserError for a stage
    that reads a state outside of its scan."""
    borrowed: set[Tensor] = set()
    conditions: dict[Stage, Expr] = {}
    for stage in stages:
        op = stage.op
        if not isinstance(op, ScanOp):
            continue
        _check_arguments(stage, op, arguments)
        for k, result in enumerate(op.outputs):
            buffers[op.state[k]] = buffers[op.update[k]] = buffers[result]
            regions.pop(op.update[k], None)
            borrowed.add(op.update[k])
            maker = _lone_maker(op.init[k], stages, bodies, arguments)
            room = LE(op.init[k].shape[0], result.shape[0])
            is_one = isinstance(room.a, IntImm) and room.a.value == 1
            if maker is not None and (is_one or prove(room, facts)):
                buffers[op.init[k]] = buffers[result]
                borrowed.add(op.init[k])
                if not prove(room, facts):
                    conditions[maker] = room
        _check_readers(stage, op, stages, bodies)
    return ScanMemory(frozenset(borrowed), conditions)


def _check_arguments(stage: Stage, op: ScanOp, arguments: Mapping[Tensor, Buffer]) -> None:
    for state in op.state:
        if state in arguments:
            raise UserError(
                f"the state {state.name} of scan {stage.name} is an argument",
                why="a state is the scan's result while it is computed: nobody gives it",
                remedy="leave it out of the arguments",
            )


def _lone_maker(
    init: Tensor, stages: Sequence[Stage], bodies: Bodies, arguments: Mapping[Tensor, Buffer]
) -> Stage | None:
    """The stage that computes an init which one scan alone reads, at the root and nowhere else."""
    uses = [
        node
        for stage in stages
        for body in bodies[stage]
        for node in walk(body)
        if isinstance(node, TensorRead) and node.tensor is init
    ]
    if init in arguments or len(uses) != 1:
        return None
    for stage in stages:
        if stage.op.outputs == (init,) and isinstance(stage.op, ComputeOp):
            is_plain = stage.host is None and stage.scope in (None, "global")
            return stage if is_plain else None
    return None


def _check_readers(scan: Stage, op: ScanOp, stages: Sequence[Stage], bodies: Bodies) -> None:
    states = set(op.state)
    for stage in stages:
        read = {
            node.tensor.name
            for body in bodies[stage]
            for node in walk(body)
            if isinstance(node, TensorRead) and node.tensor in states
        }
        if read and not any(host is scan for host, _ in loops_around(stage)):
            raise UserError(
                f"stage {stage.name} reads the state {min(read)} outside of scan {scan.name}",
                where=f"stage {stage.name}",
                why="a state is there only while the scan runs",
                remedy=f"compute it at a loop of the scan: s[{stage.name}].compute_at(...)",
            )


def copy_inits(
    stage: Stage, op: ScanOp, buffers: Mapping[Tensor, Buffer], memory: ScanMemory
) -> Stmt:
    """Copies the inits that do not lie in the result yet."""
    origin = Origin(stage.name, line=op.line)
    pairs = zip(op.init, op.outputs, strict=True)
    copied = [(init, result) for init, result in pairs if init not in memory.borrowed]
    return block([_copy(init, result, buffers, origin) for init, result in copied])


def _copy(init: Tensor, result: Tensor, buffers: Mapping[Tensor, Buffer], origin: Origin) -> Stmt:
    """Copies elements, not memory: that of the init may have longer rows."""
    source, target = buffers[init], buffers[result]
    loops = [Var(f"{source.name}.i{k}", I64) for k in range(init.ndim)]
    stmt: Stmt = BufferStore(target, tuple(loops), BufferLoad(source, tuple(loops)), origin)
    extents = (Min(init.shape[0], result.shape[0]), *result.shape[1:])
    for var, extent in reversed([*zip(loops, extents, strict=True)]):
        stmt = For(var, IntImm(0, I64), extent, SERIAL, stmt, origin)
    return stmt
