"""Operators that select elements, compared with numpy."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from tests.graph.symbol.applied import numbers, one, run

X, PLACES = rc.sym.Variable("x"), rc.sym.Variable("indices")
DATA = numbers(2, 6, 4)


def test_equal_parts_and_parts_at_places() -> None:
    parts = rc.sym.split(X, indices_or_sections=3, axis=1)
    for made, expected in zip(run(parts, DATA), np.split(DATA, 3, 1), strict=True):
        np.testing.assert_array_equal(made, expected)
    parts = rc.sym.split(X, indices_or_sections="(1, 4)", axis=-2)
    for made, expected in zip(run(parts, DATA), np.split(DATA, [1, 4], 1), strict=True):
        np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(one(parts[1] * 2, DATA), DATA[:, 1:4] * 2)


def test_slices_agree_with_numpy() -> None:
    made = one(rc.sym.strided_slice(X, begin=(0, 1), end=(2, 5), stride=(1, 2)), DATA)
    np.testing.assert_array_equal(made, DATA[0:2, 1:5:2])
    made = one(rc.sym.strided_slice(X, begin=(0, -2), end=(1, 6)), DATA)
    np.testing.assert_array_equal(made, DATA[0:1, -2:6])
    made = one(rc.sym.slice_axis(X, axis=1, begin=2, end=4), DATA)
    np.testing.assert_array_equal(made, DATA[:, 2:4])
    np.testing.assert_array_equal(one(rc.sym.slice_axis(X, axis=2, begin=1), DATA), DATA[..., 1:])
    like = rc.sym.Variable("like")
    made = one(rc.sym.slice_like(X, like), DATA, numbers(1, 2, 3))
    np.testing.assert_array_equal(made, DATA[:1, :2, :3])
    made = one(rc.sym.slice_like(X, like, axis=(1,)), DATA, numbers(1, 2, 3))
    np.testing.assert_array_equal(made, DATA[:, :2])


def test_elements_at_indices() -> None:
    places = np.array([[0, 5], [2, 9]], "int32")
    made = one(rc.sym.take(X, PLACES, axis=1), DATA, places)
    np.testing.assert_array_equal(made, np.take(DATA, places, 1, mode="clip"))
    made = one(rc.sym.take(X, PLACES, axis=1, mode="wrap"), DATA, places)
    np.testing.assert_array_equal(made, np.take(DATA, places, 1, mode="wrap"))
    made = one(rc.sym.take(X, PLACES), DATA, places.astype("float32"))
    np.testing.assert_array_equal(made, np.take(DATA, places))


def test_coordinates_stand_along_the_first_axis() -> None:
    places = np.array([[0, 1, 1], [5, 0, 2]], "int64")
    made = one(rc.sym.gather_nd(X, PLACES), DATA, places)
    np.testing.assert_array_equal(made, DATA[places[0], places[1]])
    np.testing.assert_array_equal(one(rc.sym.gather_nd(X, PLACES), DATA, places[:, 0]), DATA[0, 5])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rc.sym.split(X, indices_or_sections=4), "extent 6 cannot be divided into 4 eq"),
        (lambda: rc.sym.split(X, indices_or_sections=(4, 2)), r"cannot be divided at \(4, 2\)"),
        (lambda: rc.sym.split(X, indices_or_sections=0), "split cannot make 0 parts"),
        (lambda: rc.sym.split(X, indices_or_sections=10**9), "split cannot make 1000000000 parts"),
        (lambda: rc.sym.split(X, indices_or_sections=2, axis=3), "the data has no axis 3"),
    ],
)
def test_wrong_parts_are_refused(make: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make().infer_shape(x=(2, 6, 4))


def test_split_needs_a_constant_extent() -> None:
    with pytest.raises(UserError, match="split needs a constant extent along axis 0"):
        rc.sym.split(X, indices_or_sections=2, axis=0).infer_shape(x=("N", 2))


def test_indices_need_an_axis() -> None:
    with pytest.raises(UserError, match=r"the indices have no axis\n(.|\n)*give indices \[m"):
        rc.sym.gather_nd(X, PLACES).infer_shape(x=(2,), indices=())
