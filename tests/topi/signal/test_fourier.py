"""Fourier transforms: against numpy.fft, NaN, lengths, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.signal.fourier import (
    dft,
    dft_numpy,
    fft,
    fft2d,
    fft2d_numpy,
    fft_numpy,
    ifft,
    ifft2d,
    ifft2d_numpy,
    ifft_numpy,
    irfft,
    irfft_numpy,
    rfft,
    rfft_numpy,
)
from tests.strategies.operands import run_te, tensors

RANDOM = np.random.default_rng(5)


def _complex(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal((*shape, 2))


def _joined(data: np.ndarray) -> np.ndarray:
    return data[..., 0] + 1j * data[..., 1]


def _near(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 12, 16])
@pytest.mark.parametrize("length", [None, 4, 9])
def test_transforms_are_those_of_numpy(size, length) -> None:
    data = _complex(size, 3)
    for operator, meaning, known in (
        (fft, fft_numpy, np.fft.fft),
        (ifft, ifft_numpy, np.fft.ifft),
    ):
        expected = known(_joined(data), n=length, axis=0)
        attributes = {"axis": 0, "length": length}
        _near(_joined(run_te(operator, data, is_symbolic=False, **attributes)), expected)
        _near(_joined(meaning(data, **attributes)), expected)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
@pytest.mark.parametrize("length", [None, 3, 8])
def test_transforms_of_real_signals_are_those_of_numpy(size, length) -> None:
    data = RANDOM.standard_normal((3, size))
    expected = np.fft.rfft(data, n=length)
    _near(_joined(run_te(rfft, data, length=length)), expected)
    _near(_joined(rfft_numpy(data, length=length)), expected)
    onesided = {"axis": 1, "dft_length": length, "onesided": True}
    _near(_joined(run_te(dft, data[..., None], **onesided)), expected)
    _near(_joined(dft_numpy(data[..., None], **onesided)), expected)
    spectrum = _complex(3, size)
    if size > 1 or length is not None:
        expected = np.fft.irfft(_joined(spectrum), n=length)
        _near(run_te(irfft, spectrum, length=length), expected)
        _near(irfft_numpy(spectrum, length=length), expected)


def test_two_dimensions() -> None:
    data = _complex(2, 4, 6)
    for operator, meaning, known in (
        (fft2d, fft2d_numpy, np.fft.fft2),
        (ifft2d, ifft2d_numpy, np.fft.ifft2),
    ):
        _near(_joined(run_te(operator, data)), known(_joined(data)))
        _near(_joined(meaning(data)), known(_joined(data)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_makes_its_signal_nan(bad) -> None:
    data = np.ones((2, 4, 2), np.float32)
    data[0, 1, 0] = bad
    for operator, meaning in ((dft, dft_numpy), (fft, fft_numpy), (ifft, ifft_numpy)):
        for found in (run_te(operator, data), meaning(data)):
            assert np.isnan(found[0]).all()
            assert np.isfinite(found[1]).all()
    # What is cut off does no harm.
    assert np.isfinite(run_te(fft, data, length=1)).all()


def test_ignored_imaginary_parts() -> None:
    data = np.array([[4, np.nan], [0, 0], [0, np.inf]], np.float32)
    for found in (run_te(irfft, data, is_symbolic=False), irfft_numpy(data)):
        np.testing.assert_array_equal(found, np.ones(4, np.float32))


def test_ill_formed_calls_are_refused() -> None:
    pairs, real, flat, empty = tensors((3, 4, 2), (3, 4, 1), (3,), (2, 0, 2))
    (words,) = tensors((4, 2), dtype="int32")
    symbolic = rc.placeholder((rc.var("n"), 2), name="symbolic")
    for operator in (dft, fft, ifft, irfft):
        name = operator.__name__
        with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
            operator(words)
        with pytest.raises(UserError, match=f"{name} takes two or more dimensions"):
            operator(flat)
        with pytest.raises(UserError, match=f"{name} cannot transform axis -1"):
            operator(pairs, axis=-1)
        with pytest.raises(UserError, match=f"{name}: axis 3 is out of range"):
            operator(pairs, axis=3)
        with pytest.raises(UserError, match=f"{name}: extent 0 must be a constant"):
            operator(symbolic)
        with pytest.raises(UserError, match=f"{name} cannot transform -?[0-9]+ elements"):
            operator(empty)
    with pytest.raises(UserError, match="fft takes two or more dimensions"):
        fft(real)
    with pytest.raises(UserError, match="dft gives one side only of a real signal"):
        dft(pairs, onesided=True)
    with pytest.raises(UserError, match="dft gives one side only"):
        dft(real, onesided=True, inverse=True)
    with pytest.raises(UserError, match="rfft cannot transform 0 elements"):
        rfft(flat, length=0)
    with pytest.raises(UserError, match="rfft: axis 1 is out of range"):
        rfft(flat, axis=1)
    for plane in (fft2d, ifft2d):
        with pytest.raises(UserError, match=f"{plane.__name__} cannot transform axis 1 twice"):
            plane(pairs, axes=(1, -2))
        with pytest.raises(UserError, match=f"{plane.__name__} cannot transform axis 2"):
            plane(pairs, axes=(1, 2))
