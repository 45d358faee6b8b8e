"""Operators that move all elements, compared with numpy."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.symbol.movement import reshaped
from tests.graph.symbol.applied import numbers, one

X = rc.sym.Variable("x")
DATA = numbers(2, 3, 4)
CASES = {
    "reshape": (rc.sym.reshape(X, shape=(4, 6)), DATA.reshape(4, 6)),
    "reshape by codes": (rc.sym.reshape(X, shape=(0, -1)), DATA.reshape(2, 12)),
    "reshape by text": (rc.sym.reshape(X, shape="(-3, 4)"), DATA.reshape(6, 4)),
    "transpose": (rc.sym.transpose(X), DATA.transpose()),
    "transpose by axes": (rc.sym.transpose(X, axes=(1, 0, 2)), DATA.transpose(1, 0, 2)),
    "expand_dims": (rc.sym.expand_dims(X, axis=1), DATA[:, None]),
    "two new axes": (rc.sym.expand_dims(X, axis=-1, num_newaxis=2), DATA[..., None, None]),
    "no new axis": (rc.sym.expand_dims(X, axis=0, num_newaxis=0), DATA),
    "concatenate": (rc.sym.concatenate(X, X + 1, axis=1), np.concatenate([DATA, DATA + 1], 1)),
    "stack": (rc.sym.stack(X, X + 1, axis=1), np.stack([DATA, DATA + 1], 1)),
    "flip": (rc.sym.flip(X, axis=2), np.flip(DATA, 2)),
    "tile": (rc.sym.tile(X, reps=(2, 1, 3)), np.tile(DATA, (2, 1, 3))),
    "repeat": (rc.sym.repeat(X, repeats=2, axis=1), np.repeat(DATA, 2, 1)),
    "layout": (
        rc.sym.layout_transform(X, src_layout="CHW", dst_layout="HWC"),
        DATA.transpose(1, 2, 0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_elements_move_as_in_numpy(name: str) -> None:
    net, expected = CASES[name]
    np.testing.assert_array_equal(one(net, DATA), expected)


def test_squeeze_removes_axes() -> None:
    data = numbers(1, 3, 1)
    np.testing.assert_array_equal(one(rc.sym.squeeze(X), data), data.squeeze())
    np.testing.assert_array_equal(one(rc.sym.squeeze(X, axis=0), data), data[0])
    np.testing.assert_array_equal(one(rc.sym.squeeze(X, axis=(0, 2)), data), data[0, :, 0])


def test_reshape_like_another() -> None:
    like = rc.sym.Variable("like")
    made = one(rc.sym.reshape_like(X, like), DATA, numbers(6, 4))
    np.testing.assert_array_equal(made, DATA.reshape(6, 4))
    with pytest.raises(UserError, match=r"reshape_like needs constant extents, not like: f32\[N\]"):
        rc.sym.reshape_like(X, like).infer_shape(x=("N",), like=("N",))


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((0, 0, 4), (2, 3, 4)),
        ((-2,), (2, 3, 4)),
        ((2, -2), (2, 3, 4)),
        ((-3, -2), (6, 4)),
        ((-4, 1, 2, -2), (1, 2, 3, 4)),
        ((-4, -1, 1, -2), (2, 1, 3, 4)),
        ((0, 0, -4, 2, -1), (2, 3, 2, 2)),
        ((-1,), (24,)),
        ((-1, 1, 2, 3, 4, 1), (1, 1, 2, 3, 4, 1)),
    ],
)
def test_codes_of_reshape(codes: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert reshaped((2, 3, 4), codes) == expected


@pytest.mark.parametrize(
    "codes", [(5, 5), (-1, -1), (0, 0, 0, 0), (-5,), (-4, 3, 3, -2), (-4,), (-1, 5), (-1, 0, 0, 0)]
)
def test_wrong_codes_are_refused(codes: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match=r"the shape \(2, 3, 4\) cannot become \((.|\n)*-2 keeps"):
        reshaped((2, 3, 4), codes)


def test_symbolic_extents_are_reshaped_by_the_graph() -> None:
    assert rc.sym.reshape(X, shape=(0, -1)).infer_shape(x=("N", 3, 4))[1] == [("N", 12)]


def test_wrong_new_axes_are_refused() -> None:
    with pytest.raises(UserError, match=r"expand_dims cannot add 1 axes at 5 of 3\n(.|\n)*-4 to 3"):
        rc.sym.expand_dims(X, axis=5).infer_shape(x=(2, 3, 4))
    with pytest.raises(UserError, match="cannot add 1000000 axes"):
        rc.sym.expand_dims(X, axis=0, num_newaxis=10**6).infer_shape(x=(2, 3, 4))
