"""Random well-formed functions of the loop IR that can be run, at each level.

`runnable_funcs(level)` gives a function and a value for each of its symbols, for which every access
is in range, allocated memory is written before it is read, and the iterations of parallel loops
do not conflict. `make_arguments` gives arguments for them. All kinds of statements are made, with
constant, symbolic, compound and empty extents; names repeat and may be hostile.

Never made: symbols that are no dimension by themselves; extents above 8; buffers of rank above 3;
reads through an index read from memory, without a clamp; a vector store inside a parallel loop;
loops with variables other than i64 and i32. At level `host`: bfloat16, loops other than serial.
With `exact` (the default): what `tests.strategies.exprs` never makes with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from refcomp.foundation.dtype import BOOL, I32, I64, SCALAR_DTYPES, DType, to_numpy
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Broadcast, Expr, IntImm, Ramp, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import variables_in, walk
from refcomp.ir.stmt import (
    Allocate,
    Block,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    ParallelRegion,
    Stmt,
    Store,
)
from tests.strategies.exprs import LANES, constants, exprs, names
from tests.strategies.rare_statements import RareStatements, offset_in

_KINDS = ("serial", "serial", "parallel", "vectorized", "unrolled")


@dataclass(frozen=True)
class _Memory:
    """A buffer; in a parallel loop, `pins` fixes the index in some dimensions."""

    buffer: Buffer
    pins: Mapping[int, Expr]


@dataclass(frozen=True)
class _Scope:
    """What a statement may use. `indices` are expressions known to lie in [0, dim); `positive`
    are symbolic dimensions known not to be 0."""

    leaves: tuple[Expr, ...] = ()
    indices: tuple[tuple[Expr, Expr], ...] = ()
    positive: tuple[Expr, ...] = ()
    readable: tuple[_Memory, ...] = ()
    writable: tuple[_Memory, ...] = ()
    in_parallel: bool = False
    in_region: bool = False


@st.composite
def runnable_funcs(
    draw: Callable[..., Any], level: str, exact: bool = True, rare: bool = False
) -> tuple[PrimFunc, dict[Var, int]]:
    """A function that is legal at `level`, and the values of its symbols.

    With `rare`, also with what few passes look at: calls of functions of the host (outside of what
    runs at once), prefetches and pragmas.
    """
    maker = _Maker(draw, level, exact, rare)
    func = maker.func()
    return func, {symbol: draw(st.integers(0, 4)) for symbol in func.symbols}


def dim_value(dim: Expr, symbols: Mapping[Var, int]) -> int:
    """The value of a dimension made here: symbols, constants, + * and //."""
    if isinstance(dim, Var):
        return symbols[dim]
    if isinstance(dim, IntImm):
        return dim.value
    assert isinstance(dim, ir.Add | ir.Mul | ir.FloorDiv)
    a, b = dim_value(dim.a, symbols), dim_value(dim.b, symbols)
    return {ir.Add: a + b, ir.Mul: a * b}.get(type(dim), a // b if b else 0)


def make_arguments(func: PrimFunc, symbols: Mapping[Var, int], seed: int = 0) -> list[Any]:
    """Arrays and numbers for `func`, all small integers; outputs hold values too."""
    rng = np.random.default_rng(seed)
    arguments: list[Any] = []
    for param in func.params:
        shape = [dim_value(d, symbols) for d in param.shape] if isinstance(param, Buffer) else []
        low = 0 if param.dtype.kind in ("uint", "bool") else -4
        values = np.asarray(rng.integers(low, 5, shape)).astype(to_numpy(param.dtype))
        arguments.append(values if isinstance(param, Buffer) else values[()])
    return arguments


def assert_same_values(expected: list[Any], actual: list[Any], message: str = "") -> None:
    """AssertionError unless all arguments have equal values; one NaN is as good as another."""
    for arrays in zip(expected, actual, strict=True):
        pair = map(np.asarray, arrays)
        # numpy finds no NaN among numbers of foreign dtypes, such as bfloat16.
        known = [a.astype(np.float64) if a.dtype.kind == "V" else a for a in pair]
        np.testing.assert_array_equal(*known, err_msg=message)


class _Maker(RareStatements):
    """Draws one function. Each statement method takes the scope it stands in."""

    def __init__(self, draw: Callable[..., Any], level: str, exact: bool, rare: bool) -> None:
        self._draw, self._level, self._exact, self._rare = draw, level, exact, rare
        self._dims: list[Expr] = []
        self._dtypes = [d for d in SCALAR_DTYPES if level != "host" or d.kind != "bfloat"]

    def func(self) -> PrimFunc:
        symbols = [Var(name, I64) for name in self._pick(((), ("n",), ("n", "m")))]
        self._dims = [IntImm(self._int(0, 4), I64), IntImm(self._int(1, 8), I64), *symbols]
        self._dims += [self._compound(symbol) for symbol in symbols]
        shapes = [tuple(symbols), *(self._shape() for _ in range(self._int(1, 3)))]
        buffers = [self._buffer(f"A{k}", shape) for k, shape in enumerate(shapes)]
        outputs = buffers[: self._int(1, len(buffers) - 1)] if self._int(0, 1) else buffers[1:]
        scalars = [Var(f"s{k}", self._pick(self._dtypes)) for k in range(self._int(0, 2))]
        memories = tuple(_Memory(buffer, {}) for buffer in buffers)
        scope = _Scope(
            leaves=(*symbols, *scalars),
            readable=memories,
            writable=tuple(m for m in memories if m.buffer in outputs),
        )
        params = self._draw(st.permutations([*buffers, *scalars]))
        body = Block(tuple(self._stmt(scope, 3) for _ in range(self._int(1, 3))))
        return PrimFunc("f", tuple(params), body, tuple(b.name for b in outputs))

    # Choices.

    def _int(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))

    def _pick(self, values: Any) -> Any:
        return self._draw(st.sampled_from(values))

    def _compound(self, symbol: Expr) -> Expr:
        return self._pick(
            (
                ir.Add(symbol, IntImm(1, I64)),
                ir.Mul(symbol, IntImm(2, I64)),
                ir.FloorDiv(ir.Add(symbol, IntImm(3, I64)), IntImm(4, I64)),
            )
        )

    def _shape(self) -> tuple[Expr, ...]:
        return tuple(self._pick(self._dims) for _ in range(self._int(0, 3)))

    def _buffer(self, name: str, shape: tuple[Expr, ...], **rest: Any) -> Buffer:
        return Buffer(name, self._pick(self._dtypes), shape, **rest)

    def _expr(self, dtype: DType, scope: _Scope, depth: int = 2, reads: int = 2) -> Expr:
        leaves = list(scope.leaves)
        leaves += [index for index, _ in scope.indices]
        for _ in range(reads if scope.readable else 0):
            leaves += self._read(self._pick(scope.readable), scope)
        return self._over(leaves, dtype, depth)

    def _over(self, leaves: list[Expr], dtype: DType, depth: int) -> Expr:
        vectors, bfloat = self._level != "nested", self._level != "host"
        options = {"exact": self._exact, "vectors": vectors, "bfloat": bfloat}
        return self._draw(exprs(dtype, leaves, depth=depth, **options))

    # Accesses in range.

    def _read(self, memory: _Memory, scope: _Scope) -> list[Expr]:
        if self._is_accessible(memory, scope):
            return [self._load(memory, scope)]
        guards = [dim for dim in memory.buffer.shape if not isinstance(dim, IntImm)]
        inside = replace(scope, positive=(*scope.positive, *guards))
        if not guards or not self._is_accessible(memory, inside):
            return []
        dtype = memory.buffer.dtype
        otherwise = self._draw(constants(dtype, self._exact))
        return [ir.IfThenElseExpr(_all_positive(guards), self._load(memory, inside), otherwise)]

    def _is_accessible(self, memory: _Memory, scope: _Scope) -> bool:
        return all(
            position in memory.pins or self._is_positive(dim, scope)
            for position, dim in enumerate(memory.buffer.shape)
        )

    def _is_positive(self, dim: Expr, scope: _Scope) -> bool:
        if isinstance(dim, IntImm):
            return dim.value > 0
        known = (*scope.positive, *(bound for _, bound in scope.indices))
        return any(dim is other for other in known)

    def _index(self, memory: _Memory, position: int, scope: _Scope) -> Expr:
        dim = memory.buffer.shape[position]
        if position in memory.pins:
            return memory.pins[position]
        fitting = [index for index, bound in scope.indices if _is_same(bound, dim)]
        last = ir.Sub(dim, IntImm(1, I64))
        if fitting and self._int(0, 3):
            index = self._pick(fitting)
            is_reversed = index.dtype == I64 and self._int(0, 3) == 0
            return ir.Sub(last, index) if is_reversed else index
        any_index = self._expr(I64, scope, depth=1, reads=0)
        if self._int(0, 1):
            return ir.FloorMod(any_index, dim)
        return ir.Min(ir.Max(any_index, IntImm(0, I64)), last)

    def _indices(self, memory: _Memory, scope: _Scope) -> tuple[Expr, ...]:
        rank = len(memory.buffer.shape)
        return tuple(self._index(memory, position, scope) for position in range(rank))

    def _load(self, memory: _Memory, scope: _Scope) -> Expr:
        indices = self._indices(memory, scope)
        if self._level == "nested":
            return BufferLoad(memory.buffer, indices)
        return Load(memory.buffer, offset_in(memory.buffer, indices))

    # Statements.

    def _stmt(self, scope: _Scope, depth: int) -> Stmt:
        simple = [*[self._store] * 4, self._empty]
        if self._level != "nested" and not scope.in_parallel:
            simple += [self._vector_store] * 2
        if self._rare and not scope.in_parallel and not scope.in_region:
            simple += [*[self._store] * 4, self._prefetch]
            simple += [self._call_packed, *[self._call_extern] * 3, self._pure_extern]
        if depth == 0:
            return self._pick(simple)(scope, 0)
        nested = [self._for] * 6 + [self._if, self._let, *[self._allocate, self._block] * 2]
        if self._level == "host" and not scope.in_region:
            nested += [self._region] * 3
        if self._rare and self._level != "host":
            nested += [self._pragma]
        return self._pick(nested if self._int(0, 4) else simple)(scope, depth - 1)

    def _empty(self, _scope: _Scope, _depth: int) -> Stmt:
        return Block(())

    def _block(self, scope: _Scope, depth: int) -> Stmt:
        return Block(tuple(self._stmt(scope, depth) for _ in range(self._int(0, 3))))

    def _store(self, scope: _Scope, _depth: int) -> Stmt:
        targets = [m for m in scope.writable if self._is_accessible(m, scope)]
        if not targets:
            return Block(())
        memory = self._pick(targets)
        value = self._expr(memory.buffer.dtype, scope)
        return self._write(memory, self._indices(memory, scope), value)

    def _write(self, memory: _Memory, indices: tuple[Expr, ...], value: Expr) -> Stmt:
        if self._level == "nested":
            return BufferStore(memory.buffer, indices, value)
        return Store(memory.buffer, offset_in(memory.buffer, indices), value)

    def _if(self, scope: _Scope, depth: int) -> Stmt:
        symbolic = [dim for dim in self._dims if not isinstance(dim, IntImm)]
        if symbolic and self._int(0, 1):
            dim = self._pick(symbolic)
            condition: Expr = _all_positive([dim])
            inside = replace(scope, positive=(*scope.positive, dim))
        else:
            condition, inside = self._expr(BOOL, scope), scope
        otherwise = self._stmt(scope, depth) if self._int(0, 1) else None
        return IfThenElse(condition, self._stmt(inside, depth), otherwise)

    def _let(self, scope: _Scope, depth: int) -> Stmt:
        var = Var(self._draw(names()), self._pick(self._dtypes))
        value = self._expr(var.dtype, scope)
        return LetStmt(var, value, self._stmt(replace(scope, leaves=(*scope.leaves, var)), depth))

    def _allocate(self, scope: _Scope, depth: int) -> Stmt:
        is_local = bool(self._int(0, 1))
        dims = [dim for dim in self._dims if not is_local or isinstance(dim, IntImm)]
        shape = tuple(self._pick(dims) for _ in range(self._int(0, 2)))
        alignment = self._pick((0, 0, 32, 64))
        kind = {"scope": "local"} if is_local else {}
        buffer = self._buffer(self._draw(names()), shape, alignment=alignment, **kind)
        memory = (_Memory(buffer, {}),)
        inside = replace(
            scope, readable=(*scope.readable, *memory), writable=(*scope.writable, *memory)
        )
        return Allocate(buffer, Block((self._fill(memory[0], scope), self._stmt(inside, depth))))

    def _fill(self, memory: _Memory, scope: _Scope) -> Stmt:
        value = self._expr(memory.buffer.dtype, scope, depth=1, reads=1)
        loops = [Var("z", I64) for _ in memory.buffer.shape]
        stmt = self._write(memory, tuple(loops), value)
        for var, dim in reversed(list(zip(loops, memory.buffer.shape, strict=True))):
            stmt = For(var, IntImm(0, I64), dim, "serial", stmt)
        return stmt

    def _for(self, scope: _Scope, depth: int) -> Stmt:
        kind = "serial" if self._level == "host" else self._pick(_KINDS)
        constant = kind in ("vectorized", "unrolled")
        dim = self._pick([d for d in self._dims if not constant or isinstance(d, IntImm)])
        dtype = self._pick((I64, I64, I32))
        var = Var(self._draw(names()), dtype)
        extent = _as_dtype(dim, dtype)
        minimum = self._minimum(dtype, scope)
        is_zero = isinstance(minimum, IntImm) and minimum.value == 0
        index = var if is_zero else ir.Sub(var, minimum)
        inside = _within(scope, index, dim, kind == "parallel")
        if not inside.writable:
            kind, inside = "serial", _within(scope, index, dim, False)
        return For(var, minimum, extent, kind, self._stmt(inside, depth))

    def _minimum(self, dtype: DType, scope: _Scope) -> Expr:
        if self._int(0, 2):
            return IntImm(self._pick((0, 0, 1, -3)), dtype)
        return ir.FloorMod(self._expr(dtype, scope, depth=1, reads=0), IntImm(5, dtype))

    def _vector_store(self, scope: _Scope, _depth: int) -> Stmt:
        if not scope.writable:
            return Block(())
        memory, lanes = self._pick(scope.writable), self._pick(LANES)
        index, predicate = self._vector_index(memory, lanes, scope)
        leaves = self._vector_leaves(lanes, scope)
        value = self._over(leaves, memory.buffer.dtype.with_lanes(lanes), 2)
        return Store(memory.buffer, index, value, predicate)

    def _vector_leaves(self, lanes: int, scope: _Scope) -> list[Expr]:
        memory = self._pick(scope.readable)
        index, predicate = self._vector_index(memory, lanes, scope)
        return [*scope.leaves, Load(memory.buffer, index, predicate)]

    def _vector_index(self, memory: _Memory, lanes: int, scope: _Scope) -> tuple[Expr, Expr | None]:
        """A ramp: masked to the buffer's size, or clamped to it where the size is constant."""
        size, any_base = _size(memory.buffer), self._expr(I64, scope, depth=1, reads=0)
        stride = self._pick((1, 1, 2, 0, -1))
        room = _constant_size(memory.buffer) - 1 - (lanes - 1) * max(stride, 0)
        if room >= 0 and stride >= 0 and self._int(0, 1):
            base = ir.Min(ir.Max(any_base, IntImm(0, I64)), IntImm(room, I64))
            return Ramp(base, IntImm(stride, I64), lanes), None
        near = ir.Min(ir.Max(any_base, IntImm(-3, I64)), size)
        index = Ramp(near, IntImm(stride, I64), lanes)
        low = ir.LE(Broadcast(IntImm(0, I64), lanes), index)
        return index, ir.And(low, ir.LT(index, Broadcast(size, lanes)))

    def _region(self, scope: _Scope, depth: int) -> Stmt:
        """Each task runs one run of the iterations of a parallel loop."""
        dim = self._pick(self._dims)
        task, count = Var("task", I64), Var(self._draw(names()), I64)
        chunk = ir.FloorDiv(ir.Add(dim, ir.Sub(count, IntImm(1, I64))), count)
        start = ir.Mul(task, chunk)
        step, index = Var("step", I64), Var("i", I64)
        inside = replace(_within(scope, index, dim, True), in_region=True)
        body: Stmt = LetStmt(index, ir.Add(start, step), self._stmt(inside, depth))
        extent = ir.Min(chunk, ir.Sub(dim, start))
        body = For(step, IntImm(0, I64), extent, "serial", body)
        captures = [name for name in _free_names(body) if name not in {task, count}]
        return ParallelRegion("f.parallel", tuple(captures), task, count, body)


