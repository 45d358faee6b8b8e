"""Runs the loop IR in plain Python: the definition of what it means, at every level.

One function per node class. Scalars are as in `refcomp.oracle.scalars`, a vector is a tuple of
them. What may happen in any order (parallel loops, the tasks of a region) happens in a fixed
scrambled one, so that a program that depends on the order gives another result than it should.
An access out of range, a read of memory never written and a name that is not bound are refused:
each element is checked, by dimension at the nested level and by the whole buffer at the flat one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from refcomp.dtype import DType, to_numpy
from refcomp.errors import RefcompError
from refcomp.ir import expr as ir
from refcomp.ir import stmt as st
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Expr, Var
from refcomp.ir.func import PrimFunc, symbol_of
from refcomp.ir.printer import print_stmt
from refcomp.oracle.intrinsics import KNOWN, apply_intrinsic
from refcomp.oracle.scalars import OPERATORS, Scalar, make_scalar, wrap
from refcomp.python_limits import deep_recursion

Value = Any  # a Scalar, or a tuple of them: one per lane


class InterpretError(RefcompError):
    """The program breaks a rule of the IR; `where` holds the statement and the variables."""


@deep_recursion()
def interpret(func: PrimFunc, args: Sequence[Any], *, num_tasks: int = 3) -> None:
    """Runs `func` on `args`, one per parameter: numpy arrays, written in place, and numbers.

    Arrays have the dtype and the shape of their buffer; symbols are read off the shapes. A u16
    buffer takes a bfloat16 array as it lies in memory, as lowering makes one of the other. Each
    ParallelRegion gets `num_tasks` tasks. Raises InterpretError.
    """
    machine = _Machine(num_tasks)
    _bind_arguments(machine, func, args)
    with np.errstate(all="ignore"):
        machine.run(func.body)


@deep_recursion()
def evaluate_expr(expr: Expr, bindings: Mapping[Var, Any] | None = None) -> Value:
    """The value of `expr`, which reads no memory, with its free variables bound to numbers (to
    tuples of numbers for vectors); each is first converted to its variable's dtype."""
    machine = _Machine(1)
    for var, value in (bindings or {}).items():
        machine.values[var] = _make_value(value, var.dtype)
    with np.errstate(all="ignore"):
        return machine.evaluate(expr)


def _make_value(value: Any, dtype: DType) -> Value:
    if isinstance(value, tuple):
        return tuple(make_scalar(lane, dtype) for lane in value)
    return make_scalar(value, dtype)


def scrambled(count: int) -> list[int]:
    """0, ..., count - 1 in an order that is neither ascending nor descending (from three on)."""
    return [*range(count)[1::2][::-1], *range(count)[::2]]


class _Memory:
    """A buffer's elements, in row-major order, and which of them have been written."""

    def __init__(self, buffer: Buffer, shape: tuple[int, ...], array: Any = None) -> None:
        self.buffer, self.shape, self.size = buffer, shape, math.prod(shape)
        fresh = array is None
        self.array = np.empty(shape, to_numpy(buffer.dtype)) if fresh else array
        self.written = np.zeros(self.size, np.bool_) if fresh else None

    def read(self, index: int) -> Scalar:
        self._check(index)
        if self.written is not None and not self.written[index]:
            raise InterpretError(f"element {index} of {self.buffer.name} is read, never written")
        value = self.array.flat[index]
        return value if self.buffer.dtype.is_float else value.item()

    def write(self, index: int, value: Scalar) -> None:
        self._check(index)
        self.array.flat[index] = value
        if self.written is not None:
            self.written[index] = True

    def offset(self, indices: Sequence[int]) -> int:
        """The row-major position of `indices`, each of which must lie within its dimension."""
        if len(indices) != len(self.shape):
            raise InterpretError(
                f"{self.buffer.name} of rank {len(self.shape)} is given {len(indices)} indices"
            )
        position = 0
        for dim, (index, extent) in enumerate(zip(indices, self.shape, strict=True)):
            if not 0 <= index < extent:
                raise InterpretError(
                    f"index {index} in dimension {dim} of {self.buffer.name} is out of range",
                    why=f"the dimension has {extent} elements",
                )
            position = position * extent + index
        return position

    def _check(self, index: int) -> None:
        if not 0 <= index < self.size:
            raise InterpretError(
                f"element {index} of {self.buffer.name} is out of range",
                why=f"it has {self.size} elements",
            )


class _Machine:
    """What is bound and what is in memory while a function runs."""

    def __init__(self, num_tasks: int) -> None:
        self.num_tasks = num_tasks
        self.values: dict[Var, Value] = {}
        self.memory: dict[Buffer, _Memory] = {}
        self.known: dict[int, Value] = {}

    def run(self, stmt: st.Stmt) -> None:
        try:
            _STATEMENTS[type(stmt)](self, stmt)
        except InterpretError as error:
            if error.where is None:
                error.where = _describe(stmt, self.values)
            raise

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

    def bind(self, var: Var, value: Value, body: Callable[[], Value]) -> Value:
        """What `body()` gives, with `var` bound while it runs."""
        if var in self.values:
            raise InterpretError(f"variable {var.name} is bound a second time within its scope")
        self.values[var] = value
        result = body()
        del self.values[var]
        return result

    def memory_of(self, buffer: Buffer) -> _Memory:
        if buffer not in self.memory:
            raise InterpretError(f"buffer {buffer.name} is used where it is not bound")
        return self.memory[buffer]

    def shape_of(self, buffer: Buffer) -> tuple[int, ...]:
        return tuple(max(0, self.evaluate(dim)) for dim in buffer.shape)


