import io

import numpy as np
import pytest
from PIL import Image

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import NodeCase, check


def encoded(kind):
    file = io.BytesIO()
    pixels = np.arange(60, dtype=np.uint8).reshape(4, 5, 3) * 4
    Image.fromarray(pixels).save(file, kind)
    return np.frombuffer(file.getvalue(), np.uint8)


CASES = [
    NodeCase("ImageDecoder", 20, [encoded(kind)], {"pixel_format": order}, label=f"{kind}_{order}")
    for kind, order in (("PNG", "RGB"), ("BMP", "BGR"), ("JPEG", "Grayscale"))
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_damaged_files_give_an_empty_matrix():
    check(
        NodeCase(
            "ImageDecoder",
            20,
            [np.arange(9, dtype=np.uint8)],
            expected=[np.zeros((0, 0, 3), np.uint8)],
        )
    )


def test_unknown_pixel_formats_are_refused():
    case = NodeCase("ImageDecoder", 20, [encoded("PNG")], {"pixel_format": "CMYK"})
    with pytest.raises(UserError, match="does not know the pixel format 'CMYK'"):
        from_onnx(case.model().SerializeToString())
