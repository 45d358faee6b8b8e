"""Extents: constant where they can be, and the errors where they do not fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.te.tensor import var
from refcomp.topi import shapes
from tests.strategies.operands import tensors

small = st.integers(1, 4)


@given(st.integers(0, 12), small, small, small, st.integers(0, 3), st.integers(0, 3))
def test_window_extent_counts_windows(size, kernel, stride, dilation, before, after):
    reach = dilation * (kernel - 1) + 1
    starts = [
        s for s in range(0, size + before + after, stride) if s + reach <= size + before + after
    ]
    if not starts and size + before + after - reach < 0:
        with pytest.raises(UserError, match=f"a window of {reach} does not fit in {size}"):
            shapes.window_extent(size, kernel, stride, dilation, before, after)
        return
    assert shapes.window_extent(size, kernel, stride, dilation, before, after) == len(starts)
    n = var("n")
    symbolic = shapes.window_extent(n, kernel, stride, dilation, before, after)
    assert evaluate_expr(symbolic, {n: size}) == len(starts)


def test_product_gathers_constants() -> None:
    n = var("n")
    assert shapes.product([2, 3]) == 6
    assert shapes.product([]) == 1
    assert shapes.product([n, 1]) is n
    assert shapes.product([n, 0]) == 0
    assert evaluate_expr(shapes.product([2, n, 3, n]), {n: 5}) == 150


def test_requirements_name_the_operator_and_what_is_wrong() -> None:
    (data,) = tensors((2, 3))
    with pytest.raises(UserError, match="gemm: a has 2 dimensions instead of 3"):
        shapes.require_rank(data, 3, "gemm", "a")
    with pytest.raises(UserError, match="x must be a constant"):
        shapes.require_constant(var("n"), "x")
    assert shapes.normalize_axis(-1, 3, "softmax") == 2


def test_widen_leaves_integers() -> None:
    assert shapes.widen(np.zeros(1, np.float32)).dtype == np.float64
    assert shapes.widen(np.zeros(1, to_numpy(as_dtype("bf16")))).dtype == np.float64
    assert shapes.widen(np.zeros(1, np.int8)).dtype == np.int8


@pytest.mark.parametrize(
    ("require", "dtype", "message"),
    [
        (shapes.require_number, "bool", "f takes numbers, not bool"),
        (shapes.require_integer, "float32", "f takes integer tensors, not f32"),
        (shapes.require_integer, "bool", "f takes integer tensors, not bool"),
        (shapes.require_bool, "int8", "f takes a tensor of bool, not i8"),
    ],
)
def test_other_dtypes_are_refused(require, dtype, message):
    with pytest.raises(UserError, match=message):
        require(*tensors((2,), dtype=dtype), "f")


def test_functions_are_evaluated_wide_and_rounded_once():
    def add_and_take(a, b):
        return (a + b) - a

    small, large = np.float32([2.0**-30]), np.float32([1])
    assert shapes.round_once(add_and_take, large, small) == small
    assert shapes.round_once(add_and_take, np.int8([100]), np.int8([100])).tolist() == [100]
