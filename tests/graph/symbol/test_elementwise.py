"""Classic operators of one tensor, compared with numpy."""

import numpy as np
import pytest

import refcomp as rc
from tests.graph.symbol.applied import numbers, one, positive

X = rc.sym.Variable("x")
EXACT = {
    "negative": np.negative,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.round,
    "sign": np.sign,
    "copy": np.copy,
    "identity": np.copy,
    "block_grad": np.copy,
    "logical_not": lambda x: (x == 0).astype(x.dtype),
}
ROUNDED = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_operator_agrees_with_numpy(name: str) -> None:
    x = numbers(3, 4)
    np.testing.assert_array_equal(one(getattr(rc.sym, name)(X), x), EXACT[name](x))


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_operator_is_numpys_f64_rounded_once(name: str) -> None:
    x = positive(3, 4)
    expected = ROUNDED[name](x.astype("float64")).astype("float32")
    np.testing.assert_array_max_ulp(one(getattr(rc.sym, name)(X), x), expected, 1)


def test_clip_takes_numbers_and_texts() -> None:
    x = numbers(3, 4)
    np.testing.assert_array_equal(one(rc.sym.clip(X, a_min=-1, a_max=2), x), np.clip(x, -1, 2))
    np.testing.assert_array_equal(one(rc.sym.clip(X, a_min="-1", a_max="2"), x), np.clip(x, -1, 2))


@pytest.mark.parametrize("dtype", ["int8", "float64", np.int32])
def test_cast_has_the_dtype_of_its_attribute(dtype: object) -> None:
    x = numbers(3, 4)
    np.testing.assert_array_equal(one(rc.sym.cast(X, dtype=dtype), x), x.astype(dtype))


def test_logical_not_keeps_bool() -> None:
    x = np.array([True, False])
    np.testing.assert_array_equal(one(rc.sym.logical_not(X), x), ~x)
