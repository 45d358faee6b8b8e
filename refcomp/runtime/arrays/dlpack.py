"""DLPack capsules for memory that numpy cannot share: how they are made and read.

A capsule holds the address of a DLManagedTensor. Its consumer renames the capsule, and calls the
tensor's deleter when it needs the memory no longer. If nobody consumes a capsule, its destructor
calls the deleter.

Refuses, with UserError, tensors with gaps between elements, or whose start is not a multiple of the
element's size. Refuses with Unsupported dtypes that refcomp does not have.

Source: dmlc/dlpack, dlpack.h, version 0.8, and "Python Specification for DLPack".
"""

from __future__ import annotations

import ctypes
from math import prod
from weakref import finalize

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.records import record
from refcomp.runtime.device import DeviceMemory

_NAME = b"dltensor"
_CONSUMED = b"used_dltensor"
# DLDataTypeCode of each kind of dtype.
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
_KINDS = {code: kind for kind, code in _CODES.items()}
_WIDTHS = {"bool": (8,), "bfloat": (16,), "float": (16, 32, 64)}
_INTEGER_WIDTHS = (8, 16, 32, 64)


class _DLDevice(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))


class _DLDataType(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", _DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),  # in elements; null for C's order
        ("byte_offset", ctypes.c_uint64),
    )


class _DLManagedTensor(ctypes.Structure):
    _fields_ = (
        ("tensor", _DLTensor),
        ("context", ctypes.c_void_p),  # the producer's
        ("deleter", ctypes.c_void_p),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
# A destructor receives a capsule that has no references. So it must not become a Python object.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)
_make_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))

# Address of a tensor -> what must exist until its deleter is called.
_exported: dict[int, tuple[object, ...]] = {}


def _delete(address: int) -> None:
    _exported.pop(address, None)


def _destroy(capsule: int) -> None:
    if _is_valid(capsule, _NAME):
        _delete(_pointer_of(capsule, _NAME))


# As C functions, which must exist as long as any capsule.
_c_delete = _Deleter(_delete)
_c_destroy = _Destructor(_destroy)


@record
class SharedTensor:
    """A tensor of another library."""

    memory: DeviceMemory  # calls the producer's deleter when it is no longer referenced
    shape: tuple[int, ...]
    dtype: DType


def write_capsule(
    memory: DeviceMemory, shape: tuple[int, ...], dtype: DType, place: tuple[int, int]
) -> object:
    """Return a capsule that shares `memory`, which is row-major.

    `place` has DLPack's number of the kind of device, and the index of the device.
    """
    extents = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    tensor = _DLTensor(
        data=memory.address,
        device=_DLDevice(*place),
        ndim=len(shape),
        dtype=_DLDataType(_CODES[dtype.kind], dtype.bytes * 8, 1),
        shape=extents,
        strides=None,
        byte_offset=0,
    )
    managed = _DLManagedTensor(tensor, None, ctypes.cast(_c_delete, ctypes.c_void_p))
    address = ctypes.addressof(managed)
    _exported[address] = (managed, extents, memory)
    return _make_capsule(address, _NAME, ctypes.cast(_c_destroy, ctypes.c_void_p))


def read_capsule(capsule: object) -> SharedTensor:
    """Return the tensor of a capsule, and mark the capsule as consumed.

    Raises UserError or Unsupported, and then leaves the capsule as it is.
    """
    handle = id(capsule)
    if not _is_valid(handle, _NAME):
        raise UserError(
            "the producer's __dlpack__ does not return an unused capsule of DLPack",
            remedy="copy the array to the host, and pass it to refcomp.array",
        )
    address = _pointer_of(handle, _NAME)
    managed = _DLManagedTensor.from_address(address)
    tensor: _DLTensor = managed.tensor
    dtype = _dtype_of(tensor.dtype)
    shape = tuple(tensor.shape[: tensor.ndim])
    _require_compact(tensor, shape)
    start = (tensor.data or 0) + tensor.byte_offset
    if start % dtype.bytes:
        raise UserError(
            "the memory of this tensor cannot be shared: its start is not a multiple of "
            f"{dtype.bytes} bytes",
            remedy="copy the tensor with its own library first",
        )
    _rename(handle, _CONSUMED)
    return SharedTensor(
        DeviceMemory(start, _Consumed(address, managed.deleter)), shape, dtype
    )


class _Consumed:
    """A tensor of another library, which is given back with the last reference to this object."""

    __slots__ = ("__weakref__",)

    def __init__(self, address: int, deleter: int | None) -> None:
        if deleter:
            release = finalize(self, _Deleter(deleter), address)
            # At the end of the process, the producer's library may be gone.
            release.atexit = False


def _dtype_of(given: _DLDataType) -> DType:
    kind = _KINDS.get(given.code, "")
    widths = _WIDTHS.get(kind, _INTEGER_WIDTHS)
    if not kind or given.bits not in widths or given.lanes != 1:
        raise Unsupported(
            f"a tensor of DLPack's dtype (code {given.code}, {given.bits} bits, {given.lanes} "
            "lanes) cannot be shared",
            why="refcomp has integers, floats, bfloat16 and bool, each of one lane",
            remedy="convert it with its own library first",
        )
    return DType(kind, 1 if kind == "bool" else given.bits)  # type: ignore[arg-type]


def _require_compact(tensor: _DLTensor, shape: tuple[int, ...]) -> None:
    """Raise UserError unless the elements lie in C's order without gaps."""
    if not tensor.strides or 0 in shape:
        return
    strides = tuple(tensor.strides[: tensor.ndim])
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        if extent > 1 and stride != prod(shape[axis + 1 :]):
            raise UserError(
                "the memory of this tensor cannot be shared: it is not C-contiguous "
                f"(shape {shape}, strides {strides} elements)",
                remedy="copy it with its own library first, for example x.contiguous()",
            )
