"""The value of each expression of the loop IR: one function per class, one for all binary nodes.

Scalars are as in `refcomp.oracle.scalars`, a vector is a tuple of them, one per lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Expr, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.stmt import Allocate
from refcomp.oracle.failure import InterpretError
from refcomp.oracle.intrinsics import KNOWN, apply_intrinsic
from refcomp.oracle.memory import Memory
from refcomp.oracle.races import Group, Thread
from refcomp.oracle.scalars import OPERATORS, Scalar, make_scalar, wrap

Value = Any  # a Scalar, or a tuple of them: one per lane


class Frame(Thread):
    """A thread with what is bound and what is in memory while it runs a function.

    It may launch `kernels`; `shared` is the shared memory of its group, by allocation, and `lives`
    how often the thread itself has allocated each. `num_tasks` is that of parallel regions.
    """

    def __init__(
        self,
        name: str = "of the host",
        group: Group | None = None,
        *,
        num_tasks: int = 1,
        kernels: Mapping[str, PrimFunc] | None = None,
        shared: dict[Allocate, Memory] | None = None,
    ) -> None:
        super().__init__(name, group)
        self.num_tasks, self.kernels = num_tasks, kernels or {}
        self.shared = {} if shared is None else shared
        self.lives: dict[Allocate, int] = {}
        self.memory: dict[Buffer, Memory] = {}
        self.known: dict[int, Value] = {}

    def evaluate(self, expr: Expr) -> Value:
        """The value of `expr`, evaluating a subexpression that occurs often only once."""
        self.known = {}
        return self.value(expr)

    def value(self, expr: Expr) -> Value:
        key = id(expr)
        if key not in self.known:
            # A Let begins a table of its own, so the result belongs to the table of now.
            self.known[key] = _EXPRESSIONS[type(expr)](self, expr)
        return self.known[key]

    def bind(self, var: Var, value: Value) -> None:
        """Binds `var`, which must not be bound."""
        if var in self.values:
            raise InterpretError(f"variable {var.name} is bound a second time within its scope")
        self.values[var] = value

    def memory_of(self, buffer: Buffer) -> Memory:
        """Where `buffer` lies; it must be bound."""
        if buffer not in self.memory:
            raise InterpretError(f"buffer {buffer.name} is used where it is not bound")
        return self.memory[buffer]

    def shape_of(self, buffer: Buffer) -> tuple[int, ...]:
        """Its shape as numbers; a negative extent is 0."""
        return tuple(max(0, self.evaluate(dim)) for dim in buffer.shape)


def lanes_of(value: Value) -> tuple[Scalar, ...]:
    """The lanes of a vector; a scalar is one lane."""
    return value if isinstance(value, tuple) else (value,)


def _lanewise(function: Callable[..., Scalar], *operands: Value) -> Value:
    if any(isinstance(operand, tuple) for operand in operands):
        return tuple(function(*lane) for lane in zip(*operands, strict=True))
    return function(*operands)


def mask_of(predicate: Value | None, index: Sequence[int]) -> Sequence[bool]:
    """Which lanes of `index` are wanted: all of them when there is no predicate."""
    return [True] * len(index) if predicate is None else lanes_of(predicate)


def _var(frame: Frame, var: Var) -> Value:
    if var not in frame.values:
        raise InterpretError(f"variable {var.name} is used where it is not bound")
    return frame.values[var]


def _constant(_frame: Frame, constant: ir.IntImm | ir.FloatImm) -> Value:
    return make_scalar(constant.value, constant.dtype)


def _cast(frame: Frame, cast: ir.Cast) -> Value:
    return _lanewise(lambda lane: make_scalar(lane, cast.dtype), frame.value(cast.value))


def _binary(frame: Frame, expr: ir.Binary) -> Value:
    meaning, dtype = OPERATORS[type(expr)], expr.a.dtype.element
    a, b = frame.value(expr.a), frame.value(expr.b)
    return _lanewise(lambda x, y: meaning(x, y, dtype), a, b)


def _not(frame: Frame, expr: ir.Not) -> Value:
    return _lanewise(lambda lane: not lane, frame.value(expr.a))


def _select(frame: Frame, expr: ir.Select) -> Value:
    condition = frame.value(expr.condition)
    yes, no = frame.value(expr.true_value), frame.value(expr.false_value)
    if not isinstance(condition, tuple):
        return yes if condition else no
    return _lanewise(lambda c, x, y: x if c else y, condition, yes, no)


def _if_then_else_expr(frame: Frame, expr: ir.IfThenElseExpr) -> Value:
    chosen = frame.value(expr.condition)
    return frame.value(expr.true_value if chosen else expr.false_value)


def _ramp(frame: Frame, ramp: ir.Ramp) -> Value:
    base, stride = frame.value(ramp.base), frame.value(ramp.stride)
    dtype = ramp.base.dtype
    return tuple(wrap(base + wrap(stride * lane, dtype), dtype) for lane in range(ramp.lanes))


def _broadcast(frame: Frame, broadcast: ir.Broadcast) -> Value:
    return (frame.value(broadcast.value),) * broadcast.lanes


def _let(frame: Frame, let: ir.Let) -> Value:
    """The body is evaluated on its own: what was known outside may not hold where var is bound."""
    outside = frame.known
    frame.bind(let.var, frame.value(let.value))
    result = frame.evaluate(let.body)
    del frame.values[let.var]
    frame.known = outside
    return result


def _call(frame: Frame, call: ir.Call) -> Value:
    if call.name not in KNOWN:
        raise InterpretError(f"unknown intrinsic {call.name!r}", remedy=f"known: {sorted(KNOWN)}")
    dtype = call.args[0].dtype.element
    operands = [frame.value(arg) for arg in call.args]
    return _lanewise(lambda *lanes: apply_intrinsic(call.name, lanes, dtype), *operands)


def _buffer_load(frame: Frame, load: BufferLoad) -> Value:
    memory = frame.memory_of(load.buffer)
    offset = memory.offset([frame.value(index) for index in load.indices])
    return memory.read(offset, frame)


def _load(frame: Frame, load: Load) -> Value:
    memory, index = frame.memory_of(load.buffer), frame.value(load.index)
    zero = make_scalar(0, load.buffer.dtype)
    predicate = frame.value(load.predicate) if load.predicate is not None else None
    mask = mask_of(predicate, lanes_of(index))
    read = tuple(
        memory.read(position, frame) if wanted else zero
        for position, wanted in zip(lanes_of(index), mask, strict=True)
    )
    return read if isinstance(index, tuple) else read[0]


_EXPRESSIONS: dict[type[Any], Callable[[Frame, Any], Value]] = {
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
    BufferLoad: _buffer_load,
    Load: _load,
}
