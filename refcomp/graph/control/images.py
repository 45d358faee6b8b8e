"""Images: decode the bytes of a file. Needs the optional package Pillow.

The bytes are hostile until they are decoded. The number of pixels is checked before memory is
allocated for them. Only the formats that ONNX names are tried.

Source: the ONNX operator specification, ImageDecoder.
"""

from __future__ import annotations

import io

import numpy as np

from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.graph.control.machine import RunValue, as_tensor
from refcomp.graph.control.operator import (
    ControlCall,
    ControlOperator,
    NodeParts,
    check_kind,
    refuse,
)
from refcomp.graph.control.types import NodeType, unshaped
from refcomp.graph.graph import Array, ValueKind
from refcomp.topi.operator import AttributeSpec

# An image of so many pixels takes 192 MiB, and Pillow's own copy as much.
MAX_PIXELS = 1 << 26
_FORMATS = ("BMP", "JPEG", "JPEG2000", "TIFF", "PNG", "WEBP", "PPM")
_U8 = as_dtype("uint8")
_CHANNELS = {"RGB": 3, "BGR": 3, "Grayscale": 1}


def decoded_image(data: bytes, pixel_format: str) -> Array:
    """Return the pixels of an image file: u8 [height, width, channels].

    Args:
        data: the bytes of a file of a format that ONNX names: BMP, JPEG, JPEG 2000, TIFF, PNG,
            WebP, or PBM, PGM and PPM.
        pixel_format: RGB, BGR or Grayscale.

    Returns:
        The pixels. A file that cannot be decoded has none: the extents are [0, 0, channels].

    Raises:
        UserError: Pillow is not installed, or the image has more than `MAX_PIXELS` pixels.
    """
    try:
        from PIL import Image  # noqa: PLC0415  optional
    except ImportError as error:
        raise UserError(
            "decoding an image needs the package pillow, which is not installed",
            remedy='pip install "refcomp[images]"',
        ) from error
    nothing = np.zeros((0, 0, _CHANNELS[pixel_format]), np.uint8)
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            _check_size(image.size)
            is_gray = pixel_format == "Grayscale"
            pixels = np.array(image.convert("L" if is_gray else "RGB"), np.uint8)
    except Image.DecompressionBombError as error:
        raise _too_large(str(error)) from error
    except UserError:
        raise
    except Exception:  # decoders raise what they like for damaged files
        return nothing
    if is_gray:
        return pixels[:, :, None]
    return np.ascontiguousarray(pixels[:, :, ::-1]) if pixel_format == "BGR" else pixels


def _check_size(size: tuple[int, int]) -> None:
    width, height = size
    if width * height > MAX_PIXELS:
        raise _too_large(f"it has {width} x {height} pixels")


def _too_large(why: str) -> UserError:
    return UserError(
        "an image is too large to be decoded",
        why=why,
        remedy=f"give an image of at most {MAX_PIXELS} pixels",
    )


def _image_types(node: NodeParts) -> list[NodeType]:
    tensors = (ValueKind.TENSOR, ValueKind.UNSHAPED)
    value = check_kind("decode_image", "encoded", node.inputs[0], *tensors)
    if value.dtype != _U8:
        refuse(f"decode_image cannot take {value}", "give the bytes of a file as u8")
    wanted = str(node.attributes.get("pixel_format", "RGB"))
    if wanted not in _CHANNELS:
        known = ", ".join(_CHANNELS)
        refuse(
            f"decode_image does not know the pixel format {wanted!r}",
            advise(wanted, _CHANNELS, f"use one of {known}"),
        )
    return [unshaped(_U8)]


def _decode(call: ControlCall) -> list[RunValue]:
    encoded = call.machine.read(as_tensor(call.inputs[0], "encoded"))
    pixel_format = str(call.attributes.get("pixel_format", "RGB"))
    return [call.machine.tensor(decoded_image(encoded.tobytes(), pixel_format))]


IMAGE_OPERATORS = (
    ControlOperator(
        "decode_image",
        inputs=("encoded",),
        attributes=(AttributeSpec("pixel_format", (str,), "RGB"),),
        rule=_image_types,
        run=_decode,
    ),
)
