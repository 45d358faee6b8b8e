"""The doors of the interpreter with its shortcut: lockstep, wherever that is possible.

Every result and every error is that of `refcomp.oracle.interpreter`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc, Program
from refcomp.oracle.interpreter import interpret as definition
from refcomp.oracle.interpreter.expressions import Shortcut
from refcomp.oracle.lockstep.launch import LockstepShortcut

MIN_THREADS = 4  # fewer threads run sooner one by one


def interpret(
    func: PrimFunc,
    args: Sequence[object],
    *,
    num_tasks: int = 3,
    libraries: Sequence[str] = (),
    symbols: Mapping[Var, int] | None = None,
    in_step: int | None = MIN_THREADS,
) -> None:
    """Run `func` on `args` as `refcomp.oracle.interpreter.interpret` defines it, but sooner.

    Kernels with at least `in_step` threads, and loops with as many iterations, run in lockstep.
    With None, none do.
    """
    definition.interpret(
        func,
        args,
        num_tasks=num_tasks,
        libraries=libraries,
        symbols=symbols,
        shortcut=shortcut_for(args, in_step),
    )


def interpret_program(
    program: Program, args: Sequence[object], *, in_step: int | None = MIN_THREADS
) -> None:
    """Run the host's function of `program`, and the kernels that it launches, as `interpret`."""
    definition.interpret_program(program, args, shortcut=shortcut_for(args, in_step))


def shortcut_for(args: Sequence[object], in_step: int | None) -> Shortcut | None:
    """Return the shortcut for a run on `args`; None without `in_step` or if arrays overlap.

    Shadow memory belongs to one array, so it does not see races in memory that two arrays share.
    """
    if in_step is None or not isinstance(args, list | tuple):
        return None
    arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
    for a, b in itertools.combinations(arrays, 2):
        if np.may_share_memory(a, b):
            return None
    return LockstepShortcut(in_step)
