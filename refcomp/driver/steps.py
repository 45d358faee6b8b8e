"""The steps of every pipeline from top to bottom, each with the reason for its place.

A pipeline is one tuple. Its first steps take a whole function. For devices `split_host_device`
makes a Program of the function, and later steps take each kernel, or the host's part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from refcomp.foundation.dump import dump_stage, is_dumping
from refcomp.foundation.options import current_options
from refcomp.foundation.python_limits import deep_recursion
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.printer import print_func, print_program
from refcomp.ir.verify import Level, verify
from refcomp.passes.align_arguments import align_arguments
from refcomp.passes.apply_unroll_pragmas import apply_unroll_pragmas
from refcomp.passes.check_accesses import check_accesses
from refcomp.passes.check_device_limits import check_device_limits
from refcomp.passes.expand_vector_maths import expand_vector_maths
from refcomp.passes.fit_vector_lanes import fit_vector_lanes
from refcomp.passes.flatten_storage import flatten_storage
from refcomp.passes.fuse_multiply_add import fuse_multiply_add
from refcomp.passes.hoist_conditions import hoist_conditions
from refcomp.passes.inject_double_buffers import inject_double_buffers
from refcomp.passes.inject_virtual_threads import inject_virtual_threads
from refcomp.passes.insert_barriers import insert_barriers
from refcomp.passes.introduce_lets import introduce_lets
from refcomp.passes.join_matrix_calls import join_matrix_calls
from refcomp.passes.launch_parallel_loops import launch_parallel_loops
from refcomp.passes.limit_vector_lanes import limit_vector_lanes
from refcomp.passes.lower_bfloat16 import lower_bfloat16
from refcomp.passes.lower_intrinsics import lower_intrinsics
from refcomp.passes.make_selects_lazy import make_selects_lazy
from refcomp.passes.make_shared_memory_dynamic import make_shared_memory_dynamic
from refcomp.passes.narrow_index_types import narrow_index_types
from refcomp.passes.outline_parallel import outline_parallel
from refcomp.passes.partition_loops import partition_loops
from refcomp.passes.reduce_in_subgroups import reduce_in_subgroups
from refcomp.passes.refuse_bound_loops import refuse_bound_loops
from refcomp.passes.remove_no_ops import remove_no_ops
from refcomp.passes.reuse_storage import reuse_storage
from refcomp.passes.serialize_loops import serialize_loops
from refcomp.passes.shorten_vectors import shorten_vectors
from refcomp.passes.simplify_expressions import simplify_expressions
from refcomp.passes.split_host_device import split_host_device
from refcomp.passes.split_vector_loops import split_vector_loops
from refcomp.passes.unroll_loops import unroll_loops
from refcomp.passes.vectorize_loops import vectorize_loops

Pass = Callable[[PrimFunc], PrimFunc]
# What steps take and return: a function, or after the split for a device a Program.
FuncOrProgram = PrimFunc | Program


class Scope(StrEnum):
    """The part of a program that a step receives."""

    FUNCTION = "function"  # the whole function
    SPLIT = "split"  # the whole function, of which it makes a Program
    # Runs on each kernel of the Program, with the limits of the device.
    DEVICE_LIMITS = "limits"
    KERNEL = "kernel"  # each kernel of the Program
    PROGRAM = "program"  # each kernel of the Program, and the host's part
    LAUNCHES = "launches"  # the Program at once: kernels and launches change together


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """A pass at its place in a pipeline."""

    # What it takes and returns depends on the scope.
    function: Callable[..., Any]
    # Of the result, or of its kernels: the host's part of a Program is at `launch`.
    level: Level
    reason: str  # why it stands where it stands
    scope: Scope = Scope.FUNCTION
    licence: str = ""  # the build option without which the step is left out

    @property
    def name(self) -> str:
        """The pass's name."""
        return self.function.__name__


# Steps of several pipelines.
CHECK_ACCESSES = PipelineStep(
    check_accesses,
    Level.NESTED,
    "first: a check names the user's own statement",
    licence="check_bounds",
)
_LAZY = PipelineStep(
    make_selects_lazy, Level.NESTED, "before any pass moves or widens a read"
)
_VIRTUAL_THREADS = PipelineStep(
    inject_virtual_threads, Level.NESTED, "first, while buffers have dimensions to add"
)
_DOUBLE_BUFFERS = PipelineStep(
    inject_double_buffers, Level.NESTED, "before loops are cut: it takes them whole"
)
_CONTRACT = PipelineStep(
    fuse_multiply_add,
    Level.NESTED,
    "while each product is written once",
    licence="contract",
)
_FLATTEN = PipelineStep(
    flatten_storage, Level.FLAT, "vectorizing needs one index per access"
)
_PRAGMAS = PipelineStep(
    apply_unroll_pragmas, Level.FLAT, "the last that reads pragmas, before unrolling"
)
_UNROLL = PipelineStep(
    unroll_loops, Level.FLAT, "after vectorizing, so that only whole vectors are copied"
)
_FOLD = PipelineStep(
    simplify_expressions, Level.FLAT, "copies have constant indices that fold"
)
_NARROW = PipelineStep(
    narrow_index_types,
    Level.FLAT,
    "while loops still show the ranges of indices",
    licence="narrow_indices",
)
_INTRINSICS = PipelineStep(
    lower_intrinsics, Level.FLAT, "before bf16 is gone: the error bounds are by type"
)
_LETS = PipelineStep(
    introduce_lets, Level.HOST, "last, as every other pass may share subtrees"
)

