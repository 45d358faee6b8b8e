"""pragma, prefetch, double_buffer and storage_align: hints about loops and memory.

None of them changes a result. A target ignores hints that it does not support.
"""

from __future__ import annotations

from importlib import import_module

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.near_misses import advise
from refcomp.ir.stmt import STRIDE_PATTERN
from refcomp.schedule.stage import (
    BARRIER_WHEN_FINISH,
    LoopPragma,
    Prefetched,
    Provenance,
    Stage,
    StrideAlignment,
)
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import IterVar

IMPORT_LLVM = "import_llvm"
IMPORT_C = "import_c"
# Pragmas with numbers, and their legal values.
PRAGMAS = {
    "auto_unroll_max_step": range(1 << 20),
    "unroll_explicit": range(2),
    STRIDE_PATTERN: range(1, 2),
    BARRIER_WHEN_FINISH: range(1, 2),
}
# Pragmas of TVM that refcomp does without: why, and what to write.
_LEFT_OUT = {
    "parallel_launch_point": (
        "threads are launched by each parallel loop, and wait for each other at its end",
        "leave it out: mark the inner loops parallel. If the launches take too long, mark the "
        "loop itself parallel instead",
    ),
    "debug_skip_region": (
        "it would leave memory unwritten, so that results are arbitrary",
        "to time the rest alone, build it with a placeholder in place of this tensor",
    ),
}


def pragma(
    stage: Stage, provenance: Provenance, axis: object, key: object, value: object = 1
) -> None:
    """Attach the hint `key` = `value` to loop `axis`."""
    loop = stage.leaf(axis, "pragma")
    if key == IMPORT_LLVM:
        stage.loops.pragmas.append(
            LoopPragma(loop, key, _llvm_text(stage, loop.name, value))
        )
        return
    if key == IMPORT_C:
        text = _compiled(stage, loop.name, value)
        stage.loops.pragmas.append(LoopPragma(loop, key, text))
        return
    if key in _LEFT_OUT:
        why, remedy = _LEFT_OUT[key]
        stage.refuse("pragma", loop.name, f"{key} is not supported: {why}", remedy)
    if not isinstance(key, str) or key not in PRAGMAS:
        known = (*PRAGMAS, IMPORT_LLVM, IMPORT_C)
        remedy = advise(key, known, f"use one of {', '.join(known)}")
        stage.refuse("pragma", loop.name, f"{key!r} is not a known pragma", remedy)
    legal = PRAGMAS[key]
    if not isinstance(value, int) or int(value) not in legal:
        remedy = f"use a number from {legal.start} to {legal.stop - 1}"
        if len(legal) == 1:
            remedy = f"use {legal.start}, or leave the pragma out"
        stage.refuse("pragma", loop.name, f"{key} is {value!r}", remedy)
    stage.loops.pragmas.append(LoopPragma(loop, key, int(value)))


def _llvm_text(stage: Stage, loop: str, value: object) -> str:
    if isinstance(value, str) and "define" in value:
        return value
    shown = repr(value) if len(repr(value)) < 80 else f"{repr(value)[:80]} ..."
    stage.refuse(
        "pragma",
        loop,
        f"{IMPORT_LLVM} is {shown}, which does not define a function",
        "pass the text of LLVM IR that clang -S -emit-llvm writes, such as open(path).read()",
    )


def _compiled(stage: Stage, loop: str, value: object) -> str:
    """Return the LLVM IR of C functions for this host."""
    if not isinstance(value, str) or "(" not in value:
        stage.refuse(
            "pragma",
            loop,
            f"{IMPORT_C} is {value!r}, which does not define a function",
            "pass the text of C functions, such as open(path).read()",
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        why = f"the text of {IMPORT_C} is not Unicode: {error}"
        stage.refuse("pragma", loop, why, "read the file in its own encoding")
    # By name, since that room is below this one.
    compiler = import_module("refcomp.toolchain.c_functions")
    text: str = compiler.llvm_of_c(value)
    if "\ndefine " not in text:
        stage.refuse(
            "pragma",
            loop,
            f"the text of {IMPORT_C} defines no function that others can call",
            "define a function that is neither static nor inline",
        )
    return text


def prefetch(
    stage: Stage,
    provenance: Provenance,
    axis: object,
    maker: Stage,
    value_index: int,
    offset: object,
) -> None:
    """Load elements of output `value_index` of stage `maker` before loop `axis` reads them.

    The elements are those that the iteration `offset` iterations later reads first.
    """
    loop = stage.leaf(axis, "prefetch")
    tensor = maker.op.outputs[value_index]
    if tensor not in stage.op.inputs:
        read = ", ".join(t.name for t in stage.op.inputs)
        stage.refuse(
            "prefetch",
            loop.name,
            f"the stage does not read {tensor.name}",
            f"it reads {read or 'nothing'}",
            earlier=[stage.declaration()],
        )
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
        stage.refuse(
            "prefetch", loop.name, f"the offset is {offset!r}", "use an int, 0 or more"
        )
    stage.loops.prefetches.append(Prefetched(tensor, loop, offset))


def double_buffer(stage: Stage, provenance: Provenance) -> None:
    """Allocate the stage's memory twice, and fill it one iteration ahead."""
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
            why=f"it computes {names} together, which one copy cannot serve",
            remedy="double-buffer the stages that it reads",
        )
    stage.memory.is_double_buffered = True


def storage_align(
    stage: Stage, provenance: Provenance, axis: object, factor: object, offset: object
) -> None:
    """Let neighbours along `axis` lie k * factor + offset elements apart, for some k."""
    named = axis.name if isinstance(axis, IterVar) else repr(axis)
    if not isinstance(stage.op, ComputeOp):
        stage.refuse(
            "storage_align",
            named,
            f"the stage is {stage.op.what}, whose memory others read without gaps",
            "make a copy with cache_read, and align that",
        )
    if not any(given is axis for given in stage.op.axis):
        names = ", ".join(given.name for given in stage.op.axis)
        stage.refuse(
            "storage_align",
            named,
            "it is not an axis of the tensor",
            f"use one of {names or 'none'}",
        )
    if stage.is_output:
        stage.refuse(
            "storage_align",
            named,
            "the stage is an output, whose memory belongs to the caller",
            "make a copy with cache_read or cache_write, and align that",
        )
    checked_factor = _checked_int(stage, named, "factor", factor, minimum=1)
    checked_offset = _checked_int(stage, named, "offset", offset, minimum=0)
    dim = next(k for k, known in enumerate(stage.op.axis) if known is axis)
    # The stride of the innermost axis is 1: vectors load contiguous elements.
    if dim == len(stage.op.axis) - 1:
        stage.refuse(
            "storage_align",
            named,
            "it is the innermost: its elements lie side by side",
            "use an axis further outside",
        )
    # Only the offset modulo the factor matters.
    alignment = StrideAlignment(checked_factor, checked_offset % checked_factor)
    stage.memory.alignments[dim] = alignment


def _checked_int(
    stage: Stage, axis: str, name: str, value: object, minimum: int
) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= minimum:
        return value
    why = f"the {name} is {value!r}"
    stage.refuse("storage_align", axis, why, f"use an int >= {minimum}")