def _within(scope: _Scope, index: Expr, dim: Expr, is_parallel: bool) -> _Scope:
    """The scope of a loop's body, in which `index` lies in [0, dim)."""
    inside = replace(scope, indices=(*scope.indices, (index, dim)))
    if not is_parallel:
        return inside
    pinned = tuple(p for m in scope.writable if (p := _pin(m, index, dim)) is not None)
    kept = {m.buffer for m in pinned}
    # A loop may read what none of its iterations writes, and of the rest its own part only.
    readable = tuple(m for m in scope.readable if m.buffer not in kept)
    return replace(inside, readable=(*readable, *pinned), writable=pinned, in_parallel=True)


def _pin(memory: _Memory, index: Expr, dim: Expr) -> _Memory | None:
    for position, other in enumerate(memory.buffer.shape):
        if position not in memory.pins and _is_same(dim, other):
            return _Memory(memory.buffer, {**memory.pins, position: index})
    return None


def _is_same(a: Expr, b: Expr) -> bool:
    return a is b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value)


def _as_dtype(dim: Expr, dtype: DType) -> Expr:
    if dim.dtype == dtype:
        return dim
    return IntImm(dim.value, dtype) if isinstance(dim, IntImm) else ir.Cast(dtype, dim)


def _all_positive(dims: list[Expr]) -> Expr:
    condition: Expr = ir.LT(IntImm(0, I64), dims[0])
    for dim in dims[1:]:
        condition = ir.And(condition, ir.LT(IntImm(0, I64), dim))
    return condition


def _size(buffer: Buffer) -> Expr:
    size: Expr = IntImm(1, I64)
    for dim in buffer.shape:
        size = ir.Mul(size, dim)
    return size


def _constant_size(buffer: Buffer) -> int:
    """The number of elements, 0 when that is not a constant."""
    return math.prod(d.value if isinstance(d, IntImm) else 0 for d in buffer.shape)


def _free_names(body: Stmt) -> list[Var | Buffer]:
    used: dict[Var | Buffer, None] = {}
    bound: set[Any] = set()
    for item in walk(body):
        if isinstance(item, Var):
            used[item] = None
        if isinstance(item, BufferLoad | Load | BufferStore | Store):
            used[item.buffer] = None
        if isinstance(item, For | LetStmt | ir.Let):
            bound.add(item.var)
        if isinstance(item, Allocate):
            bound.add(item.buffer)
            used.update(dict.fromkeys(v for dim in item.buffer.shape for v in variables_in(dim)))
    return [name for name in used if name not in bound]
