"""Values on arrays, compared with the interpreter, which is the definition."""

import itertools
import math

import numpy as np
import pytest

from refcomp.arith.array_operators import array_operator
from refcomp.foundation.dtype import BOOL, I64, as_dtype, to_numpy
from refcomp.ir import expr as ir
from refcomp.ir.expr import Call, Cast, Not, Select, Var
from refcomp.oracle.interpreter.interpret import evaluate_expr

WHOLE = ("int8", "uint8", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
_ORDERED = (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE, ir.Min, ir.Max)
_NUMBER = (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, *_ORDERED)
_BITS = (ir.BitAnd, ir.BitOr, ir.BitXor, ir.ShiftLeft, ir.ShiftRight)
CASES = [
    *itertools.product((*_NUMBER, ir.FloorDiv, ir.FloorMod, *_BITS), WHOLE),
    *itertools.product(_NUMBER, FLOATS),
]


def _samples(name: str) -> list[float]:
    dtype = as_dtype(name)
    if dtype.is_float:
        return [0.0, 1.0, -2.5, 0.1, 7.0, 1e4, math.inf, -math.inf, math.nan]
    few = [0, 1, 2, 3, 7, 8, 63, 64, 100, -1, -2, -7, dtype.min_value, dtype.max_value]
    return [value for value in few if dtype.min_value <= value <= dtype.max_value]


def _agree(expr: ir.Expr, variables: list[Var], values: list[tuple[float, ...]]) -> None:
    operator = array_operator(expr)
    columns = zip(*values, strict=True)
    with np.errstate(all="ignore"):
        given = [
            np.array(column, to_numpy(var.dtype))
            for var, column in zip(variables, columns, strict=True)
        ]
        found = operator(*given)
    assert found.dtype == to_numpy(expr.dtype)
    for place, point in enumerate(values):
        expected = evaluate_expr(expr, dict(zip(variables, point, strict=True)))
        assert np.array_equal(found[place], expected, equal_nan=expr.dtype.is_float), (
            expr,
            point,
            found[place],
            expected,
        )


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_operators(kind: type[ir.BinaryExpr], name: str) -> None:
    a, b = Var("a", as_dtype(name)), Var("b", as_dtype(name))
    _agree(kind(a, b), [a, b], list(itertools.product(_samples(name), repeat=2)))


@pytest.mark.parametrize(("source", "target"), itertools.product((*WHOLE, *FLOATS), repeat=2))
def test_conversions(source: str, target: str) -> None:
    a = Var("a", as_dtype(source))
    beyond = [1e10, -1e10, 1e19, 3e38] if source in ("float32", "float64") else []
    values = [(value,) for value in (*_samples(source), *beyond)]
    _agree(Cast(as_dtype(target), a), [a], values)
    _agree(Cast(BOOL, a), [a], values)


@pytest.mark.parametrize("name", ["sqrt", "floor", "ceil", "trunc", "round", "abs"])
def test_calls(name: str) -> None:
    for dtype in FLOATS:
        a = Var("a", as_dtype(dtype))
        more = [0.5, 1.5, 2.5, -0.5, 3.7]
        values = [(value,) for value in (*_samples(dtype), *more)]
        _agree(Call(name, (a,), a.dtype), [a], values)


def test_choices_and_bools() -> None:
    a, b, c = Var("a", BOOL), Var("b", I64), Var("c", I64)
    points = [(x, 3, -4) for x in (0, 1)]
    _agree(Select(a, b, c), [a, b, c], points)
    _agree(Not(a), [a], [(0,), (1,)])
    d = Var("d", BOOL)
    for kind in (ir.And, ir.Or, ir.EQ, ir.NE):
        _agree(kind(a, d), [a, d], list(itertools.product((0, 1), repeat=2)))


def test_no_function_for_other_nodes() -> None:
    value = Var("a", as_dtype("float32"))
    assert array_operator(value) is None
    assert array_operator(Call("exp", (value,), value.dtype)) is None
