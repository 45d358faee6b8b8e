"""BlazeFace of MediaPipe: finds faces. Two networks: 128x128 for near faces, 256x256 for far ones.

Both return 896 boxes: 512 of a grid of 16x16 with two each, and 384 of a grid of 8x8 with six each.
A box has the logit of a face, its centre relative to its cell, its size, and six points.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from benchmarks.real_models.network import Answer, Array, Feeds, Run, read_models

PACKAGE = "blazeface"
_GRIDS = ((16, 2), (8, 6))  # cells in a row, boxes of a cell
_LEAST_SCORE = 0.75  # the threshold of the package's own detector
# The astronaut's head in scikit-image's picture, in pixels of 512x512: left, top, right, bottom.
FACE = (165, 50, 275, 190)
_SIZES = {"near": 128, "far": 256}


class Box(NamedTuple):
    """A face that was found; all but the score in shares of the picture's side."""

    score: float
    x: float  # of the centre
    y: float
    width: float
    height: float


def models(folder: Path) -> dict[str, bytes]:
    """Return the models `near` and `far`: `input:0` f32 [1, s, s, 3] -> two logits, two boxes."""
    front, back = (
        f"face_detection_{kind}_barracuda.onnx" for kind in ("front_128x128", "back_256x256")
    )
    return read_models(folder, near=front, far=back)


def judge(folder: Path, run: Run) -> list[Answer]:
    """Ask where the astronaut's face is, and if there is a face in a photograph of coffee."""
    from skimage import data  # noqa: PLC0415 (a test's package)

    answers = []
    for name, size in _SIZES.items():
        best = find_best(run, name, to_input(data.astronaut(), size))
        answers.append(Answer.of(f"{name}: the astronaut's face", "in her head", place_of(best)))
    none = find_best(run, "near", to_input(data.coffee(), _SIZES["near"]))
    answers.append(Answer.of("near: a face in coffee", "no face", place_of(none)))
    return answers


def shrink(model: bytes, feeds: Feeds) -> tuple[bytes, Feeds]:
    """Return both as they are: the models take no smaller picture."""
    return model, feeds


def to_input(picture: Array, size: int) -> Array:
    """Return a picture [h, w, 3] u8 as [1, size, size, 3] f32 in -1..1."""
    small = Image.fromarray(picture).resize((size, size), Image.Resampling.BILINEAR)
    return np.asarray(small, np.float32)[None] / 127.5 - 1


def find_best(run: Run, model: str, picture: Array) -> Box:
    """Return the box with the highest score."""
    logits16, logits8, boxes16, boxes8 = run(model, {"input:0": picture})
    side = picture.shape[1]
    found = []
    for (cells, per_cell), logits, boxes in zip(
        _GRIDS, (logits16, logits8), (boxes16, boxes8), strict=True
    ):
        place = int(logits.argmax())
        row, column = divmod(place // per_cell, cells)
        x, y, width, height = boxes[0, place, :4] / side
        score = 1 / (1 + np.exp(-float(logits[0, place, 0])))
        centre = (column + 0.5) / cells + x, (row + 0.5) / cells + y
        found.append(Box(score, *map(float, (*centre, width, height))))
    return max(found)


def place_of(box: Box) -> str:
    """Say where a face is."""
    if box.score < _LEAST_SCORE:
        return "no face"
    left, top, right, bottom = (edge / 512 for edge in FACE)
    is_inside = left < box.x < right and top < box.y < bottom
    is_as_large = 0.5 * (right - left) < box.width < 1.5 * (right - left)
    if is_inside and is_as_large:
        return "in her head"
    return f"at {box.x:.2f}, {box.y:.2f}, {box.width:.2f} wide"