def _describe(stmt: st.Stmt, values: Mapping[Var, Value]) -> str:
    line = print_stmt(stmt).partition("\n")[0]
    bound = ", ".join(f"{var.name} = {value}" for var, value in values.items())
    origin = f" ({stmt.origin})" if stmt.origin else ""
    return f"{line}{origin}" + (f" with {bound}" if bound else "")


# Arguments.


def _bind_arguments(machine: _Machine, func: PrimFunc, args: Sequence[Any]) -> None:
    if len(args) != len(func.params):
        raise InterpretError(f"{func.name} takes {len(func.params)} arguments, {len(args)} given")
    pairs = list(zip(func.params, args, strict=True))
    arrays = [(p, _as_stored(p, arg)) for p, arg in pairs if isinstance(p, Buffer)]
    for param, arg in pairs:
        if isinstance(param, Var):
            machine.values[param] = make_scalar(_as_bits(param, arg), param.dtype)
    for buffer, array in arrays:
        _bind_symbols(machine, buffer, array)
    for buffer, array in arrays:
        shape = machine.shape_of(buffer)
        if shape != array.shape:
            raise InterpretError(f"{buffer.name} has shape {shape}, {array.shape} given")
        machine.memory[buffer] = _Memory(buffer, shape, array)


def _as_stored(buffer: Buffer, arg: Any) -> Any:
    if not isinstance(arg, np.ndarray):
        raise InterpretError(f"{buffer.name} is a buffer, {type(arg).__name__} given")
    stored = arg.view(np.uint16) if _is_bits_of_bfloat16(buffer.dtype, arg) else arg
    if stored.dtype != to_numpy(buffer.dtype):
        raise InterpretError(f"{buffer.name} has dtype {buffer.dtype}, {arg.dtype} given")
    return stored


def _as_bits(var: Var, arg: Any) -> Any:
    return arg.view(np.uint16) if _is_bits_of_bfloat16(var.dtype, arg) else arg


def _is_bits_of_bfloat16(dtype: DType, arg: Any) -> bool:
    name = getattr(getattr(arg, "dtype", None), "name", "")
    return name == "bfloat16" and dtype.kind == "uint" and dtype.bits == 16


def _bind_symbols(machine: _Machine, buffer: Buffer, array: Any) -> None:
    if len(buffer.shape) != array.ndim:
        raise InterpretError(f"{buffer.name} has rank {len(buffer.shape)}, {array.ndim} given")
    for dim, extent in zip(buffer.shape, array.shape, strict=True):
        symbol = symbol_of(dim)
        if symbol is not None and symbol not in machine.values:
            machine.values[symbol] = extent


# Statements: one function per class.


def _for(machine: _Machine, loop: st.For) -> None:
    minimum, extent = machine.evaluate(loop.minimum), machine.evaluate(loop.extent)
    steps: Iterable[int] = range(extent)
    if loop.kind == st.PARALLEL:
        steps = scrambled(extent)
    for step in steps:
        var = wrap(minimum + step, loop.var.dtype)
        machine.bind(loop.var, var, lambda: machine.run(loop.body))


def _buffer_store(machine: _Machine, store: st.BufferStore) -> None:
    value = machine.evaluate(store.value)
    memory = machine.memory_of(store.buffer)
    memory.write(memory.offset([machine.evaluate(index) for index in store.indices]), value)


def _store(machine: _Machine, store: st.Store) -> None:
    value, index = _lanes(machine.evaluate(store.value)), _lanes(machine.evaluate(store.index))
    mask = _mask(machine.evaluate(store.predicate) if store.predicate is not None else None, index)
    memory = machine.memory_of(store.buffer)
    for position, lane, wanted in zip(index, value, mask, strict=True):
        if wanted:
            memory.write(position, lane)


def _allocate(machine: _Machine, allocate: st.Allocate) -> None:
    buffer = allocate.buffer
    machine.memory[buffer] = _Memory(buffer, machine.shape_of(buffer))
    machine.run(allocate.body)
    del machine.memory[buffer]


def _if_then_else(machine: _Machine, branch: st.IfThenElse) -> None:
    if machine.evaluate(branch.condition):
        machine.run(branch.then_case)
    elif branch.else_case is not None:
        machine.run(branch.else_case)


def _block(machine: _Machine, block: st.Block) -> None:
    for stmt in block.stmts:
        machine.run(stmt)


def _let_stmt(machine: _Machine, let: st.LetStmt) -> None:
    machine.bind(let.var, machine.evaluate(let.value), lambda: machine.run(let.body))


