"""Parameters as bytes, in the format of TVM: names, then arrays.

All numbers are little-endian. A text or a list has its length before it, as u64::

    u64 0xF7E58D4F05049CB7, u64 0                 the list
    u64 count, then each name in UTF-8            names
    u64 count, then each array:                   arrays
        u64 0xDD5E40F096B4A13F, u64 0
        i32 1, i32 0                              the device: the host, number 0
        i32 rank
        u8 code, u8 bits, u16 1                   the dtype, as in DLPack; bool has 1 bit
        i64 for each extent
        i64 size in bytes, then the elements      row by row

Bytes are hostile until checked: each size is compared with what is left before memory is
allocated, and nothing may follow the last array.

Source: TVM, `src/runtime/ndarray.cc` (`NDArray::Save`), `tvm.runtime.save_param_dict`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from refcomp.foundation.dtype import SCALAR_DTYPES, DType, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.graph.graph import Array
from refcomp.runtime.arrays.ndarray import NDArray, array

_LIST_MAGIC = 0xF7E58D4F05049CB7
_ARRAY_MAGIC = 0xDD5E40F096B4A13F
_HOST = (1, 0)  # kDLCPU, device 0
_MAX_RANK = 64
_MAX_NAME = 1 << 16  # bytes
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4}
_BOOL = (1, 1)  # an unsigned integer of one bit, stored in a byte
_DLPACK_BOOL = (6, 8)  # as newer writers spell it


def _code_of(dtype: DType) -> tuple[int, int]:
    return _BOOL if dtype.is_bool else (_CODES[dtype.kind], dtype.bits)


_DTYPES = {_code_of(dtype): dtype for dtype in SCALAR_DTYPES}
_DTYPES[_DLPACK_BOOL] = _DTYPES[_BOOL]


def save_param_dict(params: Mapping[str, object]) -> bytes:
    """Return parameters as bytes, which `load_param_dict` and TVM read.

    Args:
        params: name -> an NDArray or a numpy array.

    Raises:
        UserError: `params` is not such a mapping.

    Source: TVM, tvm.runtime.save_param_dict.

    Example::

        >>> data = rc.graph.save_param_dict({"w": np.ones((2, 3), "float32")})
        >>> len(data), data[:8].hex()
        (121, 'b79c04054f8de5f7')
        >>> rc.graph.load_param_dict(data)
        {'w': NDArray(shape=(2, 3), dtype=float32, device=cpu:0)}
    """
    arrays = host_arrays(params)
    parts = [struct.pack("<QQQ", _LIST_MAGIC, 0, len(arrays))]
    for name in arrays:
        encoded = name.encode("utf-8", "surrogatepass")
        parts += [struct.pack("<Q", len(encoded)), encoded]
    parts.append(struct.pack("<Q", len(arrays)))
    for elements in arrays.values():
        parts += _array_parts(elements)
    return b"".join(parts)


def host_arrays(params: object) -> dict[str, Array]:
    """Return parameters as numpy arrays on the host, by name.

    Args:
        params: name -> an NDArray or a numpy array, whose memory is shared where possible.

    Raises:
        UserError: `params` is not such a mapping.
    """
    if not isinstance(params, Mapping):
        raise UserError(
            f"parameters are a {type(params).__name__}, not arrays by name",
            remedy='pass a dict: {"fc_weight": array}',
        )
    arrays: dict[str, Array] = {}
    for name, value in params.items():
        is_array = isinstance(value, NDArray | np.ndarray)
        if not isinstance(name, str) or not is_array:
            raise UserError(
                f"the parameter {name!r} cannot be a {type(value).__name__}",
                remedy="give an NDArray or a numpy array under a text",
            )
        elements = value.asnumpy() if isinstance(value, NDArray) else value
        native = to_numpy(as_dtype(elements.dtype))
        arrays[name] = np.ascontiguousarray(elements, native).reshape(elements.shape)
    return arrays


def _array_parts(elements: Array) -> list[bytes]:
    code, bits = _code_of(as_dtype(elements.dtype))
    rank = elements.ndim
    return [
        struct.pack("<QQiii", _ARRAY_MAGIC, 0, *_HOST, rank),
        struct.pack("<BBH", code, bits, 1),
        struct.pack(f"<{rank}qq", *elements.shape, elements.nbytes),
        elements.tobytes(),
    ]


def load_param_dict(data: bytes | bytearray) -> dict[str, NDArray]:
    """Return the parameters that `save_param_dict`, or TVM, wrote as bytes.

    Args:
        data: the bytes, for example a whole file.

    Returns:
        name -> array on the host.

    Raises:
        UserError: the bytes are damaged, or hold what refcomp does not have.

    Source: TVM, tvm.runtime.load_param_dict.

    Example::

        >>> rc.graph.load_param_dict(b"PK")
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: the parameters cannot be read...
    """
    if not isinstance(data, bytes | bytearray):
        raise UserError(
            f"a {type(data).__name__} holds no parameters",
            remedy="pass the bytes that save_param_dict returned",
        )
    reader = _ParamReader(memoryview(data))
    if reader.number("<Q", "the beginning") != _LIST_MAGIC:
        reader.refuse("they do not begin with 0xF7E58D4F05049CB7")
    reader.number("<Q", "the reserved number")
    count = reader.count(8, "names")
    names = [reader.name() for _ in range(count)]
    if len(set(names)) != count:
        reader.refuse("two parameters have one name")
    arrays = reader.count(36, "arrays")
    if arrays != count:
        reader.refuse(f"there are {count} names, but {arrays} arrays")
    params = {name: array(reader.elements(name)) for name in names}
    if reader.rest:
        reader.refuse(f"{reader.rest} bytes follow the last array")
    return params


class _ParamReader:
    """A reader of bytes that checks each size before it is used."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.place = 0

    @property
    def rest(self) -> int:
        """Return the number of bytes that are left."""
        return len(self.data) - self.place

    def refuse(self, why: str) -> NoReturn:
        raise UserError(
            "the parameters cannot be read",
            where=f"byte {self.place} of {len(self.data)}",
            why=why,
            remedy="give the bytes that save_param_dict returned",
        )

    def take(self, size: int, what: str) -> memoryview:
        if size > self.rest:
            self.refuse(f"{what} needs {size} bytes, but {self.rest} are left")
        part = self.data[self.place : self.place + size]
        self.place += size
        return part

    def number(self, form: str, what: str) -> int:
        (value,) = struct.unpack(form, self.take(struct.calcsize(form), what))
        return int(value)

    def count(self, least: int, what: str) -> int:
        """Return a count of items that have at least `least` bytes each."""
        count = self.number("<Q", f"the number of {what}")
        if count * least > self.rest:
            self.refuse(f"{count} {what} cannot stand in {self.rest} bytes")
        return count

    def name(self) -> str:
        size = self.number("<Q", "the length of a name")
        if size > _MAX_NAME:
            self.refuse(f"a name has {size} bytes; at most {_MAX_NAME} are read")
        try:
            return bytes(self.take(size, "a name")).decode("utf-8")
        except UnicodeDecodeError:
            self.refuse("a name is not UTF-8")

    def elements(self, name: str) -> Array:
        """Return the next array, as a view of the bytes."""
        label = f"parameter {name[:60]!r}"
        if self.number("<Q", label) != _ARRAY_MAGIC:
            self.refuse(f"{label} does not begin with 0xDD5E40F096B4A13F")
        self.number("<Q", label)
        kind = self.number("<i", label)
        self.number("<i", label)
        if kind != _HOST[0]:
            self.refuse(f"{label} is on a device of kind {kind}, not on the host")
        rank = self.number("<i", label)
        if not 0 <= rank <= _MAX_RANK:
            self.refuse(f"{label} has {rank} dimensions; at most {_MAX_RANK} are read")
        code = (self.number("<B", label), self.number("<B", label))
        lanes = self.number("<H", label)
        if code not in _DTYPES or lanes != 1:
            self.refuse(
                f"{label} has the dtype of code {code[0]} with {code[1]} bits and {lanes} lanes"
            )
        dtype = _DTYPES[code]
        shape = tuple(self.number("<q", label) for _ in range(rank))
        size = self.number("<q", label)
        expected = math.prod(shape) * dtype.bytes
        if any(extent < 0 for extent in shape) or size != expected:
            self.refuse(f"{label} has the shape {shape}, but {size} bytes")
        stored = np.frombuffer(self.take(size, label), np.uint8)
        if dtype.is_bool and stored.max(initial=0) > 1:
            self.refuse(f"{label} has the dtype bool, but other numbers than 0 and 1")
        return stored.view(to_numpy(dtype)).reshape(shape)
