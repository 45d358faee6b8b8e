"""Bounds against legal evaluations: the oracle's own, numpy's, and special values."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refcomp
from refcomp.foundation.dtype import F32, F64, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.oracle.compare import EXACT, UNDECIDABLE, WITHIN_BOUND, WRONG, judge_bounded
from refcomp.oracle.floats import error_bounds
from refcomp.oracle.floats.error_bounds import Licence, bound_errors
from refcomp.oracle.tensors.evaluate import EvaluateError, evaluate

IN_ORDER = Licence(reassociate=False)


def _vector(form, values, *, dtype="float32", licence=None):
    """The Bounded of `form(A, i)`, and what `evaluate` makes of it."""
    data = np.asarray(values, to_numpy(as_dtype(dtype)))
    a = refcomp.placeholder(data.shape, dtype, "A")
    c = refcomp.compute(data.shape[:1], lambda i: form(a, i), name="C")
    (bounded,) = bound_errors([c], {a: data}, licence=licence or Licence())
    return bounded, evaluate([c], {a: data})[0]


def _errors(bounded, actual):
    with np.errstate(invalid="ignore"):
        difference = np.abs(actual.astype(np.longdouble) - bounded.value)
    same = (actual == bounded.value) | (np.isnan(actual) & np.isnan(bounded.value))
    return np.where(same, 0, difference)


def test_one_operation_is_off_by_what_it_rounds_off():
    bounded, actual = _vector(lambda a, i: a[i] / 3.0, [1, 2, 3])
    assert bounded.error[:2] == pytest.approx([2.0**-26 / 1.5, 2.0**-25 / 1.5], rel=1e-6)
    assert bounded.error[2] == 0  # 3 / 3 is 1, which needs no rounding
    assert (_errors(bounded, actual) <= bounded.error).all()


def test_whole_numbers_are_exact_in_any_order():
    bounded, actual = _vector(
        lambda a, i: refcomp.sum(a[i, _K] * a[i, _K], axis=_K),
        np.random.default_rng(3).integers(-9, 9, (5, 8)),
    )
    assert not bounded.error.any()
    np.testing.assert_array_equal(actual, bounded.value)


_K = refcomp.reduce_axis((0, 8), "k")


def test_sums_in_any_order_and_in_the_order_of_the_axis():
    values = np.full((1, 8), 0.1)
    sums = {}
    for licence in (Licence(), IN_ORDER):
        bounded, actual = _vector(
            lambda a, i: refcomp.sum(a[i, _K], axis=_K), values, licence=licence
        )
        assert _errors(bounded, actual)[0] <= bounded.error[0]
        sums[licence.reassociate] = float(bounded.error[0])
    # Seven additions of at most 0.8, half an ulp of which is 2^-25; in order, only one result.
    assert sums[True] == pytest.approx(7 * 2.0**-25, rel=1e-5)
    assert sums[False] == pytest.approx(_errors(bounded, actual)[0], rel=1e-6)
    assert 0 < sums[False] < sums[True]


def test_a_wider_accumulator_is_bounded_with_a_licence_only():
    values = [[1.0, 2.0**-11, 2.0**-11, 2.0**-11, 0, 0, 0, 0]]
    form = lambda a, i: refcomp.sum(a[i, _K], axis=_K)  # noqa: E731
    plain, _ = _vector(form, values, dtype="float16")
    wide, _ = _vector(form, values, dtype="float16", licence=Licence(accumulate=F32))
    assert plain.error[0] <= wide.error[0]
    in_f32 = np.float16(np.sum(np.float32(values)))
    assert _errors(wide, np.array([in_f32]))[0] <= wide.error[0]
    narrow, _ = _vector(form, [[0.1] * 8], licence=Licence(accumulate=as_dtype("float16")))
    tight, _ = _vector(form, [[0.1] * 8])
    assert narrow.error[0] > 1000 * tight.error[0]


@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_do_not_round(name):
    form = lambda a, i: getattr(refcomp, name)(a[i, _K], axis=_K)  # noqa: E731
    bounded, actual = _vector(form, np.random.default_rng(5).standard_normal((4, 8)))
    assert not bounded.error.any()
    np.testing.assert_array_equal(actual, bounded.value)


def test_products_in_any_order():
    form = lambda a, i: refcomp.prod(a[i, _K], axis=_K)  # noqa: E731
    bounded, actual = _vector(form, np.random.default_rng(5).uniform(0.5, 2, (9, 8)))
    assert (_errors(bounded, actual) <= bounded.error).all()
    assert (bounded.error <= 8 * 2.0**-24 * np.abs(bounded.value)).all()
    wide, _ = _vector(form, [[1e30, 1e30, 1e-30, 1e-30, 1, 1, 1, 1]])
    for legal in (math.inf, math.nan):  # 1e60 on the way in one order, 0 in another
        assert wide.allows(np.float32([legal]))[0]
    assert not wide.allows(np.float32([-math.inf]))[0]
    assert 2.0**-150 * 1e60 <= wide.error[0] < 1e17 and not wide.doubtful[0]


def test_conditions_and_cancellation():
    bounded, _ = _vector(
        lambda a, i: refcomp.sum(a[i, _K], axis=_K), [[1e8, 1, -1e8, 0, 0, 0, 0, 0]]
    )
    assert bounded.condition[0] == pytest.approx(2e8 + 1)
    assert bounded.condition_is_lost[0] and not bounded.doubtful[0]
    kept, _ = _vector(lambda a, i: a[i] + 1.0, [1.0])
    assert kept.condition[0] == 1 and not kept.condition_is_lost[0]


def test_a_branch_in_doubt_bounds_both_sides():
    third = lambda a, i: a[i] * 3.0  # noqa: E731  0.1f * 3 is rounded to 0.3f, or not
    form = lambda a, i: refcomp.select(third(a, i) > 0.3, a[i] + 100.0, a[i])  # noqa: E731
    bounded, actual = _vector(form, [0.1, 0.5, 0.05])
    assert bounded.doubtful.tolist() == [True, False, False]
    assert bounded.error[0] >= 100 and bounded.error[1] < 1e-4
    assert (_errors(bounded, actual) <= bounded.error).all()


def test_a_lazy_branch_in_doubt_and_an_index_in_doubt_are_lost():
    lazy = lambda a, i: refcomp.if_then_else(a[i] * 3.0 > 0.3, a[i], 0.0)  # noqa: E731
    assert _vector(lazy, [0.1, 0.5])[0].error.tolist() == [math.inf, 0]
    at = lambda a, i: a[(a[i] * 3.0 * 10.0).astype("int32") - 3]  # noqa: E731
    bounded, _ = _vector(at, [0.1, 0.11])
    assert bounded.error.tolist() == [math.inf, 0]


def test_overflow_is_certain_or_in_doubt():
    most = float(np.finfo(np.float32).max)
    bounded, actual = _vector(lambda a, i: a[i] * 2.0, [most, 1.0])
    assert bounded.value[0] == actual[0] == math.inf and bounded.error[0] == 0
    edge, _ = _vector(lambda a, i: refcomp.exp(a[i]), [88.722839, 90, 80])
    assert edge.allows(np.full(3, np.inf, "float32")).tolist() == [True, False, False]
    assert edge.value[1] == math.inf and edge.error[0] < 1e33
    sums, _ = _vector(
        lambda a, i: refcomp.sum(a[i, _K], axis=_K),
        [[most, most / 2, -0.75 * most, 0, 0, 0, 0, 0], [most, most, 0, 0, 0, 0, 0, 0]],
    )
    assert sums.allows(np.full(2, np.inf, "float32")).tolist() == [True, False]
    assert not sums.allows(np.full(2, -np.inf, "float32")).any()
    assert sums.value[1] == math.inf and sums.error.tolist() == [sums.error[0], 0]
    assert sums.error[0] < 1e33  # what is finite is near the sum all the same


def test_nan_and_infinity_are_what_they_are():
    special = [math.nan, math.inf, -math.inf, 0.0]
    for form in (
        lambda a, i: a[i] + 1.0,
        lambda a, i: refcomp.exp(a[i]),
        lambda a, i: 1.0 / a[i],
        lambda a, i: refcomp.maximum(a[i], 0.0),
        lambda a, i: a[i] - a[i],
        lambda a, i: refcomp.sqrt(a[i]) * 0.0,
    ):
        bounded, actual = _vector(form, special)
        assert np.isfinite(bounded.error).all()
        np.testing.assert_array_equal(np.isnan(actual), np.isnan(bounded.value))
        assert (_errors(bounded, actual) <= bounded.error).all()


def test_a_pole_within_the_error_is_lost():
    bounded, _ = _vector(lambda a, i: 1.0 / (a[i] * 3.0 - 0.3), [0.1, 1.0])
    assert bounded.error[0] == math.inf and bounded.doubtful.tolist() == [True, False]


_FORMS = (
    lambda a, i: refcomp.exp(a[i, 0]) * a[i, 1] + a[i, 2],
    lambda a, i: refcomp.tanh(a[i, 0] - a[i, 1]) / (a[i, 2] * a[i, 2] + 0.5),
    lambda a, i: refcomp.sqrt(refcomp.abs(a[i, 0])) - refcomp.sin(a[i, 1] * a[i, 2]),
    lambda a, i: refcomp.maximum(a[i, 0] * a[i, 1], a[i, 2] + a[i, 3]),
    lambda a, i: refcomp.select(a[i, 0] * a[i, 1] > a[i, 2], a[i, 0], a[i, 3]) * 1.7,
    lambda a, i: refcomp.sigmoid(a[i, 0] + a[i, 1]).astype("float64").astype(str(a.dtype)),
    lambda a, i: (a[i, 0] * 10.0).astype("int32").astype(str(a.dtype)) * 0.3,
    lambda a, i: refcomp.floor(a[i, 0] * a[i, 1]) + refcomp.erf(a[i, 2]),
    lambda a, i: refcomp.power(refcomp.abs(a[i, 0]) + 0.1, a[i, 1] * 1.1),
    lambda a, i: refcomp.truncmod(a[i, 0] * 3.3, a[i, 1] * 1.1),
    lambda a, i: refcomp.log(refcomp.abs(a[i, 0] * a[i, 1]) + 0.01) * refcomp.cos(a[i, 2]),
)


@pytest.mark.search
@given(
    st.sampled_from(_FORMS),
    st.sampled_from(("float16", "bfloat16", "float32", "float64")),
    st.integers(0, 2**32 - 1),
)
def test_the_oracles_own_evaluation_is_within_the_bound(form, dtype, seed):
    values = np.random.default_rng(seed).standard_normal((64, 4)) * 3
    bounded, actual = _vector(form, values, dtype=dtype)
    assert (_errors(bounded, actual.astype(np.longdouble)) <= bounded.error).all()


def test_a_computed_tensor_may_be_given():
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: refcomp.exp(a[i]), name="B")
    c = refcomp.compute((4,), lambda i: b[i] * 3.0, name="C")
    given = np.float32([1, 2, 4, 8])
    (bounded,) = bound_errors([c], {b: given})
    assert not bounded.error.any()
    np.testing.assert_array_equal(bounded.value, given * 3)


def test_an_argmax_of_equals_is_in_doubt():
    def combine(x, y):
        better = refcomp.any(x[1] > y[1], refcomp.all(x[1] == y[1], x[0] < y[0]))
        return refcomp.select(better, x[0], y[0]), refcomp.select(better, x[1], y[1])

    argmax = refcomp.comm_reducer(combine, lambda i, v: (refcomp.const(2**31 - 1, i), -1e30))
    a = refcomp.placeholder((2, 8), name="A")
    index, value = refcomp.compute(
        (2,), lambda i: argmax((_K.var.astype("int32"), a[i, _K] * 3.0), axis=_K), name="C"
    )
    data = np.zeros((2, 8), np.float32)
    data[0] = [0.1, np.nextafter(np.float32(0.1), 1), 0, 0, 0, 0, 0, 0]
    data[1, 3] = 1
    found, best = bound_errors([index, value], {a: data})
    assert found.error.tolist() == [math.inf, 0] and found.value[1] == 3
    assert best.error[0] < 1e-6


_GREATER = refcomp.comm_reducer(
    lambda x, y: refcomp.select(x > y, x, y), lambda t: refcomp.const(-128, t)
)
_FORMS = {
    "sum": lambda a, i: refcomp.sum(a[i, _K].astype("int32") * 3, axis=_K, where=_K.var < 6),
    "greatest": lambda a, i: refcomp.max(a[i, _K], axis=_K),
    "no reduction": lambda a, i: refcomp.if_then_else(i > 0, a[i - 1, 2] // 2, a[i, 1] ^ i),
    "wraps": lambda a, i: a[i, 3] * 100,
    "truth": lambda a, i: refcomp.any(a[i, 0] > 0, a[i, 1] < 0),
    "order may matter": lambda a, i: _GREATER(a[i, _K], axis=_K),
    "intrinsic": lambda a, i: refcomp.popcount(a[i, 0]),
    "float inside": lambda a, i: (a[i, 0] * 0.25).astype("int32"),
}
_FLOAT_FORMS = {
    "greatest": lambda a, i: refcomp.max(a[i, _K], axis=_K),
    "least": lambda a, i: refcomp.min(a[i, _K], axis=_K, where=a[i, _K] > 2.0),
    "sum": lambda a, i: refcomp.sum(a[i, _K], axis=_K),
    "rounded": lambda a, i: refcomp.max(a[i, _K] * 0.1, axis=_K),
    "truncated": lambda a, i: refcomp.max(a[i, _K].astype("int32"), axis=_K),
}
_INTEGERS = np.random.default_rng(5).integers(-128, 128, (4, 8))
_SHORT_WAYS = {  # form, dtype, data, whether the short way is taken
    **{
        f"int8 {name}": (form, "int8", _INTEGERS, name not in (*list(_FORMS)[-3:],))
        for name, form in _FORMS.items()
    },
    **{
        f"float {name}": (form, "float32", _INTEGERS / 3 + 0.1, name in ("greatest", "least"))
        for name, form in _FLOAT_FORMS.items()
    },
    **{
        f"greatest with {value}": (_FORMS["greatest"], "float16", [[0.0] * 7 + [value]], is_short)
        for value, is_short in ((0.0, True), (-0.0, False), (math.nan, False), (math.inf, False))
    },
}


@pytest.mark.parametrize(
    ("form", "dtype", "data", "is_short"), _SHORT_WAYS.values(), ids=_SHORT_WAYS
)
def test_what_cannot_err_has_the_same_bound_by_the_short_way(
    form, dtype, data, is_short, monkeypatch
):
    """It is evaluated without errors where that makes no difference; the long way agrees."""
    chosen = []
    decide = error_bounds._cannot_err
    monkeypatch.setattr(
        error_bounds, "_cannot_err", lambda *args: chosen.append(decide(*args)) or chosen[-1]
    )
    short, actual = _vector(form, data, dtype=dtype)
    assert chosen == [is_short]
    monkeypatch.setattr(error_bounds, "_cannot_err", lambda *_: False)
    long, _ = _vector(form, data, dtype=dtype)
    for name in ("value", "error", "doubtful", "condition", "others"):
        np.testing.assert_array_equal(getattr(short, name), getattr(long, name))
    assert short.value.dtype == long.value.dtype
    assert short.nearest.dtype == actual.dtype


def test_what_is_not_exact_goes_the_long_way():
    a = refcomp.placeholder((2, 8), name="A")
    b = refcomp.compute((2, 8), lambda i, j: a[i, j] * 0.1, name="B")
    c = refcomp.compute((2,), lambda i: refcomp.max(b[i, _K], axis=_K), name="C")
    (bounded,) = bound_errors([c], {a: np.full((2, 8), 0.1, np.float32)})
    assert bounded.error.all()


def test_a_read_out_of_range_is_refused_among_integers():
    with pytest.raises(EvaluateError, match="C reads A at index 7 of dimension 0"):
        _vector(lambda a, i: a[a[i, 0], 0], np.full((4, 1), 7), dtype="int8")


def test_a_reducer_of_ones_own_is_bounded_in_order():
    complex_product = refcomp.comm_reducer(
        lambda x, y: (x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]),
        lambda t, u: (1.0, 0.0),
    )
    a = refcomp.placeholder((3, 8, 2), name="A")
    outputs = refcomp.compute(
        (3,), lambda i: complex_product((a[i, _K, 0], a[i, _K, 1]), axis=_K), name="C"
    )
    data = np.random.default_rng(1).standard_normal((3, 8, 2)).astype(np.float32)
    actual = evaluate(outputs, {a: data})
    for bounded, values in zip(
        bound_errors(outputs, {a: data}, licence=IN_ORDER), actual, strict=True
    ):
        assert (_errors(bounded, values) <= bounded.error).all()
        assert np.isfinite(bounded.error).all()
    assert bound_errors(outputs, {a: data})[0].doubtful.all()


def test_empty_and_symbolic_shapes():
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="A")
    c = refcomp.compute((n,), lambda i: a[i] + 1.0, name="C")
    for size in (0, 3):
        (bounded,) = bound_errors([c], {a: np.ones(size, np.float32)})
        assert bounded.value.shape == (size,)
        assert bounded.nearest.dtype == np.float32


def test_nearest_is_rounded_once():
    bounded, _ = _vector(lambda a, i: a[i] * a[i], [1.1, 3], dtype="bfloat16")
    one = float(ml_dtypes.bfloat16(1.1))
    assert bounded.nearest.tolist() == [ml_dtypes.bfloat16(one * one), 9]


def test_refusals():
    a = refcomp.placeholder((refcomp.var("n"),), name="A")
    c = refcomp.compute((4,), lambda i: a[i + 1], name="C")
    with pytest.raises(UserError, match="no value is given for placeholder A"):
        bound_errors([c], {})
    with pytest.raises(EvaluateError, match="C reads A at index 4 of dimension 0"):
        bound_errors([c], {a: np.ones(4, np.float32)})
    call = lambda ins, outs: refcomp.call_packed("f", *ins, *outs)  # noqa: E731
    d = refcomp.extern((4,), [a], call)
    with pytest.raises(UserError, match="no function 'f' is registered"):
        bound_errors([d], {a: np.ones(4, np.float32)})


@pytest.mark.search
def test_scans_are_bounded_row_by_row():
    x, state = (refcomp.placeholder((40, 3), name=name) for name in ("X", "state"))
    init = refcomp.compute((1, 3), lambda t, i: x[t, i] * 0.1, name="init")
    k = refcomp.reduce_axis((0, 3), "k")
    dense = refcomp.compute(
        (40, 3), lambda t, i: refcomp.sum(state[t - 1, k] * x[t, i], axis=k), name="D"
    )
    update = refcomp.compute((40, 3), lambda t, i: dense[t, i] * 0.5 + x[t, i], name="U")
    feeds = {x: np.random.default_rng(3).uniform(-1, 1, (40, 3)).astype(np.float32)}
    for output in (refcomp.scan(init, update, state), refcomp.scan(x, update, state)):
        (found,), (actual,) = bound_errors([output], feeds), evaluate([output], feeds)
        off = np.abs(actual - found.value)
        assert (off <= found.error).all() and found.error.max() < 1e-5
    assert not found.error.any(), "all rows are those of the init, which is given"
    (found,) = bound_errors([refcomp.scan(init, update, state)], feeds)
    assert found.error[1:].all() and np.median(found.error[30:]) > np.median(found.error[:3])


def test_a_scan_whose_result_is_given_is_taken_as_it_is():
    state = refcomp.placeholder((4,), name="state")
    init = refcomp.compute((1,), lambda t: 0.1, name="init")
    rows = refcomp.scan(init, refcomp.compute((4,), lambda t: state[t - 1] / 3.0, name="U"), state)
    doubled = refcomp.compute((4,), lambda t: rows[t] * 2.0, name="B")
    (found,) = bound_errors([doubled], {rows: np.ones(4, np.float32)})
    assert found.value.tolist() == [2, 2, 2, 2] and not found.error.any()


def test_f64_has_a_reference_of_its_own():
    bounded, actual = _vector(lambda a, i: a[i] / 3.0, [1.0], dtype="float64")
    assert bounded.error[0] == pytest.approx(2.0**-55, rel=2.0**-8)
    assert _errors(bounded, actual)[0] > 0 and bounded.dtype == F64


# Near the edges of a format.


def _pair(form, x, y, dtype, licence=None):
    """The Bounded of `form(A, B, i)` on two vectors."""
    arrays = [np.asarray(each, to_numpy(as_dtype(dtype))) for each in (x, y)]
    a, b = (refcomp.placeholder(arrays[0].shape, dtype, name) for name in "AB")
    c = refcomp.compute(arrays[0].shape[:1], lambda i: form(a, b, i), name="C")
    return bound_errors([c], dict(zip((a, b), arrays, strict=True)), licence=licence or Licence())[
        0
    ]


def _verdicts(bounded, *values):
    dtype = to_numpy(bounded.dtype)
    return [int(judge_bounded(np.array([x], dtype), bounded).verdicts[0]) for x in values]


def test_what_underflows_in_f64_has_a_bound_that_is_not_rounded_to_zero():
    bounded, actual = _vector(lambda a, i: refcomp.sqrt(a[i] * a[i]), [1e-200], dtype="float64")
    assert actual[0] == 0 and _verdicts(bounded, 0.0) == [WITHIN_BOUND]
    assert _verdicts(bounded, 1e-150, math.nan, -1e-200, math.inf) == [WRONG] * 4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_roots_of_what_underflows_are_decided_in_every_format(dtype):
    least = float(ml_dtypes.finfo(to_numpy(as_dtype(dtype))).smallest_subnormal)
    bounded, actual = _vector(lambda a, i: refcomp.sqrt(a[i] * a[i]), [least], dtype=dtype)
    assert actual[0] == 0 and _verdicts(bounded, 0.0, math.nan) == [WITHIN_BOUND, WRONG]


def test_subnormal_products_are_right_with_and_without_contraction():
    rng = np.random.default_rng(1)
    x = rng.uniform(1, 10, 2000) * 1e-307 * rng.choice([1, 0.1, 0.01, 1e-3, 1e-8], 2000)
    y = rng.uniform(0.5, 2, 2000)
    bounded = _pair(lambda a, b, i: a[i] * b[i] + a[i], x, y, "float64")
    assert judge_bounded(x * y + x, bounded).wrong == 0
    assert judge_bounded(x * y + np.nextafter(x, 1), bounded).wrong > 500
    flushed = np.where(np.abs(x * y) < 2.0**-1022, 0, x * y) + x
    assert judge_bounded(flushed, bounded).wrong > 500


def test_a_product_that_overflows_may_be_contracted_into_a_sum():
    bounded = _pair(lambda a, b, i: a[i] * b[i] + a[i], [3e38], [-1.5], "float32")
    assert _verdicts(bounded, -1.5e38, -math.inf) == [EXACT, UNDECIDABLE]
    assert _verdicts(bounded, 1.5e38, math.inf, math.nan, -3e38) == [WRONG] * 4
    # What else takes it has it rounded.
    bounded = _pair(lambda a, b, i: a[i] * b[i] / 3.0, [3e38], [-1.5], "float32")
    assert _verdicts(bounded, -math.inf, -1.5e38) == [EXACT, WRONG]


def test_a_product_of_another_stage_may_be_contracted_where_it_is_inlined():
    a, b = (refcomp.placeholder((1,), name=name) for name in "AB")
    product = refcomp.compute((1,), lambda i: a[i] * b[i], name="P")
    total = refcomp.compute((1,), lambda i: product[i] + a[i], name="C")
    (bounded,) = bound_errors([total], {a: np.float32([3e38]), b: np.float32([-1.5])})
    assert _verdicts(bounded, -1.5e38, -math.inf, math.inf) == [EXACT, UNDECIDABLE, WRONG]


@pytest.mark.parametrize("licence", [Licence(), IN_ORDER], ids=["any", "in order"])
def test_a_product_between_padding_may_be_contracted(licence):
    k, zero = refcomp.reduce_axis((0, 3), "k"), refcomp.const(0, "float32")
    bounded = _pair(
        lambda a, b, i: refcomp.sum(
            refcomp.if_then_else(refcomp.all(k >= 1, k < 3), a[i, k - 1] * b[i, k - 1], zero),
            axis=k,
        ),
        *([[3e38, 3e38]], [[1.0, -1.5]], "float32", licence),
    )
    assert _verdicts(bounded, -1.5e38, -math.inf, math.inf, 0) == [EXACT, UNDECIDABLE, WRONG, WRONG]


@pytest.mark.parametrize("licence", [Licence(), IN_ORDER], ids=["any", "in order"])
def test_products_that_overflow_in_a_dot_are_infinite_or_nan(licence):
    k = refcomp.reduce_axis((0, 2), "k")
    bounded = _pair(
        lambda a, b, i: refcomp.sum(a[i, k] * b[i, k], axis=k),
        *([[3e38, -3e38]], [[1.5, 1.4]], "float32", licence),
    )
    legal = {math.nan: "not contracted", math.inf: "the second is"}
    if licence.reassociate:
        legal[-math.inf] = "the first is"
    assert WRONG not in _verdicts(bounded, *legal)
    assert _verdicts(bounded, 3e38, 1.0) == [WRONG, WRONG]


def test_a_bf16_sum_overflows_in_some_orders():
    most = float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    k = refcomp.reduce_axis((0, 3), "k")
    form = lambda a, i: refcomp.sum(a[i, k], axis=k)  # noqa: E731
    values = [[most, most / 2, -most]]
    free, _ = _vector(form, values, dtype="bfloat16")
    assert _verdicts(free, most / 2, math.inf) == [EXACT, UNDECIDABLE]
    assert _verdicts(free, most, -most, math.nan, 0) == [WRONG] * 4
    ordered, actual = _vector(form, values, dtype="bfloat16", licence=IN_ORDER)
    assert actual[0] == math.inf and _verdicts(ordered, math.inf, most / 2) == [EXACT, WRONG]


def test_what_cannot_overflow_must_be_finite_and_what_must_overflow_infinite():
    most = float(np.finfo(np.float32).max)
    bounded = _pair(lambda a, b, i: a[i] + b[i], [most], [2.0**102], "float32")
    assert _verdicts(bounded, most, math.inf) == [EXACT, WRONG]
    bounded = _pair(lambda a, b, i: a[i] + b[i], [most], [2.0**103 * 1.01], "float32")
    assert _verdicts(bounded, math.inf, most, math.nan) == [EXACT, WRONG, WRONG]


def test_contractions_of_f64_products_of_more_digits_than_the_reference():
    """(1 + 2^-34)(1 - 2^-34) - 1 is -2^-68, or 0 where the product is rounded."""
    x, y = [1 + 2.0**-34], [1 - 2.0**-34]
    bounded = _pair(lambda a, b, i: a[i] * b[i] - 1.0, x, y, "float64")
    assert WRONG not in _verdicts(bounded, 0.0, -(2.0**-68))
    assert _verdicts(bounded, 2.0**-60) == [WRONG]
    bounded = _pair(lambda a, b, i: refcomp.fma(a[i], b[i], -1.0), x, y, "float64")
    assert _verdicts(bounded, -(2.0**-68), 0.0, 2.0**-68) == [EXACT, WRONG, WRONG]


def test_zero_divided_by_what_underflows_is_zero_or_nan():
    bounded = _pair(lambda a, b, i: a[i] / (b[i] * b[i]), [0.0], [1e-30], "float32")
    assert WRONG not in _verdicts(bounded, 0.0, math.nan)
    assert _verdicts(bounded, math.inf, 1.0) == [WRONG, WRONG]
    bounded = _pair(lambda a, b, i: a[i] / (b[i] * b[i]), [1.0], [-1e-30], "float32")
    assert _verdicts(bounded, math.inf, -math.inf, math.nan, 1e38) == [EXACT, WRONG, WRONG, WRONG]


def test_signs_of_zeros_from_reductions_are_free():
    for reduce in (refcomp.max, refcomp.min):
        for zeros in ([0.0, -0.0] * 4, [-0.0, 0.0] * 4):
            inner = refcomp.placeholder((1, 8), name="A")
            smallest = refcomp.compute((1,), lambda i, t=inner, r=reduce: r(t[i, _K], axis=_K))
            inverse = refcomp.compute((1,), lambda i, t=smallest: 1.0 / t[i])
            (bounded,) = bound_errors([inverse], {inner: np.float32([zeros])})
            assert WRONG not in _verdicts(bounded, math.inf, -math.inf)
            assert _verdicts(bounded, 0.0, math.nan) == [WRONG, WRONG]


def test_nan_of_any_bits_is_nan_and_its_own_bits_are_not_known():
    payloads = np.array([0x7FC00001, 0x7F800001, 0xFFC12345], np.uint32).view(np.float32)
    bounded, _ = _vector(lambda a, i: a[i] + 1.0, payloads)
    assert judge_bounded(payloads[::-1].copy(), bounded).exact == 3
