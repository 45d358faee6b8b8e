"""tensorize: replace a loop and everything inside by a tensor intrinsic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from refcomp.foundation.provenance import declared_at
from refcomp.foundation.snippets import Snippet
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IntImm
from refcomp.schedule.stage import Provenance, Stage, Tensorized
from refcomp.te.intrin import TensorIntrin
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import TENSORIZED, IterVar


def tensorize(
    stage: Stage, provenance: Provenance, axis: object, intrin: object
) -> None:
    """Replace loop `axis` and all loops inside by the statements of `intrin`.

    Lowering checks that the loops compute the same, and that no guard stands inside.
    """
    loop = stage.unmarked_leaf(axis, "tensorize", "tensorize a loop that is not marked")
    if not isinstance(intrin, TensorIntrin):
        why = f"{intrin!r} is not a tensor intrinsic"
        stage.refuse(
            "tensorize", loop.name, why, "pass what decl_tensor_intrin returned"
        )
    if stage.loops.tensorized is not None:
        done = stage.loops.tensorized
        why = f"axis {done.axis.name} of this stage is tensorized already"
        stage.refuse(
            "tensorize",
            loop.name,
            why,
            "give each stage one intrinsic",
            earlier=[done.snippet()],
        )
    # Other operations have no loops of this kind.
    assert isinstance(stage.op, ComputeOp)
    _check_outputs(stage, loop, stage.op, intrin)
    wish = Tensorized(loop, intrin, provenance.line)
    check_block(stage, wish, stage.attach_point is None)
    stage.loops.tensorized = wish
    stage.loops.mark(loop, TENSORIZED, provenance)


def _check_outputs(
    stage: Stage, loop: IterVar, op: ComputeOp, intrin: TensorIntrin
) -> None:
    mine = [str(t.dtype) for t in op.outputs]
    theirs = [str(t.dtype) for t in intrin.op.outputs]
    # Only dtypes and the kind are compared here: lowering compares the expressions.
    if mine != theirs:
        why = f"the stage computes {', '.join(mine)}, and {intrin} {', '.join(theirs)}"
        stage.refuse(
            "tensorize",
            loop.name,
            why,
            "use an intrinsic of the same dtypes",
            earlier=_declarations(stage, intrin),
        )
    if (op.reduction is None) != (intrin.op.reduction is None):
        reducing = str(intrin) if op.reduction is None else "the stage"
        other = "the stage" if op.reduction is None else str(intrin)
        why = f"{reducing} is a reduction, and {other} is not"
        stage.refuse(
            "tensorize",
            loop.name,
            why,
            "use an intrinsic that computes the same",
            earlier=_declarations(stage, intrin),
        )


def _declarations(stage: Stage, intrin: TensorIntrin) -> list[Snippet]:
    return [stage.declaration(), declared_at(intrin.op.line, str(intrin))]


def check_block(
    stage: Stage,
    wish: Tensorized,
    has_extents: bool,
    extents: Mapping[IterVar, Expr] | None = None,
) -> None:
    """Raise UserError unless the intrinsic can replace the loops.

    The loops must be unmarked, without attached stages, and have as many iterations as the
    intrinsic. `extents` are those of the loops; None stands for the leaves' own.
    """
    inside = stage.loops.leaves[stage.loops.position(wish.axis) :]
    for leaf in inside[1:]:
        if leaf in stage.loops.marks:
            how = stage.mark_text(leaf)
            why = f"axis {leaf.name} inside it is {how}, but the intrinsic would replace it"
            remedy = (
                "leave the loops inside as they are, or tensorize one further inside"
            )
            stage.refuse("tensorize", wish.axis.name, why, remedy)
    for attached in stage.attached:
        point = attached.attach_point
        if point is not None and any(point.axis is leaf for leaf in inside):
            why = f"stage {attached.name} is computed at axis {point.axis.name}"
            remedy = f"compute {attached.name} at a loop outside of {wish.axis.name}"
            stage.refuse(
                "tensorize",
                wish.axis.name,
                why,
                remedy,
                earlier=[point.snippet()],
            )
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
            why = f"axis {leaf.name} has {extents[leaf]} iterations, which is not a constant"
            remedy = "split it by an extent of the intrinsic, and leave the outer part outside"
            stage.refuse("tensorize", wish.axis.name, why, remedy)
        sizes.append(size)
    op = wish.intrin.op
    wanted = []
    for axis in (*op.axis, *op.reduce_axis):
        assert isinstance(axis.extent, IntImm)  # decl_tensor_intrin has checked it
        wanted.append(axis.extent.value)
    if prod(sizes) != prod(wanted):
        why = (
            f"the loops from it inwards have {_product(sizes)} iterations, "
            f"and {wish.intrin} does {_product(wanted)}"
        )
        remedy = "split the loops by the intrinsic's extents, and reorder: what is split off inside"
        stage.refuse("tensorize", wish.axis.name, why, remedy)


def _product(sizes: Sequence[int]) -> str:
    text = " x ".join(map(str, sizes))
    return f"{text} = {prod(sizes)}" if len(sizes) > 1 else text
