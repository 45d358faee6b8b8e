"""Read the bytes of an ONNX model, and parse them. Needs the optional package `onnx`."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO

from refcomp.foundation.errors import UserError
from refcomp.foundation.mapped_files import MappedFile
from refcomp.foundation.paths import checked_path
from refcomp.frontend.onnx.attributes import Proto

MAX_BYTES = 1 << 30

# Files of this size are mapped into memory. Smaller ones are read: tests and scripts that write a
# model again and again do not notice the difference.
MIN_MAPPED = 4 << 20
_PIECE = 16 << 20  # bytes of a file that are read at a time
# Models of earlier versions of the format name no operator set, and mean version 1.
_IR_WITH_OPSETS = 3


def onnx_package() -> Proto:
    """Return the package `onnx`, or raise UserError if it is not installed."""
    try:
        import onnx  # noqa: PLC0415  optional
        import onnx.defs  # noqa: PLC0415
        import onnx.numpy_helper  # noqa: PLC0415
    except ImportError as error:
        raise UserError(
            "reading an ONNX model needs the package onnx, which is not installed",
            remedy='pip install "refcomp[onnx]"',
        ) from error
    return onnx


def read_model(
    source: str | os.PathLike[str] | bytes, max_bytes: int
) -> bytes | MappedFile:
    """Return the bytes of a model; UserError if it cannot be read or is too large.

    A large file is mapped into memory: most of it are weights, which are read when they are used.
    """
    if isinstance(source, bytes):
        check_size(len(source), "the model", max_bytes)
        return source
    path = Path(checked_path(source, "an ONNX model"))
    try:
        with path.open("rb") as file:
            # Not max_bytes + 1 at once: Python takes that much memory, however small the file is.
            size = os.fstat(file.fileno()).st_size
            if MIN_MAPPED <= size <= max_bytes and _is_regular(file):
                with suppress(OSError):  # some file systems map no files
                    return MappedFile.open(file, path)
            pieces = [file.read(min(size, max_bytes) + 1)]
            # The file may have grown, and a pipe has no size.
            while sum(map(len, pieces)) <= max_bytes and (piece := file.read(_PIECE)):
                pieces.append(piece)
    except (OSError, ValueError) as error:
        raise UserError(
            f"the model {str(path)!r} cannot be read",
            why=str(error),
            remedy="check the path",
        ) from error
    data = b"".join(pieces)  # of one piece, it is the same object
    check_size(len(data), repr(str(path)), max_bytes)
    return data


def _is_regular(file: IO[bytes]) -> bool:
    return stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def check_size(size: int, what: str, max_bytes: int) -> None:
    """Raise UserError if `size`, in bytes, is more than `max_bytes`."""
    if size > max_bytes:
        raise UserError(
            f"{what} is larger than {max_bytes} bytes",
            remedy="if you trust it, pass from_onnx(..., max_bytes=N)",
        )


def parse_model(data: bytes) -> Proto:
    """Return the ModelProto in `data`; UserError if there is none."""
    onnx = onnx_package()
    if not data:
        raise UserError(
            "the model is empty", remedy="give a file that an exporter has finished"
        )
    try:
        model = onnx.ModelProto.FromString(data)
    except Exception as error:  # protobuf's own class moved between its versions
        raise _not_a_model(f"it does not parse: {error}") from error
    lacks_opset = not model.opset_import and model.ir_version >= _IR_WITH_OPSETS
    if not model.HasField("graph") or lacks_opset or not model.ir_version:
        raise _not_a_model("it has no graph or names no operator set")
    _check_texts(model)
    return model


def _check_texts(message: Proto) -> None:
    """Raise UserError for a name that is not UTF-8. Protobuf returns it as bytes."""
    for field, value in message.ListFields():
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue
        is_one = isinstance(value, str | bytes) or hasattr(value, "ListFields")
        for one in [value] if is_one else value:
            if isinstance(one, bytes):
                raise _not_a_model(f"a name is not UTF-8: {one[:40]!r}")
            if field.type == field.TYPE_MESSAGE:
                _check_texts(one)


def _not_a_model(why: str) -> UserError:
    return UserError(
        "this is not an ONNX model, or a damaged one",
        why=why,
        remedy="compare its size with the original's; export or download it again",
    )
