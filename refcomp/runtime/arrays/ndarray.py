"""NDArray: a compact row-major array on a device.

`array` copies, as in the classic API. `from_numpy`, `from_dlpack`, `NDArray.numpy` and
`NDArray.__dlpack__` share memory, which lives as long as any object that shares it.

Ensures: elements have a scalar refcomp dtype and native byte order, and are aligned to their size.
Refuses to share memory that would need a copy, and names the call that copies.

Example::

    >>> x = np.zeros(2, "float32")
    >>> copied, shared = rc.nd.array(x), rc.nd.from_numpy(x)
    >>> x[0] = 7
    >>> copied.asnumpy().tolist(), shared.asnumpy().tolist()
    ([0.0, 0.0], [7.0, 0.0])
"""

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from refcomp.foundation.dtype import DType, as_dtype, to_numpy
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.runtime.arrays.cuda_interface import write_interface
from refcomp.runtime.arrays.dlpack import read_capsule, write_capsule
from refcomp.runtime.device import (
    CopyingDriver,
    Device,
    DeviceMemory,
    HostArray,
    SharingDriver,
    address_of,
    checked_device,
    cpu,
    device_of_dlpack,
)

if TYPE_CHECKING:
    import numpy.typing as npt

# Bits of numpy's `flags.num`.
CONTIGUOUS = 0x1  # in C's order
ALIGNED = 0x100  # to the element
WRITABLE = 0x400
LAYOUT = CONTIGUOUS | ALIGNED | WRITABLE

# The properties of an array that a call checks: dtype, shape, device as text, bits of LAYOUT.
# A plain tuple, because each call makes and compares some.
Form = tuple[np.dtype[np.generic], tuple[int, ...], str, int]

# The maximum size of an array: the end of a larger one, after alignment, would have no address.
_MAX_BYTES = sys.maxsize - 4096

# The host in DLPack: kDLCPU, device 0.
_DLPACK_HOST = (1, 0)
# DLPack's number of NVIDIA GPUs: kDLCUDA.
DLPACK_CUDA = 2
# Indices of all elements: a[:], a[...] and a[()].
_WHOLE = (slice(None), Ellipsis, ())


