"""The whole compiler on one screen: lower, run the pipeline, compile, load."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from refcomp.certificates import certify_build
from refcomp.codegen.signature import signature_of
from refcomp.driver.backend import Loading
from refcomp.driver.backends import backend_of
from refcomp.driver.compile import compile_functions
from refcomp.driver.outside_calls import checked_calls
from refcomp.driver.steps import CHECK_ACCESSES, run_pass
from refcomp.foundation.artifacts import Signature
from refcomp.foundation.c_functions import library_paths
from refcomp.foundation.dump import dump_stage, is_dumping
from refcomp.foundation.errors import UserError
from refcomp.foundation.options import current_options
from refcomp.foundation.target import Target, target_or_current
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.printer import print_func
from refcomp.ir.verify import Level, find_fault
from refcomp.lowering.entry_conditions import with_entry_conditions
from refcomp.lowering.lower import lower
from refcomp.runtime.module import Module
from refcomp.schedule.schedule import Schedule
from refcomp.te.tensor import Tensor

# A schedule, its arguments and the name of the function that it becomes.
Scheduled = tuple[Schedule, Sequence[Tensor | Var], str]


def build_functions(
    funcs: Sequence[PrimFunc | Scheduled], target: Target | str | None = None
) -> Module:
    """Compile functions of the loop IR together to one module, whose entry is the first of them.

    Args:
        funcs: a list of functions with different names, as `lower` returns them, or of tuples
            `(schedule, args, name)`.
        target: what to compile for; see `build`.

    Raises:
        UserError: the list is empty, holds something else or two equal names, or holds a function
            that breaks a rule of the loop IR.
        Unsupported: the target cannot express the computation.
        ToolchainError: a tool is missing or fails.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> C = rc.compute((4,), lambda i: A[i] * 2.0, name="C")
        >>> one = rc.lower(rc.create_schedule(B), [A, B], "increment")
        >>> two = rc.lower(rc.create_schedule(C), [A, C], "double")
        >>> module = rc.build_functions([one, two], target="interp")
        >>> c = np.empty(4, "float32")
        >>> module["double"](np.arange(4, dtype="float32"), c)
        >>> print(c)
        [0. 2. 4. 6.]
    """
    if not isinstance(funcs, list | tuple):
        raise UserError(
            f"{funcs!r} is not a list of functions of the loop IR",
            remedy="pass a list such as [refcomp.lower(schedule, [A, B, C])]",
        )
    if not funcs:
        raise UserError(
            "the list of functions to build is empty", remedy="pass at least one"
        )
    chosen = target_or_current(target)
    ready = [_ready(given, chosen) for given in funcs]
    _refuse_equal_names(ready)
    return build_lowered(ready, chosen, len(ready))


def _ready(given: PrimFunc | Scheduled, chosen: Target) -> PrimFunc:
    """Return a given function, or that of a schedule, with its entry conditions."""
    certifies = current_options().certify
    if isinstance(given, tuple):
        schedule, args, name = _checked_scheduled(given)
        if certifies:
            certify_build(schedule, args, name, chosen.kind)
        return with_entry_conditions(lower(schedule, args, name))
    _check_given(given)
    func = with_entry_conditions(given)
    if certifies:
        certify_build(func, (), func.name, chosen.kind)
    return func


def _checked_scheduled(given: tuple[Any, ...]) -> Scheduled:
    if len(given) == 3 and isinstance(given[0], Schedule) and isinstance(given[2], str):
        return given
    raise UserError(
        f"{given!r} cannot be built",
        why="a tuple in a list of functions is a schedule, its arguments and a name",
        remedy='pass (create_schedule(C), [A, B, C], "add")',
    )


def _refuse_equal_names(funcs: Sequence[PrimFunc]) -> None:
    """Raise UserError if two functions of one module have the same name."""
    seen: set[str] = set()
    for func in funcs:
        if func.name in seen:
            raise UserError(
                f"two functions of a module are called {func.name}",
                remedy="give each function a name of its own: (schedule, args, name)",
            )
        seen.add(func.name)


def build_schedule(
    schedule: Schedule, args: Sequence[Tensor | Var], name: str, chosen: Target
) -> Module:
    """Build a module from a schedule, which is certified first if the options ask for it."""
    if current_options().certify:
        certify_build(schedule, args, name, chosen.kind)
    func = with_entry_conditions(lower(schedule, args, name))
    return build_lowered([func], chosen, 1)


def build_lowered(funcs: Iterable[PrimFunc], chosen: Target, count: int) -> Module:
    """Build one module from `count` functions of the nested level.

    An iterable may lower each function when it is asked for it: the first ones are compiled while
    others are still lowered.
    """
    libraries = library_paths(chosen.option("libs", ""))
    texts: list[str] = []
    signatures: list[Signature] = []

    def ready() -> Iterator[PrimFunc]:
        for func in checked_calls(funcs, chosen):
            texts.append(print_func(func))
            if current_options().check_bounds:
                # Now, as the signatures list what is checked.
                func = run_pass(CHECK_ACCESSES, func)
            signatures.append(signature_of(func))
            yield func

    if is_dumping():  # all functions are one stage, which comes before the others
        funcs = list(funcs)
        dump_stage("lowered", "\n".join(print_func(func) for func in funcs))
    compiled = compile_functions(ready(), chosen, count)
    sources = {"loop_ir": "\n".join(texts)}
    loading = Loading(tuple(signatures), sources, libraries)
    return backend_of(chosen).load(compiled, loading)


def _check_given(func: Any) -> None:
    """Raise UserError if `func` is not a function, or is one that the verifier rejects."""
    if isinstance(func, Schedule):
        raise UserError(
            "a schedule in a list has neither arguments nor a name",
            remedy='pass a tuple: (schedule, [A, B, C], "add")',
        )
    if not isinstance(func, PrimFunc):
        raise UserError(
            f"{func!r} cannot be built",
            remedy="pass a schedule, create_schedule(C), or a function of the loop IR",
        )
    fault = find_fault(func, Level.NESTED)
    if fault is not None:
        raise UserError(
            f"the function {func.name} cannot be built: {fault.what}",
            where=None if fault.stmt is None else repr(fault.stmt),
            remedy="`refcomp check FILE` shows the line in the text of the loop IR",
        )
