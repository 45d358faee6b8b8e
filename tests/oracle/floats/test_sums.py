"""Sums and products term by term; their bounds against whole evaluations: test_error_bounds.py,
and tests/properties/test_legal_evaluations.py."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from refcomp.foundation.dtype import F32, F64, DType, to_numpy
from refcomp.ir.expr import Mul
from refcomp.oracle.floats.legal_values import MINUS_INF, MINUS_ZERO, NAN, PLUS_INF, Approx
from refcomp.oracle.floats.operations import binary
from refcomp.oracle.floats.rounding import WIDE
from refcomp.oracle.floats.sums import Products, Sums
from refcomp.oracle.interpreter.intrinsics import apply_intrinsic


def _term(value, error=0.0):
    value, error = np.array([value]).astype(WIDE), np.array([error])
    keeps_sign = np.abs(value) >= error
    return Approx(value, error, np.array([False]), np.abs(value), keeps_sign=keeps_sign)


def _sum(*terms, any_order=True, dtype=F32):
    sums = Sums((1,), dtype, any_order, None)
    with np.errstate(all="ignore"):  # as bound_errors does
        for term in terms:
            sums.add(term, ...)
        return sums.result()


def test_no_terms_one_term_and_zeros():
    assert (_sum().value[0], _sum().error[0]) == (0, 0)
    third = _term(float(np.float32(1 / 3)))
    assert _sum(third, _term(0), _term(0)).error[0] <= 2.0**-60  # nothing is rounded
    assert _sum(_term(1, 0.5), _term(0)).error[0] == pytest.approx(0.5)


def test_the_errors_of_terms_are_added():
    found = _sum(_term(1, 0.25), _term(-1, 0.25))
    assert 0.5 <= found.error[0] <= 0.5 + 2.0**-23
    assert (found.value[0], found.magnitude[0]) == (0, 2)


@pytest.mark.parametrize(("last", "is_exact"), [(2.0**23 - 1, True), (2.0**24 - 1, False)])
def test_multiples_of_one_number_are_exact_while_digits_last(last, is_exact):
    found = _sum(_term(2.0**23), _term(1), _term(last))
    assert (found.error[0] == 0) == is_exact


def test_some_elements_alone():
    sums = Sums((3,), F32, True, None)
    sums.add(_term(2.0), np.array([False, True, False]))
    assert sums.result().value.tolist() == [0, 2, 0]


@pytest.mark.search
def test_f16_of_more_terms_than_digits():
    half = DType("float", 16)
    found = _sum(*[_term(0.5)] * 1 + [_term(0.3)] * 5000, dtype=half)
    assert math.isfinite(found.error[0])


_HALF, _BFLOAT = DType("float", 16), DType("bfloat", 16)


def _ordered(x, y, dtype, plain=False):
    """The sum of products in order; `plain`: by half an ulp for each addition alone."""
    sums = Sums((1,), dtype, False, None)
    if plain:
        sums._enclosure = None
    for a, b in zip(x, y, strict=True):
        factors = [Approx(_wide(f), np.float64(0), np.False_, np.abs(_wide(f))) for f in (a, b)]
        sums.add(binary(Mul, *factors, dtype), ...)
    found = sums.result()
    return found.value[0], found.error[0] * (1 + 2.0**-30)


def _wide(value):
    return np.array([value]).astype(WIDE)


def _contracted_in_order(x, y, dtype, choices):
    total = to_numpy(dtype).type(0)
    for a, b, fused in zip(x, y, choices, strict=True):
        total = apply_intrinsic("fma", (a, b, total), dtype) if fused else total + a * b
    return total


@pytest.mark.search
@pytest.mark.parametrize("dtype", [_HALF, _BFLOAT, F32, F64], ids=str)
def test_every_contraction_in_order_is_within_the_bound_and_that_within_the_plain_one(dtype):
    rng, shares = np.random.default_rng(3), []
    for _ in range(60):
        x, y = (rng.standard_normal(5) * 2.0 ** rng.integers(-4, 5, 5) for _ in "xy")
        x[3] = -x[2] if rng.random() < 0.3 else x[3]
        x, y = (numbers.astype(to_numpy(dtype)) for numbers in (x, y))
        value, error = _ordered(x, y, dtype)
        results = [
            abs(WIDE(_contracted_in_order(x, y, dtype, choices)) - value)
            for choices in itertools.product((False, True), repeat=5)
        ]
        assert max(results) <= error <= _ordered(x, y, dtype, plain=True)[1]
        shares.append(float(max(results) / error))
    assert np.median(shares) >= 0.7


def test_ties_are_rounded_as_the_sum_rounds_them():
    """Of exact terms there is one sum in order: the bound is its error, ties to even and all."""
    for dtype, one_more in (
        (F32, 2.0**-24),
        (_HALF, 2.0**-11),
        (_BFLOAT, 2.0**-8),
        (F64, 2.0**-53),
    ):
        sums = Sums((1,), dtype, False, None)
        for value in (1.0, one_more, 2 * one_more):
            sums.add(_term(value), ...)
        assert one_more <= sums.result().error[0] <= one_more * (1 + 2.0**-8)


# Sums that end just below a tie, at which rounding twice goes up: one ulp above 1, less a quarter
# that was rounded off before, and half an ulp less very little.
_JUST_BELOW = {F32: 2.0**-46, _HALF: 2.0**-50, _BFLOAT: 2.0**-34}


@pytest.mark.parametrize("dtype", _JUST_BELOW, ids=str)
def test_sums_just_below_a_tie_are_rounded_once(dtype):
    ulp = float(np.spacing(to_numpy(dtype).type(1)))
    terms = [WIDE(1), WIDE(1.25 * ulp), WIDE(ulp / 2) * (1 - WIDE(_JUST_BELOW[dtype]))]
    for sign in (1, -1):
        found = _sum(*[_term(sign * t) for t in terms], any_order=False, dtype=dtype)
        legal = sign * WIDE(1 + ulp)  # 1 + 1.25 ulp is rounded down, and so is what comes then
        assert abs(legal - found.value[0]) <= found.error[0] * (1 + 2.0**-30)


def test_products_of_more_digits_than_the_reference_are_rounded_once():
    """(1 + 2^-34)(1 - 2^-34) / 2^53 is below half an ulp, which the reference takes it for."""
    x = np.array([1, 1.25 * 2.0**-52, 1 + 2.0**-34])
    y = np.array([1, 1, (1 - 2.0**-34) * 2.0**-53])
    value, error = _ordered(x, y, F64)
    results = [
        _contracted_in_order(x, y, F64, choices)
        for choices in itertools.product((False, True), repeat=3)
    ]
    assert len(set(results)) == 2
    assert all(abs(WIDE(result) - value) <= error for result in results)


def test_what_leaves_the_range_on_the_way_may_be_infinite_in_any_order():
    terms = [_term(3e38), _term(3e38), _term(-3e38)]
    ordered, free = (_sum(*terms, any_order=any_order) for any_order in (False, True))
    assert (ordered.value[0], ordered.error[0], ordered.others[0]) == (math.inf, 0, 0)
    assert free.value[0] == 3e38 and free.error[0] < 1e32
    assert free.others[0] == PLUS_INF
    assert _sum(*terms, *terms, _term(-4e38)).others[0] == PLUS_INF | MINUS_INF | NAN
    assert math.isinf(_sum(_term(1, math.inf), _term(2), any_order=False).error[0])
    assert _sum(_term(math.nan), _term(2), any_order=False).error[0] == 0


def test_sums_beyond_the_range_in_any_order_are_infinite():
    found = _sum(_term(3e38, 1e30), _term(3e38), _term(-1e38))
    assert (found.value[0], found.error[0], found.others[0]) == (math.inf, 0, 0)


def test_a_narrower_accumulator_overflows_and_rounds_whole_numbers():
    half = Sums((1,), F32, True, _HALF)
    for value in (2048.0, 1.0, 70000.0):
        half.add(_term(value), ...)
    found = half.result()
    assert found.others[0] == PLUS_INF and found.error[0] > 1


def test_a_term_that_may_be_nan_or_infinite_decides_the_sum():
    # Infinity times a weight whose reference is 0, as roundings may make it on either side.
    either = replace(_term(np.nan), others=np.array([PLUS_INF | MINUS_INF]))
    assert _sum(either, _term(1)).others[0] == PLUS_INF | MINUS_INF
    assert _sum(either, _term(np.inf)).others[0] == PLUS_INF
    assert _sum(either, _term(-np.inf)).others[0] == MINUS_INF
    assert _sum(either, _term(np.nan)).others[0] == 0
    assert _sum(_term(np.inf), _term(-np.inf), either).others[0] == 0


def test_sums_of_negative_zeros_have_either_sign():
    assert _sum(_term(-0.0), _term(-0.0)).others[0] == MINUS_ZERO
    assert _sum(_term(-0.0), _term(0.0)).others[0] == 0
    assert _sum(_term(-0.0), any_order=False).others[0] == 0  # 0.0 + -0.0
    assert _sum().others[0] == 0


def test_products_of_ones_and_of_one_number():
    products = Products((1,), F32)
    products.add(_term(1), ...)
    assert (products.result().value[0], products.result().error[0]) == (1, 0)
    products.add(_term(0.1, 1e-3), ...)
    assert products.result().error[0] == pytest.approx(1e-3)


def _product(*values):
    products = Products((1,), F32)
    with np.errstate(all="ignore"):
        for value in values:
            products.add(_term(value), ...)
        return products.result()


def test_products_that_may_overflow_on_the_way_are_infinite_or_near():
    found = _product(1e30, 1e30, -1e-30)
    assert found.others[0] == MINUS_INF and found.error[0] < 1e24
    assert _product(1e30, 1e30, 0.0).others[0] & NAN
    assert _product(1e30, 1e30, 2.0).value[0] == math.inf and not _product(1e30, 1e30).others[0]


def test_products_that_may_underflow_on_the_way_have_an_absolute_error():
    found = _product(1e-30, 1e-30, 1e30)
    assert 1e-30 <= found.error[0] < 1e-14 and not found.others[0] and not found.doubtful[0]
    assert _product(1e-20, 1e-20).error[0] >= 2.0**-150  # 1e-40 is subnormal
    assert _product(1e-10, 1e-20).error[0] < 1e-36
