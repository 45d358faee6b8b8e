"""The interface of a network that other people trained: models, and questions with known answers.

Each file NAME.py of this folder is a network. It defines `PACKAGE`, the key of its package, and
three functions:

    models(folder)          the ONNX models by name, from the package's files in `folder`
    judge(folder, run)      answers that the models give about real input
    shrink(model, feeds)    a model and feeds of fewer numbers, to compare each node on

`run(model, feeds)` computes the outputs of a model. So the same judge asks refcomp and
ONNX Runtime. Derived bounds take about 7 us for each number that a node makes, so they are computed
for a part of a picture, or for one of many files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import did_you_mean

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Array]
Run = Callable[[str, Feeds], list[Array]]

NAMES = ("mobilenet", "blazeface", "ocr", "silero_vad", "basic_pitch", "magika", "minilm")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of a network to a question whose right answer is known."""

    question: str
    expected: str
    found: str
    is_right: bool

    @classmethod
    def of(cls, question: str, expected: object, found: object) -> Answer:
        """Return an answer that is right if both texts are equal."""
        return cls(question, str(expected), str(found), str(expected) == str(found))


class Network(Protocol):
    """A file of this folder with a network."""

    PACKAGE: str  # its key in packages.toml

    def models(self, folder: Path) -> dict[str, bytes]: ...

    def judge(self, folder: Path, run: Run) -> list[Answer]: ...

    def shrink(self, model: bytes, feeds: Feeds) -> tuple[bytes, Feeds]: ...


def find_network(name: str) -> Network:
    """Return the network `name`. Raises UserError if there is none."""
    if name not in NAMES:
        raise UserError(
            f"{name!r} is not one of the networks",
            remedy=did_you_mean(name, NAMES) or f"there are {', '.join(NAMES)}",
        )
    return cast(Network, import_module(f"benchmarks.real_models.{name}"))


def read_models(folder: Path, **files: str) -> dict[str, bytes]:
    """Return the bytes of files in `folder` by the names that they get here."""
    return {name: (folder / file).read_bytes() for name, file in files.items()}
