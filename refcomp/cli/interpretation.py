"""Makes loop-IR text ready for the interpreter, and interprets it.

A kernel as `refcomp lower` prints it has no barriers yet, and the interpreter would refuse its data
races. So text of the nested level first goes through the passes of the target interp, unless it has
barriers already. Text of later levels is run as it is. If it lacks barriers, the error names the
passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refcomp.cli.levels import level_of
from refcomp.cli.streams import note
from refcomp.driver.pipeline import passes_for
from refcomp.driver.steps import run_pass
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.kernels import kernels_in
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import VTHREAD, Barrier, For
from refcomp.ir.verify import Level
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.lockstep.interpret import interpret, interpret_program
from refcomp.runtime.device import HostArray


def in_order(func: PrimFunc, advice: str = "") -> PrimFunc:
    """Return `func` with virtual threads in order and barriers in place.

    If anything changes, a note on stderr lists the passes, and ends with `advice`. Raise what the
    passes raise.
    """
    if level_of(func) != Level.NESTED:
        return func
    has_virtual = any(isinstance(n, For) and n.kind == VTHREAD for n in walk(func.body))
    if not has_virtual and not _lacks_barriers(func):
        return func
    changing = []
    for step in passes_for("interp"):
        changed = run_pass(step, func)
        if changed is not func:
            changing.append(step.name)
        func = changed
    if changing:
        names = ", ".join(changing)
        note(f"{func.name}: ran {names} first, as the target interp does{advice}")
    return func


def _lacks_barriers(*funcs: PrimFunc) -> bool:
    """Return True if there are kernels in `funcs`, and no barriers."""
    if not any(any(kernels_in(func.body)) for func in funcs):
        return False
    return not any(isinstance(n, Barrier) for f in funcs for n in walk(f.body))


def interpret_text(
    func: PrimFunc,
    args: Sequence[HostArray | int | float],
    symbols: Mapping[Var, int] | None = None,
) -> None:
    """Run `func` as `refcomp.oracle.lockstep.interpret` does.

    Its InterpretError says which passes are missing, if barriers are.
    """
    try:
        interpret(func, args, symbols=symbols)
    except InterpretError as error:
        _advise(error, func)
        raise


def interpret_program_text(
    program: Program, args: Sequence[HostArray | int | float]
) -> None:
    """Run a host function and the kernels that it launches. Raise as `interpret_text` does."""
    try:
        interpret_program(program, args)
    except InterpretError as error:
        _advise(error, *program.kernels)
        raise


def _advise(error: InterpretError, *funcs: PrimFunc) -> None:
    # An error of another kind has its own remedy.
    if error.remedy is None and _lacks_barriers(*funcs):
        error.remedy = (
            "the text has kernels, and no barriers: start from what `refcomp lower` prints, and "
            "run `refcomp pass inject_virtual_threads insert_barriers` before flatten_storage"
        )
