"""Reductions along axes, compared with numpy."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from tests.graph.symbol.applied import numbers, one

X = rc.sym.Variable("x")
SUMS = {"sum": np.sum, "max": np.max, "min": np.min, "mean": np.mean, "prod": np.prod}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("axis", [(), 1, (0, -1), "(1,)", None])
def test_reduction_agrees_with_numpy(name: str, axis: object) -> None:
    x = numbers(2, 3, 4)
    axes = {(): None, "(1,)": (1,)}.get(axis, axis)
    made = one(getattr(rc.sym, name)(X, axis=axis), x)
    expected = SUMS[name](x.astype("float64"), axis=axes).astype("float32")
    np.testing.assert_array_equal(made, expected)


def test_reduced_axes_may_stay_and_be_excluded() -> None:
    x = numbers(2, 3, 4)
    made = one(rc.sym.sum(X, axis=1, keepdims=True), x)
    np.testing.assert_array_equal(made, x.sum(axis=1, keepdims=True))
    made = one(rc.sym.sum(X, axis=1, exclude=True), x)
    np.testing.assert_array_equal(made, x.sum(axis=(0, 2)))
    np.testing.assert_array_equal(one(rc.sym.max(X, axis=(0, 1, 2), exclude=True), x), x)


@pytest.mark.parametrize(("name", "find"), [("argmax", np.argmax), ("argmin", np.argmin)])
def test_index_is_int32(name: str, find: object) -> None:
    x = np.random.default_rng(0).permutation(24).reshape(2, 3, 4).astype("float32")
    made = one(getattr(rc.sym, name)(X, axis=1), x)
    np.testing.assert_array_equal(made, find(x, axis=1).astype("int32"))
    assert one(getattr(rc.sym, name)(X), x) == find(x)
    kept = one(getattr(rc.sym, name)(X, axis=-1, keepdims=True), x)
    np.testing.assert_array_equal(kept[..., 0], find(x, axis=-1))


def test_sums_up_to_each_element() -> None:
    x = numbers(2, 3)
    np.testing.assert_array_equal(one(rc.sym.cumsum(X, axis=1), x), np.cumsum(x, 1))
    made = one(rc.sym.cumsum(X, axis=0, exclusive=True), x)
    np.testing.assert_array_equal(made, np.cumsum(x, 0) - x)


def test_collapse_sum_undoes_a_broadcast() -> None:
    x = numbers(2, 3, 4)
    made = one(rc.sym.collapse_sum(X, rc.sym.Variable("like")), x, numbers(3, 1))
    np.testing.assert_array_equal(made, x.sum(axis=(0, 2)).reshape(3, 1))
    with pytest.raises(UserError, match=r"collapse_sum needs constant extents, not like: f32\[N\]"):
        rc.sym.collapse_sum(X, rc.sym.Variable("like")).infer_shape(x=("M", "N"), like=("N",))


def test_wrong_axes_are_refused() -> None:
    with pytest.raises(UserError, match=r"the data has no axis 3\n(.|\n)*it has 3 axes"):
        rc.sym.sum(X, axis=3).infer_shape(x=(2, 3, 4))
    with pytest.raises(
        UserError, match=r"argmax cannot count along the axes \(0, 1\)\n(.|\n)*give one axis"
    ):
        rc.sym.argmax(X, axis=(0, 1)).infer_shape(x=(2, 3, 4))
