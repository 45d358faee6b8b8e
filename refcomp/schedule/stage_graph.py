"""The stages of a schedule as a graph: which stage reads which, and how the graph changes.

The output tensors of a stage identify it and never change. If a primitive replaces the operation of
a stage (cache_read, cache_write), the new operation makes the same tensors. So `s[T]`, the reads of
T in other stages, and the arguments of `lower` all find the stage by T.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from refcomp.foundation.errors import Unsupported
from refcomp.foundation.names import UniqueNames
from refcomp.ir.expr import Expr
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.operation import ComputeOp, ExternOp, Operation, ScanOp
from refcomp.te.tensor import IterVar, Tensor, TensorRead

Indices = tuple[Expr, ...]


def find_stage(stages: Iterable[Stage], target: object) -> Stage | None:
    """Return the stage of a tensor, or of a present or former operation of it; None without one."""
    tensor = target
    if isinstance(target, Operation):
        tensor = target.outputs[0] if target.outputs else None
    for stage in stages:
        if any(tensor is made for made in stage.op.outputs):
            return stage
    return None


def readers_of(stage: Stage) -> list[Stage]:
    """Return the stages that read tensors of this stage, producers first."""
    made = set(stage.op.outputs)
    return [other for other in stage.siblings if not made.isdisjoint(other.op.inputs)]


def depends_on(stage: Stage, producer: Stage) -> bool:
    """Return True if `stage` reads `producer`, directly or through other stages."""
    needed = set(stage.op.inputs)
    # Backwards, since producers come first: each stage is visited after all of its readers.
    for other in reversed(stage.siblings):
        if not needed.isdisjoint(other.op.outputs):
            if other is producer:
                return True
            needed.update(other.op.inputs)
    return False


def add_stage(
    op: ComputeOp, name: str, beside: Stage, after: bool, provenance: Provenance
) -> Stage:
    """Insert a stage for `op` directly before or after another stage, and return it.

    If the name is taken, it gets a number.
    """
    siblings = beside.siblings
    names = UniqueNames([sibling.name for sibling in siblings], separator=".")
    stage = Stage(op, names.take(name), False, siblings=siblings)
    stage.loops.leaves = list(stage.roots)
    stage.primitive = provenance.primitive
    place = next(k for k, sibling in enumerate(siblings) if sibling is beside)
    siblings.insert(place + after, stage)
    return stage


def make_operation(
    name: str,
    line: str,
    axes: Sequence[IterVar],
    body: Sequence[Expr],
    like: Sequence[Tensor],
    waits_for_scan: bool = False,
) -> ComputeOp:
    """Return an operation with new tensors, of the shapes and dtypes of those in `like`."""
    op = ComputeOp(name, line, tuple(axes), tuple(body), waits_for_scan=waits_for_scan)
    op.outputs = tuple(Tensor(op, k, t.shape, t.dtype) for k, t in enumerate(like))
    return op


def replace_body(stage: Stage, body: Sequence[Expr]) -> None:
    """Let the stage compute the same tensors, over the same axes, by other expressions."""
    op = stage.op
    assert isinstance(op, ComputeOp)
    stage.op = replace(op, body=tuple(body))
    stage.op.outputs = op.outputs


def check_redirection(stage: Stage, old: Tensor) -> None:
    """Raise Unsupported if the stage cannot read another tensor in place of `old`."""
    if isinstance(stage.op, ScanOp):
        raise Unsupported(
            f"scan {stage.name} cannot read a copy of {old.name}",
            why="it reads its init and its updates in its own memory",
            remedy="name the other readers alone",
        )


def redirect_reads(
    stage: Stage,
    old: Tensor,
    fresh: Tensor,
    place: Callable[[Indices], Indices] = lambda indices: indices,
) -> None:
    """Let the stage read `fresh` wherever it read `old`.

    Args:
        stage: of a compute or an extern operation.
        old: the tensor that it read.
        fresh: the tensor that it shall read.
        place: returns the indices of an element of `fresh` by those of `old`. An extern operation
            ignores it.

    Raises:
        Unsupported: see `check_redirection`.
    """
    check_redirection(stage, old)
    if isinstance(stage.op, ExternOp):
        outputs = stage.op.outputs
        reads = tuple(fresh if t is old else t for t in stage.op.reads)
        stage.op = replace(stage.op, reads=reads)
        stage.op.outputs = outputs
        return

    def visit(recurse: Rewrite, node: Node) -> Node:
        node = map_children(node, recurse)
        if isinstance(node, TensorRead) and node.tensor is old:
            return TensorRead(fresh, place(node.indices))
        return node

    assert isinstance(stage.op, ComputeOp)
    replace_body(stage, list(map(rewriter(visit), stage.op.body)))
