"""pragma, prefetch, double_buffer and storage_align: wishes about loops and memory.

None of them changes what is computed, and what a target cannot follow is left out.
"""

from __future__ import annotations

from typing import Any

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.schedule.stage import (
    LoopPragma,
    Prefetched,
    Provenance,
    Stage,
    StrideAlignment,
)
from refcomp.te.operation import ComputeOp

# The pragmas that a pass reads, and the values that they take.
IMPORT_LLVM = "import_llvm"
PRAGMAS = {"auto_unroll_max_step": range(1 << 20), "unroll_explicit": range(2)}


def pragma(
    stage: Stage, provenance: Provenance, axis: Any, key: Any, value: Any = 1
) -> None:
    """Around the loop, `key` is `value`: `auto_unroll_max_step` N (loops of up to N stores in all
    are unrolled), `unroll_explicit` 0 (unrolled loops stay loops, for the compiler behind), or
    `import_llvm` TEXT: LLVM IR that defines C functions for the whole module, on hosts only."""
    loop = stage.leaf(axis, "pragma")
    if key == IMPORT_LLVM:
        stage.loops.pragmas.append(
            LoopPragma(loop, key, _llvm_text(stage, loop.name, value))
        )
        return
    if key not in PRAGMAS:
        known = ", ".join((*PRAGMAS, IMPORT_LLVM))
        stage.refuse(
            "pragma", loop.name, f"nothing reads {key!r}", f"use one of {known}"
        )
    checked = value if isinstance(value, int) else None
    if checked is None or int(checked) not in PRAGMAS[key]:
        most = PRAGMAS[key].stop - 1
        stage.refuse(
            "pragma", loop.name, f"{key} is {value!r}", f"use a number from 0 to {most}"
        )
    stage.loops.pragmas.append(LoopPragma(loop, key, int(checked)))


def _llvm_text(stage: Stage, loop: str, value: Any) -> str:
    if isinstance(value, str) and "define" in value:
        return value
    shown = repr(value) if len(repr(value)) < 80 else f"{repr(value)[:80]} ..."
    stage.refuse(
        "pragma",
        loop,
        f"{IMPORT_LLVM} is {shown}, which defines no function",
        "pass the text of LLVM IR itself, as clang -S -emit-llvm writes it: open(path).read()",
    )


def prefetch(
    stage: Stage,
    provenance: Provenance,
    axis: Any,
    maker: Stage,
    value_index: int,
    offset: Any,
) -> None:
    """In each iteration of loop `axis`, what the stage reads first of output `value_index` of stage
    `maker`, `offset` iterations later, is asked for. A hint for the host's caches; GPUs go
    without."""
    loop, tensor = stage.leaf(axis, "prefetch"), maker.op.outputs[value_index]
    if tensor not in stage.op.inputs:
        read = ", ".join(t.name for t in stage.op.inputs)
        stage.refuse(
            "prefetch",
            loop.name,
            f"the stage does not read {tensor.name}",
            f"it reads {read or 'nothing'}",
        )
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
        stage.refuse(
            "prefetch", loop.name, f"the offset is {offset!r}", "use an int, 0 or more"
        )
    stage.loops.prefetches.append(Prefetched(tensor, loop, offset))


def double_buffer(stage: Stage, provenance: Provenance) -> None:
    """The stage's memory is held twice and filled one iteration ahead of the serial loop that it is
    computed at. Where that cannot be done, building says why."""
    if not isinstance(stage.op, ComputeOp) or stage.is_output:
        what = "an output" if stage.is_output else stage.op.what
        raise UserError(
            f"cannot double-buffer stage {stage.name}",
            where=f"stage {stage.name}",
            why=f"it is {what}: its memory is the caller's",
            remedy="make a copy with cache_read, compute it at a loop, and double-buffer the copy",
        )
    if len(stage.op.outputs) > 1:
        names = ", ".join(tensor.name for tensor in stage.op.outputs)
        raise Unsupported(
            f"cannot double-buffer stage {stage.name}",
            where=f"stage {stage.name}",
            why=f"it computes {names} together, and one filling would have to serve them all",
            remedy="double-buffer the stages that it reads",
        )
    stage.memory.is_double_buffered = True


def storage_align(
    stage: Stage, provenance: Provenance, axis: Any, factor: Any, offset: Any
) -> None:
    """Two elements that are neighbours along `axis`, one of the operation's own, lie k * factor +
    offset elements apart, for some k: so that columns do not fall on one memory bank."""
    named = getattr(axis, "name", repr(axis))
    if not isinstance(stage.op, ComputeOp):
        stage.refuse(
            "storage_align",
            named,
            f"the stage is {stage.op.what}: its memory is given to others, and has no gaps",
            "make a copy with cache_read, and align that",
        )
    if not any(given is axis for given in stage.op.axis):
        names = ", ".join(given.name for given in stage.op.axis)
        stage.refuse(
            "storage_align",
            named,
            "it is no axis of the tensor",
            f"use one of {names or 'none'}",
        )
    if stage.is_output:
        stage.refuse(
            "storage_align",
            axis.name,
            "the stage is an output, and its memory the caller's",
            "make a copy with cache_read or cache_write, and align that",
        )
    for value, name, least in ((factor, "factor", 1), (offset, "offset", 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            stage.refuse(
                "storage_align",
                axis.name,
                f"the {name} is {value!r}",
                f"use an int >= {least}",
            )
    dim = next(k for k, known in enumerate(stage.op.axis) if known is axis)
    if dim == len(stage.op.axis) - 1:
        stage.refuse(
            "storage_align",
            axis.name,
            "it is the innermost: its elements lie side by side",
            "use an axis further outside",
        )
    stage.memory.alignments[dim] = StrideAlignment(factor, offset % factor)
