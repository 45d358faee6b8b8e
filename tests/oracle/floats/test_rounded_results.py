"""Results that are rounded: exact ones stay exact, and large ones may overflow."""

import math

import numpy as np

from refcomp.foundation.dtype import F32, DType
from refcomp.ir import expr as ir
from refcomp.oracle.floats import operations as approx
from refcomp.oracle.floats.legal_values import MINUS_INF, PLUS_INF, Approx
from refcomp.oracle.floats.rounded_results import rounded
from refcomp.oracle.floats.rounding import WIDE

BF16 = DType("bfloat", 16)


def _about(value, error=0.0):
    return Approx(WIDE(value), np.float64(error), np.False_, np.abs(WIDE(value)))


def test_what_fits_is_not_rounded():
    assert approx.binary(ir.Add, _about(1.5), _about(0.25), BF16).error == 0
    assert approx.binary(ir.Add, _about(1.0), _about(2.0**-8), BF16).error > 0


@np.errstate(all="ignore")
def test_a_result_that_must_overflow_is_infinite():
    found = rounded(_about(-1e39), F32)
    assert (found.value, found.error, found.others) == (-math.inf, 0, 0)


def test_a_result_that_may_overflow_has_infinity_as_one_more_legal_value():
    above = rounded(_about(3.4e38, 1e37), F32)
    assert above.value == 3.4e38 and above.others == PLUS_INF
    below = rounded(_about(-3.4e38, 1e37), F32)
    assert below.value == -3.4e38 and below.others == MINUS_INF


def test_a_result_of_several_ulps_is_not_exact_even_if_it_fits():
    assert rounded(_about(1.5), F32).error == 0
    assert rounded(_about(1.5), F32, ulps=2).error > 0
