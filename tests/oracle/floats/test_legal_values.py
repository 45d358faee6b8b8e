"""Unions of sets, and rules over each combination of what operands may be."""

import math
from dataclasses import replace

import numpy as np

from refcomp.foundation.dtype import BOOL, F32, I32, as_dtype
from refcomp.oracle.floats import legal_values
from refcomp.oracle.floats.legal_values import (
    MINUS_INF,
    MINUS_ZERO,
    NAN,
    PLUS_INF,
    PLUS_ZERO,
    Approx,
    code_of,
    ends,
    exact,
    join,
    over_cases,
    pick,
    unbounded,
    unknown,
    unknown_truth,
    zeros,
)
from refcomp.oracle.floats.rounding import WIDE

YES = np.True_


def _about(value, error=0.0, others=0):
    value, error = WIDE(value), WIDE(error)
    keeps_sign = np.bool_(abs(value) >= error)
    return Approx(value, error, np.False_, np.abs(value), np.uint8(others), keeps_sign)


def test_exact_values_and_zeros():
    assert exact(np.float32(1.5), F32).value.dtype == WIDE
    assert exact(np.int32(7), I32).value == 7
    assert zeros((2, 3), F32).value.shape == (2, 3)


def test_nothing_is_known_of_what_is_lost():
    found = unbounded(exact(np.float32([1, 2]), F32), np.array([True, False]))
    assert found.error.tolist() == [math.inf, 0] and found.doubtful.tolist() == [True, False]
    assert found.keeps_sign.tolist() == [False, True]
    assert unknown(np.int32(1), YES, I32).error == math.inf
    assert unknown_truth(YES, np.False_).error == 0


def test_elements_are_read_and_written_with_all_that_is_known():
    all_of_it = zeros((3,), F32)
    all_of_it[np.array([1])] = _about(2.0, 0.5, PLUS_INF).spread((1,))
    found = all_of_it[np.array([0, 1])]
    assert found.value.tolist() == [0, 2] and found.others.tolist() == [0, PLUS_INF]
    assert len(all_of_it) == 3


def test_ends_do_not_pass_zero_where_the_sign_is_known():
    known, free = _about(1.0, 0.5), Approx(WIDE(1), WIDE(4), np.False_, WIDE(1))
    assert ends(known)[0] < 0.5 < 1.5 < ends(known)[1]
    assert ends(free)[0] < -3
    one_sided = Approx(WIDE(-1), WIDE(4), np.False_, WIDE(1), keeps_sign=YES)
    assert ends(one_sided)[0] < -5 and ends(one_sided)[1] == 0
    assert np.signbit(ends(_about(-0.0))[0])


def test_the_union_of_intervals_is_one_about_the_first():
    found = join(_about(2.0, 0.5), _about(5.0, 1.0), YES)
    assert (found.value, found.error, found.doubtful) == (2, 4, True)
    inside = join(_about(2.0, 4.0), _about(3.0, 1.0), YES)
    assert (inside.error, inside.doubtful) == (4, False)
    assert join(_about(2.0), _about(5.0), np.False_).error == 0


def test_the_union_with_an_infinity_keeps_the_interval():
    for found in (
        join(_about(2.0, 0.5), _about(math.inf), YES),
        join(_about(math.inf), _about(2.0, 0.5), YES),
    ):
        assert (found.value, found.error, found.others) == (2, 0.5, PLUS_INF)
    both = join(_about(math.inf), _about(-math.inf), YES)
    assert (both.value, both.others) == (math.inf, MINUS_INF)
    assert join(_about(1.0), _about(math.nan), YES).others == NAN


def test_the_union_of_zeros_has_both_signs():
    assert join(_about(0.0), _about(-0.0), YES).others == MINUS_ZERO
    assert join(_about(0.0), _about(0.0), YES).others == 0


def test_the_union_of_one_element_and_several_has_several():
    several = zeros((3,), F32)
    found = join(_about(-0.0).spread((1,)), several, np.array([True, False, True]))
    assert found.others.tolist() == [PLUS_ZERO, 0, PLUS_ZERO]


def test_the_union_with_what_is_unknown_is_unknown():
    for a, b in ((1.0, math.inf), (math.inf, 1.0)):
        for unknown_one in (0, 1):
            pair = [_about(a), _about(b)]
            pair[unknown_one] = unbounded(pair[unknown_one], YES)
            assert join(*pair, YES).error == math.inf


def test_the_union_of_truths_that_differ_is_unknown():
    no = exact(np.bool_(False), BOOL)
    assert join(exact(np.bool_(True), BOOL), no, YES).error == math.inf
    assert join(no, no, YES).error == 0


def _product():
    """-inf, of which a sum may take -4 +- 0.5."""
    return replace(_about(-math.inf), contracted=_about(-4.0, 0.5))


def test_each_element_that_is_picked_keeps_what_a_sum_takes_of_it():
    found = pick(np.array([True, False]), _product(), _about(math.inf))
    assert found.value.tolist() == [-math.inf, math.inf]
    assert found.unrounded.value.tolist() == [-4, math.inf]
    assert found.unrounded.error.tolist() == [0.5, 0]
    assert pick(YES, _about(1.0), _about(2.0)).contracted is None


def test_a_sum_may_take_either_member_of_a_union_unrounded():
    for pair in ((_product(), _about(-3.0)), (_about(-3.0), _product())):
        found = join(*pair, YES)
        assert (found.value, found.error, found.others) == (-3, 0, MINUS_INF)
        low, high = ends(found.unrounded)
        assert low <= -4.5 and high >= -3
    assert join(_about(1.0), _about(2.0), YES).contracted is None


def test_a_lost_product_is_lost_to_sums():
    found = unbounded(_product(), YES)
    assert found.error == found.unrounded.error == math.inf


def test_codes_of_what_is_not_finite():
    found = code_of(np.array([1.0, math.inf, -math.inf, math.nan]))
    assert found.tolist() == [0, PLUS_INF, MINUS_INF, NAN]


def test_a_rule_is_applied_to_each_combination():
    seen = []

    def quotient(a, b):
        seen.append((float(a.value), float(b.value)))
        return _about(a.value / b.value)

    a, b = _about(6.0, 0.0, PLUS_INF), _about(2.0, 0.0, PLUS_INF | MINUS_ZERO)
    with np.errstate(all="ignore"):
        found = over_cases(quotient, a, b)
    assert len(seen) == len(set(seen)) == 6
    # 6 / 2 and 6 / inf; inf / 2 and 6 / -0.0; inf / inf
    assert (found.value, found.error) == (3, 3)
    assert found.others == PLUS_INF | MINUS_INF | NAN


def test_without_further_values_a_rule_is_applied_once():
    found = over_cases(lambda a: _about(a.value * 2, a.error), _about(2.0, 0.5))
    assert (found.value, found.error, found.others) == (4, 0.5, 0)


def test_a_part_that_is_one_number_stays_it_where_elements_are_read():
    given = legal_values.exact(np.arange(6, dtype=np.int64).reshape(2, 3), as_dtype("int64"))
    read = given.at((np.array([1, 0]), np.array([2, 1])), (2, 3))
    assert read.value.tolist() == [5, 1]
    assert given.is_given and read.is_given
    undecided = legal_values.unbounded(given, np.array([[True], [False]]))
    read = undecided.at((np.array([1, 0]), np.array([2, 1])), (2, 3))
    assert not read.is_given and read.is_exact.tolist() == [True, False]
