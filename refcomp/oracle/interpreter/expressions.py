"""The value of each expression of the loop IR: one function per class, one for all binary nodes.

Scalars are as in `refcomp.oracle.interpreter.scalars`, a vector is a tuple of them, one per lane. A
kernel evaluates few expressions many times, so each is first made a function of the frame, out of
those of its operands: what can be told from the expression alone is looked up once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Expr, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import asks_others
from refcomp.ir.rewrite import children
from refcomp.ir.stmt import Allocate, For
from refcomp.oracle.interpreter.calls import call_pure
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.interpreter.intrinsics import KNOWN, apply_intrinsic
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.races import Group, Thread
from refcomp.oracle.interpreter.scalars import OPERATORS, Scalar, make_scalar, wrap
from refcomp.oracle.interpreter.waves import Asks, Question, refuse_alone

Value = Any  # a Scalar, or a tuple of them: one per lane
Code = Callable[["Frame"], Value]
# Runs a kernel, or a loop of the host, faster and with the same effect. Returns False if it cannot;
# then nothing has changed, and the interpreter runs the loop itself.
Shortcut = Callable[["Frame", For], bool]
_Compile = Callable[[Expr], Code]


class Frame(Thread):
    """A thread with what is bound and what is in memory while it runs a function.

    It may launch `kernels`; `shared` is the shared memory of its group, by allocation, and `lives`
    how often the thread itself has allocated each. `num_tasks` is that of parallel regions.
    `code` is the expressions evaluated so far, `known` what of the present one is evaluated.
    `answers` are what calls that threads compute together gave it in the present statement.
    C functions are sought in `libraries` first.
    """

    def __init__(
        self,
        name: str = "of the host",
        group: Group | None = None,
        *,
        num_tasks: int = 1,
        kernels: Mapping[str, PrimFunc] | None = None,
        shared: dict[Allocate, Memory] | None = None,
        code: dict[Expr, Code] | None = None,
    ) -> None:
        super().__init__(name, group)
        self.num_tasks, self.kernels = num_tasks, kernels or {}
        self.shared = {} if shared is None else shared
        self.lives: dict[Allocate, int] = {}
        self.memory: dict[Buffer, Memory] = {}
        self.code = {} if code is None else code
        self.known: dict[int, Value] = {}
        self.libraries: Sequence[str] = ()
        self.shortcut: Shortcut | None = None
        self.answers: dict[Expr, Value] = {}

    def evaluate(self, expr: Expr) -> Value:
        """The value of `expr`, evaluating a subexpression that occurs often only once."""
        code = self.code.get(expr)
        if code is None:
            code = self.code[expr] = _compile(expr)
        self.known = {}
        return code(self)

    def ask(self, call: ir.Call | ir.PureExtern, operands: Sequence[Scalar]) -> Scalar:
        """The answer to a call that threads compute together; Asks where there is none yet."""
        if self.group is None:
            refuse_alone(call)
        if call not in self.answers:
            raise Asks(Question(call, operands))
        return self.answers[call]

    def bind(self, var: Var, value: Value) -> None:
        """Binds `var`, which must not be bound."""
        if var in self.values:
            raise InterpretError(
                f"variable {var.name} is bound a second time within its scope"
            )
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


def _compile(expr: Expr) -> Code:
    """How `expr` is evaluated: what occurs in it several times, once."""
    shared, done = _shared_in(expr), dict[int, Code]()

    def compile_(part: Expr) -> Code:
        if id(part) not in done:
            code = _EXPRESSIONS[type(part)](compile_, part)
            done[id(part)] = _once(id(part), code) if id(part) in shared else code
        return done[id(part)]

    return compile_(expr)


def _shared_in(expr: Expr) -> set[int]:
    """The ids of what is an operand of several expressions in `expr`."""
    seen, shared, stack = set[int](), set[int](), [expr]
    while stack:
        for child in children(stack.pop()):
            if id(child) in seen:
                shared.add(id(child))
            elif isinstance(child, Expr):
                seen.add(id(child))
                stack.append(child)
    return shared


def _once(key: int, code: Code) -> Code:
    def value(frame: Frame) -> Value:
        if key not in frame.known:
            # A Let begins a table of its own, so the result belongs to the table of now.
            result = code(frame)
            frame.known[key] = result
        return frame.known[key]

    return value


def _lanewise(function: Callable[..., Scalar], expr: Expr, *operands: Code) -> Code:
    """`function` of the operands' values, lane by lane if `expr` is a vector."""
    if expr.dtype.lanes == 1:
        return lambda frame: function(*[operand(frame) for operand in operands])
    return lambda frame: tuple(
        [function(*lane) for lane in zip(*[of(frame) for of in operands], strict=True)]
    )


def _var(_compile: _Compile, var: Var) -> Code:
    def value(frame: Frame) -> Value:
        if var not in frame.values:
            raise InterpretError(f"variable {var.name} is used where it is not bound")
        return frame.values[var]

    return value


def _constant(_compile: _Compile, constant: ir.IntImm | ir.FloatImm) -> Code:
    value = make_scalar(constant.value, constant.dtype)
    return lambda _frame: value


