"""Silero VAD: is this speech? An LSTM that reads 32 ms at a time, in three files of the package.

`both` reads 8 and 16 kHz: an If chooses by the rate, and others inside choose again. `plain` is for
16 kHz, in opset 15; `half` stores its weights in f16. Each call returns the state for the next one.

The speech is made by espeak-ng, a package of Debian. Noise and a tone are not speech.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.real_models.network import Answer, Array, Feeds, Run, read_models
from refcomp.foundation.errors import ToolchainError

PACKAGE = "silero-vad"
TEXT = "A compiler translates a program, and each step can be read."
_FILES = {"both": "silero_vad", "plain": "silero_vad_16k_op15", "half": "silero_vad_half"}
_SECONDS = 1.5  # of each recording
_CHUNK = {16_000: 512, 8_000: 256}  # samples of a call, per rate in Hz
_CONTEXT = {16_000: 64, 8_000: 32}  # samples of the call before, which each call reads again
_SPEECH = 0.5  # the package's threshold of the probability


def models(folder: Path) -> dict[str, bytes]:
    """Return `both`, `plain` and `half`: samples and a state [2, n, 128] -> speech, next state."""
    return read_models(folder, **{name: f"{file}.onnx" for name, file in _FILES.items()})


def judge(_folder: Path, run: Run) -> list[Answer]:
    """Ask for the share of chunks that are speech: of a voice, of noise, and of a tone."""
    recordings = make_recordings()
    cases = [(model, 16_000) for model in _FILES]
    cases.append(("both", 8_000))
    answers = []
    for model, rate in cases:
        for name, samples in recordings.items():
            heard = list(listen(run, model, samples[:: 16_000 // rate], rate))
            share = float(np.mean(np.array(heard) > _SPEECH))
            found = "speech" if share > 0.7 else "none" if share < 0.1 else f"{share:.0%} speech"
            expected = "speech" if name == "voice" else "none"
            answers.append(Answer.of(f"{model}, {rate} Hz: {name}", expected, found))
    return answers


def shrink(model: bytes, feeds: Feeds) -> tuple[bytes, Feeds]:
    """Return both as they are: a chunk is short."""
    return model, feeds


def make_recordings() -> dict[str, Array]:
    """Return f32 samples in -1..1 at 16 kHz by names."""
    count = int(16_000 * _SECONDS)
    rng = np.random.default_rng(0)
    time = np.arange(count) / 16_000
    return {
        "voice": speak(TEXT)[:count],
        "noise": (0.05 * rng.standard_normal(count)).astype(np.float32),
        "tone": (0.3 * np.sin(2 * np.pi * 440 * time)).astype(np.float32),
    }


def listen(run: Run, model: str, samples: Array, rate: int) -> Iterator[float]:
    """Yield the probability of speech in each chunk."""
    size, before = _CHUNK[rate], _CONTEXT[rate]
    padded = np.concatenate([np.zeros(before, np.float32), samples])
    state = np.zeros((2, 1, 128), np.float32)
    for start in range(0, len(samples) - size + 1, size):
        feeds: Feeds = {"input": padded[start : start + before + size][None], "state": state}
        if model != "half":
            feeds = {**feeds, "sr": np.array(rate, np.int64)}
        probability, state = run(model, feeds)
        yield float(probability[0, 0])


def speak(text: str) -> Array:
    """Return a voice that reads a text: f32 samples in -1..1 at 16 kHz.

    Raises ToolchainError if espeak-ng is missing or fails.
    """
    program = shutil.which("espeak-ng")
    if program is None:
        raise ToolchainError(
            "espeak-ng is not installed, which makes speech",
            remedy="as root: apt-get install espeak-ng",
        )
    command = (program, "--stdout", "-v", "en", text)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        raise ToolchainError("espeak-ng failed", command=command, stderr=said)
    # The header of a stream has no length, which `wave` would insist on.
    with wave.open(io.BytesIO(done.stdout)) as recording:
        rate, content = recording.getframerate(), recording.readframes(1 << 24)
    samples = np.frombuffer(content, np.int16).astype(np.float32) / 32_768
    places = np.arange(0, len(samples) - 1, rate / 16_000)
    resampled: Array = np.interp(places, np.arange(len(samples)), samples).astype(np.float32)
    return resampled
