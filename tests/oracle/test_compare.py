import math

import ml_dtypes
import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.oracle.compare import (
    EXACT,
    UNDECIDABLE,
    WITHIN_BOUND,
    WRONG,
    compare,
    judge_bounded,
)
from refcomp.oracle.floats.error_bounds import bound_errors


def _f32(*values):
    return np.array(values, np.float32)


def test_a_verdict_per_element():
    report = compare(_f32(1, 2.5, 9), _f32(1, 2, 3), 0.5)
    assert report.verdicts.tolist() == [EXACT, WITHIN_BOUND, WRONG]
    assert (report.exact, report.wrong, report.agrees) == (1, 1, False)
    assert (report.worst_index, report.worst_ratio) == ((2,), 12.0)
    assert str(report) == (
        "3 elements: 1 exact, 1 within bound, 1 wrong; worst at (2,): 9.0 for 3.0, allowed 0.5"
    )


def test_without_a_bound_only_equal_is_right():
    assert compare(_f32(1, 2), _f32(1, 2)).agrees
    report = compare(_f32(1, np.nextafter(np.float32(2), 3)), _f32(1, 2))
    assert (report.wrong, report.worst_index, report.worst_ratio) == (1, (1,), math.inf)


def test_bound_per_element_and_the_worst_ratio():
    report = compare(_f32(1.5, 2.5), _f32(1, 2), np.array([0.25, 5.0]))
    assert report.verdicts.tolist() == [WRONG, WITHIN_BOUND]
    assert (report.worst_index, report.worst_ratio) == ((0,), 2.0)


def test_nan_and_infinity_equal_themselves_only():
    special = _f32(math.nan, math.inf, -math.inf)
    assert compare(special, special).exact == 3
    other = _f32(0, -math.inf, 1)
    assert compare(special, other, math.inf).wrong == 3
    assert compare(other, special, 1e30).wrong == 3


def test_zeros_of_both_signs_are_the_same():
    assert compare(_f32(0.0), _f32(-0.0)).exact == 1


def test_integers_are_compared_exactly():
    big = np.array([2**63 - 1, -(2**63)], np.int64)
    assert compare(big, big).exact == 2
    report = compare(big - np.array([1, 0]), big)
    assert report.verdicts.tolist() == [WRONG, EXACT]
    assert compare(np.array([255], np.uint8), np.array([0], np.uint8), 254).wrong == 1
    assert compare(np.array([True, False]), np.array([True, True])).wrong == 1


def test_bfloat16_and_wider_truth():
    actual = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    assert compare(actual, np.array([1.001, 2.0]), 0.01).exact == 1
    assert compare(actual, np.array([1.001, 2.0]), 0.01).agrees


def test_empty_and_rank_zero():
    empty = compare(_f32(), _f32())
    assert (empty.agrees, empty.worst_index, str(empty)[:10]) == (True, None, "0 elements")
    assert compare(np.float32(1), np.float32(2), 0.5).worst_index == ()


def test_worst_index_has_every_dimension():
    expected = np.zeros((2, 3, 4), np.float32)
    actual = expected.copy()
    actual[1, 2, 3] = 1
    assert compare(actual, expected, 2).worst_index == (1, 2, 3)


def test_shapes_must_match():
    with pytest.raises(UserError, match=r"shapes \(2,\) and \(1, 2\) cannot be compared"):
        compare(_f32(1, 2), _f32(1, 2).reshape(1, 2))


def test_kinds_must_match():
    with pytest.raises(UserError, match="dtypes int32 and float32 cannot be compared"):
        compare(np.array([1], np.int32), _f32(1))


# Against bounds that are proved.


def _bounded(form, values, dtype="float32"):
    data = np.asarray(values, dtype)
    a = refcomp.placeholder(data.shape, dtype, "A")
    c = refcomp.compute(data.shape[:1], lambda i: form(a, i), name="C")
    return bound_errors([c], {a: data})[0]


def test_a_verdict_per_element_of_a_computation():
    bounded = _bounded(lambda a, i: a[i] / 3.0, [1, 1, 1])
    third = np.float32(1 / 3)
    report = judge_bounded(np.array([third, np.nextafter(third, 1), 0.3334], np.float32), bounded)
    assert report.verdicts.tolist() == [EXACT, WRONG, WRONG]  # one rounding leaves no choice
    assert (report.verdict, report.indices(WRONG)) == ("wrong", [(1,), (2,)])
    assert report.worst_index == (2,) and report.worst_ratio > 1000
    assert str(report).endswith("; condition number 1")


def test_what_rounds_more_than_once_may_differ():
    bounded = _bounded(lambda a, i: a[i] / 3.0 * 7.0, [1, 1])
    value = np.float32(7 / 3)
    report = judge_bounded(np.array([value, np.nextafter(value, 3)]), bounded)
    assert report.verdicts.tolist() == [EXACT, WITHIN_BOUND]
    assert (report.verdict, report.why) == ("within bound", "")


def test_cancellation_is_undecidable_and_told_with_its_condition():
    k = refcomp.reduce_axis((0, 3), "k")
    bounded = _bounded(
        lambda a, i: refcomp.sum(a[i, k] * a[i, k] * a[i, 0], axis=k), [[1e4, 1, 1], [1, -0.3, 2]]
    )
    assert judge_bounded(bounded.nearest, bounded).verdict == "exact"
    bounded = _bounded(lambda a, i: a[i, 0] * 1.1 + a[i, 1] * 1.1 - 1.1e8, [[1e8, 1.0]])
    report = judge_bounded(np.array([0], np.float32), bounded)
    assert report.verdicts.tolist() == [UNDECIDABLE] and report.agrees
    assert report.why == "1 cancel (condition number up to 6.31e+07)"
    assert "0 wrong, 1 undecidable" in str(report)
    assert judge_bounded(np.array([1e3], np.float32), bounded).verdict == "wrong"


def test_a_branch_in_doubt_is_undecidable():
    bounded = _bounded(lambda a, i: refcomp.select(a[i] * 3.0 > 0.3, 1.0, 5.0), [0.1, 1])
    verdicts = (UNDECIDABLE, EXACT, WRONG)
    for taken, verdict in zip((1, 5, 0.5), verdicts, strict=True):
        report = judge_bounded(np.array([taken, 1], np.float32), bounded)
        assert report.verdicts.tolist() == [verdict, EXACT]
    report = judge_bounded(np.array([1, 1], np.float32), bounded)
    assert report.why == "rounding decides a branch, a jump or an overflow in 1"


def test_a_wrong_element_is_worse_than_what_is_undecidable():
    bounded = _bounded(lambda a, i: 1.0 / (a[i] * 3.0 - 0.3), [0.1, 1])
    assert bounded.doubtful[0]
    report = judge_bounded(np.array([math.inf, 7], np.float32), bounded)
    assert report.verdicts.tolist() == [UNDECIDABLE, WRONG] and report.worst_index == (1,)


def test_integers_and_dtypes_of_a_computation():
    bounded = _bounded(lambda a, i: a[i] * 3, [1, 2], "int32")
    assert judge_bounded(np.array([3, 7], np.int32), bounded).verdicts.tolist() == [EXACT, WRONG]
    with pytest.raises(UserError, match="dtypes float32 and int32 cannot be compared"):
        judge_bounded(np.array([3, 7], np.float32), bounded)
    with pytest.raises(UserError, match=r"shapes \(1,\) and \(2,\) cannot be compared"):
        judge_bounded(np.array([3], np.int32), bounded)