@final
class NDArray:
    """An array on a device. Use `array`, `empty`, `from_numpy` or `from_dlpack` to make one.

    The memory is row-major without gaps. `a[index]` is a copy as numpy values, and `a[:] = value`
    sets all elements. A call of a compiled function checks `form`, and passes `address` on.

    Args:
        memory: memory of the device, of at least the array's size.
        shape: the extents, ints of at least 0.
        dtype: the numpy dtype of the elements.
        device: the device that has the memory.

    Source: TVM, tvm.nd.NDArray.

    Example::

        >>> a = rc.array([[1, 2, 3], [4, 5, 6]], dtype="float32")
        >>> a.shape, a.ndim, a.dtype, str(a.type), str(a.device), a.ctx == a.device
        ((2, 3), 2, 'float32', 'f32', 'cpu:0', True)
        >>> a.numpy()[0, 0] = 9  # shares memory
        >>> b = a.copyto(rc.cpu())
        >>> b[:] = 0
        >>> a.asnumpy().tolist(), b[0].tolist()
        ([[9.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [0.0, 0.0, 0.0])
        >>> b.copyfrom(a)[1].tolist()
        [4.0, 5.0, 6.0]
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
        dtype: np.dtype[np.generic],
        device: Device,
    ) -> None:
        self.memory = memory
        self._dtype = dtype
        self._device = device
        self._host = (
            None if memory.host is None else memory.host.view(dtype).reshape(shape)
        )
        is_writable = self._host is None or self._host.flags.writeable
        layout = LAYOUT if is_writable else CONTIGUOUS | ALIGNED
        self.form: Form = (dtype, shape, str(device), layout)
        self.address = memory.address

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents; () for a single element."""
        return self.form[1]

    @property
    def dtype(self) -> str:
        """The long name of the dtype: 'float32', 'bfloat16', 'bool'."""
        return self._dtype.name

    @property
    def type(self) -> DType:
        """The dtype as a DType."""
        return as_dtype(self._dtype)

    @property
    def device(self) -> Device:
        """The device that has the memory."""
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
        """Return a numpy array that shares this array's memory.

        Raises UserError if the host cannot access the memory.
        """
        if self._host is None:
            raise UserError(
                f"an array on {self._device} cannot be shared with numpy",
                why="the host cannot access its memory",
                remedy="copy it: a.asnumpy()",
            )
        return self._host.view()

    def asnumpy(self) -> HostArray:
        """Return a copy as a numpy array."""
        result = np.empty(self.shape, self._dtype)
        self._device.driver.download(self._device.index, self.memory, result)
        return result

    def copyto(self, target: "NDArray | Device") -> "NDArray":
        """Copy the elements to another array, or to a new one on a device, and return that array.

        Args:
            target: a Device, or an NDArray of the same shape and dtype.

        Raises:
            UserError: the target is of another type, shape or dtype, or is read-only.
        """
        if isinstance(target, Device):
            target = _allocate(self.shape, self._dtype, target)
        if not isinstance(target, NDArray):
            raise UserError(
                f"copyto cannot write a {type(target).__name__}",
                remedy="pass an NDArray or a Device; for numpy use a.asnumpy()",
            )
        if target._dtype != self._dtype:
            raise UserError(
                f"copyto cannot convert {self.dtype} to {target.dtype}",
                remedy="use target.copyfrom(a), which converts",
            )
        return target.copyfrom(self)

    def copyfrom(self, source: object) -> "NDArray":
        """Copy the elements of another array to this one, and return this array.

        Args:
            source: an NDArray, or a value that numpy reads, of the same shape. Elements are
                converted to this array's dtype.

        Raises:
            UserError: the shapes differ, this array is read-only, or numpy cannot read the source.
        """
        if not self.form[3] & WRITABLE:
            raise UserError(
                "the array is read-only",
                why="it shares the memory of a read-only numpy array, or is an input of the "
                "operation that calls this registered function",
                remedy="copy it: refcomp.array(a)",
            )
        if isinstance(source, NDArray) and self._copy_on_devices(source):
            return self
        elements = _as_host_array(source, self._dtype)
        if elements.shape != self.shape:
            raise UserError(
                f"an array of shape {elements.shape} cannot be copied to an array of "
                f"shape {self.shape}",
                remedy="pass an array of the same shape",
            )
        self._device.driver.upload(self._device.index, elements, self.memory)
        return self

    def _copy_on_devices(self, source: "NDArray") -> bool:
        """Copy `source` without the host, and return True, if its driver can do this."""
        driver: object = self._device.driver
        if source._device.driver is not driver or not isinstance(driver, CopyingDriver):
            return False
        if source._dtype != self._dtype or source.shape != self.shape:
            return False
        driver.copy(
            source_index=source._device.index,
            source=source.memory,
            index=self._device.index,
            target=self.memory,
            size=math.prod(self.shape) * self._dtype.itemsize,
        )
        return True

    def __getitem__(self, index: Any) -> Any:
        """Return a copy of the elements that numpy's `index` selects, as numpy values."""
        return self.asnumpy()[index]

    def __setitem__(self, index: object, value: object) -> None:
        """Set all elements, as `copyfrom` does; a single value fills the array."""
        # Only these types are compared: `==` on a numpy array gives an array, not a bool.
        is_plain = isinstance(index, slice | tuple) or index is Ellipsis
        if not is_plain or index not in _WHOLE:
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

    def __array__(
        self, dtype: "npt.DTypeLike | None" = None, copy: bool | None = None
    ) -> HostArray:
        """Return a numpy array, by numpy's protocol for conversions.

        Copies if the caller requests it, or if the dtype or the device needs it.
        """
        if self._host is None and copy is False:
            raise ValueError(
                f"an array on {self._device} cannot become a numpy array without a copy"
            )
        elements = self.asnumpy() if self._host is None else self._host
        return np.array(elements, dtype=dtype, copy=copy)

    def __dlpack__(self, **request: Any) -> object:
        """Return a DLPack capsule that shares the memory; `request` as in the array API standard.

        Raises Unsupported for bfloat16 on the host, and for memory of devices that share none.
        Raises UserError if the array is read-only and the consumer's version of DLPack cannot
        express this.
        """
        if place := self._shared_place():
            # -1 says that the consumer does not want to wait.
            if request.get("stream") != -1:
                self._device.sync()
            return write_capsule(self.memory, self.shape, self.type, place)
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
        """Return DLPack's number of the kind of device, and the index."""
        if place := self._shared_place():
            return place
        kind, index = self._exportable(any_dtype=True).__dlpack_device__()
        return int(kind), int(index)

    def _shared_place(self) -> tuple[int, int] | None:
        """Return DLPack's name of a device that shares its memory; None for others."""
        driver: object = self._device.driver
        if not isinstance(driver, SharingDriver):
            return None
        return driver.dlpack_type, self._device.index

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """The memory of an NVIDIA GPU, for libraries such as CuPy and Numba.

        AttributeError on other devices. Unsupported for bfloat16, which the protocol does not have.

        Source: Numba, CUDA Array Interface (version 3).
        """
        place = self._shared_place()
        if place is None or place[0] != DLPACK_CUDA:
            raise AttributeError(f"an array on {self._device} is not on an NVIDIA GPU")
        return write_interface(self.address, self.shape, self._dtype)

    def _exportable(self, any_dtype: bool = False) -> HostArray:
        if self._host is None:
            raise Unsupported(
                f"an array on {self._device} cannot be shared by DLPack",
                why="refcomp shares memory of the host only",
                remedy="copy it first: a.copyto(refcomp.cpu(0))",
            )
        if self.type.kind == "bfloat" and not any_dtype:
            raise Unsupported(
                "a bfloat16 array cannot be shared by DLPack",
                why="numpy, which makes the capsule, does not know the dtype",
                remedy="share its bits, from_numpy(a.numpy().view('uint16')), and reinterpret them",
            )
        return self._host


