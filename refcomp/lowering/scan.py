"""The memory of a scan: its init, its state and its update are all in that of the result.

Row t of the update is written where row t of the result lies, and what the update reads of the
state are rows that lie there already. An init that nobody else needs is computed right into the
first rows; another one is copied there, by threads of a GPU where those compute the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from refcomp.arith import Facts, prove, simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import LE, LT, Expr, FloorMod, IntImm, Min, Var
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import SERIAL, BufferStore, For, IfThenElse, Origin, Stmt, block
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.schedule.placement import loops_around
from refcomp.schedule.stage import Stage
from refcomp.te.operation import ComputeOp
from refcomp.te.scan import ScanOp
from refcomp.te.tensor import Tensor, TensorRead

Bodies = Mapping[Stage, Sequence[Expr]]
_THREADS = 64  # of a group that copies: as many as the widest waves have


@dataclass(frozen=True, slots=True)
class ScanMemory:
    """`borrowed` are the tensors that lie in a scan's result; `conditions` says of some of the
    stages that compute an init when there is room for it."""

    borrowed: frozenset[Tensor] = frozenset()
    conditions: Mapping[Stage, Expr] = field(default_factory=dict)

    def guarded(self, stage: Stage, stmt: Stmt) -> Stmt:
        """The statement of a stage, where there is room for what it computes."""
        condition = self.conditions.get(stage)
        return (
            stmt
            if condition is None
            else IfThenElse(condition, stmt, None, stmt.origin)
        )


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
            if maker is not None and (as_int(room.a) == 1 or prove(room, facts)):
                buffers[op.init[k]] = buffers[result]
                borrowed.add(op.init[k])
                if not prove(room, facts):
                    conditions[maker] = room
        _check_readers(stage, op, stages, bodies)
    return ScanMemory(frozenset(borrowed), conditions)


def _check_arguments(
    stage: Stage, op: ScanOp, arguments: Mapping[Tensor, Buffer]
) -> None:
    for state in op.state:
        if state in arguments:
            raise UserError(
                f"the state {state.name} of scan {stage.name} is an argument",
                why="a state is the scan's result while it is computed: nobody gives it",
                remedy="leave it out of the arguments",
            )


def _lone_maker(
    init: Tensor,
    stages: Sequence[Stage],
    bodies: Bodies,
    arguments: Mapping[Tensor, Buffer],
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
            is_plain = stage.attach_point is None and stage.memory.scope in (
                None,
                "global",
            )
            return stage if is_plain else None
    return None


def _check_readers(
    scan: Stage, op: ScanOp, stages: Sequence[Stage], bodies: Bodies
) -> None:
    states = set(op.state)
    for stage in stages:
        read = {
            node.tensor.name
            for body in bodies[stage]
            for node in walk(body)
            if isinstance(node, TensorRead) and node.tensor in states
        }
        if read and not any(loop.stage is scan for loop in loops_around(stage)):
            raise UserError(
                f"stage {stage.name} reads the state {min(read)} outside of scan {scan.name}",
                where=f"stage {stage.name}",
                why="a state is there only while the scan runs",
                remedy=f"compute it at a loop of the scan: s[{stage.name}].compute_at(...)",
            )


def copy_inits(
    stage: Stage,
    op: ScanOp,
    buffers: Mapping[Tensor, Buffer],
    memory: ScanMemory,
    bounds: Mapping[Stage, StageBounds],
) -> Stmt:
    """Copies the inits that do not lie in the result yet. What kernels compute rows of lies where
    the host has no access: there a kernel copies, too."""
    origin = Origin(stage.name, line=op.line)
    on_device = {
        t for s, b in bounds.items() if b.place.kernel is not None for t in s.op.outputs
    }
    copies = [
        (_copy_by_threads if update in on_device else _copy)(
            init, result, buffers, origin
        )
        for init, update, result in zip(op.init, op.update, op.outputs, strict=True)
        if init not in memory.borrowed
    ]
    return block(copies)


def _copy(
    init: Tensor, result: Tensor, buffers: Mapping[Tensor, Buffer], origin: Origin
) -> Stmt:
    """Copies elements, not memory: that of the init may have longer rows."""
    source, target = buffers[init], buffers[result]
    loops = [Var(f"{source.name}.i{k}", I64) for k in range(init.ndim)]
    stmt: Stmt = BufferStore(
        target, tuple(loops), BufferLoad(source, tuple(loops)), origin
    )
    for var, extent in reversed([*zip(loops, _copied(init, result), strict=True)]):
        stmt = For(var, IntImm(0, I64), extent, SERIAL, stmt, origin)
    return stmt


def _copied(init: Tensor, result: Tensor) -> tuple[Expr, ...]:
    """How many rows are copied, and their extents."""
    return (Min(init.shape[0], result.shape[0]), *result.shape[1:])


def _copy_by_threads(
    init: Tensor, result: Tensor, buffers: Mapping[Tensor, Buffer], origin: Origin
) -> Stmt:
    """A kernel in which each thread copies one element."""
    source, target = buffers[init], buffers[result]
    group, thread = (Var(f"{source.name}.{part}", I64) for part in ("group", "thread"))
    number: Expr = group * _THREADS + thread
    extents = _copied(init, result)
    count = prod(extents[1:], start=extents[0])
    is_there, indices = LT(number, count), []
    for extent in reversed(extents[1:]):
        indices.append(FloorMod(number, extent))
        number = number // extent
    place = (number, *reversed(indices))
    store = BufferStore(target, place, BufferLoad(source, place), origin)
    body = IfThenElse(is_there, store, None, origin)
    groups = (count + (_THREADS - 1)) // _THREADS
    loop = For(
        thread, IntImm(0, I64), IntImm(_THREADS, I64), "threadIdx.x", body, origin
    )
    return For(group, IntImm(0, I64), simplify(groups), "blockIdx.x", loop, origin)
