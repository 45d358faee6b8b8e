"""Magika of Google: the type of a file by its first and last kilobyte. 3.2 MB, opset 15.

The questions are files that are in every checkout. The bytes that the network reads are chosen as
the package's `magika.py` does: white space at both ends is stripped, and 256 pads what is missing.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from benchmarks.real_models.network import Answer, Array, Feeds, Run, read_models

PACKAGE = "magika"
ROOT = Path(__file__).parents[2]
# A file of this repository -> its type in Magika's words.
FILES = {
    "README.md": "markdown",
    "setup.cfg": "ini",
    "pyproject.toml": "toml",
    "scripts/test": "shell",
    "scripts/train_digits.py": "python",
    "scripts/data/digits/digits.onnx": "onnx",
    "scripts/data/digits/digits_test.npz": "npz",
    "benchmarks/results/epyc-zen4-2-cores.json": "json",
    "templates/opencl/module.j2": "jinja",
    "LICENSE": "txt",
}


def models(folder: Path) -> dict[str, bytes]:
    """Return the model `type`: `bytes` i32 [n, 2048] -> [n, labels]."""
    return read_models(folder, type="model.onnx")


def judge(folder: Path, run: Run) -> list[Answer]:
    """Ask for the type of each of `FILES`, all in one batch."""
    config = json.loads((folder / "config.min.json").read_text(encoding="utf-8"))
    content = [(ROOT / name).read_bytes() for name in FILES]
    batch = np.stack([choose_bytes(one, config) for one in content])
    (scores,) = run("type", {"bytes": batch})
    found = [config["target_labels_space"][place] for place in scores.argmax(axis=1)]
    pairs = zip(FILES.items(), found, strict=True)
    return [Answer.of(name, expected, label) for (name, expected), label in pairs]


def shrink(model: bytes, feeds: Feeds) -> tuple[bytes, Feeds]:
    """Return the model as it is, and the first file."""
    return model, {name: array[:1] for name, array in feeds.items()}


def choose_bytes(content: bytes, config: dict[str, int]) -> Array:
    """Return the first and the last bytes that the network reads, i32."""
    block = config["block_size"]
    begin = content[:block].lstrip()[: config["beg_size"]]
    end = content[-block:].rstrip()[-config["end_size"] :]
    padding = config["padding_token"]
    first = np.full(config["beg_size"], padding, np.int32)
    last = np.full(config["end_size"], padding, np.int32)
    first[: len(begin)] = np.frombuffer(begin, np.uint8)
    if end:
        last[-len(end) :] = np.frombuffer(end, np.uint8)
    return np.concatenate([first, last])
