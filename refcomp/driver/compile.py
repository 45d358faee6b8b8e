"""From functions of the nested level to code: all steps of a pipeline, then the compiler.

Code can be made for a device that is not there; its kernels then keep to the limits of the back
end's record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from refcomp.driver.backend import CompiledFunctions, PartsCompiler, Print
from refcomp.driver.backends import backend_of
from refcomp.driver.backends.loading import device_limits
from refcomp.driver.pipeline import run_pipeline
from refcomp.driver.progress import build_progress
from refcomp.driver.steps import FuncOrProgram
from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import Unsupported
from refcomp.foundation.python_limits import collect_young, paused_collector
from refcomp.foundation.target import Target, as_target
from refcomp.ir.func import PrimFunc


@paused_collector()
def compile_functions(
    funcs: Iterable[PrimFunc], target: Target | str, count: int | None = None
) -> CompiledFunctions:
    """Run the target's pipeline on each of `funcs`, and compile the results together, in order.

    Args:
        funcs: the functions. Each is taken when the ones before it have passed the pipeline.
        target: the target.
        count: the number of functions, for the progress bar; None if it is not known.

    Raises:
        UserError: the target cannot do what a function asks for.
        ToolchainError: the tools of the target cannot compile.
    """
    chosen = as_target(target)
    backend = backend_of(chosen)
    limits = device_limits(chosen) if backend.has_kernels else None
    with build_progress(count) as progress:
        lowered = (run_pipeline(func, chosen.kind, limits) for func in funcs)
        counted = _collected(progress.counted(lowered))
        if backend.compile is None:
            return CompiledFunctions(chosen, tuple(counted), None)
        if backend.begin_parts is None:
            made = tuple(counted)
            code = backend.compile(made, chosen, limits)
            return CompiledFunctions(chosen, made, code)
        with backend.begin_parts(chosen, limits, progress.part_compiled) as parts:
            made = tuple(_added(parts, counted))
            return CompiledFunctions(chosen, made, parts.finish())


def _collected(lowered: Iterable[FuncOrProgram]) -> Iterator[FuncOrProgram]:
    """Yield each function, and then free what only its compilation needed."""
    for func in lowered:
        yield func
        collect_young()


def _added(
    parts: PartsCompiler, lowered: Iterable[FuncOrProgram]
) -> Iterator[FuncOrProgram]:
    """Yield each function after `parts` has taken it."""
    for func in lowered:
        parts.add(func)
        yield func


@paused_collector()
def compile_to_source(funcs: Sequence[PrimFunc], target: Target | str) -> Source:
    """Run the target's pipeline on `funcs` and print the results; errors as of `printer_of`."""
    chosen = as_target(target)
    print_text = printer_of(chosen)
    return print_text([run_pipeline(func, chosen.kind) for func in funcs], chosen)


def printer_of(target: Target) -> Print:
    """Return the target's printer. Raises Unsupported where a text alone cannot be called."""
    backend = backend_of(target)
    if backend.print is not None:
        return backend.print
    if backend.has_kernels:
        why = "its text alone does not describe how kernels are launched"
    elif backend.compile is None:
        why = "it runs the loop IR as it is"
    else:
        why = "its back end prints only what it compiles at once"
    has_text = backend.compile is not None
    remedy = (
        "`refcomp show` shows the text" if has_text else "print for the target llvm"
    )
    raise Unsupported(
        f"nothing is printed for the target {backend.name}", why=why, remedy=remedy
    )


def texts_of(
    made: Sequence[FuncOrProgram], target: Target
) -> Mapping[str, Callable[[], str]]:
    """Return the texts behind the pipeline, by stage: the sources and the assembly.

    If the record of the back end has no `texts`, the program is compiled at once. Only the compiled
    code then shows which texts there are.
    """
    backend = backend_of(target)
    if backend.texts is not None:
        return backend.texts(made, target)
    if backend.compile is None:
        return {}
    code = backend.compile(
        made, target, device_limits(target) if backend.has_kernels else None
    )
    texts: dict[str, Callable[[], str]] = {
        language: partial(str, text) for language, text in code.sources.items()
    }
    return texts if code.disassemble is None else {**texts, "asm": code.disassemble}
