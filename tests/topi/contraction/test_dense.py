"""Products of matrices: te against their numpy meaning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.topi.contraction.dense import gemm, gemm_numpy, matmul, matmul_numpy
from tests.strategies.operands import (
    assert_same,
    batches,
    extents,
    integers,
    run_te,
    seeds,
    tensors,
)

factors = st.sampled_from([1.0, 0.5, 2.0, 0.0])


@pytest.mark.search
@given(
    batches,
    extents,
    extents,
    factors,
    factors,
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
    seeds,
)
def test_gemm_is_its_meaning(n, k, m, alpha, beta, trans_a, trans_b, form, seed):
    a, b = integers(seed, n, k), integers(seed + 1, k, m)
    a, b = a.T.copy() if trans_a else a, b.T.copy() if trans_b else b
    c = [None, integers(seed, m), integers(seed, 1, m), integers(seed, 1, 1)][form]
    how = {"alpha": alpha, "beta": beta, "trans_a": trans_a, "trans_b": trans_b}
    # The first extent of a transposed a is the reduced one, which b shares as a constant.
    actual = run_te(gemm, a, b, c, is_symbolic=not trans_a, **how)
    assert_same(actual, gemm_numpy(a, b, c, **how))


@pytest.mark.search
@given(st.lists(extents, max_size=2), st.booleans(), extents, extents, extents, seeds)
def test_matmul_is_its_meaning(outer, is_shared, i, k, j, seed):
    a = integers(seed, 2, *outer, i, k)
    b = integers(seed + 1, *([] if is_shared else outer), k, j)
    assert_same(run_te(matmul, a, b), matmul_numpy(a, b))


def test_integers_wrap_in_both() -> None:
    a = np.full((1, 2), 100, np.int8)
    assert_same(run_te(matmul, a, a.T.copy()), matmul_numpy(a, a.T.copy()))
    assert matmul_numpy(a, a.T.copy())[0, 0] == np.int8(20000 % 256)


def test_vectors_and_wider_sums() -> None:
    a = np.array([100, 100], np.int8)
    rows = np.array([[1, 2], [3, 4]], np.int8)
    found = run_te(matmul, a, a, is_symbolic=False, out_dtype="int32")
    assert_same(found, np.array(20000, np.int32))
    found = run_te(matmul, a, rows, is_symbolic=False, trans_b=True)
    assert_same(found, np.array([44, -68], np.int8))
    found = run_te(matmul, rows, a, is_symbolic=False, out_dtype="int32")
    assert_same(found, np.array([300, 700], np.int32))


def test_ill_formed_products_are_refused() -> None:
    with pytest.raises(UserError, match="the reduced extent of b is 4 instead of 3"):
        gemm(*tensors((2, 3), (4, 5)))
    with pytest.raises(UserError, match="gemm cannot broadcast c to the shape of the product"):
        gemm(*tensors((1, 3), (3, 5), (4, 5)))
    with pytest.raises(UserError, match="matmul cannot multiply a tensor of rank 0"):
        matmul(*tensors((), (3, 5)))
    with pytest.raises(UserError, match="cannot add up products of f32 in f16"):
        matmul(*tensors((2, 3), (3, 5)), out_dtype="float16")
    with pytest.raises(UserError, match="cannot add up products of f32 in i64"):
        matmul(*tensors((2, 3), (3, 5)), out_dtype="int64")
    with pytest.raises(UserError, match="matmul: the reduced extent of b is 4 instead of 3"):
        matmul(*tensors((2, 3), (4, 5)))
    with pytest.raises(UserError, match="cannot multiply bool tensors"):
        matmul(*tensors((2, 3), (3, 5), dtype="bool"))
    with pytest.raises(UserError, match="cannot combine f32 with f64"):
        gemm(*tensors((2, 3)), *tensors((3, 5), dtype="float64"))
