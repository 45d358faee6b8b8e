"""Stored tensors of an ONNX model as arrays: dense, sparse, and in other files.

Sizes are checked before memory is allocated. Data in other files lies below the folder of the
model: a model of unknown origin must not choose what is read.
"""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.foundation.mapped_files import MappedFile
from refcomp.frontend.onnx.attributes import Proto
from refcomp.frontend.onnx.element_types import (
    STRINGS,
    ElementType,
    element_type,
    stored,
)
from refcomp.frontend.onnx.reading import onnx_package
from refcomp.graph.graph import Array

# The fields of a TensorProto that hold elements one by one.
_NUMBER_FIELDS = (
    "float_data",
    "int32_data",
    "int64_data",
    "double_data",
    "uint64_data",
    "string_data",
)
_MAX_SHOWN = 200  # characters of a path in a message
_EXTERNAL_KEYS = ("location", "offset", "length", "checksum", "basepath")


@dataclass(frozen=True, slots=True)
class TensorReader:
    """A reader of the tensors of one model.

    Attributes:
        folder: where data in other files lies; None for a model that is no file.
        max_bytes: the most that one tensor may have.
    """

    folder: Path | None
    max_bytes: int
    # Each mapped file keeps a descriptor, and a process has few. So many tensors share one.
    _mapped: dict[Path, MappedFile] = field(
        default_factory=dict, init=False, compare=False
    )

    def read(self, tensor: Proto, raw: memoryview | None = None) -> Array:
        """Return the elements of a stored tensor, as a graph holds them.

        Args:
            tensor: a TensorProto.
            raw: the elements, if `tensor` itself does not hold them. The array shares their memory.

        Raises:
            UserError: the tensor is damaged, or has an unknown element type, or its data lies in a
                file that may not be read.
        """
        onnx = onnx_package()
        what = f"constant {tensor.name!r}"
        kind = element_type(tensor.data_type, what)
        dims = list(tensor.dims)
        is_external = tensor.data_location == onnx.TensorProto.EXTERNAL
        if is_external or tensor.external_data:
            raw = self._external(tensor, what)
        # Bytes, at most: the elements are raw, or numbers of up to 8 bytes in one of the fields.
        numbers = sum(len(getattr(tensor, name)) for name in _NUMBER_FIELDS)
        raw_size = len(tensor.raw_data) if raw is None else len(raw)
        held = raw_size or 8 * numbers
        # Before `to_array`, which would allocate whatever a damaged shape asks for.
        least = math.prod(dims) * kind.numpy.itemsize if raw_size else 0
        if kind.is_narrow:
            least = math.prod(dims) // 4
        if any(dim < 0 for dim in dims) or least > held:
            raise UserError(
                f"{what} of shape {dims} does not fit its {held} bytes of data",
                remedy="the file is damaged or incomplete: export it again",
            )
        try:
            if kind.code == STRINGS:
                return _strings(tensor, dims)
            if raw is None:
                array = np.asarray(onnx.numpy_helper.to_array(tensor))
            elif kind.is_narrow:
                copy = onnx.TensorProto()
                copy.CopyFrom(tensor)
                copy.ClearField("external_data")
                copy.ClearField("data_location")
                copy.raw_data = bytes(raw)
                array = np.asarray(onnx.numpy_helper.to_array(copy))
            else:
                array = np.frombuffer(raw, _little_endian(kind)).reshape(dims)
        except Exception as error:  # whatever onnx and numpy raise for damaged data
            raise UserError(
                f"{what} of shape {dims} is damaged",
                why=str(error),
                remedy="export the model again",
            ) from error
        return stored(array, kind.code)

    def read_sparse(self, tensor: Proto) -> Array:
        """Return the dense array of a SparseTensorProto, as a graph holds it.

        Raises:
            UserError: it is damaged, or its dense form is larger than `max_bytes`.
        """
        what = f"sparse constant {tensor.values.name!r}"
        dims = [int(dim) for dim in tensor.dims]
        values = self.read(tensor.values)
        indices = self.read(tensor.indices)
        size = math.prod(dims)
        if any(dim < 0 for dim in dims) or size * values.itemsize > self.max_bytes:
            raise UserError(
                f"{what} of shape {dims} is larger than {self.max_bytes} bytes",
                remedy="if you trust it, pass from_onnx(..., max_bytes=N)",
            )
        places = indices
        is_matrix = indices.ndim == 2 and indices.shape == (values.size, len(dims))
        if is_matrix and indices.dtype == np.int64:
            self._check_indices(what, indices, np.array(dims))
            places = np.asarray(np.ravel_multi_index(tuple(indices.T), dims))
        is_list = places.shape == (values.size,) and places.dtype == np.int64
        if not is_list or values.ndim != 1:
            raise UserError(
                f"{what} has values of shape {list(values.shape)} and indices of shape "
                f"{list(indices.shape)}",
                remedy="the file is damaged: export it again",
            )
        self._check_indices(what, places, np.array(size))
        dense = np.zeros(size, values.dtype)
        dense[places] = values
        return dense.reshape(dims)

    def _check_indices(self, what: str, indices: Array, limits: Array) -> None:
        if ((indices < 0) | (indices >= limits)).any():
            raise UserError(
                f"{what} has an index outside of its shape",
                remedy="the file is damaged: export it again",
            )

    def _external(self, tensor: Proto, what: str) -> memoryview:
        """Return the bytes of a tensor that lie in another file."""
        given = {entry.key: entry.value for entry in tensor.external_data}
        if self.folder is None:
            raise UserError(
                f"{what} lies in another file",
                why="a model that is given as bytes has no folder for other files",
                remedy="pass the path of the model instead of its bytes",
            )
        unknown = sorted(set(given) - set(_EXTERNAL_KEYS))
        location = given.get("location", "")
        if unknown or not location:
            raise UserError(
                f"{what} does not say where its data lies",
                why=f"its keys are {', '.join(sorted(given)) or 'missing'}",
                remedy="the file is damaged: export it again",
            )
        path = _inside(self.folder, location, what)
        offset = _number(given.get("offset", "0"), what, "offset")
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                default = str(max(0, size - offset))
                length = _number(given.get("length", default), what, "length")
                if offset + length > size or length > self.max_bytes:
                    raise UserError(
                        f"{what} is said to have {length} bytes at {offset} of {location!r}",
                        why=f"the file has {size} bytes, and {self.max_bytes} are read at most",
                        remedy="the files do not belong together: export the model again",
                    )
                if length == 0:
                    return memoryview(b"")
                # A file that grew meanwhile is mapped again.
                if offset + length > len(self._mapped.get(path, b"")):
                    mapped = MappedFile.open(file, path, is_stable=True)
                    self._mapped[path] = mapped
        except OSError as error:
            raise UserError(
                f"{what} lies in {location!r}, which cannot be read",
                why=str(error),
                remedy="put the file into the folder of the model",
            ) from error
        return memoryview(self._mapped[path])[offset : offset + length]


