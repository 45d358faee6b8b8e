"""The passes between lowering and printing, per kind of target: a list of reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from refcomp.foundation.dump import dump_stage, is_dumping
from refcomp.foundation.errors import UserError
from refcomp.foundation.options import current_options
from refcomp.foundation.python_limits import deep_recursion
from refcomp.foundation.target import DeviceLimits
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.printer import print_func, print_program
from refcomp.ir.verify import verify
from refcomp.passes.apply_unroll_pragmas import apply_unroll_pragmas
from refcomp.passes.check_accesses import check_accesses
from refcomp.passes.check_device_limits import check_device_limits
from refcomp.passes.fit_vector_lanes import fit_vector_lanes
from refcomp.passes.flatten_storage import flatten_storage
from refcomp.passes.fuse_multiply_add import fuse_multiply_add
from refcomp.passes.hoist_conditions import hoist_conditions
from refcomp.passes.inject_double_buffers import inject_double_buffers
from refcomp.passes.inject_virtual_threads import inject_virtual_threads
from refcomp.passes.insert_barriers import insert_barriers
from refcomp.passes.introduce_lets import introduce_lets
from refcomp.passes.lower_bfloat16 import lower_bfloat16
from refcomp.passes.lower_intrinsics import lower_intrinsics
from refcomp.passes.make_selects_lazy import make_selects_lazy
from refcomp.passes.narrow_index_types import narrow_index_types
from refcomp.passes.outline_parallel import outline_parallel
from refcomp.passes.partition_loops import partition_loops
from refcomp.passes.refuse_bound_loops import refuse_bound_loops
from refcomp.passes.remove_no_ops import remove_no_ops
from refcomp.passes.reuse_storage import reuse_storage
from refcomp.passes.serialize_loops import serialize_loops
from refcomp.passes.simplify_expressions import simplify_expressions
from refcomp.passes.split_host_device import split_host_device
from refcomp.passes.unroll_loops import unroll_loops
from refcomp.passes.vectorize_loops import vectorize_loops

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


_NARROW = PipelineStep(
    narrow_index_types, "flat", "while loops tell the ranges of indices", "narrow_indices"
)
CHECK_ACCESSES = PipelineStep(
    check_accesses, "nested", "first: a check names the user's own statement", "check_bounds"
)
_LAZY = PipelineStep(make_selects_lazy, "nested", "before any pass moves or widens a read")
_HOST = (
    CHECK_ACCESSES,
    PipelineStep(refuse_bound_loops, "nested", "early: no other pass need know of kernels"),
    _LAZY,
    PipelineStep(inject_virtual_threads, "nested", "first, while buffers have dimensions to add"),
    PipelineStep(inject_double_buffers, "nested", "before loops are cut: it takes them whole"),
    PipelineStep(simplify_expressions, "nested", "guards proved here need no masks later"),
    PipelineStep(fuse_multiply_add, "nested", "while each product is written once", "contract"),
    PipelineStep(hoist_conditions, "nested", "before loops are cut by what is left in them"),
    PipelineStep(partition_loops, "nested", "before vectorizing: whole tiles then need no masks"),
    PipelineStep(flatten_storage, "flat", "vectorizing needs one index per access"),
    PipelineStep(vectorize_loops, "flat", "before unrolling, which would copy what it vectorizes"),
    PipelineStep(apply_unroll_pragmas, "flat", "the last that reads pragmas, before unrolling"),
    PipelineStep(unroll_loops, "flat", "after vectorizing, so that only whole vectors are copied"),
    PipelineStep(simplify_expressions, "flat", "copies have constant indices that fold"),
    PipelineStep(remove_no_ops, "flat", "unrolling and folding leave dead branches"),
    PipelineStep(reuse_storage, "flat", "when dead uses are gone, and loops are still whole"),
    _NARROW,
    PipelineStep(outline_parallel, "flat", "while loops are whole: a region captures few values"),
    PipelineStep(lower_intrinsics, "flat", "before bf16 is gone: the error bounds are by type"),
    PipelineStep(lower_bfloat16, "host", "the last pass that sees a bf16 value"),
    PipelineStep(introduce_lets, "host", "last, as every other pass may share subtrees"),
)

_INTERPRETER = (
    CHECK_ACCESSES,
    _LAZY,
    PipelineStep(inject_virtual_threads, "nested", "while buffers have dimensions to add"),
    PipelineStep(insert_barriers, "nested", "the interpreter refuses races as a GPU cannot"),
)
_DEVICE = (
    CHECK_ACCESSES,
    _LAZY,
    PipelineStep(inject_virtual_threads, "nested", "first, while buffers have dimensions to add"),
    PipelineStep(inject_double_buffers, "nested", "before loops are cut: it takes them whole"),
    PipelineStep(simplify_expressions, "nested", "simple indices are easily proved apart"),
    PipelineStep(fuse_multiply_add, "nested", "while each product is written once", "contract"),
    PipelineStep(insert_barriers, "nested", "while indices have dimensions and loops are whole"),
    PipelineStep(flatten_storage, "flat", "vectorizing needs one index per access"),
    PipelineStep(vectorize_loops, "flat", "after barriers: what needs one stays a loop"),
    PipelineStep(apply_unroll_pragmas, "flat", "the last that reads pragmas, before unrolling"),
    PipelineStep(unroll_loops, "flat", "after vectorizing, so that only whole vectors are copied"),
    PipelineStep(serialize_loops, "flat", "a thread of a GPU has no others to share a loop with"),
    PipelineStep(simplify_expressions, "flat", "copies have constant indices that fold"),
    PipelineStep(remove_no_ops, "flat", "before the split, so that no kernel takes too much"),
    _NARROW,
)
_LOWER = (
    PipelineStep(lower_intrinsics, "flat", "before bf16 is gone: the error bounds are by type"),
    PipelineStep(lower_bfloat16, "device", "after the split, as the host has no floats"),
)
_LETS = PipelineStep(introduce_lets, "device", "last, as every other pass may share subtrees")
_FIT = PipelineStep(fit_vector_lanes, "device", "when nothing widens vectors any more")

# What a function goes through whole, and on devices what each kernel goes through then.
_PASSES = {"llvm": _HOST, "interp": _INTERPRETER, "opencl": _DEVICE, "rocm": _DEVICE}
_KERNEL_PASSES = {"opencl": (*_LOWER, _FIT, _LETS), "rocm": (*_LOWER, _LETS)}

# Every pass by name, for those who call them one at a time.
PASSES: dict[str, Pass] = {
    step.name: step.function
    for steps in (*_PASSES.values(), *_KERNEL_PASSES.values())
    for step in steps
}


def passes_for(kind: str) -> tuple[PipelineStep, ...]:
    """The steps for a kind of target, in order, as far as the build options license them; for
    devices those before the function is split."""
    steps, options = _PASSES.get(kind, ()), current_options()
    return tuple(step for step in steps if not step.licence or getattr(options, step.licence))


def kernel_passes_for(kind: str) -> tuple[PipelineStep, ...]:
    """The steps that each kernel goes through after the split, in order; none for hosts."""
    return _KERNEL_PASSES.get(kind, ())


def run_passes(func: PrimFunc, kind: str) -> PrimFunc:
    """`func` after all passes for `kind`, verified after each one that changed it."""
    verify(func, "nested")
    for step in passes_for(kind):
        func = run_pass(step, func)
    return func


@deep_recursion()
def run_device_passes(func: PrimFunc, kind: str, limits: DeviceLimits) -> Program:
    """The Program of `func` for a kind of device: its passes, the split, and the kernels' passes.

    UserError for what no device can do, or one of such `limits` cannot.
    """
    program = split_host_device(run_passes(func, kind))
    verify(program.host, "launch")
    if is_dumping():
        dump_stage("split_host_device", print_program(program))
    kernels = [check_device_limits(kernel, limits) for kernel in program.kernels]
    for step in kernel_passes_for(kind):
        kernels = [run_pass(step, kernel) for kernel in kernels]
    host = lower_bfloat16(program.host)
    verify(host, "launch")
    return Program(host, tuple(kernels))


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
