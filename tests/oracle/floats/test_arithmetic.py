"""Products with infinity, signs of rounded products, and remainders whose quotient jumps."""

import math

import numpy as np

from refcomp.foundation.dtype import F32
from refcomp.ir import expr as ir
from refcomp.oracle.floats import operations as approx
from refcomp.oracle.floats.arithmetic import FLOAT_RULES
from refcomp.oracle.floats.legal_values import MINUS_INF, NAN, PLUS_INF, Approx, exact
from refcomp.oracle.floats.rounding import WIDE


def _about(value, error=0.0):
    return Approx(WIDE(value), np.float64(error), np.False_, np.abs(WIDE(value)))


def test_every_arithmetic_operator_has_a_rule():
    assert set(FLOAT_RULES) == {ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.Min, ir.Max}


def test_infinity_times_what_may_be_zero_is_nan_or_infinite():
    tiny = Approx(WIDE(1e-50), WIDE(1e-45), np.False_, WIDE(1e-50))
    with np.errstate(all="ignore"):
        found = approx.binary(ir.Mul, _about(math.inf), tiny, F32)
        sure = approx.binary(ir.Mul, _about(math.inf), _about(2.0, 0.5), F32)
    assert (found.value, found.error) == (math.inf, 0)
    assert found.others & ~PLUS_INF == MINUS_INF | NAN
    assert (sure.value, sure.error, sure.others) == (math.inf, 0, 0)


def test_the_rounded_product_of_positive_numbers_is_not_negative():
    found = approx.binary(ir.Mul, exact(np.float32(1e-30), F32), exact(np.float32(1e-30), F32), F32)
    assert found.error >= found.value > 0 and found.keeps_sign
    below = approx.binary(ir.LT, found, exact(np.float32(0), F32), F32)
    assert not below.value and below.error == 0


def test_remainders_whose_quotient_jumps_are_below_the_divisor():
    found = approx.binary(ir.Mod, _about(1e10, 5.0), _about(3.0), F32)
    assert found.doubtful and found.error < 7
