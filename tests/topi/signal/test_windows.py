"""Windows and mel filters: against numpy, exact ends, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.signal.windows import (
    bartlett_window,
    bartlett_window_numpy,
    blackman_window,
    blackman_window_numpy,
    hamming_window,
    hamming_window_numpy,
    hann_window,
    hann_window_numpy,
    mel_weight_matrix,
    mel_weight_matrix_numpy,
)
from tests.strategies.operands import assert_same, run_te

CASES = [
    (hann_window, hann_window_numpy, np.hanning),
    (blackman_window, blackman_window_numpy, np.blackman),
    (bartlett_window, bartlett_window_numpy, np.bartlett),
]
MEL = {"num_mel_bins": 8, "dft_length": 64, "sample_rate": 8000}


@pytest.mark.parametrize(("operator", "meaning", "known"), CASES)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 8, 33])
def test_symmetric_windows_are_those_of_numpy(operator, meaning, known, size) -> None:
    attributes = {"size": size, "periodic": False, "dtype": "float64"}
    for found in (run_te(operator, **attributes), meaning(**attributes)):
        np.testing.assert_allclose(found, known(size), atol=1e-15)
        np.testing.assert_array_equal(found, found[::-1])
        if size > 1:
            assert found[0] == 0


@pytest.mark.parametrize(("operator", "meaning", "known"), CASES)
def test_periodic_window_is_a_longer_one_cut_off(operator, meaning, known) -> None:
    attributes = {"size": 9, "dtype": "float64"}
    for found in (run_te(operator, **attributes), meaning(**attributes)):
        np.testing.assert_allclose(found, known(10)[:9], atol=1e-15)


def test_hamming_has_the_exact_coefficients() -> None:
    expected = 25 / 46 - 21 / 46 * np.cos(2 * np.pi * np.arange(8) / 8)
    for found in (
        run_te(hamming_window, size=8, dtype="float64"),
        hamming_window_numpy(size=8, dtype="float64"),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-15)


def test_mel_filters_are_triangles() -> None:
    edges = {"lower_edge_hertz": 0.0, "upper_edge_hertz": 4000.0}
    found = run_te(mel_weight_matrix, **MEL, **edges)
    assert_same(mel_weight_matrix_numpy(**MEL, **edges), found)
    assert found.shape == (33, 8)
    assert found.min() == 0
    # Each filter has its peak, and peaks ascend.
    np.testing.assert_array_equal(found.max(axis=0), np.ones(8, np.float32))
    assert (np.diff(found.argmax(axis=0)) > 0).all()
    # Between two peaks, neighbours add up to 1.
    first, last = found.argmax(axis=0)[[0, -1]]
    np.testing.assert_allclose(found[first : last + 1].sum(axis=1), 1, atol=1e-6)


def test_ill_formed_calls_are_refused() -> None:
    for operator in (hann_window, hamming_window, blackman_window, bartlett_window):
        name = operator.__name__
        with pytest.raises(UserError, match=f"{name} cannot have -1 elements"):
            operator(size=-1)
        with pytest.raises(UserError, match=f"{name} cannot return i32"):
            operator(size=3, dtype="int32")
    edges = {"lower_edge_hertz": 0.0, "upper_edge_hertz": 4000.0}
    with pytest.raises(UserError, match="mel_weight_matrix cannot have 0 filters"):
        mel_weight_matrix(**{**MEL, "num_mel_bins": 0}, **edges)
    with pytest.raises(UserError, match="mel_weight_matrix cannot return i32"):
        mel_weight_matrix(**MEL, **edges, dtype="int32")
    for low, high in ((-1.0, 5.0), (5.0, 4.0), (0.0, float("inf")), (float("nan"), 1.0)):
        with pytest.raises(UserError, match="mel_weight_matrix cannot have edges at"):
            mel_weight_matrix(**MEL, lower_edge_hertz=low, upper_edge_hertz=high)