# The pipelines.
HOST_STEPS = (
    CHECK_ACCESSES,
    PipelineStep(
        refuse_bound_loops, Level.NESTED, "early: no other pass need know of kernels"
    ),
    _LAZY,
    _VIRTUAL_THREADS,
    _DOUBLE_BUFFERS,
    PipelineStep(
        simplify_expressions, Level.NESTED, "guards proved here need no masks later"
    ),
    _CONTRACT,
    PipelineStep(
        hoist_conditions, Level.NESTED, "before loops are cut by what is left in them"
    ),
    PipelineStep(
        partition_loops,
        Level.NESTED,
        "before vectorizing: whole tiles then need no masks",
    ),
    _FLATTEN,
    PipelineStep(
        split_vector_loops,
        Level.FLAT,
        "when flattening has joined the quotients that it can",
    ),
    PipelineStep(
        vectorize_loops,
        Level.FLAT,
        "before unrolling, which would copy what it vectorizes",
    ),
    _PRAGMAS,
    _UNROLL,
    _FOLD,
    PipelineStep(
        shorten_vectors, Level.FLAT, "when the masks of unrolled tiles are constants"
    ),
    PipelineStep(
        remove_no_ops, Level.FLAT, "unrolling and folding leave dead branches"
    ),
    PipelineStep(
        reuse_storage, Level.FLAT, "when dead uses are gone, and loops are still whole"
    ),
    _NARROW,
    PipelineStep(
        outline_parallel,
        Level.FLAT,
        "while loops are whole: a region captures few values",
    ),
    _INTRINSICS,
    PipelineStep(lower_bfloat16, Level.HOST, "the last pass that sees a bf16 value"),
    PipelineStep(
        expand_vector_maths, Level.HOST, "when exp of sigmoid and of bf16 is exp of f32"
    ),
    _LETS,
)

INTERPRETER_STEPS = (
    CHECK_ACCESSES,
    _LAZY,
    PipelineStep(
        inject_virtual_threads, Level.NESTED, "while buffers have dimensions to add"
    ),
    PipelineStep(
        insert_barriers, Level.NESTED, "the interpreter refuses races as a GPU cannot"
    ),
)
# The steps until there are kernels that fit the device, and those that lower them.
_TO_KERNELS = (
    CHECK_ACCESSES,
    PipelineStep(
        launch_parallel_loops,
        Level.NESTED,
        "before loops of one iteration vanish: each is a launch",
    ),
    _LAZY,
    _VIRTUAL_THREADS,
    _DOUBLE_BUFFERS,
    PipelineStep(
        simplify_expressions, Level.NESTED, "simple indices are easily proved apart"
    ),
    _CONTRACT,
    PipelineStep(
        insert_barriers,
        Level.NESTED,
        "while indices have dimensions and loops are whole",
    ),
    _FLATTEN,
    PipelineStep(
        vectorize_loops, Level.FLAT, "after barriers: what needs one stays a loop"
    ),
    _PRAGMAS,
    _UNROLL,
    PipelineStep(
        serialize_loops,
        Level.FLAT,
        "a thread of a GPU has no others to share a loop with",
    ),
    _FOLD,
    PipelineStep(
        remove_no_ops, Level.FLAT, "before the split, so that no kernel takes too much"
    ),
    _NARROW,
    PipelineStep(
        split_host_device,
        Level.FLAT,
        "when loops are whole and nothing moves any more",
        Scope.SPLIT,
    ),
    PipelineStep(
        check_device_limits,
        Level.FLAT,
        "as soon as there are kernels to check",
        Scope.DEVICE_LIMITS,
    ),
)
_LOWER_KERNELS = (
    replace(_INTRINSICS, scope=Scope.KERNEL),
    PipelineStep(
        lower_bfloat16,
        Level.DEVICE,
        "after the split, as the host has no floats",
        Scope.PROGRAM,
    ),
)
_KERNEL_LETS = replace(_LETS, level=Level.DEVICE, scope=Scope.KERNEL)

