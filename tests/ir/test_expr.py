"""The expression classes, Python's operators on them, and the questions they refuse."""

import math
import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refcomp.foundation.dtype import BOOL, F32, F64, I64, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, FloatImm, IntImm, Var
from tests.ir.grammar import assert_grammar_holds, classes_in_code
from tests.ir.samples import EXPRS, TEXTS, i, j, x
from tests.strategies.exprs import dtypes, exprs

I8, U8, F16, BF16 = map(as_dtype, ("i8", "u8", "f16", "bf16"))


def test_the_grammar_holds():
    assert_grammar_holds(ir)


def test_there_is_a_sample_of_each_class():
    assert set(classes_in_code(ir)) <= {cls.__name__ for cls in TEXTS}
    assert [type(expr) for expr in EXPRS] == list(TEXTS)


@pytest.mark.parametrize(
    "expr", [e for e in EXPRS if not isinstance(e, ir.EQ | ir.NE)], ids=lambda e: type(e).__name__
)
class TestTruth:
    def test_bool_raises_with_advice(self, expr):
        with pytest.raises(UserError, match="no truth value") as caught:
            bool(expr)
        assert "refcomp.all(a, b)" in caught.value.remedy

    def test_and_or_not_raise(self, expr):
        for ask in (lambda: expr and 1, lambda: expr or 1, lambda: not expr):
            with pytest.raises(UserError, match="no truth value"):
                ask()

    def test_iteration_raises(self, expr):
        with pytest.raises(UserError, match="cannot be iterated"):
            list(expr)


def test_a_chained_comparison_raises_with_advice():
    with pytest.raises(UserError, match="no truth value") as caught:
        assert 0 <= i < j
    assert "chained comparisons" in caught.value.why


def test_equality_builds_a_node_whose_truth_is_structural():
    assert isinstance(i == j, ir.EQ) and isinstance(i != j, ir.NE)
    assert i + 1 == i + 1
    assert i + 1 != i + 2 and bool(i + 1 == i + 2) is False
    assert i in [j, i] and i not in [j]


@pytest.mark.parametrize(
    ("value", "dtype", "held"),
    [
        (200, I8, -56),
        (-1, U8, 255),
        (256, U8, 0),
        (3, BOOL, 1),
        (0, BOOL, 0),
        (1 << 63, I64, -(1 << 63)),
    ],
)
def test_integer_constants_wrap(value, dtype, held):
    assert IntImm(value, dtype).value == held


@pytest.mark.parametrize(
    ("value", "dtype", "held"),
    [
        (0.1, F32, struct.unpack("f", struct.pack("f", 0.1))[0]),
        (0.1, F64, 0.1),
        (2049.0, F16, 2048.0),
        (257.0, BF16, 256.0),
        (1 + 2**-8 + 2**-40, BF16, 1 + 2**-7),  # by way of f32 it would become a tie
        (-(2.0**-133), BF16, -(2.0**-133)),
        (1e300, BF16, math.inf),
        (1e6, F16, math.inf),
    ],
)
def test_float_constants_are_rounded_to_their_dtype(value, dtype, held):
    assert FloatImm(value, dtype).value == held


@given(st.floats(allow_nan=False) | st.floats(width=32, allow_nan=False) | st.floats(-1e5, 1e5))
@example(3.4028235677973366e38)  # half a step beyond the largest f32
@example(3.4028235677973362e38)
@example(-65520.0)  # half a step beyond the largest f16
@example(65519.999)
@example(2.0**-150)  # half of the smallest f32
@example(2.0**-25 * 1.0000001)
def test_float_constants_are_rounded_as_numpy_rounds_them(value):
    with np.errstate(over="ignore", under="ignore"):
        wanted = {F32: float(np.float32(value)), F16: float(np.float16(value))}
    for dtype, held in wanted.items():
        made = FloatImm(value, dtype).value
        assert struct.pack("d", made) == struct.pack("d", held)


def test_the_sign_of_zero_and_nan_survive():
    assert math.copysign(1, FloatImm(-0.0, F16).value) == -1
    assert math.isnan(FloatImm(math.nan, BF16).value)


@pytest.mark.parametrize(
    ("expr", "dtype"),
    [
        (i + j, I64),
        (i < j, BOOL),
        (ir.Ramp(i, j, 4), I64.with_lanes(4)),
        (ir.LT(ir.Ramp(i, j, 4), ir.Broadcast(i, 4)), BOOL.with_lanes(4)),
        (ir.Broadcast(x, 8), F32.with_lanes(8)),
        (ir.Select(i < j, x, x), F32),
        (ir.Let(i, j, x), F32),
        (ir.Not(i < j), BOOL),
    ],
    ids=str,
)
def test_dtypes_are_derived(expr, dtype):
    assert expr.dtype == dtype


def test_python_operators_build_the_node_of_their_name():
    built = [i + 1, i - 1, i * 2, x / 2, i // 2, i % 2, i & 1, i | 1, i ^ 1, i << 1, i >> 1]
    classes = [ir.Add, ir.Sub, ir.Mul, ir.Div, ir.FloorDiv, ir.Mod]
    classes += [ir.BitAnd, ir.BitOr, ir.BitXor, ir.ShiftLeft, ir.ShiftRight]
    assert [type(expr) for expr in built] == classes
    mirrored = [1 + i, 1 - i, 2 * i, 2 / x, 2 // i, 2 % i, 1 & i, 1 | i, 1 ^ i]
    assert [type(expr) for expr in mirrored] == classes[:9]
    assert all(isinstance(expr.a, IntImm | FloatImm) for expr in mirrored)


def test_negation_keeps_the_sign_of_a_float_zero():
    assert isinstance(-x, ir.Mul) and (-x).b.value == -1.0
    assert isinstance(-i, ir.Sub) and (-i).a.value == 0
    assert isinstance(~(i < j), ir.Not) and isinstance(~i, ir.BitXor)


def test_a_deep_tree_is_made_without_recursion():
    expr: Expr = Var("x", I64)
    for _ in range(20_000):
        expr = expr + 1
    assert expr.dtype == I64


@pytest.mark.search
@given(dtypes().flatmap(lambda dtype: exprs(dtype).map(lambda expr: (dtype, expr))))
def test_random_expressions_have_the_dtype_that_was_asked_for(drawn: tuple[DType, Expr]):
    assert drawn[1].dtype == drawn[0]


def test_equal_is_the_comparison():
    i = Var("i", I64)
    condition = i.equal(0)
    assert isinstance(condition, ir.EQ)
    assert condition.a is i
    assert condition.b.value == 0
