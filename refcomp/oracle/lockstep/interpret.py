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
    """Run a function of the loop IR by the interpreter, which defines its meaning.

    Outputs are written in place. Loops and kernels run in lockstep by numpy where this finds that
    all is well; otherwise they run statement by statement, as `refcomp.oracle.interpreter` defines.

    Args:
        func: the function, at any level.
        args: an array or a number for each parameter.
        num_tasks: the number of tasks of a parallel region.
        libraries: shared objects with the C functions that it calls.
        symbols: values of symbols; those that are missing follow from the shapes of the arrays.
        in_step: the least number of threads or iterations that run in lockstep; None for no
            lockstep.

    Raises:
        UserError: an argument is missing or does not fit.
        InterpretError: the function breaks a rule: an access out of range, a data race, a divergent
            barrier, a read of memory that was never written.

    Example::

        >>> A = rc.placeholder((3,), name="A")
        >>> B = rc.compute((3,), lambda i: A[i] + 1.0, name="B")
        >>> func = rc.lower(rc.create_schedule(B), [A, B])
        >>> b = np.zeros(3, "float32")
        >>> rc.oracle.interpret(func, [np.arange(3, dtype="float32"), b])
        >>> print(b)
        [1. 2. 3.]
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
