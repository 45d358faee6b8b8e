"""tensorize: the loops from one inwards are done by a tensor intrinsic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IntImm
from refcomp.schedule.stage import Provenance, Stage, Tensorized
from refcomp.te.intrin import TensorIntrin
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import IterVar

TENSORIZED = "tensorized"


def tensorize(stage: Stage, provenance: Provenance, axis: Any, intrin: Any) -> None:
    """What loop `axis` and all loops inside it compute is done by the statements of `intrin`.

    These loops are plain ones of constant extents, as many iterations as the intrinsic's. That
    they compute the same is found when the schedule is lowered, as are guards that are left inside.
    """
    loop = stage.unmarked_leaf(axis, "tensorize", "tensorize a loop that is not marked")
    if not isinstance(intrin, TensorIntrin):
        why = f"{intrin!r} is no tensor intrinsic"
        stage.refuse(
            "tensorize", loop.name, why, "pass what decl_tensor_intrin returned"
        )
    if stage.loops.tensorized is not None:
        done = stage.loops.tensorized
        why = f"axis {done.axis.name} of this stage is tensorized since {done.line}"
        stage.refuse("tensorize", loop.name, why, "give each stage one intrinsic")
    assert isinstance(
        stage.op, ComputeOp
    )  # other operations have no loops of this kind
    _check_outputs(stage, loop, stage.op, intrin)
    wish = Tensorized(loop, intrin, provenance.line)
    check_block(stage, wish, stage.attach_point is None)
    stage.loops.tensorized = wish
    stage.loops.mark(loop, TENSORIZED, provenance)


def _check_outputs(
    stage: Stage, loop: IterVar, op: ComputeOp, intrin: TensorIntrin
) -> None:
    mine, theirs = (tuple(str(t.dtype) for t in o.outputs) for o in (op, intrin.op))
    if mine != theirs:
        why = f"the stage computes {', '.join(mine)}, and {intrin} {', '.join(theirs)}"
        stage.refuse("tensorize", loop.name, why, "use an intrinsic of the same dtypes")
    kinds = [
        "no reduction" if o.reduction is None else "a reduction"
        for o in (op, intrin.op)
    ]
    if kinds[0] != kinds[1]:
        why = f"the stage is {kinds[0]}, and {intrin} {kinds[1]}"
        stage.refuse(
            "tensorize", loop.name, why, "use an intrinsic that computes what it does"
        )


def check_block(
    stage: Stage,
    wish: Tensorized,
    has_extents: bool,
    extents: Mapping[IterVar, Expr] | None = None,
) -> None:
    """UserError unless the loops that the intrinsic is to replace are plain ones, and as many
    iterations as its own: of `extents`, those of the leaves themselves if None."""
    inside = stage.loops.leaves[stage.loops.position(wish.axis) :]
    for leaf in inside[1:]:
        if leaf in stage.loops.marks:
            how = stage.mark_text(leaf)
            why = f"axis {leaf.name} inside it is {how}, and the intrinsic takes its place"
            remedy = (
                "leave the loops inside as they are, or tensorize one further inside"
            )
            stage.refuse("tensorize", wish.axis.name, why, remedy)
    for attached in stage.attached:
        point = attached.attach_point
        if point is not None and any(point.axis is leaf for leaf in inside):
            why = f"stage {attached.name} is computed at axis {point.axis.name} since {point.line}"
            remedy = f"compute {attached.name} at a loop outside of {wish.axis.name}"
            stage.refuse("tensorize", wish.axis.name, why, remedy)
    if has_extents:
        _check_size(
            stage, wish, inside, extents or {leaf: leaf.extent for leaf in inside}
        )


def _check_size(
    stage: Stage,
    wish: Tensorized,
    inside: Sequence[IterVar],
    extents: Mapping[IterVar, Expr],
) -> None:
    sizes = []
    for leaf in inside:
        size = as_int(extents[leaf])
        if size is None:
            why = (
                f"axis {leaf.name} has {extents[leaf]} iterations, which is no constant"
            )
            remedy = "split it by an extent of the intrinsic, and leave the outer part outside"
            stage.refuse("tensorize", wish.axis.name, why, remedy)
        sizes.append(size)
    op = wish.intrin.op
    wanted = [_constant(axis.extent) for axis in (*op.axis, *op.reduce_axis)]
    if prod(sizes) != prod(wanted):
        why = (
            f"the loops from it inwards have {_product(sizes)} iterations, "
            f"and {wish.intrin} does {_product(wanted)}"
        )
        remedy = "split the loops by the intrinsic's extents, and reorder: what is split off inside"
        stage.refuse("tensorize", wish.axis.name, why, remedy)


def _constant(extent: Expr) -> int:
    assert isinstance(extent, IntImm)  # as decl_tensor_intrin made sure
    return extent.value


def _product(sizes: Sequence[int]) -> str:
    text = " x ".join(map(str, sizes))
    return f"{text} = {prod(sizes)}" if len(sizes) > 1 else text
