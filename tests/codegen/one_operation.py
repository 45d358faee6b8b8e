"""Kernels of one operation each, for every node, dtype and number of lanes, with edge values.

`Case.operands` are arrays of one length, a multiple of 16; `Case.expected` is what the interpreter
makes of the scalar kernel, so that it judges the vector kernels too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from refcomp.foundation.dtype import BOOL, I64, SCALAR_DTYPES, DType, to_numpy
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.expr import Expr, IntImm, Ramp, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.stmt import For, Store
from refcomp.oracle.lockstep.interpret import interpret

LANES = (1, 4, 16)
DTYPES = tuple(dtype for dtype in SCALAR_DTYPES if dtype.kind != "bfloat")
INTEGERS = tuple(dtype for dtype in DTYPES if dtype.is_int)
FLOATS = tuple(dtype for dtype in DTYPES if dtype.is_float)


def edge_values(dtype: DType) -> np.ndarray:
    """Sixteen values at the borders of `dtype`."""
    if dtype.is_bool:
        return np.array([False, True] * 8)
    if dtype.is_int:
        bits, least, greatest = dtype.bits, dtype.min_value, dtype.max_value
        edges = [0, 1, 2, 3, 7, least, least + 1, greatest, greatest - 1, bits - 1, bits, bits + 1]
        edges += [greatest - 2, greatest // 2, 5, 100] if least == 0 else [-1, -2, -3, -7]
        return np.array(edges, to_numpy(dtype))
    info = np.finfo(to_numpy(dtype))
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, 3.7, -2.7, 1e3, np.inf, -np.inf, np.nan]
    return np.array([*edges, info.smallest_subnormal, -info.tiny, info.max], to_numpy(dtype))


def operands_of(dtype: DType, arity: int) -> list[np.ndarray]:
    """All combinations of edge values, for three operands the half of them."""
    values = edge_values(dtype)
    if arity == 1:
        return [np.concatenate([values, values[::-1]])]
    chosen = (values, values) if arity == 2 else (values[::2], values[1::2], values[::4])
    return [column.ravel().copy() for column in np.meshgrid(*chosen)]


@dataclass(frozen=True)
class Case:
    """One operation on operands of one dtype. `build` makes its expression."""

    name: str
    dtype: DType
    operands: list[np.ndarray]
    build: Callable[..., Expr]

    @cached_property
    def kernels(self) -> dict[int, PrimFunc]:
        """The kernel for each number of lanes."""
        return {lanes: self._kernel(lanes) for lanes in LANES}

    @cached_property
    def expected(self) -> np.ndarray:
        """What the interpreter says."""
        result = self.empty_result()
        interpret(self.kernels[1], [*self.operands, result])
        return result

    def empty_result(self) -> np.ndarray:
        """An array for the result."""
        dtype = self.kernels[1].buffers[-1].dtype
        return np.zeros(len(self.operands[0]), to_numpy(dtype))

    def _kernel(self, lanes: int) -> PrimFunc:
        length = len(self.operands[0])
        shape = (IntImm(length, I64),)
        inputs = [Buffer(f"X{k}", self.dtype, shape) for k in range(len(self.operands))]
        i = Var("i", I64)
        index: Expr = i if lanes == 1 else Ramp(i * lanes, IntImm(1, I64), lanes)
        value = self.build(*(Load(buffer, index) for buffer in inputs))
        output = Buffer("Y", value.dtype.element, shape)
        body = For(
            i, IntImm(0, I64), IntImm(length // lanes, I64), "serial", Store(output, index, value)
        )
        return PrimFunc(f"{self.name}_x{lanes}", (*inputs, output), body, ("Y",))


def splat(value: float, dtype: DType) -> Expr:
    """A constant of `dtype`, which may be a vector type."""
    element = dtype.element
    constant: Expr = (
        ir.FloatImm(value, element) if element.is_float else IntImm(int(value), element)
    )
    return constant if dtype.lanes == 1 else ir.Broadcast(constant, dtype.lanes)


_INT_NODES = (
    *(ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max),
    *(ir.BitAnd, ir.BitOr, ir.BitXor, ir.ShiftLeft, ir.ShiftRight),
)
_FLOAT_NODES = (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.Min, ir.Max)
_COMPARISONS = (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE)


def _nodes_for(dtype: DType) -> tuple[type[Any], ...]:
    if dtype.is_bool:
        return (ir.And, ir.Or, ir.Min, ir.Max, *_COMPARISONS)
    return (*(_FLOAT_NODES if dtype.is_float else _INT_NODES), *_COMPARISONS)


def binary_cases() -> Iterator[Case]:
    """Every binary node on every dtype."""
    for dtype in DTYPES:
        for node in _nodes_for(dtype):
            yield Case(f"{node.__name__}_{dtype}", dtype, operands_of(dtype, 2), node)


def constant_cases() -> Iterator[Case]:
    """Nodes whose printing depends on a constant operand."""
    for dtype in INTEGERS:
        constants = [0, 1, 2, 3, 8, 7, dtype.max_value, dtype.bits - 1, dtype.bits]
        constants += [] if dtype.min_value == 0 else [-1, -2, -3, dtype.min_value]
        nodes = (ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod, ir.ShiftLeft, ir.ShiftRight)
        for node, constant in product(nodes, dict.fromkeys(constants)):
            name = f"{node.__name__}_{dtype}_by_{constant}".replace("-", "minus_")
            yield Case(name, dtype, operands_of(dtype, 1), _with_constant(node, constant))
    for dtype, node in product(FLOATS, (ir.Min, ir.Max)):
        for constant in (0.0, float("nan")):
            for flipped in (False, True):
                build = _with_constant(node, constant, flipped)
                name = f"{node.__name__}_{dtype}_{constant:.0f}_{flipped}"
                yield Case(name, dtype, operands_of(dtype, 1), build)


def _with_constant(node: Any, constant: float, flipped: bool = False) -> Callable[[Expr], Expr]:
    def build(a: Expr) -> Expr:
        b = splat(constant, a.dtype)
        return node(b, a) if flipped else node(a, b)

    return build


def cast_cases() -> Iterator[Case]:
    """Every dtype to every other."""
    for source, target in product(DTYPES, DTYPES):
        if source != target:
            yield Case(f"cast_{source}_{target}", source, operands_of(source, 1), _cast_to(target))


def _cast_to(target: DType) -> Callable[[Expr], Expr]:
    return lambda a: ir.Cast(target.with_lanes(a.dtype.lanes), a)


def choice_cases() -> Iterator[Case]:
    """Select and Not; a scalar condition with Select and IfThenElseExpr of vectors."""
    for dtype in DTYPES:
        operands = operands_of(dtype, 2)
        yield Case(f"select_{dtype}", dtype, operands, lambda a, b: ir.Select(ir.LT(a, b), a, b))
    yield Case("not", BOOL, operands_of(BOOL, 1), ir.Not)


def let_cases() -> Iterator[Case]:
    """Let, whose variable may be a vector."""
    for dtype in (*INTEGERS, *FLOATS):
        yield Case(f"let_{dtype}", dtype, operands_of(dtype, 2), _let)


def _let(a: Expr, b: Expr) -> Expr:
    var = Var("t", a.dtype)
    return ir.Let(var, ir.Add(a, b), ir.Mul(var, var))
