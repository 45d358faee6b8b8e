"""NDArray: a compact row-major array on a device, and the ways in and out of it.

`array` copies, as the classic API does; `from_numpy` and `from_dlpack` share memory, and so do
`NDArray.numpy` and `NDArray.__dlpack__`. Memory lives as long as anything that shares it.
Ensures: elements are of a scalar refcomp dtype, in native byte order, aligned to their size.
Refuses to share what would need a copy, and says which call copies.
"""

import math
import sys
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from refcomp.foundation.dtype import DType, as_dtype, to_numpy
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.runtime.device import (
    CopyingDriver,
    Device,
    DeviceMemory,
    HostArray,
    address_of,
    checked_device,
    cpu,
)

# Bits of numpy's `flags.num`: C-contiguous, aligned to the element, writable.
CONTIGUOUS, ALIGNED, WRITABLE = 0x1, 0x100, 0x400
LAYOUT = CONTIGUOUS | ALIGNED | WRITABLE

# What a call must know of an array: dtype, shape, device as text, bits of LAYOUT.
Form = tuple[np.dtype[Any], tuple[int, ...], str, int]

# The largest array in bytes: beyond, not even its aligned start would have an address.
_MAX_BYTES = sys.maxsize - 4096

# DLPack's name of the host: kDLCPU, number 0.
_DLPACK_HOST = (1, 0)
_WHOLE = (slice(None), Ellipsis, ())


