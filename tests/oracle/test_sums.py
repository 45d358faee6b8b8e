"""Sums and products term by term; their bounds against whole evaluations: test_error_bounds.py,
and tests/properties/test_legal_evaluations.py."""

import math

import numpy as np
import pytest

from refcomp.dtype import F32, DType
from refcomp.oracle.approximate import WIDE, Approx
from refcomp.oracle.sums import Products, Sums


def _term(value, error=0.0):
    value, error = np.array([value], WIDE), np.array([error])
    return Approx(value, error, np.array([False]), np.abs(value))


def _sum(*terms, any_order=True, dtype=F32):
    sums = Sums((1,), dtype, any_order, None)
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


def test_f16_of_more_terms_than_digits():
    half = DType("float", 16)
    found = _sum(*[_term(0.5)] * 1 + [_term(0.3)] * 5000, dtype=half)
    assert math.isfinite(found.error[0])


def test_products_of_ones_and_of_one_number():
    products = Products((1,), F32)
    products.add(_term(1), ...)
    assert (products.result().value[0], products.result().error[0]) == (1, 0)
    products.add(_term(0.1, 1e-3), ...)
    assert products.result().error[0] == pytest.approx(1e-3)


def test_products_that_may_leave_the_range_are_lost():
    for values in ((1e30, 1e30, 1e-30), (1e-30, 1e-30, 1e30)):
        products = Products((1,), F32)
        for value in values:
            products.add(_term(value), ...)
        assert math.isinf(products.result().error[0])
        assert products.result().doubtful[0]
