"""The doors of the interpreter: run a function, a program or an expression of the loop IR.

The interpreter is the definition of what loop IR means, at every level. It refuses

- an access out of range: of a dimension at the nested level, of the whole buffer at the flat level,
- a read of an element that was never written, and a name that is not bound,
- in a kernel, races and barriers that not all threads reach.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.func import PrimFunc, Program, Requirement
from refcomp.ir.printer import print_requirement
from refcomp.ir.stmt import Stmt
from refcomp.oracle.interpreter.expressions import Frame, Shortcut
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.scalars import Scalar, Value, make_scalar
from refcomp.oracle.interpreter.statements import run_to_end
from refcomp.oracle.interpreter.symbols import solve_symbols, unknown_symbol


@deep_recursion()
def interpret(
    func: PrimFunc,
    args: Sequence[object],
    *,
    num_tasks: int = 3,
    libraries: Sequence[str] = (),
    symbols: Mapping[Var, int] | None = None,
    shortcut: Shortcut | None = None,
) -> None:
    """Run `func` on `args`.

    Args:
        func: the function, at any level.
        args: a numpy array for each buffer among the parameters, and a number for each scalar.
            Arrays are written in place. They have the dtype and the shape of their buffer. A u16
            buffer also takes a bfloat16 array, since lowering turns bf16 into u16.
        num_tasks: tasks of each ParallelRegion.
        libraries: paths of shared objects that are searched for C functions before libm and libc.
        symbols: sizes of shape variables. The others are solved from the shapes of the arrays.
        shortcut: is asked before each kernel and each loop of the host (see `Shortcut`). Without
            it every statement runs by itself.

    Raises InterpretError, and whatever registered functions raise.
    """
    frame = Frame(num_tasks=num_tasks)
    frame.libraries = libraries
    bind_arguments(frame, func, args, symbols=symbols)
    run_bound(frame, func.body, shortcut)


@deep_recursion()
def interpret_program(
    program: Program, args: Sequence[object], *, shortcut: Shortcut | None = None
) -> None:
    """Run the host's function of `program` on `args`, and the kernels that it launches.

    `args`, `shortcut` and errors are as for `interpret`.
    """
    frame = Frame(kernels={kernel.name: kernel for kernel in program.kernels})
    bind_arguments(frame, program.host, args)
    run_bound(frame, program.host.body, shortcut)


def run_bound(frame: Frame, body: Stmt, shortcut: Shortcut | None = None) -> None:
    """Run `body` in `frame`, where `bind_arguments` has bound its arguments."""
    frame.shortcut = shortcut
    with np.errstate(all="ignore"):
        run_to_end(frame, body)


@deep_recursion()
def is_fulfilled(requirement: Requirement, bindings: Mapping[Var, Value]) -> bool:
    """Return True if `requirement` holds, at all values of its axes.

    `bindings` has a number for each symbol and scalar.
    """
    frame = Frame()
    for var, value in bindings.items():
        frame.values[var] = make_scalar(value, var.dtype)
    return _is_fulfilled(frame, requirement)


def _is_fulfilled(frame: Frame, requirement: Requirement, outer: int = 0) -> bool:
    """Return True if `requirement` holds at all values of its axes but the `outer` ones."""
    if outer == len(requirement.axes):
        with np.errstate(all="ignore"):
            return bool(frame.evaluate(requirement.condition))
    axis = requirement.axes[outer]
    first = int(frame.evaluate(requirement.minima[outer]))
    count = int(frame.evaluate(requirement.extents[outer]))
    holds = True
    for value in range(first, first + count):
        frame.bind(axis, make_scalar(value, axis.dtype))
        holds = _is_fulfilled(frame, requirement, outer + 1)
        del frame.values[axis]
        if not holds:
            break
    return holds


def evaluate_expr(expr: Expr, bindings: Mapping[Var, Value] | None = None) -> Value:
    """Return the value of `expr`, which reads no memory.

    `bindings` has a number for each free variable, or a tuple of numbers for a vector. Each is
    first converted to the dtype of its variable.
    """
    frame = Frame()
    for var, value in (bindings or {}).items():
        if isinstance(value, tuple):
            frame.values[var] = tuple(make_scalar(lane, var.dtype) for lane in value)
        else:
            frame.values[var] = make_scalar(value, var.dtype)
    with np.errstate(all="ignore"):
        return frame.evaluate(expr)


def bind_arguments(
    frame: Frame,
    func: PrimFunc,
    args: Sequence[object],
    fresh: Collection[str] = (),
    symbols: Mapping[Var, int] | None = None,
) -> None:
    """Bind the parameters and the symbols of `func` in `frame`.

    The buffers named in `fresh` count as never written. `args`, `symbols` and errors are as for
    `interpret`.
    """
    if not isinstance(func, PrimFunc) or not isinstance(args, list | tuple):
        raise UserError(
            f"a {type(func).__name__} is interpreted on a {type(args).__name__}",
            remedy="pass a function of the loop IR, refcomp.lower(s, [A, B]), and a list of arrays",
        )
    if len(args) != len(func.params):
        raise InterpretError(
            f"{func.name} takes {len(func.params)} arguments, {len(args)} given"
        )
    arrays: dict[Buffer, npt.NDArray[np.generic]] = {}
    for param, arg in zip(func.params, args, strict=True):
        bits = _as_bits(param.dtype, arg)
        if isinstance(param, Buffer):
            arrays[param] = _checked_array(param, bits)
        else:
            frame.values[param] = make_scalar(bits, param.dtype)
    _bind_symbols(frame, arrays, symbols or {})
    for buffer, array in arrays.items():
        shape = frame.shape_of(buffer)
        if shape != array.shape:
            raise InterpretError(
                f"{buffer.name} has shape {shape}, {array.shape} given"
            )
        frame.memory[buffer] = Memory(buffer, shape, array, buffer.name in fresh)
    for requirement in func.requires:
        if not _is_fulfilled(frame, requirement):
            sizes = [f"{var.name} = {value}" for var, value in frame.values.items()]
            raise InterpretError(
                f"{func.name} requires {print_requirement(requirement)}",
                where=f"with {', '.join(sizes)}",
            )


def _checked_array(buffer: Buffer, arg: object) -> npt.NDArray[np.generic]:
    if not isinstance(arg, np.ndarray):
        raise InterpretError(f"{buffer.name} is a buffer, {type(arg).__name__} given")
    if arg.dtype != to_numpy(buffer.dtype):
        raise InterpretError(
            f"{buffer.name} has dtype {buffer.dtype}, {arg.dtype} given"
        )
    return arg


def _as_bits(dtype: DType, arg: Scalar) -> Scalar:
    """Return `arg`, or its bits if it is a bfloat16 (array) of numpy and `dtype` is u16."""
    name = getattr(getattr(arg, "dtype", None), "name", "")
    is_wanted = dtype.kind == "uint" and dtype.bits == 16
    return arg.view(np.uint16) if is_wanted and name == "bfloat16" else arg


def _bind_symbols(
    frame: Frame,
    arrays: Mapping[Buffer, npt.NDArray[np.generic]],
    symbols: Mapping[Var, int],
) -> None:
    for buffer, array in arrays.items():
        if len(buffer.shape) != array.ndim:
            raise InterpretError(
                f"{buffer.name} has rank {len(buffer.shape)}, {array.ndim} given"
            )
    shapes = [(buffer, array.shape) for buffer, array in arrays.items()]
    known = {var: int(v) for var, v in frame.values.items() if not var.dtype.is_float}
    for symbol, size in solve_symbols(shapes, {**known, **symbols}).items():
        frame.values.setdefault(symbol, size)
    for buffer in arrays:
        unknown = unknown_symbol(buffer, frame.values)
        if unknown is not None:
            raise InterpretError(
                f"the shape of {buffer.name} needs the size of {unknown.name}, which is not known",
                why=f"no array that is given determines {unknown.name}",
                remedy=f"give it: symbols={{{unknown.name}: 10}}",
            )
