"""Each rule against points of the operands' ranges: no value may lie outside."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import BOOL, F32, F64, I32, DType
from refcomp.ir import expr as ir
from refcomp.oracle.floats import operations as approx
from refcomp.oracle.floats.legal_values import (
    MINUS_INF,
    Approx,
    exact,
    unbounded,
    unknown,
    unknown_truth,
)
from refcomp.oracle.floats.rounding import WIDE
from refcomp.oracle.tensors.arrays import OPERATORS

BF16 = DType("bfloat", 16)
_MORE = 1 + 2.0**-30  # as bound_errors adds, since bounds are rounded, too


def _about(value, error=0.0):
    return Approx(WIDE(value), np.float64(error), np.False_, np.abs(WIDE(value)))


def _points(a):
    if not a.error:
        return [a.value]  # -0.0 + 0 would be another number
    steps = np.linspace(-1, 1, 9)
    return [a.value + WIDE(a.error) * WIDE(step) for step in steps]


def _is_within(found, value):
    if math.isinf(found.error):
        return True
    both_nan = np.isnan(value) and np.isnan(found.value)
    return bool(both_nan or value == found.value or abs(value - found.value) <= found.error * _MORE)


_NUMBERS = st.floats(-1e3, 1e3, width=32)
_ERRORS = st.sampled_from([0.0, 1e-6, 1e-3, 0.5, 20.0])
_APPROX = st.builds(_about, _NUMBERS, _ERRORS)
_BINARY = (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.Min, ir.Max)


@given(st.sampled_from(_BINARY), _APPROX, _APPROX)
def test_binary_operators_enclose(node, a, b):
    meaning = np.fmod if node is ir.Mod else OPERATORS[node]  # the oracle's is of f64 at most
    with np.errstate(all="ignore"):
        found = approx.binary(node, a, b, F32)
        for x, y in itertools.product(_points(a), _points(b)):
            result = WIDE(meaning(np.asarray(x), np.asarray(y)))
            if node not in (ir.Min, ir.Max):  # these never round, and so take numbers of f32 only
                result = WIDE(np.float32(result))
            assert _is_within(found, result), (node, x, y, result, found)


@given(st.sampled_from((ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE)), _APPROX, _APPROX)
def test_decided_comparisons_hold_for_all_values(node, a, b):
    found = approx.binary(node, a, b, F32)
    if not found.error:
        for x, y in itertools.product(_points(a), _points(b)):
            assert OPERATORS[node](x, y) == found.value


def test_casts():
    cut = approx.convert(_about(2.0, 0.1), F32, I32)
    assert math.isinf(cut.error) and cut.doubtful
    assert approx.convert(_about(2.5, 0.1), F32, I32).error == 0
    assert math.isinf(approx.convert(_about(0.0, 0.1), F32, BOOL).error)
    assert approx.convert(exact(np.int32(2**24 + 1), I32), I32, F32).error == pytest.approx(1)
    assert approx.convert(_about(1 / 3), F64, F32).error > 0


def test_choosing_between_equals_is_no_doubt():
    undecided = unknown_truth(np.True_, np.True_)
    same = approx.choose(undecided, _about(2.0), _about(2.0))
    assert same.error == 0 and not same.doubtful
    apart = approx.choose(undecided, _about(2.0), _about(5.0, 0.5))
    assert apart.error == 3.5 and apart.doubtful


def test_integers_are_exact_or_unknown():
    known, lost = exact(np.int32(7), I32), unknown(np.int32(7), np.True_, I32)
    assert approx.binary(ir.FloorMod, known, exact(np.int32(4), I32), I32).value == 3
    assert math.isinf(approx.binary(ir.Add, known, lost, I32).error)
    assert math.isinf(approx.binary(ir.LT, known, lost, I32).error)


def test_what_decides_alone_decides():
    lost = unknown_truth(np.True_, np.True_)
    yes, no = (exact(np.bool_(truth), BOOL) for truth in (True, False))
    assert approx.binary(ir.And, lost, no, BOOL).error == 0
    assert approx.binary(ir.Or, yes, lost, BOOL).error == 0
    assert math.isinf(approx.binary(ir.And, lost, yes, BOOL).error)


def test_casts_to_a_wider_format_are_exact():
    for wide, error in ((1.0, 0.0), (1 / 3, 1e-9)):
        assert approx.convert(_about(wide, error), F32, F64).error == error
    assert approx.convert(_about(2.0**-149), F32, BF16).error > 0


def _overflowing():
    """-4.5e38: -inf as f32, unless a sum takes it unrounded."""
    return approx.binary(ir.Mul, _f32(3e38), _f32(-1.5), F32)


def _f32(value):
    return exact(np.float32(value), F32)


def _sum_with(product, addend=3e38):
    return approx.binary(ir.Add, product, _f32(addend), F32)


_LEFT_AS_IT_IS = {
    "x * 1": lambda x: approx.binary(ir.Mul, x, _f32(1), F32),
    "1 * x": lambda x: approx.binary(ir.Mul, _f32(1), x, F32),
    "x / 1": lambda x: approx.binary(ir.Div, x, _f32(1), F32),
    "x - 0": lambda x: approx.binary(ir.Sub, x, _f32(0), F32),
    "x + -0": lambda x: approx.binary(ir.Add, x, _f32(-0.0), F32),
    "-0 + x": lambda x: approx.binary(ir.Add, _f32(-0.0), x, F32),
    "max(x, x)": lambda x: approx.binary(ir.Max, x, x, F32),
    "min(x, x)": lambda x: approx.binary(ir.Min, x, x, F32),
    "f32(x)": lambda x: approx.convert(x, F32, F32),
    "select(True, x, 2)": lambda x: approx.choose(exact(np.True_, BOOL), x, _f32(2)),
    "select(False, 2, x)": lambda x: approx.choose(exact(np.False_, BOOL), _f32(2), x),
    "(x * 1) / 1 - 0": lambda x: _LEFT_AS_IT_IS["x - 0"](
        _LEFT_AS_IT_IS["x / 1"](_LEFT_AS_IT_IS["x * 1"](x))
    ),
}


@pytest.mark.parametrize("form", _LEFT_AS_IT_IS)
@np.errstate(all="ignore")
def test_a_product_is_contracted_through_what_leaves_it_as_it_is(form):
    found = _sum_with(_LEFT_AS_IT_IS[form](_overflowing()))
    assert found.value == pytest.approx(-1.5e38) and found.error < 3e31
    assert found.others == MINUS_INF


_CHANGING = {
    "x + 0": lambda x: approx.binary(ir.Add, x, _f32(0), F32),
    "x - -0": lambda x: approx.binary(ir.Sub, x, _f32(-0.0), F32),
    "1 / (1 / x)": lambda x: approx.binary(
        ir.Div, _f32(1), approx.binary(ir.Div, _f32(1), x, F32), F32
    ),
    "x * 2": lambda x: approx.binary(ir.Mul, x, _f32(2), F32),
    "x * about 1": lambda x: approx.binary(ir.Mul, x, _about(1.0, 1e-9), F32),
    "min(x, 2)": lambda x: approx.binary(ir.Min, x, _f32(2), F32),
    "f32(f64(x))": lambda x: approx.convert(approx.convert(x, F32, F64), F64, F32),
}


@pytest.mark.parametrize("form", _CHANGING)
@np.errstate(all="ignore")
def test_a_product_is_rounded_before_any_other_operation(form):
    found = _sum_with(_CHANGING[form](_overflowing()))
    assert found.value == -math.inf and found.error == 0
    assert not found.others & ~MINUS_INF


@np.errstate(all="ignore")
def test_a_product_is_rounded_before_it_is_widened():
    widened = approx.convert(_overflowing(), F32, F64)
    found = approx.binary(ir.Add, widened, exact(np.float64(3e38), F64), F64)
    assert (found.value, found.error, found.others) == (-math.inf, 0, 0)


@np.errstate(all="ignore")
def test_the_branch_in_doubt_is_contracted_beside_the_other_one():
    undecided = unknown_truth(np.True_, np.True_)
    for pair in ((_overflowing(), _f32(2)), (_f32(2), _overflowing())):
        found = _sum_with(approx.choose(undecided, *pair))
        for legal in (-1.5e38, 3e38):
            assert _is_within(found, WIDE(legal) * WIDE(0.999999)), legal
        assert found.others & MINUS_INF and found.doubtful


@np.errstate(all="ignore")
def test_each_element_of_a_choice_is_contracted_on_its_own():
    taken = exact(np.array([True, False, True]), BOOL)
    product = approx.binary(ir.Mul, _f32([3e38, 3e38, 2]), _f32([-1.5, -1.5, 3]), F32)
    found = _sum_with(approx.choose(taken, product, _f32([math.inf, -math.inf, 0])))
    assert found.value.tolist() == pytest.approx([-1.5e38, -math.inf, 3e38], rel=1e-6)
    assert found.others.tolist() == [MINUS_INF, 0, 0] and found.error[1] == 0


@np.errstate(all="ignore")
def test_nothing_is_known_of_the_sum_of_a_lost_product():
    product = unbounded(_overflowing(), np.True_)
    assert math.isinf(_sum_with(product).error) and math.isinf(product.unrounded.error)
