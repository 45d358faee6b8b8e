"""The memory of a scan: its init, state and update lie in the buffer of its result.

Row t of the update is written to row t of the result. The rows of the state that the
update reads are rows of the result that exist already. An init that nothing else reads
is computed directly into the first rows. Any other init is copied there: by the threads
of a GPU if kernels compute the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from math import prod

from refcomp.arith import Facts, prove, simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import GLOBAL, Buffer, BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import LE, LT, Expr, FloorMod, IntImm, Min, Var
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import (
    SERIAL,
    BufferStore,
    For,
    IfThenElse,
    LoopKind,
    Origin,
    Stmt,
    block,
)
from refcomp.lowering.bounds.infer_stages import Bodies
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.schedule.axes import Region
from refcomp.schedule.placement import loops_around
from refcomp.schedule.stage import Stage
from refcomp.te.operation import ComputeOp, ScanOp
from refcomp.te.tensor import Tensor, TensorRead

_THREADS = 64  # of a group that copies: the widest wave of any GPU


@dataclass(frozen=True, slots=True)
class ScanMemory:
    """The tensors and stages that the memory of scans concerns."""

    # The tensors that lie in the result of a scan.
    borrowed: frozenset[Tensor] = frozenset()
    # Stage that computes an init -> the condition that the result has as many rows.
    conditions: Mapping[Stage, Expr] = field(default_factory=dict)

    def guarded(self, stage: Stage, stmt: Stmt) -> Stmt:
        """Return `stmt`, which computes `stage`, under its condition if it has one."""
        if stage in self.conditions:
            return IfThenElse(self.conditions[stage], stmt, None, stmt.origin)
        return stmt


def reads_of_scan(op: ScanOp) -> list[Expr]:
    """Return the reads of the scan for one row: a row of each update, and each init."""
    reads: list[Expr] = []
    for k, (init, update) in enumerate(zip(op.init, op.update, strict=True)):
        row = tuple(axis.var for axis in op.row_axes(k))
        reads.append(TensorRead(update, (op.scan_axis.var, *row)))
        reads.append(TensorRead(init, (IntImm(0, I64), *row)))
    return reads


def place_scans(
    stages: Sequence[Stage],
    bodies: Bodies,
    arguments: Mapping[Tensor, Buffer],
    buffers: MutableMapping[Tensor, Buffer],
    regions: MutableMapping[Tensor, Region],
    facts: Facts,
) -> ScanMemory:
    """Place states, updates and inits in the buffers of the results.

    Args:
        stages: all stages that are computed.
        bodies: their expressions after inlining.
        arguments: the buffers of the function's arguments.
        buffers: the buffer of each tensor; changed.
        regions: the part of a tensor that its buffer holds; changed.
        facts: what is known of the shape variables.

    Raises:
        UserError: a stage reads a state outside of its scan, or a state is an argument.
    """
    borrowed: set[Tensor] = set()
    conditions: dict[Stage, Expr] = {}
    for stage in stages:
        op = stage.op
        if not isinstance(op, ScanOp):
            continue
        for state in op.state:
            if state in arguments:
                raise UserError(
                    f"the state {state.name} of scan {stage.name} is an argument",
                    why="a state is the scan's result while it is computed: "
                    "nobody gives it",
                    remedy="leave it out of the arguments",
                )
        for k, result in enumerate(op.outputs):
            init = op.init[k]
            update = op.update[k]
            buffers[op.state[k]] = buffers[result]
            buffers[update] = buffers[result]
            # The result is whole, so the indices of its rows need no shift.
            regions.pop(update, None)
            borrowed.add(update)
            if init in arguments:
                continue
            maker = _sole_maker(init, stages, bodies)
            if maker is None:
                continue
            # A single row is guarded, if the result may have none. More rows are copied.
            fits = LE(init.shape[0], result.shape[0])
            if as_int(init.shape[0]) != 1 and not prove(fits, facts):
                continue
            buffers[init] = buffers[result]
            borrowed.add(init)
            if not prove(fits, facts):
                conditions[maker] = fits
        _check_readers(stage, op, stages, bodies)
    return ScanMemory(frozenset(borrowed), conditions)


def _sole_maker(init: Tensor, stages: Sequence[Stage], bodies: Bodies) -> Stage | None:
    """Return the stage of `init` if one scan alone reads it, and it is at the root."""
    uses = [read for s in stages for read in _reads(bodies[s]) if read.tensor is init]
    if len(uses) != 1:
        return None
    for stage in stages:
        if stage.op.outputs == (init,) and isinstance(stage.op, ComputeOp):
            is_root = stage.attach_point is None
            is_global = stage.memory.scope in (None, GLOBAL)
            return stage if is_root and is_global else None
    return None


def _reads(bodies: Sequence[Expr]) -> Iterator[TensorRead]:
    for body in bodies:
        for node in walk(body):
            if isinstance(node, TensorRead):
                yield node


def _check_readers(
    scan: Stage, op: ScanOp, stages: Sequence[Stage], bodies: Bodies
) -> None:
    """Refuse reads of a state outside of the scan."""
    states = set(op.state)
    for stage in stages:
        tensors = (read.tensor for read in _reads(bodies[stage]))
        names = {tensor.name for tensor in tensors if tensor in states}
        if names and not any(loop.stage is scan for loop in loops_around(stage)):
            raise UserError(
                f"stage {stage.name} reads the state {min(names)} "
                f"outside of scan {scan.name}",
                where=f"stage {stage.name}",
                why="a state is there only while the scan runs",
                remedy="compute it at a loop of the scan: "
                f"s[{stage.name}].compute_at(...)",
                at=stage.declaration(),
                earlier=[scan.declaration()],
            )


def copy_inits(
    stage: Stage,
    op: ScanOp,
    buffers: Mapping[Tensor, Buffer],
    memory: ScanMemory,
    bounds: Mapping[Stage, StageBounds],
) -> Stmt:
    """Return the copies of the inits that do not lie in the result yet.

    If kernels compute the rows, the host cannot access them, and a kernel copies.
    """
    origin = Origin(stage.name, line=op.line)
    on_device: set[Tensor] = set()
    for maker, known in bounds.items():
        if known.place.kernel is not None:
            on_device.update(maker.op.outputs)
    copies: list[Stmt] = []
    for init, update, result in zip(op.init, op.update, op.outputs, strict=True):
        if init in memory.borrowed:
            continue
        copy = _copy_by_threads if update in on_device else _copy
        rows = Min(init.shape[0], result.shape[0])
        extents = (rows, *result.shape[1:])
        copies.append(copy(buffers[init], buffers[result], extents, origin))
    return block(copies)


def _copy(
    source: Buffer, target: Buffer, extents: Sequence[Expr], origin: Origin
) -> Stmt:
    """Return loops that copy element by element: the rows of `source` may be longer."""
    loops = tuple(Var(f"{source.name}.i{k}", I64) for k in range(len(extents)))
    stmt: Stmt = BufferStore(target, loops, BufferLoad(source, loops), origin)
    for k in reversed(range(len(extents))):
        stmt = For(loops[k], IntImm(0, I64), extents[k], SERIAL, stmt, origin)
    return stmt


def _copy_by_threads(
    source: Buffer, target: Buffer, extents: Sequence[Expr], origin: Origin
) -> Stmt:
    """Return a kernel in which each thread copies one element."""
    zero = IntImm(0, I64)
    group = Var(f"{source.name}.group", I64)
    thread = Var(f"{source.name}.thread", I64)
    number: Expr = group * _THREADS + thread
    count = prod(extents[1:], start=extents[0])
    is_inside = LT(number, count)
    # The last dimension first: neighbouring threads copy neighbouring elements.
    indices: list[Expr] = []
    for extent in reversed(extents[1:]):
        indices.append(FloorMod(number, extent))
        number = number // extent
    place = (number, *reversed(indices))
    store = BufferStore(target, place, BufferLoad(source, place), origin)
    body = IfThenElse(is_inside, store, None, origin)
    groups = simplify((count + (_THREADS - 1)) // _THREADS)
    loop = For(thread, zero, IntImm(_THREADS, I64), LoopKind.THREAD_X, body, origin)
    return For(group, zero, groups, LoopKind.BLOCK_X, loop, origin)
