import pytest

from refcomp.arith import Interval, Modular, interval, modular
from refcomp.arith.bounds import range_of_dtype
from refcomp.foundation.dtype import BOOL, I64, as_dtype
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.expr import Call, IfThenElseExpr, IntImm, Var
from tests.arith.facts_text import Scope

FULL = Interval(I64.min_value, I64.max_value)


@pytest.mark.parametrize(
    ("scope", "text", "expected"),
    [
        ("i in 16; j in 4", "i * 4 + j", Interval(0, 63)),
        ("i in 16; j in 4", "i - j", Interval(-3, 15)),
        ("i in 2..7", "i * i", Interval(4, 36)),
        ("n", "n * 4 + 3", Interval(3, None)),
        ("n", "0 - n", Interval(None, 0)),
        ("n", "n % 8", Interval(0, 7)),
        ("n; 4 <= n", "n // 4", Interval(1, None)),
        ("n, m; n * m < 8", "n * m + 1", Interval(1, 8)),
        ("n, m; n - m == 3", "m * 2 - n * 2", Interval(-6, -6)),
        ("x: i64", "x", FULL),
        ("x: i64", "x + 1", FULL),
        ("x: i64", "x // 256", Interval(-(2**55), 2**55 - 1)),
        ("x: i64", "(x & 15) * 2", Interval(0, 30)),
        ("x: i64", "x >> 60", Interval(-8, 7)),
        ("n", "n >> 2", Interval(0, 2**63 - 1)),
        ("x: i64", "x << 1", FULL),
        ("i in 16", "i ^ 3", Interval(0, 15)),
        ("i in 16", "i | 17", Interval(0, 31)),
        ("i in 16; n", "n ^ i", Interval(0, 2**63 - 1)),
        ("x: i64; n", "x | n", FULL),
        ("i in 16", "abs(i - 20)", Interval(0, 2**63 - 1)),
        ("x: i64", "abs(x)", FULL),
        ("x: i64; n", "max(x, 0) + n", FULL),
        ("x: u8", "x >> 4u8", Interval(0, 15)),
        ("x: u8", "i64(x) - 5", Interval(-5, 250)),
        ("x: u8", "i64(i8(x))", Interval(-128, 127)),
        ("x: u8", "x + 1u8", Interval(0, 255)),
        ("i: i32 in 16i32", "i64(i * 4i32)", Interval(0, 60)),
        ("i in 16", "select(i < 4, i, 9)", Interval(0, 15)),
        ("i in 16", "i64(i < 4) + i64(i == 5)", Interval(0, 2)),
        ("i in 16; j in 3..9", "truncdiv(i, j)", Interval(0, 5)),
        ("i in 16; n", "truncmod(i, n - 2)", Interval(0, 15)),
        ("n, m", "truncmod(n, m - 2)", Interval(0, None)),
        ("n, m", "truncmod(n - 2, m)", FULL),
        ("i in 16", "ramp(i, 2, 4)", Interval(0, 21)),
        ("i in 16", "broadcast(i, 4)", Interval(0, 15)),
        ("i in 16", "popcount(i)", Interval(0, 64)),
        ("i in 16", "(let t: i64 = i * 2 in t * t)", Interval(0, 900)),
        ("i in 4; j in 4", "i * 6364136223846793005 + j", FULL),
        ("n", "n * 6364136223846793005", FULL),
        ("x: f32", "i64(x)", FULL),
    ],
)
def test_intervals(scope, text, expected):
    scope = Scope(scope)
    assert interval(scope.expr(text), scope.facts) == expected


@pytest.mark.parametrize(
    ("scope", "text", "expected"),
    [
        ("n", "n * 4 + 3", Modular(4, 3)),
        ("n, m", "n * 4 + m * 6", Modular(2, 0)),
        ("n", "n * 8 // 4", Modular(2, 0)),
        ("n", "(n * 8 + 5) % 4", Modular(0, 1)),
        ("n", "n * 12 % 8", Modular(4, 0)),
        ("n; n % 8 == 3", "n * 2 + 1", Modular(16, 7)),
        ("n; (n + 1) % 8 == 0", "n", Modular(8, 7)),
        ("n; n % 8 == 3", "n // 8", Modular(1, 0)),
        ("n", "min(n * 4, 10)", Modular(2, 0)),
        ("n, m", "select(n < m, n * 4 + 1, 9)", Modular(4, 1)),
        ("x: i32", "x * 12i32", Modular(4, 0)),
        ("x: i32", "i64(x * 4i32 + 1i32)", Modular(4, 1)),
        ("x: u8", "i64(x) * 12", Modular(12, 0)),
        ("x: f32", "i64(x)", Modular(1, 0)),
    ],
)
def test_remainders(scope, text, expected):
    scope = Scope(scope)
    assert modular(scope.expr(text), scope.facts) == expected


def test_a_loaded_value_has_the_range_of_its_type():
    i8 = as_dtype("i8")
    load = Load(Buffer("A", i8, (IntImm(4, I64),)), IntImm(0, I64))
    assert interval(load) == Interval(-128, 127)
    assert interval(Call("clz", (load,), i8)) == Interval(0, 8)


def test_deep_choices_are_not_looked_into():
    expr = IntImm(1, as_dtype("u8"))
    for k in range(12):
        expr = IfThenElseExpr(Var(f"p{k}", BOOL), IntImm(k, expr.dtype), expr)
        expected = Interval(0, k) if k in range(1, 8) else range_of_dtype(expr.dtype)
        assert k == 0 or interval(expr) == expected
    assert modular(expr) == Modular()
