"""Basic Pitch of Spotify: the notes that a recording holds. 0.2 MB, opset 15.

The network reads windows of 43,844 samples at 22,050 Hz. For each of 172 frames it returns how
likely each of a piano's 88 keys sounds. It computes its own constant-Q transform by convolutions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.real_models.network import Answer, Array, Feeds, Run, read_models

PACKAGE = "basic-pitch"
SAMPLES, RATE, FRAMES = 43_844, 22_050, 172
INPUT = "serving_default_input_2:0"
_NOTES = 1  # which output holds the keys that sound; 0 are those that begin
_NAMES = ("A", "A#", "B", "C", "C#", "D", "D#", "E", "F", "F#", "G", "G#")
SCALE = ("C4", "D4", "E4", "F4", "G4", "A4", "B4", "C5")
_SHARE = 0.8  # of a note's time, which sounds; the rest is silent


def models(folder: Path) -> dict[str, bytes]:
    """Return the model `notes`: [n, 43844, 1] f32 -> [n, 172, 88] onsets, notes; contours."""
    return read_models(folder, notes="nmp.onnx")


def judge(folder: Path, run: Run) -> list[Answer]:
    """Ask for the key of a sine of 440 Hz, then for the keys of a scale in C major."""
    sine = np.sin(2 * np.pi * 440 * np.arange(SAMPLES) / RATE).astype(np.float32)
    answers = [Answer.of("sine of 440 Hz", "A4", loudest_keys(run, sine, 1)[0])]
    # Two windows of four notes each.
    windows = np.stack([play(SCALE[:4]), play(SCALE[4:])])
    found = [key for window in windows for key in loudest_keys(run, window, 4)]
    answers.append(Answer.of("scale in C major", " ".join(SCALE), " ".join(found)))
    return answers


def shrink(model: bytes, feeds: Feeds) -> tuple[bytes, Feeds]:
    """Return both as they are: the model takes no shorter window."""
    return model, feeds


def loudest_keys(run: Run, window: Array, parts: int) -> list[str]:
    """Return the name of the likeliest key in each of `parts` equal parts of a window."""
    notes = run("notes", {INPUT: window.reshape(1, SAMPLES, 1)})[_NOTES][0]
    frames = [part.mean(axis=0) for part in np.array_split(notes, parts)]
    return [name_of(int(frame.argmax())) for frame in frames]


def name_of(key: int) -> str:
    """Return the name of a piano's key: 0 is A0."""
    octave = (key + 9) // 12
    return f"{_NAMES[key % 12]}{octave}"


def frequency_of(name: str) -> float:
    """Return the frequency of a key in Hz."""
    key = next(key for key in range(88) if name_of(key) == name)
    return 27.5 * 2.0 ** (key / 12)


def play(names: tuple[str, ...]) -> Array:
    """Return one window of notes, one after another, with four overtones each."""
    length = SAMPLES // len(names)
    time = np.arange(int(length * _SHARE)) / RATE
    window = np.zeros(SAMPLES, np.float32)
    for place, name in enumerate(names):
        tones = (np.sin(2 * np.pi * k * frequency_of(name) * time) / k for k in range(1, 6))
        note = sum(tones) * np.exp(-3 * time) * 0.3
        window[place * length :][: len(note)] = note
    return window
