"""Loop-IR text as the interpreter runs it: virtual threads in order, and barriers in kernels.

What `refcomp lower` prints of a kernel has no barriers yet, and the interpreter refuses its races.
So text of the nested level takes the passes of the target interp first, unless it has barriers
already. Text of lower levels is run as it is; where it lacks barriers, the error names the passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from refcomp.cli.levels import level_of
from refcomp.cli.streams import note
from refcomp.driver.pipeline import passes_for
from refcomp.driver.steps import run_pass
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.kernels import kernels_in
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import VTHREAD, Barrier, For
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.lockstep.interpret import interpret, interpret_program


def in_order(func: PrimFunc, advice: str = "") -> PrimFunc:
    """Return `func` with virtual threads in order and barriers in place.

    `func` itself is returned where nothing is to be done; else a note on stderr names the passes,
    and ends with `advice`. Raises what the passes refuse.
    """
    if level_of(func) != "nested" or not _is_unordered(func):
        return func
    changing = []
    for step in passes_for("interp"):
        changed = run_pass(step, func)
        if changed is not func:
            changing.append(step.name)
        func = changed
    if changing:
        note(
            f"{func.name}: ran {', '.join(changing)} first, as the target interp does{advice}"
        )
    return func


def _is_unordered(func: PrimFunc) -> bool:
    has_virtual = any(isinstance(n, For) and n.kind == VTHREAD for n in walk(func.body))
    return has_virtual or _lacks_barriers(func)


def _lacks_barriers(*funcs: PrimFunc) -> bool:
    """Return True if there are kernels in `funcs`, and no barriers."""
    has_kernels = any(any(kernels_in(func.body)) for func in funcs)
    return has_kernels and not any(
        isinstance(n, Barrier) for f in funcs for n in walk(f.body)
    )


def interpret_text(
    func: PrimFunc, args: Sequence[Any], symbols: Mapping[Var, int] | None = None
) -> None:
    """Run `func`, as `refcomp.oracle.interpreter.interpret` does. Raises InterpretError with
    advice."""
    try:
        interpret(func, args, symbols=symbols)
    except InterpretError as error:
        _advise(error, func)
        raise


def interpret_program_text(program: Program, args: Sequence[Any]) -> None:
    """Run a host function and the kernels that it launches. Raises InterpretError with advice."""
    try:
        interpret_program(program, args)
    except InterpretError as error:
        _advise(error, *program.kernels)
        raise


def _advise(error: InterpretError, *funcs: PrimFunc) -> None:
    if error.remedy is None and _lacks_barriers(*funcs):
        error.remedy = (
            "the text has kernels, and no barriers: start from what `refcomp lower` prints, and "
            "run `refcomp pass inject_virtual_threads insert_barriers` before flatten_storage"
        )