def _cast(compile_: _Compile, cast: ir.Cast) -> Code:
    dtype = cast.dtype.element
    return _lanewise(lambda lane: make_scalar(lane, dtype), cast, compile_(cast.value))


def _binary(compile_: _Compile, expr: ir.BinaryExpr) -> Code:
    meaning, dtype = OPERATORS[type(expr)], expr.a.dtype.element
    a, b = compile_(expr.a), compile_(expr.b)
    if expr.dtype.lanes == 1:
        return lambda frame: meaning(a(frame), b(frame), dtype)
    return _lanewise(lambda x, y: meaning(x, y, dtype), expr, a, b)


def _not(compile_: _Compile, expr: ir.Not) -> Code:
    return _lanewise(lambda lane: not lane, expr, compile_(expr.a))


def _select(compile_: _Compile, expr: ir.Select) -> Code:
    operands = [
        compile_(part) for part in (expr.condition, expr.true_value, expr.false_value)
    ]
    if expr.condition.dtype.lanes > 1:
        return _lanewise(lambda c, x, y: x if c else y, expr, *operands)

    def value(frame: Frame) -> Value:
        chosen, yes, no = [operand(frame) for operand in operands]
        return yes if chosen else no

    return value


def _if_then_else_expr(compile_: _Compile, expr: ir.IfThenElseExpr) -> Code:
    condition = compile_(expr.condition)
    yes, no = compile_(expr.true_value), compile_(expr.false_value)
    return lambda frame: yes(frame) if condition(frame) else no(frame)


def _ramp(compile_: _Compile, ramp: ir.Ramp) -> Code:
    base_of, stride_of = compile_(ramp.base), compile_(ramp.stride)
    dtype, lanes = ramp.base.dtype, range(ramp.lanes)

    def value(frame: Frame) -> Value:
        base, stride = base_of(frame), stride_of(frame)
        return tuple(wrap(base + wrap(stride * lane, dtype), dtype) for lane in lanes)

    return value


def _broadcast(compile_: _Compile, broadcast: ir.Broadcast) -> Code:
    value, lanes = compile_(broadcast.value), broadcast.lanes
    return lambda frame: (value(frame),) * lanes


def _let(compile_: _Compile, let: ir.Let) -> Code:
    """The body is evaluated on its own: what was known outside may not hold where var is bound."""
    value_of, body, var = compile_(let.value), compile_(let.body), let.var

    def value(frame: Frame) -> Value:
        outside = frame.known
        frame.bind(var, value_of(frame))
        frame.known = {}
        result = body(frame)
        del frame.values[var]
        frame.known = outside
        return result

    return value


def _call(compile_: _Compile, call: ir.Call) -> Code:
    name, dtype = call.name, call.args[0].dtype.element
    if asks_others(call):
        return _together(compile_, call)
    if name not in KNOWN:
        raise InterpretError(
            f"unknown intrinsic {name!r}", remedy=f"known: {sorted(KNOWN)}"
        )
    operands = [compile_(arg) for arg in call.args]
    return _lanewise(
        lambda *lanes: apply_intrinsic(name, lanes, dtype), call, *operands
    )


def _together(compile_: _Compile, call: ir.Call | ir.PureExtern) -> Code:
    operands = [compile_(arg) for arg in call.args]
    return lambda frame: frame.ask(call, [of(frame) for of in operands])


def _pure_extern(compile_: _Compile, call: ir.PureExtern) -> Code:
    if asks_others(call):
        return _together(compile_, call)
    operands = [compile_(arg) for arg in call.args]
    return lambda frame: call_pure(
        call, [of(frame) for of in operands], frame.libraries
    )


def _buffer_load(compile_: _Compile, load: BufferLoad) -> Code:
    buffer, indices = load.buffer, [compile_(index) for index in load.indices]

    def value(frame: Frame) -> Value:
        memory = frame.memory_of(buffer)
        return memory.read(memory.offset([index(frame) for index in indices]), frame)

    return value


def _load(compile_: _Compile, load: Load) -> Code:
    buffer, index_of = load.buffer, compile_(load.index)
    if load.predicate is not None:
        return _masked_load(load, index_of, compile_(load.predicate))
    if load.index.dtype.lanes == 1:
        return lambda frame: frame.memory_of(buffer).read(index_of(frame), frame)

    def value(frame: Frame) -> Value:
        memory = frame.memory_of(buffer)
        return tuple([memory.read(position, frame) for position in index_of(frame)])

    return value


def _masked_load(load: Load, index_of: Code, predicate_of: Code) -> Code:
    buffer, zero = load.buffer, make_scalar(0, load.buffer.dtype)

    def value(frame: Frame) -> Value:
        memory, index, mask = (
            frame.memory_of(buffer),
            index_of(frame),
            predicate_of(frame),
        )
        pairs = zip(lanes_of(index), lanes_of(mask), strict=True)
        read = tuple([memory.read(i, frame) if wanted else zero for i, wanted in pairs])
        return read if isinstance(index, tuple) else read[0]

    return value


_EXPRESSIONS: dict[type[Any], Callable[[_Compile, Any], Code]] = {
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
