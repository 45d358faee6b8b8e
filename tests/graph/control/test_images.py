"""Decoding of images: formats, pixels, damaged files, and the limit of pixels."""

import io
import sys

import numpy as np
import pytest
from PIL import Image

from refcomp.foundation.errors import UserError
from refcomp.graph.control import images
from refcomp.graph.control.images import decoded_image
from tests.graph.control.runs import run_text

PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 4, 3) * 10
TEXT = """
graph g(x: u8[N]) -> (y) {
  y: u8[*] = decode_image(x) {pixel_format="BGR"}
}"""


def file_of(pixels, kind="PNG"):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def test_channels_come_in_the_wanted_order() -> None:
    data = file_of(PIXELS)
    assert decoded_image(data, "RGB").tolist() == PIXELS.tolist()
    assert decoded_image(data, "BGR").tolist() == PIXELS[:, :, ::-1].tolist()
    assert decoded_image(data, "Grayscale").shape == (2, 4, 1)


def test_gray_and_transparent_images_get_three_channels() -> None:
    gray = PIXELS[:, :, 0]
    assert decoded_image(file_of(gray, "BMP"), "RGB").tolist() == np.stack([gray] * 3, 2).tolist()
    clear = np.concatenate([PIXELS, PIXELS[:, :, :1]], axis=2)
    assert decoded_image(file_of(clear), "RGB").tolist() == PIXELS.tolist()


@pytest.mark.parametrize("damaged", [b"", b"no image", file_of(PIXELS)[:45]])
def test_damaged_files_have_no_pixels(damaged) -> None:
    assert decoded_image(damaged, "RGB").shape == (0, 0, 3)
    assert decoded_image(damaged, "Grayscale").shape == (0, 0, 1)


def test_other_formats_are_not_tried() -> None:
    assert decoded_image(file_of(PIXELS, "GIF"), "RGB").shape == (0, 0, 3)


def test_the_number_of_pixels_is_limited(monkeypatch) -> None:
    monkeypatch.setattr(images, "MAX_PIXELS", 7)
    with pytest.raises(UserError, match="too large to be decoded"):
        decoded_image(file_of(PIXELS), "RGB")


def test_an_image_that_pillow_finds_too_large_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2)
    with pytest.raises(UserError, match="too large to be decoded"):
        decoded_image(file_of(PIXELS), "RGB")


def test_a_missing_package_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UserError, match="(?s)needs the package pillow") as caught:
        decoded_image(b"", "RGB")
    assert caught.value.remedy == 'pip install "refcomp[images]"'


def test_a_run_decodes() -> None:
    (made,) = run_text(TEXT, x=np.frombuffer(file_of(PIXELS), np.uint8))
    assert made.tolist() == PIXELS[:, :, ::-1].tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace("x: u8", "x: f32"), "decode_image cannot take x: f32"),
        (TEXT.replace("BGR", "BGRA"), "does not know the pixel format 'BGRA'"),
    ],
)
def test_wrong_nodes_are_refused(text, message) -> None:
    with pytest.raises(UserError, match=message):
        run_text(text, x=np.zeros(3, np.uint8))