def _parallel_region(machine: _Machine, region: st.ParallelRegion) -> None:
    """Each task sees what is captured, and nothing else."""
    for task in scrambled(machine.num_tasks):
        inner = _Machine(machine.num_tasks)
        for capture in region.captures:
            if isinstance(capture, Buffer):
                inner.memory[capture] = machine.memory_of(capture)
            else:
                inner.values[capture] = machine.evaluate(capture)
        inner.values |= {region.task: task, region.num_tasks: machine.num_tasks}
        inner.run(region.body)


_STATEMENTS: dict[type[Any], Callable[[_Machine, Any], None]] = {
    st.For: _for,
    st.BufferStore: _buffer_store,
    st.Store: _store,
    st.Allocate: _allocate,
    st.IfThenElse: _if_then_else,
    st.Block: _block,
    st.LetStmt: _let_stmt,
    st.ParallelRegion: _parallel_region,
}


# Expressions: one function per class, and one for all binary nodes.


def _lanes(value: Value) -> tuple[Scalar, ...]:
    return value if isinstance(value, tuple) else (value,)


def _lanewise(function: Callable[..., Scalar], *operands: Value) -> Value:
    if any(isinstance(operand, tuple) for operand in operands):
        return tuple(function(*lane) for lane in zip(*operands, strict=True))
    return function(*operands)


def _mask(predicate: Value | None, index: Sequence[int]) -> Sequence[bool]:
    return [True] * len(index) if predicate is None else _lanes(predicate)


def _var(machine: _Machine, var: Var) -> Value:
    if var not in machine.values:
        raise InterpretError(f"variable {var.name} is used where it is not bound")
    return machine.values[var]


def _constant(_machine: _Machine, constant: ir.IntImm | ir.FloatImm) -> Value:
    return make_scalar(constant.value, constant.dtype)


def _cast(machine: _Machine, cast: ir.Cast) -> Value:
    return _lanewise(lambda lane: make_scalar(lane, cast.dtype), machine.value(cast.value))


def _binary(machine: _Machine, expr: ir.Binary) -> Value:
    meaning, dtype = OPERATORS[type(expr)], expr.a.dtype.element
    a, b = machine.value(expr.a), machine.value(expr.b)
    return _lanewise(lambda x, y: meaning(x, y, dtype), a, b)


def _not(machine: _Machine, expr: ir.Not) -> Value:
    return _lanewise(lambda lane: not lane, machine.value(expr.a))


def _select(machine: _Machine, expr: ir.Select) -> Value:
    condition = machine.value(expr.condition)
    yes, no = machine.value(expr.true_value), machine.value(expr.false_value)
    if not isinstance(condition, tuple):
        return yes if condition else no
    return _lanewise(lambda c, x, y: x if c else y, condition, yes, no)


def _if_then_else_expr(machine: _Machine, expr: ir.IfThenElseExpr) -> Value:
    chosen = machine.value(expr.condition)
    return machine.value(expr.true_value if chosen else expr.false_value)


def _ramp(machine: _Machine, ramp: ir.Ramp) -> Value:
    base, stride = machine.value(ramp.base), machine.value(ramp.stride)
    dtype = ramp.base.dtype
    return tuple(wrap(base + wrap(stride * lane, dtype), dtype) for lane in range(ramp.lanes))


def _broadcast(machine: _Machine, broadcast: ir.Broadcast) -> Value:
    return (machine.value(broadcast.value),) * broadcast.lanes


def _let(machine: _Machine, let: ir.Let) -> Value:
    """The body is evaluated on its own: what was known outside may not hold where var is bound."""
    outside, value = machine.known, machine.value(let.value)
    result = machine.bind(let.var, value, lambda: machine.evaluate(let.body))
    machine.known = outside
    return result


def _call(machine: _Machine, call: ir.Call) -> Value:
    if call.name not in KNOWN:
        raise InterpretError(f"unknown intrinsic {call.name!r}", remedy=f"known: {sorted(KNOWN)}")
    dtype = call.args[0].dtype.element
    operands = [machine.value(arg) for arg in call.args]
    return _lanewise(lambda *lanes: apply_intrinsic(call.name, lanes, dtype), *operands)


def _buffer_load(machine: _Machine, load: BufferLoad) -> Value:
    memory = machine.memory_of(load.buffer)
    return memory.read(memory.offset([machine.value(index) for index in load.indices]))


def _load(machine: _Machine, load: Load) -> Value:
    memory, index = machine.memory_of(load.buffer), machine.value(load.index)
    zero = make_scalar(0, load.buffer.dtype)
    predicate = machine.value(load.predicate) if load.predicate is not None else None
    mask = _mask(predicate, _lanes(index))
    read = tuple(
        memory.read(position) if wanted else zero
        for position, wanted in zip(_lanes(index), mask, strict=True)
    )
    return read if isinstance(index, tuple) else read[0]


_EXPRESSIONS: dict[type[Any], Callable[[_Machine, Any], Value]] = {
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
