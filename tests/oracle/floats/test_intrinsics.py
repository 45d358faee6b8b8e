"""Each function against points of the operands' ranges: no value may lie outside."""

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import BOOL, F32, F64, I32, DType
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.oracle.floats import intrinsics
from refcomp.oracle.floats.legal_values import NAN, Approx
from refcomp.oracle.floats.rounding import WIDE
from refcomp.oracle.interpreter.intrinsics import FLOAT_FUNCTIONS

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
_UNARY = sorted(n for n in FLOAT_FUNCTIONS if INTRINSICS[n].arity == 1)


@given(st.sampled_from(_UNARY), st.floats(-20, 20, width=32), _ERRORS)
def test_functions_enclose(name, value, error):
    a = _about(value, error)
    with np.errstate(all="ignore"):
        found = intrinsics.call(name, [a], F32, F32)
        for x in _points(a):
            result = FLOAT_FUNCTIONS[name](np.float64(x)) if name == "erf" else None
            result = FLOAT_FUNCTIONS[name](x) if result is None else result
            if name not in _NEVER_ROUNDED:
                result = np.float32(result)
            assert _is_within(found, WIDE(result)), (name, x, result, found)


_NEVER_ROUNDED = ("abs", "copysign", "floor", "ceil", "trunc", "round")


@given(st.sampled_from(("pow", "atan2", "hypot", "copysign")), _APPROX, _APPROX)
def test_functions_of_two_operands_enclose(name, a, b):
    with np.errstate(all="ignore"):
        found = intrinsics.call(name, [a, b], F32, F32)
        for x, y in itertools.product(_points(a), _points(b)):
            result = FLOAT_FUNCTIONS[name](x, y)
            if name not in _NEVER_ROUNDED:
                result = np.float32(result)
            assert _is_within(found, WIDE(result)), (name, x, y, result, found)


def test_fma_rounds_once():
    operands = [_about(1 + 2.0**-13), _about(1 + 2.0**-13), _about(-1.0)]
    fused = intrinsics.call("fma", operands, F32, F32)
    assert fused.error == 0 and fused.value == WIDE(2) ** -12 + WIDE(2) ** -26


def test_bits_of_what_is_exact():
    bits = intrinsics.call("float_to_bits", [_about(1.0)], F32, DType("uint", 32))
    assert bits.value == 0x3F800000 and not bits.error
    assert math.isinf(intrinsics.call("float_to_bits", [_about(1.0, 1e-9)], F32, I32).error)
    assert not intrinsics.call("isnan", [_about(1.0, 1e-9)], F32, BOOL).error


def test_bits_of_nan_are_not_known():
    bits = intrinsics.call("float_to_bits", [_about(math.nan)], F32, DType("uint", 32))
    assert math.isinf(bits.error)
    assert intrinsics.call("isnan", [_about(math.nan)], F32, BOOL).value


def test_steps_of_what_is_near_no_step_are_exact():
    assert intrinsics.call("floor", [_about(2.5, 0.25)], F32, F32).error == 0
    crossed = intrinsics.call("floor", [_about(2.1, 0.25)], F32, F32)
    assert (crossed.error, crossed.doubtful) == (1, True)


def test_roots_of_what_may_be_negative_may_be_nan_or_lie_near_zero():
    with np.errstate(all="ignore"):
        crossing = Approx(WIDE(1e-4), WIDE(4e-4), np.False_, WIDE(1))
        found = intrinsics.call("sqrt", [crossing], F32, F32)
        assert found.others == NAN and 0.01 < found.error < 0.03
        negative = intrinsics.call("sqrt", [_about(-1.0, 0.5)], F32, F32)
        assert np.isnan(negative.value) and negative.error == 0
        sure = intrinsics.call("sqrt", [_about(1.0, 0.5)], F32, F32)
        assert sure.others == 0 and sure.error < 0.5


def test_the_sign_of_nan_is_not_known():
    found = intrinsics.call("copysign", [_about(3.0), _about(math.nan)], F32, F32)
    assert (found.error, found.doubtful) == (6, True)
    assert intrinsics.call("copysign", [_about(3.0), _about(-0.0)], F32, F32).error == 0


def test_powers_of_infinities_are_those_of_f64():
    """glibc's long double gives inf for the first."""
    for base, exponent, wanted in (
        (-math.inf, -(2.0**63), 0.0),
        (math.inf, 2.0**63, math.inf),
        (-math.inf, 3.0, -math.inf),
    ):
        with np.errstate(all="ignore"):
            found = intrinsics.call("pow", [_about(base), _about(exponent)], F64, F64)
        assert found.value == wanted


def test_erf_of_subnormals_is_off_by_the_units_of_f64():
    found = intrinsics.call("erf", [_about(1e-310)], F64, F64)
    assert found.error >= 4.5 * 5e-324


def test_powers_of_nan_that_are_decided_may_be_nan():
    """glibc's pow(x, 0) is NaN of a signalling x, and 1 of any other."""
    for base, exponent in ((math.nan, 0.0), (1.0, math.nan)):
        found = intrinsics.call("pow", [_about(base), _about(exponent)], F64, F64)
        assert (found.value, found.others) == (1, NAN)
    assert intrinsics.call("pow", [_about(2.0), _about(0.0)], F64, F64).others == 0
