"""Element types of ONNX tensors, and the dtypes that hold them in a graph.

Types of less than 8 bits, and floats of 8 bits, have no dtype of their own. A graph holds one
element in a byte: integers as i8 or u8, the bits of a float as u8. The importer remembers which
type is meant. Elements of strings are known to the executor only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from refcomp.foundation.dtype import BOOL, STRING, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.graph.graph import Array


class ElementType(NamedTuple):
    """An element type of ONNX.

    Attributes:
        code: its number in TensorProto.DataType.
        name: its name there, in lower case.
        storage: the dtype that holds an element in a graph.
        numpy: the dtype of arrays that users give and get.
    """

    code: int
    name: str
    storage: DType
    numpy: Any

    @property
    def is_narrow(self) -> bool:
        """Return True if another type has the same dtype in a graph, which is the usual one."""
        return self.code >= FLOAT8E4M3FN


FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRINGS, BOOLS = range(1, 10)
FLOAT16, DOUBLE, UINT32, UINT64 = range(10, 14)
BFLOAT16 = 16
FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ = range(17, 21)
UINT4, INT4, FLOAT4E2M1, FLOAT8E8M0, UINT2, INT2, FLOAT6E2M3, FLOAT6E3M2 = range(21, 29)

_PLAIN = {
    FLOAT: "float32",
    UINT8: "uint8",
    INT8: "int8",
    UINT16: "uint16",
    INT16: "int16",
    INT32: "int32",
    INT64: "int64",
    FLOAT16: "float16",
    DOUBLE: "float64",
    UINT32: "uint32",
    UINT64: "uint64",
}
_I8, _U8 = as_dtype("int8"), as_dtype("uint8")
_NARROW = {
    FLOAT8E4M3FN: (_U8, ml_dtypes.float8_e4m3fn),
    FLOAT8E4M3FNUZ: (_U8, ml_dtypes.float8_e4m3fnuz),
    FLOAT8E5M2: (_U8, ml_dtypes.float8_e5m2),
    FLOAT8E5M2FNUZ: (_U8, ml_dtypes.float8_e5m2fnuz),
    UINT4: (_U8, ml_dtypes.uint4),
    INT4: (_I8, ml_dtypes.int4),
    FLOAT4E2M1: (_U8, ml_dtypes.float4_e2m1fn),
    FLOAT8E8M0: (_U8, ml_dtypes.float8_e8m0fnu),
    UINT2: (_U8, ml_dtypes.uint2),
    INT2: (_I8, ml_dtypes.int2),
    FLOAT6E2M3: (_U8, ml_dtypes.float6_e2m3fn),
    FLOAT6E3M2: (_U8, ml_dtypes.float6_e3m2fn),
}
_INTEGERS = (UINT4, INT4, UINT2, INT2)


def _types() -> dict[int, ElementType]:
    types = {
        code: ElementType(code, name, as_dtype(name), np.dtype(name))
        for code, name in _PLAIN.items()
    }
    types[BOOLS] = ElementType(BOOLS, "bool", BOOL, np.dtype(bool))
    types[STRINGS] = ElementType(STRINGS, "string", STRING, np.dtype(object))
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    types[BFLOAT16] = ElementType(BFLOAT16, "bfloat16", as_dtype("bfloat16"), bfloat16)
    for code, (storage, scalar) in _NARROW.items():
        name = np.dtype(scalar).name
        types[code] = ElementType(code, name, storage, np.dtype(scalar))
    return types


ELEMENT_TYPES = _types()
_CODES = {one.storage: code for code, one in ELEMENT_TYPES.items() if not one.is_narrow}


def element_type(code: int, what: str) -> ElementType:
    """Return the element type of a number, or raise UserError about `what`."""
    found = ELEMENT_TYPES.get(code)
    if found is not None:
        return found
    names = {0: "undefined", 14: "complex64", 15: "complex128"}
    raise UserError(
        f"{what} has the element type {names.get(code, code)}",
        why=f"refcomp knows {' '.join(one.name for one in ELEMENT_TYPES.values())}",
        remedy="convert the model to one of these",
    )


def code_of(dtype: DType) -> int:
    """Return the number of the usual element type that a dtype of a graph holds."""
    return _CODES[dtype]


def stored(array: Array, code: int) -> Array:
    """Return an array of an element type as a graph holds it."""
    one = ELEMENT_TYPES[code]
    if not one.is_narrow:
        return array
    given = np.asarray(array, one.numpy)
    if code in _INTEGERS:
        return given.astype(one.storage.dtype)
    return given.view(np.uint8)


def restored(array: Array, code: int) -> Array:
    """Return an array that a graph holds as an array of its element type."""
    one = ELEMENT_TYPES[code]
    if not one.is_narrow:
        return array
    if code in _INTEGERS:
        return array.astype(one.numpy)
    return np.ascontiguousarray(array).view(one.numpy)