def _as_host_array(
    source: object, dtype: np.dtype[np.generic] | None = None
) -> HostArray:
    """Return `source` as a compact numpy array of `dtype`; None keeps its own dtype."""
    if isinstance(source, NDArray):
        source = source.asnumpy() if source._host is None else source._host
    # A shortcut with the same result: the code below is slow for runs of small models.
    if type(source) is np.ndarray:
        plain: HostArray = source
        if plain.dtype == dtype and plain.flags.c_contiguous:
            return plain
    _refuse_mask(source)
    try:
        own = to_numpy(_scalar_dtype(np.asarray(source).dtype))
        # Convert the source and not its array: numpy refuses a Python number that does not fit,
        # but wraps the elements of an array around.
        return np.asarray(source, dtype=own if dtype is None else dtype, order="C")
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise UserError(
            f"a {type(source).__name__} cannot be read as an array",
            why=str(error),
            remedy="pass numbers, nested lists of equal lengths, or a numpy array",
        ) from error


def _refuse_mask(array: object) -> None:
    if isinstance(array, np.ma.MaskedArray):
        raise UserError(
            "a masked array cannot be converted",
            remedy="pass a.filled(value), or a.data to ignore the mask",
        )


def _scalar_dtype(dtype: object) -> DType:
    element = as_dtype(dtype)
    if element.lanes != 1:
        raise UserError(
            f"the elements of an array cannot be vectors ({element})",
            remedy=f"use {element.element}, with the lanes as the last dimension",
        )
    return element


def _checked_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    if not isinstance(shape, int | np.integer | Sequence | np.ndarray):
        raise UserError(
            f"{shape!r} is not a shape",
            remedy="pass a tuple of extents, such as (2, 3)",
        )
    dims = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    for dim in dims:
        if not isinstance(dim, int | np.integer) or isinstance(dim, bool) or dim < 0:
            raise UserError(
                f"{dim!r} is not an extent, in shape {dims}",
                remedy="use integers >= 0",
            )
    return tuple(int(dim) for dim in dims)


def empty(
    shape: int | Sequence[int],
    dtype: object = "float32",
    device: Device | None = None,
) -> NDArray:
    """Return a writable array with undefined elements. On the host, it is aligned to 64 bytes.

    Args:
        shape: the extents, an int or several of at least 0; () is one element.
        dtype: the dtype. Vectors, such as `float32x4`, make one more dimension: the lanes.
        device: the device; None is the host.

    Raises:
        UserError: an extent is not such an int, the dtype is unknown, or the device does not exist.

    Source: TVM, tvm.nd.empty.

    Example::

        >>> a = rc.empty((2, 3), "int8")
        >>> a, a.address % 64
        (NDArray(shape=(2, 3), dtype=int8, device=cpu:0), 0)
        >>> rc.empty(10, "float32x4")
        NDArray(shape=(10, 4), dtype=float32, device=cpu:0)
    """
    extents = _checked_shape(shape)
    held = as_dtype(dtype)
    if held.lanes > 1:
        extents = (*extents, held.lanes)
    return _allocate(
        extents, to_numpy(held.element), cpu() if device is None else device
    )


def _allocate(
    shape: tuple[int, ...], dtype: np.dtype[np.generic], device: Device
) -> NDArray:
    checked_device(device).require()
    size = math.prod(shape) * dtype.itemsize
    if size > _MAX_BYTES:
        raise UserError(
            f"an array of shape {shape} has {size} bytes",
            why="this exceeds the address space of this machine",
            remedy="check how the shape is computed",
        )
    memory = device.driver.allocate(device.index, size)
    return NDArray(memory, shape, dtype, device)


def array(
    source: object, device: Device | None = None, dtype: object = None
) -> NDArray:
    """Return a copy of `source` on a device.

    Args:
        source: numbers, nested lists, a numpy array or an NDArray.
        device: the device; None is the host.
        dtype: the dtype of the elements; None is that of the source, in native byte order.

    Raises:
        UserError: numpy cannot read the source, refcomp does not have its dtype, or the device does
            not exist.

    Source: TVM, tvm.nd.array.

    Example::

        >>> rc.array(np.ones((2, 3)), dtype="float16")
        NDArray(shape=(2, 3), dtype=float16, device=cpu:0)
    """
    element = None if dtype is None else to_numpy(_scalar_dtype(dtype))
    elements = _as_host_array(source, element)
    home = cpu() if device is None else device
    return _allocate(elements.shape, elements.dtype, home).copyfrom(elements)