@final
class NDArray:
    """An array of `shape` and `dtype` on `device`; made by `array`, `empty` and the `from_` pair.

    `form` and `address` are what a call checks and passes on.
    """

    __slots__ = (
        "__weakref__",
        "_device",
        "_dtype",
        "_host",
        "address",
        "form",
        "memory",
    )

    def __init__(
        self,
        memory: DeviceMemory,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        device: Device,
    ) -> None:
        self.memory, self._dtype, self._device = memory, dtype, device
        self._host = (
            None if memory.host is None else memory.host.view(dtype).reshape(shape)
        )
        is_writable = self._host is None or self._host.flags.writeable
        layout = LAYOUT if is_writable else CONTIGUOUS | ALIGNED
        self.form: Form = (dtype, shape, str(device), layout)
        self.address = memory.address

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements per dimension; () for a single element."""
        return self.form[1]

    @property
    def dtype(self) -> str:
        """The classic long name: 'float32', 'bfloat16', 'bool'."""
        return self._dtype.name

    @property
    def type(self) -> DType:
        """The dtype as refcomp's own value."""
        return as_dtype(self._dtype)

    @property
    def device(self) -> Device:
        """Where the memory lies."""
        return self._device

    @property
    def ctx(self) -> Device:
        """The classic name of `device`."""
        return self._device

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def numpy(self) -> HostArray:
        """A numpy array that shares this array's memory.

        UserError when the memory is not the host's.
        """
        if self._host is None:
            raise UserError(
                f"an array on {self._device} cannot be shared with numpy",
                why="its memory cannot be reached from the host",
                remedy="copy it: a.asnumpy()",
            )
        return self._host.view()

    def asnumpy(self) -> HostArray:
        """A copy as a numpy array."""
        result = np.empty(self.shape, self._dtype)
        self._device.driver.download(self._device.index, self.memory, result)
        return result

    def copyto(self, target: "NDArray | Device") -> "NDArray":
        """Copy the elements to an array of the same shape and dtype, or to a new one on a device.

        Returns the array that was written.
        """
        if isinstance(target, Device):
            target = _unset(self.shape, self._dtype, target)
        if not isinstance(target, NDArray):
            raise UserError(
                f"copyto cannot write a {type(target).__name__}",
                remedy="pass an NDArray or a Device; for numpy use a.asnumpy()",
            )
        if target._dtype != self._dtype:
            raise UserError(
                f"copyto from {self.dtype} to {target.dtype}",
                remedy="target.copyfrom(a) converts",
            )
        return target.copyfrom(self)

    def copyfrom(self, source: Any) -> "NDArray":
        """Copy `source` (an NDArray or what numpy reads) in, converted to this array's dtype.

        UserError when the shapes differ or this array is read-only. Returns this array.
        """
        if not self.form[3] & WRITABLE:
            raise UserError(
                "the array is read-only",
                why="it shares the memory of a read-only numpy array",
                remedy="make one of your own: refcomp.array(a)",
            )
        if isinstance(source, NDArray) and self._copy_on_devices(source):
            return self
        elements = _as_host_array(source, self._dtype)
        if elements.shape != self.shape:
            raise UserError(
                f"an array of shape {elements.shape} copied to one of {self.shape}"
            )
        self._device.driver.upload(self._device.index, elements, self.memory)
        return self

    def _copy_on_devices(self, source: "NDArray") -> bool:
        """Copies `source` where its driver can without the host; returns whether it could."""
        driver: Any = self._device.driver
        same = (source._dtype, source.shape) == (self._dtype, self.shape)
        if (
            not same
            or source._device.driver is not driver
            or not isinstance(driver, CopyingDriver)
        ):
            return False
        size, places = (
            math.prod(self.shape) * self._dtype.itemsize,
            (source._device, self._device),
        )
        driver.copy(places[0].index, source.memory, places[1].index, self.memory, size)
        return True

    def __getitem__(self, index: Any) -> Any:
        """A copy of the elements that numpy's `index` selects, as numpy values."""
        return self.asnumpy()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        """`a[:] = value`: as `copyfrom`; a single value fills the array."""
        if not any(
            index is whole or index == whole for whole in _WHOLE if _is_plain(index)
        ):
            raise UserError(
                "only a whole array can be set",
                remedy="a[:] = value; on the host, a.numpy()[index] = value sets a part",
            )
        elements = _as_host_array(value, self._dtype)
        self.copyfrom(
            np.broadcast_to(elements, self.shape) if elements.ndim == 0 else elements
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"NDArray(shape={self.shape}, dtype={self.dtype}, device={self._device})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> HostArray:
        """numpy's protocol: without a copy unless asked for, or the dtype or device needs one."""
        if self._host is None and copy is False:
            raise ValueError(
                f"an array on {self._device} cannot become numpy's without a copy"
            )
        elements = self.asnumpy() if self._host is None else self._host
        return np.array(elements, dtype=dtype, copy=copy)

    def __dlpack__(self, **request: Any) -> Any:
        """A DLPack capsule that shares the memory; `request` as in the array API standard.

        Unsupported for bfloat16 and for memory that is not the host's; UserError when the array
        is read-only and the consumer's version of DLPack cannot say so.
        """
        array = self._exportable()
        try:
            return array.__dlpack__(**request)
        except BufferError as error:
            raise UserError(
                "this array cannot be shared by DLPack",
                why=str(error),
                remedy="share a copy of it",
            ) from error

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's number of the kind of device, and the index."""
        kind, index = self._exportable(any_dtype=True).__dlpack_device__()
        return int(kind), int(index)

    def _exportable(self, any_dtype: bool = False) -> HostArray:
        if self._host is None:
            raise Unsupported(
                f"an array on {self._device} is not shared by DLPack",
                why="only memory of the host is",
                remedy="copy it first: a.copyto(refcomp.cpu(0))",
            )
        if self.type.kind == "bfloat" and not any_dtype:
            raise Unsupported(
                "a bfloat16 array is not shared by DLPack",
                why="numpy, which writes the capsule, does not know the type",
                remedy="share its bits, from_numpy(a.numpy().view('uint16')), and reinterpret them",
            )
        return self._host


def _is_plain(index: Any) -> bool:
    """Whether comparing `index` gives a bool, which an array's `==` does not."""
    return isinstance(index, slice | tuple) or index is Ellipsis


def _as_host_array(source: Any, dtype: np.dtype[Any] | None = None) -> HostArray:
    """`source` as a compact numpy array of a refcomp dtype, its own when `dtype` is None."""
    if isinstance(source, NDArray):
        source = source.asnumpy() if source._host is None else source._host
    if (
        type(source) is np.ndarray
        and source.dtype == dtype
        and source.flags.c_contiguous
    ):
        return (
            source  # what the rest would come to, for a run of a small model too slowly
        )
    _refuse_mask(source)
    try:
        own = to_numpy(_scalar_dtype(np.asarray(source).dtype))
        # From the source and not from its array: numpy refuses a Python number that does not fit,
        # but wraps an array's around.
        return np.asarray(source, dtype=own if dtype is None else dtype, order="C")
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise UserError(
            f"a {type(source).__name__} cannot be read as an array",
            why=str(error),
            remedy="pass numbers, nested lists of equal lengths, or a numpy array",
        ) from error


def _refuse_mask(array: Any) -> None:
    if isinstance(array, np.ma.MaskedArray):
        raise UserError(
            "a masked array has no plain elements",
            remedy="pass a.filled(value), or a.data to ignore the mask",
        )


def _scalar_dtype(dtype: Any) -> DType:
    element = as_dtype(dtype)
    if element.lanes != 1:
        raise UserError(
            f"an array of vectors ({element})", remedy=f"use {element.element}"
        )
    return element


def _checked_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    if not isinstance(shape, int | np.integer | Sequence | np.ndarray):
        raise UserError(
            f"{shape!r} is no shape", remedy="pass a tuple of extents, such as (2, 3)"
        )
    dims = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    for dim in dims:
        if not isinstance(dim, int | np.integer) or isinstance(dim, bool) or dim < 0:
            raise UserError(
                f"{dim!r} is no extent, in shape {dims}", remedy="use integers >= 0"
            )
    return tuple(int(dim) for dim in dims)


def empty(
    shape: int | Sequence[int], dtype: Any = "float32", device: Device | None = None
) -> NDArray:
    """A writable array on `device` (default: the host) whose elements are not set.

    Its memory starts at a multiple of 64 bytes on the host.
    """
    element = to_numpy(_scalar_dtype(dtype))
    return _unset(_checked_shape(shape), element, cpu() if device is None else device)


def _unset(shape: tuple[int, ...], dtype: np.dtype[Any], device: Device) -> NDArray:
    checked_device(device).require()
    size = math.prod(shape) * dtype.itemsize
    if size > _MAX_BYTES:
        raise UserError(
            f"an array of shape {shape} has {size} bytes",
            why="no address of this machine reaches that far",
            remedy="check how the shape is computed",
        )
    memory = device.driver.allocate(device.index, size)
    return NDArray(memory, shape, dtype, device)


def array(source: Any, device: Device | None = None, dtype: Any = None) -> NDArray:
    """A copy of `source` (numbers, lists, numpy, NDArray) on `device` (default: the host).

    The dtype is the source's, or `dtype`; the byte order becomes the native one.
    """
    element = None if dtype is None else to_numpy(_scalar_dtype(dtype))
    elements = _as_host_array(source, element)
    return _unset(
        elements.shape, elements.dtype, cpu() if device is None else device
    ).copyfrom(elements)


def from_numpy(source: HostArray) -> NDArray:
    """An array on the host that shares the memory of `source`, read-only when that is.

    UserError when sharing is impossible: not C-contiguous, not aligned to the element, of foreign
    byte order, masked, or of a dtype refcomp lacks.
    """
    if not isinstance(source, np.ndarray):
        raise UserError(
            f"a {type(source).__name__} is no numpy array", remedy="use refcomp.array"
        )
    _refuse_mask(source)
    element = to_numpy(_scalar_dtype(source.dtype))
    if reason := layout_problem(source, element):
        raise UserError(
            f"the memory of this numpy array cannot be shared: {reason}",
            remedy="refcomp.array(a) copies it",
        )
    plain = source.view(np.ndarray)
    memory = DeviceMemory(address_of(plain), plain, plain.reshape(-1).view(np.uint8))
    return NDArray(memory, plain.shape, element, cpu())


def layout_problem(source: HostArray, element: np.dtype[Any]) -> str:
    """Why compiled code cannot read `source` as it lies; '' when it can."""
    if source.dtype != element:
        return f"its byte order is not this machine's (dtype {source.dtype.str})"
    if not source.flags.c_contiguous:
        return f"it is not C-contiguous (shape {source.shape}, strides {source.strides} bytes)"
    if not source.flags.aligned:
        return f"its start is not a multiple of {element.itemsize} bytes"
    return ""


def from_dlpack(source: Any) -> NDArray:
    """An array on the host that shares the memory of any producer of DLPack.

    UserError when `source` offers no DLPack or `from_numpy` refuses its layout; Unsupported when it
    lies on another device or numpy cannot read its dtype (bfloat16 among them).
    """
    if isinstance(source, NDArray):
        return NDArray(source.memory, source.shape, source._dtype, source.device)
    if not hasattr(source, "__dlpack__"):
        raise UserError(
            f"a {type(source).__name__} does not offer DLPack",
            remedy="use refcomp.array",
        )
    if (place := tuple(source.__dlpack_device__())) != _DLPACK_HOST:
        raise Unsupported(
            f"this {type(source).__name__} lies on DLPack's device {place}",
            why=f"only memory of the host {_DLPACK_HOST} is shared",
            remedy="copy it to the host first",
        )
    try:
        shared = np.from_dlpack(source)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise Unsupported(
            f"this {type(source).__name__} cannot be shared by DLPack",
            why=str(error),
            remedy="its dtype must be one of numpy's own; refcomp.array copies",
        ) from error
    return from_numpy(shared)