def _inside(folder: Path, location: str, what: str) -> Path:
    """Return the path of a file below `folder`; UserError for any other."""
    root = folder.resolve()
    path = root / location
    fault = ""
    if "\0" in location or "\\" in location or Path(location).is_absolute():
        fault = "the path is absolute, or has characters that no exporter writes"
    elif ".." in Path(location).parts:
        fault = "the path leaves the folder of the model"
    else:
        try:
            path = path.resolve()
            if not path.is_relative_to(root):
                fault = "a link leads out of the folder of the model"
            elif path.exists() and not path.is_file():
                fault = "it is not a file"
        except (OSError, RuntimeError) as error:  # a long name, or links in a circle
            fault = str(error)[:_MAX_SHOWN]
    if fault:
        raise UserError(
            f"{what} lies in {location[:_MAX_SHOWN]!r}, which is not read",
            why=fault,
            remedy="let data lie in files below the folder of the model",
        )
    return path


def _number(text: str, what: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise UserError(
            f"{what} has the {name} {text[:40]!r} in another file",
            remedy="the file is damaged: export it again",
        )
    return int(text)


def _strings(tensor: Proto, dims: list[int]) -> Array:
    texts = [raw.decode("utf-8", "replace") for raw in tensor.string_data]
    return np.array(texts, dtype=object).reshape(dims)


def _little_endian(kind: ElementType) -> np.dtype[np.generic]:
    """Return the numpy dtype of raw elements in a model."""
    native: np.dtype[np.generic] = kind.numpy
    return native if sys.byteorder == "little" else native.newbyteorder("<")
