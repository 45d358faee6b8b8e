"""Fourier transforms of frames: against numpy, NaN, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.signal.short_time import istft, istft_numpy, stft, stft_numpy
from tests.strategies.operands import run_te, tensors


def _expected(data: np.ndarray, window: np.ndarray, step: int) -> np.ndarray:
    size = len(window)
    starts = range(0, data.shape[1] - size + 1, step)
    frames = np.stack([data[:, s : s + size] * window for s in starts], axis=1)
    return np.fft.fft(frames)


@pytest.mark.parametrize(("step", "length"), [(1, 4), (2, 6), (5, 3), (1, 10)])
def test_frames_are_transformed(step, length) -> None:
    random = np.random.default_rng(2)
    data = random.standard_normal((2, 10, 2))
    window = random.uniform(0, 1, length)
    expected = _expected(data[..., 0] + 1j * data[..., 1], window, step)
    attributes = {"frame_step": step, "frame_length": length}
    for found in (
        run_te(stft, data, window, **attributes, onesided=False),
        stft_numpy(data, window, **attributes, onesided=False),
    ):
        np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, atol=1e-12)
    real = data[..., :1]
    expected = _expected(data[..., 0], np.ones(length), step)[..., : length // 2 + 1]
    for found in (run_te(stft, real, **attributes), stft_numpy(real, **attributes)):
        np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, atol=1e-12)


def test_nan_stays_in_its_frames() -> None:
    data = np.ones((1, 6, 1), np.float32)
    data[0, 0, 0] = np.nan
    for found in (
        run_te(stft, data, frame_step=2, frame_length=2),
        stft_numpy(data, frame_step=2, frame_length=2),
    ):
        assert np.isnan(found[0, 0]).all()
        assert np.isfinite(found[0, 1:]).all()


def test_ill_formed_calls_are_refused() -> None:
    data, pairs, wide, flat, window = tensors((1, 6, 1), (1, 6, 2), (1, 6, 3), (6,), (4,))
    (words,) = tensors((1, 6, 1), dtype="int32")
    (double,) = tensors((4,), dtype="float64")
    frames = {"frame_step": 1, "frame_length": 4}
    with pytest.raises(UserError, match="stft: the signal has 1 dimensions instead of 3"):
        stft(flat, **frames)
    with pytest.raises(UserError, match="stft takes float tensors, not i32"):
        stft(words, **frames)
    with pytest.raises(UserError, match="stft takes a signal whose last extent is 1 or 2"):
        stft(wide, **frames)
    with pytest.raises(UserError, match="stft gives one side only of a real signal"):
        stft(pairs, **frames)
    for step, length in ((0, 4), (1, 0), (1, 7)):
        with pytest.raises(UserError, match=f"frames of {length} elements in steps of {step}"):
            stft(data, frame_step=step, frame_length=length)
    with pytest.raises(UserError, match="the extent of the window is 4 instead of 3"):
        stft(data, window, frame_step=1, frame_length=3)
    with pytest.raises(UserError, match="stft: the window has 3 dimensions instead of 1"):
        stft(data, data, **frames)
    with pytest.raises(UserError, match="stft cannot combine f32 with f64"):
        stft(data, double, **frames)


@pytest.mark.parametrize(("step", "length"), [(2, 4), (3, 6), (4, 4), (1, 5)])
@pytest.mark.parametrize("windowed", [False, True])
def test_signal_comes_back_from_its_frames(step, length, windowed) -> None:
    random = np.random.default_rng(3)
    size = 3 * step + length
    data = random.standard_normal((2, size, 1))
    window = random.uniform(0.5, 1, length) if windowed else None
    attributes = {"frame_step": step, "frame_length": length}
    frames = run_te(stft, data, window, **attributes)
    for found in (
        run_te(istft, frames, window, **attributes),
        istft_numpy(frames, window, **attributes),
    ):
        np.testing.assert_allclose(found, data[..., 0], atol=1e-12)


def test_elements_that_no_frame_determines_are_zero() -> None:
    frames = np.zeros((1, 2, 2, 2), np.float32)
    frames[:, :, 0, 0] = 2
    attributes = {"frame_step": 3, "frame_length": 2}
    expected = np.array([[1, 1, 0, 1, 1]], np.float32)
    np.testing.assert_array_equal(run_te(istft, frames, **attributes), expected)
    np.testing.assert_array_equal(istft_numpy(frames, **attributes), expected)
    window = np.array([0, 1], np.float32)
    expected = np.array([[0, 1, 0, 0, 1]], np.float32)
    np.testing.assert_array_equal(run_te(istft, frames, window, **attributes), expected)
    np.testing.assert_array_equal(istft_numpy(frames, window, **attributes), expected)


def test_ill_formed_calls_of_the_inverse_are_refused() -> None:
    data, flat, none, window = tensors((1, 3, 3, 2), (3, 2), (1, 0, 3, 2), (3,))
    (words,) = tensors((1, 3, 3, 2), dtype="int32")
    frames = {"frame_step": 1, "frame_length": 4}
    with pytest.raises(UserError, match="istft: the tensor of transforms has 2 dimensions"):
        istft(flat, **frames)
    with pytest.raises(UserError, match="istft takes float tensors, not i32"):
        istft(words, **frames)
    with pytest.raises(UserError, match="istft cannot join 0 frames of 4 elements"):
        istft(none, **frames)
    with pytest.raises(UserError, match="istft cannot join 3 frames of 4 elements in steps of 0"):
        istft(data, frame_step=0, frame_length=4)
    with pytest.raises(UserError, match="the number of bins is 3 instead of 4"):
        istft(data, frame_step=1, frame_length=6)
    with pytest.raises(UserError, match="istft: the extent of the window is 3 instead of 4"):
        istft(data, window, **frames)
