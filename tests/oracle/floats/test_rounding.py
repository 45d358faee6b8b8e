"""Rounding against fractions, at ties and at the ends of each format."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.dtype import F32, F64, DType, to_numpy
from refcomp.oracle.floats import rounding
from refcomp.oracle.floats.rounding import WIDE
from refcomp.oracle.interpreter.scalars import FORMATS, round_exact

F16, BF16 = DType("float", 16), DType("bfloat", 16)
_ALL = [F16, BF16, F32, F64]


@pytest.mark.parametrize(
    ("dtype", "size", "half"),
    [
        (F32, 1.0, 2.0**-24),
        (F32, 1.99, 2.0**-24),
        (F32, 2.0, 2.0**-23),
        (F32, 0.0, 2.0**-150),
        (F64, 1.0, 2.0**-53),
        (F16, 1.0, 2.0**-11),
        (BF16, 1.0, 2.0**-8),
    ],
)
def test_half_an_ulp(dtype, size, half):
    assert rounding.half_ulp(WIDE(size), dtype) == half


def test_half_the_smallest_subnormal_of_f64_is_no_number_of_f64_but_is_not_zero():
    half = rounding.half_ulp(WIDE(0), F64)
    assert half == np.ldexp(WIDE(1), -1075) and half > 0 and np.float64(half) == 0


def test_the_least_number_that_overflows():
    limit = rounding.overflow_limit(F32)
    assert np.float32(np.nextafter(np.float64(limit), 0)) == np.finfo(np.float32).max
    with np.errstate(over="ignore"):
        assert np.isinf(np.float32(limit))


def test_to_dtype_keeps_what_fits():
    assert rounding.to_dtype(WIDE(1.5), BF16) == ml_dtypes.bfloat16(1.5)
    assert rounding.to_dtype(WIDE(1.1), F32) == np.float32(1.1)


@pytest.mark.parametrize("dtype", _ALL, ids=str)
def test_nearest_rounds_once_everywhere(dtype):
    digits, least, greatest = FORMATS[dtype.kind, dtype.bits]
    rng = np.random.default_rng(3)
    for exponent in (least - digits - 1, least - digits, least, least + 1, 0, greatest):
        for _ in range(30):
            whole = int(rng.integers(1 << digits, 1 << (digits + 1)))  # one digit more: ties
            value = np.ldexp(WIDE(whole), exponent - digits)
            for near in (value, np.nextafter(value, WIDE(0)), np.nextafter(value, WIDE(1e400))):
                for wide in (near, -near):
                    with np.errstate(over="ignore"):
                        found = rounding.nearest(wide, dtype)
                    wanted = round_exact(Fraction(*wide.as_integer_ratio()), dtype)
                    assert found == wanted.astype(WIDE), (wide, found, wanted)


@pytest.mark.parametrize("dtype", _ALL, ids=str)
def test_nearest_keeps_what_is_not_finite_and_signs_of_zeros(dtype):
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], WIDE)
    found = rounding.nearest(special, dtype)
    np.testing.assert_array_equal(found, special)
    np.testing.assert_array_equal(np.signbit(found[3:]), [False, True])
    assert rounding.to_dtype(special, dtype).dtype == to_numpy(dtype)


def test_products_and_sums_with_what_they_leave_out():
    a, b = WIDE(1 + 2.0**-34), WIDE(1 - 2.0**-34)
    assert a * b == 1
    assert rounding.product_residual(a, b, a * b) == -(WIDE(2) ** -68)
    assert rounding.product_residual(WIDE(3), WIDE(5), WIDE(15)) == 0
    tiny, great = WIDE(5e-324), WIDE(1e308)
    assert rounding.product_residual(tiny, tiny, tiny * tiny) == 0
    with np.errstate(invalid="ignore"):
        assert rounding.product_residual(WIDE(np.inf), great, WIDE(np.inf)) == 0
    assert rounding.two_sum(WIDE(1), WIDE(2) ** -70) == (1, WIDE(2) ** -70)
