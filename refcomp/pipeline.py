"""The passes between lowering and printing, per kind of target: a list of reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from refcomp.dump import dump_stage, is_dumping
from refcomp.errors import UserError
from refcomp.ir.func import PrimFunc
from refcomp.ir.printer import print_func
from refcomp.ir.verify import verify
from refcomp.options import current_options
from refcomp.passes.apply_unroll_pragmas import apply_unroll_pragmas
from refcomp.passes.flatten_storage import flatten_storage
from refcomp.passes.fuse_multiply_add import fuse_multiply_add
from refcomp.passes.inject_double_buffers import inject_double_buffers
from refcomp.passes.inject_virtual_threads import inject_virtual_threads
from refcomp.passes.introduce_lets import introduce_lets
from refcomp.passes.lower_bfloat16 import lower_bfloat16
from refcomp.passes.lower_intrinsics import lower_intrinsics
from refcomp.passes.outline_parallel import outline_parallel
from refcomp.passes.partition_loops import partition_loops
from refcomp.passes.remove_no_ops import remove_no_ops
from refcomp.passes.simplify_expressions import simplify_expressions
from refcomp.passes.unroll_loops import unroll_loops
from refcomp.passes.vectorize_loops import vectorize_loops
from refcomp.python_limits import deep_recursion

Pass = Callable[[PrimFunc], PrimFunc]


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """A pass, the level its result is verified at, and why it stands where it stands. `licence`
    is the build option without which it is left out."""

    function: Pass
    level: str
    reason: str
    licence: str = ""

    @property
    def name(self) -> str:
        """The pass's name."""
        return self.function.__name__


_HOST = (
    PipelineStep(inject_virtual_threads, "nested", "first, while buffers have dimensions to add"),
    PipelineStep(inject_double_buffers, "nested", "before loops are cut: it takes them whole"),
    PipelineStep(simplify_expressions, "nested", "guards proved here need no masks later"),
    PipelineStep(fuse_multiply_add, "nested", "while each product is written once", "contract"),
    PipelineStep(partition_loops, "nested", "before vectorizing: whole tiles then need no masks"),
    PipelineStep(flatten_storage, "flat", "vectorizing needs one index per access"),
    PipelineStep(vectorize_loops, "flat", "before unrolling, which would copy what it vectorizes"),
    PipelineStep(apply_unroll_pragmas, "flat", "the last that reads pragmas, before unrolling"),
    PipelineStep(unroll_loops, "flat", "after vectorizing, so that only whole vectors are copied"),
    PipelineStep(simplify_expressions, "flat", "copies have constant indices that fold"),
    PipelineStep(remove_no_ops, "flat", "unrolling and folding leave dead branches"),
    PipelineStep(outline_parallel, "flat", "while loops are whole: a region captures few values"),
    PipelineStep(lower_intrinsics, "flat", "before bf16 is gone: the error bounds are by type"),
    PipelineStep(lower_bfloat16, "host", "the last pass that sees a bf16 value"),
    PipelineStep(introduce_lets, "host", "last, as every other pass may share subtrees"),
)

# Every pass by name, for those who call them one at a time.
PASSES: dict[str, Pass] = {step.name: step.function for step in _HOST}


def passes_for(kind: str) -> tuple[PipelineStep, ...]:
    """The steps for a kind of target, in order, as far as the build options license them; the
    interpreter runs what lowering made."""
    steps, options = _HOST if kind == "llvm" else (), current_options()
    return tuple(step for step in steps if not step.licence or getattr(options, step.licence))


def run_passes(func: PrimFunc, kind: str) -> PrimFunc:
    """`func` after all passes for `kind`, verified after each one that changed it."""
    verify(func, "nested")
    for step in passes_for(kind):
        func = run_pass(step, func)
    return func


@deep_recursion()
def run_pass(step: PipelineStep, func: PrimFunc) -> PrimFunc:
    """`func` after one step, verified when it changed."""
    result = step.function(func)
    if result is not func:
        verify(result, step.level)
        if is_dumping():
            dump_stage(step.name, print_func(result))
    return result


def find_pass(name: str) -> Pass:
    """The pass of that name; UserError that lists all when there is none."""
    if name not in PASSES:
        raise UserError(f"there is no pass {name!r}", remedy=f"passes: {', '.join(PASSES)}")
    return PASSES[name]
