"""PP-OCRv4 of PaddleOCR: reads text in pictures, by three networks one after another.

`find` (opset 11) marks the pixels of text in a picture of any size. `turn` (opset 9) says if a line
is upside down. `read` (opset 9) takes a line of any width. For each 8 columns it returns how likely
each of 6,625 characters is. Between them, lines are found as connected components and cut out.

Source: PaddleOCR, tools/infer; M. Liao et al., Real-time Scene Text Detection with Differentiable
Binarization (2019).
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from benchmarks.real_models.network import Answer, Array, Feeds, Run, read_models

PACKAGE = "ocr"
# What scikit-image's `page` shows, without its last line, which the picture's edge cuts.
TEXT = (
    "Region-based segmentation",
    "Let us first determine markers of the coins and the",
    "background. These markers are pixels that we can label",
    "unambiguously as either object or background. Here,",
    "the markers are found at the two extreme parts of the",
    "histogram of grey values:",
    ">>> markers = np.zeros_like(coins)",
)
_LEAST_LIKENESS = 0.95  # of a line; 1 is equality
_ENLARGED = 2  # the page's letters are 6 pixels high
_MARKED = 0.3  # the least probability of a pixel of text
_GROWTH = 1.4  # marks are shrunken text: their area by their perimeter, times this, is missing
_LEAST_AREA = 100  # marked pixels of a line
_HEIGHT = 48  # of a line, in pixels, for `turn` and `read`
_WIDTH_TO_TURN = 192
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of colours, for `find`


class Line(NamedTuple):
    """A line of text in a picture: a parallelogram with upright sides, in pixels."""

    left: float
    top: float  # at the left end
    width: float
    height: float
    slope: float  # pixels downwards for each pixel to the right


def models(folder: Path) -> dict[str, bytes]:
    """Return `find`, `turn` and `read`; each takes `x` f32 [n, 3, h, w]."""
    return read_models(
        folder,
        find="ch_PP-OCRv4_det_infer.onnx",
        turn="ch_ppocr_mobile_v2.0_cls_infer.onnx",
        read="ch_PP-OCRv4_rec_infer.onnx",
    )


def judge(folder: Path, run: Run) -> list[Answer]:
    """Ask what the page says, line by line, and which way up its lines are."""
    characters = (folder / "ppocr_keys_v1.txt").read_text(encoding="utf-8").splitlines()
    page = read_page()
    pictures = [cut(page, line) for line in find_lines(run, page)]
    read = [read_line(run, picture, characters) for picture in pictures]
    answers = []
    for expected in TEXT:
        likeness = {line: SequenceMatcher(None, expected, line).ratio() for line in read}
        found = max(read, key=likeness.__getitem__, default="")
        is_right = likeness.get(found, 0.0) >= _LEAST_LIKENESS
        answers.append(Answer("a line", expected, found, is_right))
    for title, turns in (("upright", 0), ("upside down", 2)):
        picture = np.rot90(pictures[1], turns)
        found = "upside down" if is_upside_down(run, picture) else "upright"
        answers.append(Answer.of("which way up a line is", title, found))
    return answers


def shrink(model: bytes, feeds: Feeds) -> tuple[bytes, Feeds]:
    """Return the model as it is, and a part of the picture: 64 columns, at most as many rows."""
    return model, {"x": np.ascontiguousarray(feeds["x"][..., :64, 64:128])}


def read_page() -> Array:
    """Return scikit-image's photograph of a page, enlarged: u8 [h, w, 3]."""
    from skimage import data  # noqa: PLC0415 (a test's package)

    page = Image.fromarray(data.page()).convert("RGB")
    size = tuple(_ENLARGED * side for side in page.size)
    return np.asarray(page.resize(size, Image.Resampling.BICUBIC))


def find_lines(run: Run, page: Array) -> list[Line]:
    """Return the lines of a page u8 [h, w, 3], from top to bottom."""
    from scipy import ndimage  # noqa: PLC0415 (a test's package)

    height, width = (-(-side // 32) * 32 for side in page.shape[:2])
    padded = np.zeros((height, width, 3), np.float32)
    pixels = page[..., ::-1].astype(np.float32) / 255  # the networks read blue, green, red
    padded[: page.shape[0], : page.shape[1]] = (pixels - np.float32(_MEAN)) / np.float32(_DEVIATION)
    (marks,) = run("find", {"x": np.ascontiguousarray(padded.transpose(2, 0, 1)[None])})
    areas, count = ndimage.label(marks[0, 0] > _MARKED)
    places = (np.nonzero(areas == number) for number in range(1, count + 1))
    lines = [_line_of(rows, columns) for rows, columns in places if len(rows) >= _LEAST_AREA]
    return sorted(lines, key=lambda line: line.top)


def _line_of(rows: Array, columns: Array) -> Line:
    """Return the line whose shrunken form are the marked pixels."""
    slope = float(np.polyfit(columns, rows, 1)[0])
    left = float(columns.min())
    tops = rows - slope * (columns - left)
    width, height = float(np.ptp(columns)) + 1, float(np.ptp(tops)) + 1
    by = _GROWTH * width * height / (2 * (width + height))
    top = float(tops.min()) - by * (1 + slope)
    return Line(left - by, top, width + 2 * by, height + 2 * by, slope)


def cut(page: Array, line: Line) -> Array:
    """Return a line of a page as an upright rectangle: u8 [h, w, 3]."""
    mapping = (1, 0, line.left, line.slope, 1, line.top)
    size = round(line.width), round(line.height)
    background = tuple(int(shade) for shade in np.median(page, axis=(0, 1)))
    picture = Image.fromarray(page).transform(
        size,
        Image.Transform.AFFINE,
        mapping,
        Image.Resampling.BICUBIC,
        fillcolor=background,
    )
    return np.asarray(picture)


def read_line(run: Run, picture: Array, characters: list[str]) -> str:
    """Return the text of a line: repeated characters count once, and number 0 is none."""
    width = max(round(picture.shape[1] * _HEIGHT / picture.shape[0]), _HEIGHT)
    (scores,) = run("read", {"x": to_input(picture, width)})
    return "".join(_decode(scores[0].argmax(axis=1), [*characters, " "]))


def _decode(places: Array, characters: list[str]) -> Iterator[str]:
    before = 0
    for place in map(int, places):
        if place not in (0, before):
            yield characters[place - 1]
        before = place


def is_upside_down(run: Run, picture: Array) -> bool:
    """Return True if a line is turned by 180 degrees; only its beginning is read."""
    width = min(round(picture.shape[1] * _HEIGHT / picture.shape[0]), _WIDTH_TO_TURN)
    begin = picture[:, : round(picture.shape[0] * _WIDTH_TO_TURN / _HEIGHT)]
    padded = np.zeros((1, 3, _HEIGHT, _WIDTH_TO_TURN), np.float32)
    padded[..., :width] = to_input(begin, width)
    (scores,) = run("turn", {"x": padded})
    return bool(scores[0, 1] > scores[0, 0])


def to_input(picture: Array, width: int) -> Array:
    """Return a picture as [1, 3, 48, width] f32 in -1..1, blue first."""
    resized = Image.fromarray(np.ascontiguousarray(picture[..., ::-1])).resize(
        (width, _HEIGHT), Image.Resampling.BILINEAR
    )
    return np.ascontiguousarray(
        np.asarray(resized, np.float32).transpose(2, 0, 1)[None] / 127.5 - 1
    )
