"""Division by norms and deviations: special values, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.normalization.norms import (
    l2_normalize,
    l2_normalize_numpy,
    lp_normalize,
    lp_normalize_numpy,
    mean_variance_normalization,
    mean_variance_normalization_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors


def row(*values: float) -> np.ndarray:
    return np.array([values], np.float32)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (row(3, -4), row(0.6, -0.8)),
        (row(0, 0), row(0, 0)),
        (row(np.inf, 1), row(np.nan, 0)),
        (row(np.nan, 1), row(np.nan, np.nan)),
        (row(), row()),
    ],
)
def test_l2_norm(data, expected):
    assert_same(run_te(l2_normalize, data, axis=(1,)), expected, 1e-6)
    with np.errstate(invalid="ignore"):
        assert_same(l2_normalize_numpy(data, axis=(1,)), expected, 1e-6)


def test_norm_is_at_least_the_root_of_epsilon() -> None:
    assert_same(run_te(l2_normalize, row(1, 0), axis=(1,), epsilon=4.0), row(0.5, 0))


@pytest.mark.parametrize(("p", "expected"), [(1, row(3 / 7, -4 / 7)), (2, row(0.6, -0.8))])
def test_norms_of_both_degrees(p, expected):
    assert_same(run_te(lp_normalize, row(3, -4), p=p), expected, 1e-6)
    assert_same(lp_normalize_numpy(row(3, -4), p=p), expected, 1e-6)
    assert_same(run_te(lp_normalize, row(0, 0), p=p), row(0, 0))
    with np.errstate(invalid="ignore"):
        assert_same(lp_normalize_numpy(row(0, 0), p=p), row(0, 0))


def test_equal_elements_become_0() -> None:
    data = row(8, 8)
    assert_same(run_te(mean_variance_normalization, data, axis=(1,)), row(0, 0))
    assert_same(mean_variance_normalization_numpy(data, axis=(1,)), row(0, 0))
    assert_same(run_te(mean_variance_normalization, row(1, 3), axis=(-1,)), row(-1, 1))


def test_ill_formed_calls_are_refused() -> None:
    data = tensors((2, 3))[0]
    with pytest.raises(UserError, match="lp_normalize cannot take the norm of degree 3"):
        lp_normalize(data, p=3)
    with pytest.raises(UserError, match="lp_normalize: axis 2 is out of range"):
        lp_normalize(data, axis=2)
    with pytest.raises(UserError, match=r"l2_normalize cannot reduce along the axes \(\)"):
        l2_normalize(data, axis=())
    with pytest.raises(UserError, match="mean_variance_normalization: axis 3 is out of range"):
        mean_variance_normalization(data, axis=(0, 3))
    whole = tensors((2, 3), dtype="int32")[0]
    for operator in (lp_normalize, mean_variance_normalization):
        with pytest.raises(UserError, match=f"{operator.__name__} takes float tensors"):
            operator(whole)
    with pytest.raises(UserError, match="l2_normalize takes float tensors"):
        l2_normalize(whole, axis=(0,))