def from_numpy(source: HostArray) -> NDArray:
    """Return an array on the host that shares the memory of a numpy array.

    It is read-only if the numpy array is.

    Args:
        source: a numpy array, C-contiguous, aligned to its element, in native byte order.

    Raises:
        UserError: `source` is not such an array, has a mask, or has a dtype that refcomp does not
            have.

    Example::

        >>> x = np.zeros((2, 3), "float32")
        >>> a = rc.from_numpy(x)
        >>> x[0, 0] = 7
        >>> print(a[0])
        [7. 0. 0.]
        >>> rc.from_numpy(x.T)
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: the memory of this numpy array cannot be shared...
    """
    if not isinstance(source, np.ndarray):
        raise UserError(
            f"a {type(source).__name__} is not a numpy array",
            remedy="use refcomp.array",
        )
    _refuse_mask(source)
    element = to_numpy(_scalar_dtype(source.dtype))
    if reason := layout_problem(source, element):
        raise UserError(
            f"the memory of this numpy array cannot be shared: {reason}",
            remedy="refcomp.array(a) copies it",
        )
    # A subclass such as np.matrix has other rules of indexing.
    plain = source.view(np.ndarray)
    memory = DeviceMemory(address_of(plain), plain, plain.reshape(-1).view(np.uint8))
    return NDArray(memory, plain.shape, element, cpu())


def layout_problem(source: HostArray, element: np.dtype[np.generic]) -> str:
    """Return why compiled code cannot use the memory of `source`, '' if it can.

    Args:
        source: a numpy array.
        element: the numpy dtype of the elements, in native byte order.

    Example::

        >>> x = np.zeros((2, 3), "float32")
        >>> rc.nd.layout_problem(x, np.dtype("float32")), rc.nd.layout_problem(x.T, x.dtype)
        ('', 'it is not C-contiguous (shape (3, 2), strides (4, 12) bytes)')
    """
    if source.dtype != element:
        return f"its byte order is not this machine's (dtype {source.dtype.str})"
    if not source.flags.c_contiguous:
        return f"it is not C-contiguous (shape {source.shape}, strides {source.strides} bytes)"
    if not source.flags.aligned:
        return f"its start is not a multiple of {element.itemsize} bytes"
    return ""


def _from_device(source: Any, kind: int, index: int) -> NDArray:
    """Return an array that shares memory of a device, by DLPack's number of its kind."""
    device = device_of_dlpack(kind, index)
    if device is None:
        raise Unsupported(
            f"this {type(source).__name__} lies on DLPack's device {(kind, index)}",
            why=f"refcomp shares memory of the host {_DLPACK_HOST} and of NVIDIA GPUs only",
            remedy="copy it to the host first",
        )
    device.require()
    driver: object = device.driver
    assert isinstance(driver, SharingDriver)
    # The producer lets this stream wait for its own work.
    shared = read_capsule(source.__dlpack__(stream=driver.dlpack_stream))
    return NDArray(shared.memory, shared.shape, to_numpy(shared.dtype), device)


def from_dlpack(source: Any) -> NDArray:
    """Return an array that shares the memory of a producer of DLPack.

    Args:
        source: an array with `__dlpack__`, such as one of numpy, PyTorch or JAX, on the host or on
            an NVIDIA GPU.

    Raises:
        UserError: `source` does not offer DLPack, its elements do not lie in C's order without
            gaps, or this machine does not have its device.
        Unsupported: it is on a device of another kind, or refcomp does not have its dtype. On the
            host, numpy must have the dtype, too, so that bfloat16 is refused.

    Source: the DLPack protocol of the Python array API standard.

    Example::

        >>> x = np.zeros(3, "float32")
        >>> a = rc.from_dlpack(x)
        >>> x[0] = 7
        >>> print(a.asnumpy())
        [7. 0. 0.]
    """
    if isinstance(source, NDArray):
        return NDArray(source.memory, source.shape, source._dtype, source.device)
    if not hasattr(source, "__dlpack__"):
        raise UserError(
            f"a {type(source).__name__} does not offer DLPack",
            remedy="use refcomp.array",
        )
    if (place := tuple(source.__dlpack_device__())) != _DLPACK_HOST:
        return _from_device(source, *map(int, place))
    try:
        shared = np.from_dlpack(source)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise Unsupported(
            f"this {type(source).__name__} cannot be shared by DLPack",
            why=str(error),
            remedy="its dtype must be one of numpy's own; refcomp.array copies",
        ) from error
    return from_numpy(shared)
