import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith.constants import fold_cast, fold_floats, fold_integers
from refcomp.foundation.dtype import BOOL, F32, F64, I64, SCALAR_DTYPES, as_dtype, to_numpy
from refcomp.ir import expr as ir
from refcomp.ir.expr import FloatImm, IntImm
from tests.arith.evaluate_plain import evaluate, wrap

ARITHMETIC = (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max)
BITS = (ir.BitAnd, ir.BitOr, ir.BitXor, ir.ShiftLeft, ir.ShiftRight)
COMPARISONS = (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE)
INTEGERS = [dtype for dtype in SCALAR_DTYPES if dtype.is_int]
BF16 = as_dtype("bf16")


def _corners(dtype):
    values = {dtype.min_value, dtype.max_value, 0, 1, 2, 3, 7, 8, 9, 63, 64}
    return sorted(values | ({-1, -2, -3, -8} if dtype.kind == "int" else set()))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("cls", (*ARITHMETIC, *BITS, *COMPARISONS), ids=lambda c: c.__name__)
def test_integers_fold_as_the_nodes_say(cls, dtype):
    for a, b in itertools.product(_corners(dtype), repeat=2):
        expected = evaluate(cls(IntImm(a, dtype), IntImm(b, dtype)), {})
        result = BOOL if cls in COMPARISONS else dtype
        assert wrap(fold_integers(cls, a, b, dtype), result) == expected, (a, b)


@pytest.mark.parametrize("cls", (ir.And, ir.Or, ir.EQ, ir.NE), ids=lambda c: c.__name__)
def test_bools(cls):
    for a, b in itertools.product((0, 1), repeat=2):
        assert fold_integers(cls, a, b, BOOL) == evaluate(cls(IntImm(a, BOOL), IntImm(b, BOOL)), {})


def test_by_zero_and_the_least_value():
    least = I64.min_value
    for cls in (ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod):
        assert fold_integers(cls, 7, 0, I64) == 0
    assert wrap(fold_integers(ir.FloorDiv, least, -1, I64), I64) == least
    assert wrap(fold_integers(ir.Div, least, -1, I64), I64) == least
    assert fold_integers(ir.FloorMod, least, -1, I64) == 0


FLOATS = st.floats(width=16) | st.sampled_from([0.0, -0.0, 1.0, 65504.0, 6e-8, math.inf])
OPERATIONS = (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.Min, ir.Max, *COMPARISONS)


@pytest.mark.search
@pytest.mark.parametrize("text", ["f16", "f32", "f64"])
@given(st.data(), st.sampled_from(OPERATIONS))
def test_floats_fold_to_the_bits_of_numpy(text, data, cls):
    dtype = as_dtype(text)
    values = FLOATS if text == "f16" else FLOATS | st.floats(width=dtype.bits)
    a, b = FloatImm(data.draw(values), dtype), FloatImm(data.draw(values), dtype)
    found = fold_floats(cls, a.value, b.value, dtype)
    expected = evaluate(cls(a, b), {})
    if found is None:
        assert np.isnan(expected)
    else:
        assert to_numpy(dtype).type(found).tobytes() == to_numpy(dtype).type(expected).tobytes()


@pytest.mark.search
@given(st.integers(0, 2**16 - 1), st.integers(0, 2**16 - 1), st.sampled_from(OPERATIONS[:4]))
def test_bfloat16_is_rounded_once(a, b, cls):
    """Against exact arithmetic, rounded to the nearest value by searching the neighbours."""
    values = np.array([a, b], np.uint16).view(to_numpy(BF16))
    x, y = map(float, values)
    if not (math.isfinite(x) and math.isfinite(y)) or (cls is ir.Div and y == 0):
        return
    found = fold_floats(cls, x, y, BF16)
    exact = _exact(cls, x, y)
    if found is None or not math.isfinite(found):
        assert found is not None or 0 < abs(exact) < 2.0**-125
        return
    bits = int(np.array(found).astype(to_numpy(BF16)).view(np.uint16))
    for neighbour in {max(bits - 1, 0), min(bits + 1, 0xFFFF)}:
        other = float(np.uint16(neighbour).view(to_numpy(BF16)))
        if math.isfinite(other):
            assert abs(Fraction(found) - exact) <= abs(Fraction(other) - exact)


def _exact(cls, x, y):
    a, b = Fraction(x), Fraction(y)
    return {ir.Add: a + b, ir.Sub: a - b, ir.Mul: a * b}[cls] if cls is not ir.Div else a / b


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (-7.9, "f32", "i32", -7),
        (1e30, "f32", "i32", 2**31 - 1),
        (-math.inf, "f64", "i64", -(2**63)),
        (math.nan, "f32", "i8", 0),
        (-1.0, "f32", "u8", 0),
        (255.9, "f32", "u8", 255),
        (3, "i32", "bool", 1),
        (math.nan, "f32", "bool", 1),
        (-0.0, "f32", "bool", 0),
        (1, "bool", "f16", 1.0),
        (2**53 + 1, "i64", "f64", 2.0**53),
        (2**24 + 1, "i64", "f32", 2.0**24),
        (2**60 + 2**36 + 1, "i64", "f32", 2.0**60 + 2.0**37),
        (2**40, "i64", "f16", math.inf),
        (0.1, "f64", "f32", float(np.float32(0.1))),
        (1e300, "f64", "f32", math.inf),
        (math.inf, "f64", "bf16", math.inf),
        (1.5, "f32", "bf16", 1.5),
        (0.1, "f64", "bf16", None),  # by way of f32 it would be rounded twice
        (2**40 + 1, "i64", "bf16", None),
        (math.nan, "f32", "f64", None),
    ],
)
def test_conversions(value, source, target, expected):
    found = fold_cast(value, as_dtype(source), as_dtype(target))
    assert found == expected and type(found) is type(expected)


def test_integers_wrap_when_the_constant_is_made():
    assert IntImm(fold_cast(-1, I64, as_dtype("u8")), as_dtype("u8")).value == 255


def test_nan_is_not_folded():
    assert fold_floats(ir.Sub, math.inf, math.inf, F32) is None
    assert fold_floats(ir.Div, 0.0, 0.0, F64) is None