# Steps of the languages whose vectors have 2, 4, 8 or 16 lanes.
_FIT_TO_C = (
    PipelineStep(
        fit_vector_lanes,
        Level.DEVICE,
        "when nothing widens vectors any more",
        Scope.KERNEL,
    ),
    _KERNEL_LETS,
)
OPENCL_STEPS = (*_TO_KERNELS, *_LOWER_KERNELS, *_FIT_TO_C)
# Steps of NVIDIA's GPUs.
DYNAMIC_SHARED_MEMORY = PipelineStep(
    make_shared_memory_dynamic,
    Level.FLAT,
    "behind the check of limits, which counts constant sizes only",
    Scope.LAUNCHES,
)
_ALIGN_ARGUMENTS = PipelineStep(
    align_arguments,
    Level.DEVICE,
    "last, when indices are as they are printed",
    Scope.KERNEL,
)
_REDUCE_IN_SUBGROUPS = PipelineStep(
    reduce_in_subgroups,
    Level.DEVICE,
    "after barriers, and while indices are not hidden in lets",
    Scope.KERNEL,
)
_JOIN_CALLS = PipelineStep(
    join_matrix_calls,
    Level.DEVICE,
    "while operands are alike, and after bfloat16 is lowered",
    Scope.KERNEL,
)
CUDA_STEPS = (
    *_TO_KERNELS,
    DYNAMIC_SHARED_MEMORY,
    *_LOWER_KERNELS,
    _REDUCE_IN_SUBGROUPS,
    _JOIN_CALLS,
    *_FIT_TO_C,
    _ALIGN_ARGUMENTS,
)
# Steps of LLVM's targets, whose vectors may have any lanes.
ROCM_STEPS = (*_TO_KERNELS, *_LOWER_KERNELS, _KERNEL_LETS)
NVPTX_STEPS = (
    *_TO_KERNELS,
    DYNAMIC_SHARED_MEMORY,
    *_LOWER_KERNELS,
    _JOIN_CALLS,
    _REDUCE_IN_SUBGROUPS,
    PipelineStep(
        limit_vector_lanes,
        Level.DEVICE,
        "when nothing widens vectors any more",
        Scope.KERNEL,
    ),
    _KERNEL_LETS,
    _ALIGN_ARGUMENTS,
)


def kernels_of(made: Sequence[FuncOrProgram]) -> list[PrimFunc]:
    """Return the kernels of all Programs among `made`."""
    programs = [program for program in made if isinstance(program, Program)]
    return [kernel for program in programs for kernel in program.kernels]


@deep_recursion()
def run_step(
    step: PipelineStep, made: FuncOrProgram, limits: DeviceLimits | None = None
) -> FuncOrProgram:
    """Run one step. Return `made` itself if nothing changed.

    With the build option `verify_steps`, the result is verified. Device limits are not checked
    without `limits`.
    """
    if isinstance(made, PrimFunc):
        return _split(step, made) if step.scope == Scope.SPLIT else run_pass(step, made)
    host = made.host
    kernels = made.kernels
    if step.scope == Scope.DEVICE_LIMITS:
        for kernel in kernels if limits is not None else ():
            step.function(kernel, limits)
        return made
    if step.scope == Scope.LAUNCHES:
        return _run_on_program(step, made)
    kernels = tuple(run_pass(step, kernel) for kernel in kernels)
    if step.scope == Scope.PROGRAM:
        # The host's part remains at the level at which it launches kernels.
        host = run_pass(replace(step, level=Level.LAUNCH), host)
    is_same = all(new is old for new, old in zip(kernels, made.kernels, strict=True))
    return made if is_same and host is made.host else Program(host, kernels)


@deep_recursion()
def run_pass(step: PipelineStep, func: PrimFunc) -> PrimFunc:
    """Run one step on a function, a kernel or a host's part, as `run_step` does."""
    result: PrimFunc = step.function(func)
    if result is not func:
        _verify_if_asked(result, step)
        if is_dumping():
            dump_stage(step.name, print_func(result))
    return result


def _split(step: PipelineStep, func: PrimFunc) -> Program:
    program: Program = step.function(func)
    _verify_if_asked(program, step)
    if is_dumping():
        dump_stage(step.name, print_program(program))
    return program


def _run_on_program(step: PipelineStep, program: Program) -> Program:
    result: Program = step.function(program)
    if result is not program:
        _verify_if_asked(result, step)
        if is_dumping():
            dump_stage(step.name, print_program(result))
    return result


def _verify_if_asked(made: FuncOrProgram, step: PipelineStep) -> None:
    if current_options().verify_steps:
        verify_made(made, step.level, after=step.name)


def verify_made(made: FuncOrProgram, level: Level, **words: str) -> None:
    """Raise CompilerBug if a function, or a kernel of a Program, is not legal at `level`.

    The host's part of a Program is verified at the level `launch`. `words` are those of `verify`.
    """
    if isinstance(made, PrimFunc):
        verify(made, level, **words)
        return
    verify(made.host, Level.LAUNCH, **words)
    for kernel in made.kernels:
        verify(kernel, level, **words)


def print_made(made: Sequence[FuncOrProgram]) -> str:
    """Print functions and Programs as one text."""
    texts = (
        print_func(one) if isinstance(one, PrimFunc) else print_program(one)
        for one in made
    )
    return "\n".join(texts)
