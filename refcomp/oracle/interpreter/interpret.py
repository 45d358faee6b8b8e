"""Runs the loop IR in plain Python: the definition of what it means, at every level.

An access out of range, a read of memory never written and a name that is not bound are refused:
each element is checked, by dimension at the nested level and by the whole buffer at the flat one.
In a kernel, races and barriers that not all threads reach are refused, too.
What expressions, statements and kernels mean stands in the files of these names; here are the
doors, and the binding of arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.printer import print_expr
from refcomp.ir.stmt import Stmt
from refcomp.oracle.interpreter.expressions import Frame, Shortcut, Value
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.scalars import make_scalar
from refcomp.oracle.interpreter.statements import run_to_end
from refcomp.oracle.interpreter.symbols import solve_symbols, unknown_symbol


@deep_recursion()
def interpret(
    func: PrimFunc,
    args: Sequence[Any],
    *,
    num_tasks: int = 3,
    libraries: Sequence[str] = (),
    symbols: Mapping[Var, int] | None = None,
    shortcut: Shortcut | None = None,
) -> None:
    """Run `func` on `args`, one per parameter: numpy arrays, written in place, and numbers.

    Arrays have the dtype and the shape of their buffer. The sizes of symbols are solved from the
    shapes, unless `symbols` has them. A u16 buffer takes a bfloat16 array as it lies in memory,
    since lowering turns bf16 into u16. Each ParallelRegion gets `num_tasks` tasks. C functions are
    sought in the shared objects `libraries`, then in libm and libc. `shortcut` is asked before each
    kernel and each loop of the host, see `Shortcut`; without one every statement runs by itself.
    Raises InterpretError, and what registered functions raise.
    """
    frame = Frame(num_tasks=num_tasks)
    frame.libraries = libraries
    bind_arguments(frame, func, args, symbols=symbols)
    run_bound(frame, func.body, shortcut)


@deep_recursion()
def interpret_program(
    program: Program, args: Sequence[Any], *, shortcut: Shortcut | None = None
) -> None:
    """Run the host's function of `program` on `args`, as `interpret` does, and the kernels that
    it launches. Raises InterpretError."""
    frame = Frame(kernels={kernel.name: kernel for kernel in program.kernels})
    bind_arguments(frame, program.host, args)
    run_bound(frame, program.host.body, shortcut)


def run_bound(frame: Frame, body: Stmt, shortcut: Shortcut | None = None) -> None:
    """Run `body`, whose arguments `frame` has bound. Raises InterpretError as `interpret`."""
    frame.shortcut = shortcut
    with np.errstate(all="ignore"):
        run_to_end(frame, body)


@deep_recursion()
def evaluate_expr(expr: Expr, bindings: Mapping[Var, Any] | None = None) -> Value:
    """The value of `expr`, which reads no memory, with its free variables bound to numbers (to
    tuples of numbers for vectors); each is first converted to its variable's dtype."""
    frame = Frame()
    for var, value in (bindings or {}).items():
        frame.values[var] = _make_value(value, var.dtype)
    with np.errstate(all="ignore"):
        return frame.evaluate(expr)


def _make_value(value: Any, dtype: DType) -> Value:
    if isinstance(value, tuple):
        return tuple(make_scalar(lane, dtype) for lane in value)
    return make_scalar(value, dtype)


def bind_arguments(
    frame: Frame,
    func: PrimFunc,
    args: Sequence[Any],
    fresh: Collection[str] = (),
    symbols: Mapping[Var, int] | None = None,
) -> None:
    """Binds the parameters and the symbols of `func` in `frame`; InterpretError as `interpret`.
    The buffers named in `fresh` count as never written."""
    if not isinstance(func, PrimFunc) or not isinstance(args, list | tuple):
        raise UserError(
            f"a {type(func).__name__} is interpreted on a {type(args).__name__}",
            remedy="pass a function of the loop IR, refcomp.lower(s, [A, B]), and a list of arrays",
        )
    if len(args) != len(func.params):
        raise InterpretError(
            f"{func.name} takes {len(func.params)} arguments, {len(args)} given"
        )
    pairs = list(zip(func.params, args, strict=True))
    arrays = [(p, _as_stored(p, arg)) for p, arg in pairs if isinstance(p, Buffer)]
    for param, arg in pairs:
        if isinstance(param, Var):
            frame.values[param] = make_scalar(_as_bits(param, arg), param.dtype)
    _bind_symbols(frame, arrays, symbols or {})
    for buffer, array in arrays:
        shape = frame.shape_of(buffer)
        if shape != array.shape:
            raise InterpretError(
                f"{buffer.name} has shape {shape}, {array.shape} given"
            )
        frame.memory[buffer] = Memory(buffer, shape, array, buffer.name in fresh)
    for requirement in func.requires:
        if not frame.evaluate(requirement.condition):
            sizes = ", ".join(
                f"{var.name} = {value}" for var, value in frame.values.items()
            )
            raise InterpretError(
                f"{func.name} requires {print_expr(requirement.condition)}",
                where=f"with {sizes}",
            )


def _as_stored(buffer: Buffer, arg: Any) -> Any:
    if not isinstance(arg, np.ndarray):
        raise InterpretError(f"{buffer.name} is a buffer, {type(arg).__name__} given")
    stored = arg.view(np.uint16) if _is_bits_of_bfloat16(buffer.dtype, arg) else arg
    if stored.dtype != to_numpy(buffer.dtype):
        raise InterpretError(
            f"{buffer.name} has dtype {buffer.dtype}, {arg.dtype} given"
        )
    return stored


def _as_bits(var: Var, arg: Any) -> Any:
    return arg.view(np.uint16) if _is_bits_of_bfloat16(var.dtype, arg) else arg


def _is_bits_of_bfloat16(dtype: DType, arg: Any) -> bool:
    name = getattr(getattr(arg, "dtype", None), "name", "")
    return name == "bfloat16" and dtype.kind == "uint" and dtype.bits == 16


def _bind_symbols(
    frame: Frame, arrays: Sequence[tuple[Buffer, Any]], symbols: Mapping[Var, int]
) -> None:
    for buffer, array in arrays:
        if len(buffer.shape) != array.ndim:
            raise InterpretError(
                f"{buffer.name} has rank {len(buffer.shape)}, {array.ndim} given"
            )
    shapes = [(buffer, array.shape) for buffer, array in arrays]
    given = {var: int(v) for var, v in frame.values.items() if not var.dtype.is_float}
    for symbol, size in solve_symbols(shapes, {**given, **symbols}).items():
        frame.values.setdefault(symbol, size)
    for buffer, _ in arrays:
        unknown = unknown_symbol(buffer, frame.values)
        if unknown is not None:
            raise InterpretError(
                f"the size of {unknown.name} is not known, which the shape of {buffer.name} needs",
                why=f"no array that is given determines {unknown.name}",
                remedy=f"give it: symbols={{{unknown.name}: 10}}",
            )
