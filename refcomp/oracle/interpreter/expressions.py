"""The value of each expression of the loop IR: one function for each class of expression.

Scalars are as in `refcomp.oracle.interpreter.scalars`. A vector is a tuple with one for each lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from refcomp.foundation.c_functions import call_c_function, find_c_function
from refcomp.foundation.dtype import DType
from refcomp.foundation.registered_calls import call_registered
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Expr, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS, is_of_a_wave
from refcomp.ir.kernels import is_collective
from refcomp.ir.stmt import Allocate, For
from refcomp.oracle.interpreter.collectives import (
    Arrival,
    AwaitsOthers,
    dot_product,
    refuse_without_group,
)
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.interpreter.intrinsics import KNOWN, apply_intrinsic
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.races import Group, Thread
from refcomp.oracle.interpreter.scalars import (
    OPERATORS,
    Scalar,
    Value,
    make_scalar,
    wrap,
)

# Runs a kernel, or a loop of the host, faster and with the same effect. Returns False if it cannot;
# then nothing has changed, and the interpreter runs the loop itself.
Shortcut = Callable[["Frame", For], bool]


class Frame(Thread):
    """A thread that runs a function: its variables, its memory and the settings of the run."""

    def __init__(
        self,
        name: str = "of the host",
        group: Group | None = None,
        *,
        num_tasks: int = 1,
        kernels: Mapping[str, PrimFunc] | None = None,
    ) -> None:
        super().__init__(name, group)
        self.memory: dict[Buffer, Memory] = {}
        self.num_tasks = num_tasks  # of each ParallelRegion
        self.kernels = kernels or {}  # by name: those that may be launched
        self.libraries: Sequence[str] = ()  # searched for C functions before libm, libc
        self.shortcut: Shortcut | None = None  # of the host only
        self.shared: dict[Allocate, Memory] = {}  # the shared memory of the group
        self.lifetimes: dict[Allocate, int] = {}  # how often the thread ran each
        # Of the statement that runs: the results of its collective calls.
        self.results: dict[Expr, Value] = {}
        # Of the expression that is evaluated: id -> value of its parts.
        self.known: dict[int, Value] = {}

    def inner_frame(self, name: str, group: Group | None) -> Frame:
        """Return a frame for a task, a kernel or one of its threads, with nothing bound.

        It has the settings of the run, but launches no kernels. A thread of a kernel has no
        shortcut, which was asked for the kernel as a whole.
        """
        inner = Frame(name, group, num_tasks=self.num_tasks)
        inner.libraries = self.libraries
        inner.shortcut = self.shortcut if group is None else None
        inner.origins = self.origins
        return inner

    def evaluate(self, expr: Expr) -> Value:
        """Return the value of `expr`, in which what occurs several times is evaluated once."""
        self.known = {}
        return self.value(expr)

    def value(self, expr: Expr) -> Value:
        """Return the value of `expr`, a part of the expression that is evaluated."""
        value = self.known.get(id(expr))
        if value is None:
            # A Let puts another table in the place of `known`, and restores it in the end.
            value = _EXPRESSIONS[type(expr)](self, expr)
            self.known[id(expr)] = value
        return value

    def bind(self, var: Var, value: Value) -> None:
        """Bind `var`, which must not be bound."""
        if var in self.values:
            raise InterpretError(
                f"variable {var.name} is bound a second time within its scope"
            )
        self.values[var] = value

    def memory_of(self, buffer: Buffer) -> Memory:
        """Return the memory of `buffer`, which must be bound."""
        if buffer not in self.memory:
            raise InterpretError(f"buffer {buffer.name} is used where it is not bound")
        return self.memory[buffer]

    def shape_of(self, buffer: Buffer) -> tuple[int, ...]:
        """Return the shape of `buffer` as numbers; a negative extent is 0."""
        return tuple(max(0, self.evaluate(dim)) for dim in buffer.shape)


def lanes_of(value: Value) -> tuple[Scalar, ...]:
    """Return the lanes of a vector; a scalar is one lane."""
    return value if isinstance(value, tuple) else (value,)


def _lanewise(expr: Expr, function: Callable[..., Scalar], *values: Value) -> Value:
    """Return `function` of `values`, lane by lane if `expr` is a vector."""
    if expr.dtype.lanes == 1:
        return function(*values)
    return tuple(function(*lanes) for lanes in zip(*values, strict=True))


def _var(frame: Frame, var: Var) -> Value:
    if var not in frame.values:
        raise InterpretError(f"variable {var.name} is used where it is not bound")
    return frame.values[var]


def _constant(_frame: Frame, constant: ir.IntImm | ir.FloatImm) -> Scalar:
    return make_scalar(constant.value, constant.dtype)


def _cast(frame: Frame, cast: ir.Cast) -> Value:
    dtype = cast.dtype.element
    value = frame.value(cast.value)
    return _lanewise(cast, lambda lane: make_scalar(lane, dtype), value)


def _binary(frame: Frame, expr: ir.BinaryExpr) -> Value:
    meaning = OPERATORS[type(expr)]
    dtype = expr.a.dtype.element
    a = frame.value(expr.a)
    b = frame.value(expr.b)
    if expr.dtype.lanes == 1:
        return meaning(a, b, dtype)
    return tuple(meaning(x, y, dtype) for x, y in zip(a, b, strict=True))


def _not(frame: Frame, expr: ir.Not) -> Value:
    return _lanewise(expr, lambda lane: not lane, frame.value(expr.a))


def _select(frame: Frame, expr: ir.Select) -> Value:
    """Evaluate both sides and choose; a scalar condition chooses between whole vectors."""
    condition = frame.value(expr.condition)
    true_value = frame.value(expr.true_value)
    false_value = frame.value(expr.false_value)
    if isinstance(condition, tuple):
        lanes = zip(condition, true_value, false_value, strict=True)
        return tuple(x if chosen else y for chosen, x, y in lanes)
    return true_value if condition else false_value


def _if_then_else_expr(frame: Frame, expr: ir.IfThenElseExpr) -> Value:
    condition = frame.value(expr.condition)
    return frame.value(expr.true_value if condition else expr.false_value)


def _ramp(frame: Frame, ramp: ir.Ramp) -> Value:
    base = frame.value(ramp.base)
    stride = frame.value(ramp.stride)
    dtype = ramp.base.dtype
    return tuple(
        wrap(base + wrap(stride * lane, dtype), dtype) for lane in range(ramp.lanes)
    )


def _broadcast(frame: Frame, broadcast: ir.Broadcast) -> Value:
    return (frame.value(broadcast.value),) * broadcast.lanes


def _let(frame: Frame, let: ir.Let) -> Value:
    value = frame.value(let.value)
    # A part of the body that also occurs outside may have another value there.
    outside = frame.known
    frame.known = {}
    frame.bind(let.var, value)
    result = frame.value(let.body)
    del frame.values[let.var]
    frame.known = outside
    return result


def _call(frame: Frame, call: ir.Call) -> Value:
    if is_collective(call):
        return _collective(frame, call)
    if call.name not in KNOWN:
        raise InterpretError(
            f"unknown intrinsic {call.name!r}", remedy=f"known: {sorted(KNOWN)}"
        )
    dtype = call.args[0].dtype.element
    values = [frame.value(arg) for arg in call.args]
    return _lanewise(call, lambda *x: apply_intrinsic(call.name, x, dtype), *values)


def _collective(frame: Frame, call: ir.Call | ir.PureExtern) -> Value:
    operands = [frame.value(arg) for arg in call.args]
    if frame.group is None:
        refuse_without_group(call)
    if call not in frame.results:
        raise AwaitsOthers(Arrival(call, operands))
    return frame.results[call]


def _pure_extern(frame: Frame, call: ir.PureExtern) -> Value:
    if is_collective(call):
        return _collective(frame, call)
    operands = [frame.value(arg) for arg in call.numbers]
    return call_pure(call, operands, frame.libraries)


def call_pure(
    call: ir.PureExtern, operands: Sequence[Scalar], libraries: Sequence[str]
) -> Scalar:
    """Return the result of the function, or of the GPU's instruction, that `call` names.

    `operands` are the values of its numbers.
    """
    if call.callee != ir.C_FUNCTION:
        return _call_registered(call, operands)
    if is_of_a_wave(call):
        refuse_without_group(call)
    if call.name in GPU_INTRINSICS:
        return dot_product(call, operands)
    args = [(value, arg.dtype) for value, arg in zip(operands, call.args, strict=True)]
    result = call_c_function(find_c_function(call.name, libraries), args, call.dtype)
    return make_scalar(result, call.dtype)


def _call_registered(call: ir.PureExtern, operands: Sequence[Scalar]) -> Scalar:
    numbers = iter(operands)
    args: list[object] = []
    for arg in call.args:
        if isinstance(arg, ir.TextImm):
            args.append(arg.value)
        else:
            args.append(python_number(next(numbers), arg.dtype))
    traces = call.callee == ir.TRACE
    # The interpreter silences numpy's warnings; the function gets numpy's defaults.
    with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
        result = call_registered(call.name, args, call.dtype, traces=traces)
    return make_scalar(result, call.dtype)


def python_number(value: Any, dtype: DType) -> bool | int | float:
    """Return a scalar of the interpreter as the number of Python that a function is given."""
    if dtype.is_bool:
        return bool(value)
    return int(value) if dtype.is_int else float(value)


def _buffer_load(frame: Frame, load: BufferLoad) -> Scalar:
    memory = frame.memory_of(load.buffer)
    offset = memory.offset([frame.value(index) for index in load.indices])
    return memory.read(offset, frame)


def _load(frame: Frame, load: Load) -> Value:
    memory = frame.memory_of(load.buffer)
    index = frame.value(load.index)
    positions = lanes_of(index)
    if load.predicate is None:
        lanes = tuple(memory.read(position, frame) for position in positions)
    else:
        zero = make_scalar(0, load.buffer.dtype)
        mask = lanes_of(frame.value(load.predicate))
        lanes = tuple(
            memory.read(position, frame) if wanted else zero
            for position, wanted in zip(positions, mask, strict=True)
        )
    return lanes if isinstance(index, tuple) else lanes[0]


_EXPRESSIONS: dict[type[Expr], Callable[[Frame, Any], Value]] = {
    Var: _var,
    ir.IntImm: _constant,
    ir.FloatImm: _constant,
    ir.Cast: _cast,
    **dict.fromkeys(OPERATORS, _binary),
    ir.Not: _not,
    ir.Select: _select,
    ir.IfThenElseExpr: _if_then_else_expr,
    ir.Ramp: _ramp,
    ir.Broadcast: _broadcast,
    ir.Let: _let,
    ir.Call: _call,
    ir.PureExtern: _pure_extern,
    BufferLoad: _buffer_load,
    Load: _load,
}
