"""Forms of computations and schedules that few draws have, so that their tests count them.

A read at an edge is one at an index that is clamped, reflected or a remainder.
"""

from __future__ import annotations

from collections.abc import Iterator

from refcomp.ir.expr import Expr, FloorMod, IntImm, Max, Min, Mod, Select, Var
from refcomp.ir.rewrite import variables_in, walk
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.te.operation import ComputeOp, ScanOp
from refcomp.te.tensor import Tensor, TensorRead
from tests.strategies.computation import Computation

FORMS = (
    *("several symbols", "computed extents", "edge reads", "symbolic edge reads"),
    *("attached edge reads", "copied edge reads", "factored edge reads", "attached inits"),
)
_EDGES = (Min, Max, Mod, FloorMod, Select)


def forms_of(computation: Computation, schedule: Schedule) -> set[str]:
    """Those of FORMS that the computation has, as scheduled."""
    dims = [dim for arg in computation.args for dim in arg.shape]
    is_computed = any(not isinstance(dim, Var | IntImm) for dim in dims)
    found = {"computed extents"} if is_computed else set()
    if len(computation.sizes) > 1:
        found.add("several symbols")
    makers = {tensor: stage for stage in schedule.stages for tensor in stage.op.outputs}
    for stage in schedule.stages:
        if isinstance(stage.op, ComputeOp):
            found.update(_forms_of_reads(stage, computation, makers))
        if isinstance(stage.op, ScanOp) and _has_attached_init(stage.op, schedule):
            found.add("attached inits")
    return found


def _forms_of_reads(
    stage: Stage, computation: Computation, makers: dict[Tensor, Stage]
) -> Iterator[str]:
    for read in _edge_reads(stage.op):
        yield "edge reads"
        if any(var in computation.sizes for index in read.indices for var in variables_in(index)):
            yield "symbolic edge reads"
        maker = makers.get(read.tensor)
        if maker is not None and maker.attach_point is not None:
            is_copy = isinstance(maker.op, ComputeOp) and isinstance(maker.op.body[0], TensorRead)
            yield "copied edge reads" if is_copy else "attached edge reads"
        if stage.name.endswith(".rf"):
            yield "factored edge reads"


def _edge_reads(op: ComputeOp) -> Iterator[TensorRead]:
    for node in (node for body in op.body for node in walk(body)):
        if isinstance(node, TensorRead) and any(map(_is_at_edge, node.indices)):
            yield node


def _is_at_edge(index: Expr) -> bool:
    return any(isinstance(node, _EDGES) for node in walk(index))


def _has_attached_init(scan: ScanOp, schedule: Schedule) -> bool:
    """Return True if an init, or what one reads, is computed at a loop of another stage."""
    hosted = {t for stage in schedule.stages if stage.attach_point for t in stage.op.outputs}
    return any(not hosted.isdisjoint((init, *init.op.inputs)) for init in scan.init)
