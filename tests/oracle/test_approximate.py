"""Each rule against points of the operands' ranges: no value may lie outside."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.dtype import BOOL, F32, F64, I32, DType
from refcomp.ir import expr as ir
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.oracle import approximate as approx
from refcomp.oracle.approximate import WIDE, Approx, exact
from refcomp.oracle.arrays import OPERATORS
from refcomp.oracle.intrinsics import FLOAT_FUNCTIONS

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


_UNARY = sorted(n for n in FLOAT_FUNCTIONS if INTRINSICS[n].arity == 1)


@given(st.sampled_from(_UNARY), st.floats(-20, 20, width=32), _ERRORS)
def test_functions_enclose(name, value, error):
    a = _about(value, error)
    with np.errstate(all="ignore"):
        found = approx.call(name, [a], F32, F32)
        for x in _points(a):
            result = FLOAT_FUNCTIONS[name](np.float64(x)) if name == "erf" else None
            result = FLOAT_FUNCTIONS[name](x) if result is None else result
            assert _is_within(found, WIDE(np.float32(result))), (name, x, result, found)


@given(st.sampled_from(("pow", "atan2", "hypot", "copysign")), _APPROX, _APPROX)
def test_functions_of_two_operands_enclose(name, a, b):
    with np.errstate(all="ignore"):
        found = approx.call(name, [a, b], F32, F32)
        for x, y in itertools.product(_points(a), _points(b)):
            result = np.float32(FLOAT_FUNCTIONS[name](x, y))
            assert _is_within(found, WIDE(result)), (name, x, y, result, found)


@pytest.mark.parametrize(
    ("dtype", "size", "half"),
    [
        (F32, 1.0, 2.0**-24),
        (F32, 1.99, 2.0**-24),
        (F32, 2.0, 2.0**-23),
        (F32, 0.0, 2.0**-150),
        (F64, 1.0, 2.0**-53),
        (DType("float", 16), 1.0, 2.0**-11),
        (BF16, 1.0, 2.0**-8),
    ],
)
def test_half_an_ulp(dtype, size, half):
    assert approx.half_ulp(WIDE(size), dtype) == half


def test_the_least_number_that_overflows():
    limit = approx.overflow_limit(F32)
    assert np.float32(np.nextafter(np.float64(limit), 0)) == np.finfo(np.float32).max
    with np.errstate(over="ignore"):
        assert np.isinf(np.float32(limit))


def test_what_fits_is_not_rounded():
    assert approx.binary(ir.Add, _about(1.5), _about(0.25), BF16).error == 0
    assert approx.binary(ir.Add, _about(1.0), _about(2.0**-8), BF16).error > 0


def test_fma_rounds_once():
    operands = [_about(1 + 2.0**-13), _about(1 + 2.0**-13), _about(-1.0)]
    fused = approx.call("fma", operands, F32, F32)
    assert fused.error == 0 and fused.value == WIDE(2) ** -12 + WIDE(2) ** -26


def test_casts():
    cut = approx.convert(_about(2.0, 0.1), F32, I32)
    assert math.isinf(cut.error) and cut.doubtful
    assert approx.convert(_about(2.5, 0.1), F32, I32).error == 0
    assert math.isinf(approx.convert(_about(0.0, 0.1), F32, BOOL).error)
    assert approx.convert(exact(np.int32(2**24 + 1), I32), I32, F32).error == pytest.approx(1)
    assert approx.convert(_about(1 / 3), F64, F32).error > 0


def test_choosing_between_equals_is_no_doubt():
    undecided = approx.unknown_truth(np.True_, np.True_)
    same = approx.choose(undecided, _about(2.0), _about(2.0))
    assert same.error == 0 and not same.doubtful
    apart = approx.choose(undecided, _about(2.0), _about(5.0, 0.5))
    assert apart.error == 3.5 and apart.doubtful


def test_integers_are_exact_or_unknown():
    known, lost = exact(np.int32(7), I32), approx.unknown(np.int32(7), np.True_, I32)
    assert approx.binary(ir.FloorMod, known, exact(np.int32(4), I32), I32).value == 3
    assert math.isinf(approx.binary(ir.Add, known, lost, I32).error)
    assert math.isinf(approx.binary(ir.LT, known, lost, I32).error)


def test_what_decides_alone_decides():
    lost = approx.unknown_truth(np.True_, np.True_)
    yes, no = (exact(np.bool_(truth), BOOL) for truth in (True, False))
    assert approx.binary(ir.And, lost, no, BOOL).error == 0
    assert approx.binary(ir.Or, yes, lost, BOOL).error == 0
    assert math.isinf(approx.binary(ir.And, lost, yes, BOOL).error)


def test_bits_of_what_is_exact():
    bits = approx.call("float_to_bits", [_about(1.0)], F32, DType("uint", 32))
    assert bits.value == 0x3F800000 and not bits.error
    assert math.isinf(approx.call("float_to_bits", [_about(1.0, 1e-9)], F32, I32).error)
    assert not approx.call("isnan", [_about(1.0, 1e-9)], F32, BOOL).error


def test_to_dtype_keeps_what_fits():
    assert approx.to_dtype(WIDE(1.5), BF16) == ml_dtypes.bfloat16(1.5)
    assert approx.to_dtype(WIDE(1.1), F32) == np.float32(1.1)
