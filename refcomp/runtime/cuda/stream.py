"""Streams and events of an NVIDIA GPU: queues of work beside the default stream, and marks in them.

    stream = cuda(0).driver.stream(0)
    with stream:                      # kernels that this thread launches go to the stream
        function(a, b)
    stream.upload(pinned, memory)     # returns at once; the array is held until `sync`
    event = stream.record()
    other.wait(event)                 # `other` continues when the mark is reached
    stream.sync()

Copies between a numpy array and the device are asynchronous only if the array is pinned
(`CudaDriver.pinned`). The default stream and `asnumpy` wait for all streams.
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from refcomp.foundation.errors import UserError
from refcomp.runtime.cuda.context import CudaContext
from refcomp.runtime.cuda.handle import CudaHandle
from refcomp.runtime.cuda.interface import PycudaEvent, PycudaStream
from refcomp.runtime.device import DeviceMemory, HostArray


class EnteredStreams(threading.local):
    """The current stream of each thread, by device. Without one it is the default stream."""

    def __init__(self) -> None:
        # Index of a device -> the streams that were entered and not left, the innermost last.
        self._entered: dict[int, list[CudaStream]] = {}

    def of(self, index: int) -> PycudaStream | None:
        """Return the stream that was entered last on device `index`."""
        entered = self._entered.get(index)
        return entered[-1].made if entered else None

    def enter(self, stream: CudaStream) -> None:
        self._entered.setdefault(stream.index, []).append(stream)

    def leave(self, stream: CudaStream) -> None:
        self._entered[stream.index].pop()


class CudaEvent:
    """A mark in the work of the thread's current stream."""

    def __init__(self, context: CudaContext, streams: EnteredStreams) -> None:
        self._context = context
        self._streams = streams
        with context.use("making an event") as cuda:
            self._made: CudaHandle[PycudaEvent] = CudaHandle(context, cuda.Event())
        self.record()

    @property
    def made(self) -> PycudaEvent:
        """Return pycuda's object."""
        return self._made.value

    def record(self) -> None:
        """Set the mark again: in the thread's current stream."""
        with self._context.use("recording an event"):
            self.made.record(self._streams.of(self._context.index))

    def sync(self) -> None:
        """Wait until the mark is reached."""
        with self._context.use("waiting for an event"):
            self.made.synchronize()

    def seconds_since(self, start: CudaEvent) -> float:
        """Wait for both marks, and return the seconds between them, by the device's clock."""
        self.sync()
        with self._context.use("reading the time of events"):
            return self.made.time_since(start.made) / 1e3


class CudaStream:
    """A queue of work of a device, beside the others. One thread at a time may use it."""

    def __init__(self, context: CudaContext, streams: EnteredStreams) -> None:
        self._context = context
        self._streams = streams
        self.index = context.index  # of the device
        with context.use("making a stream") as cuda:
            self._made: CudaHandle[PycudaStream] = CudaHandle(context, cuda.Stream())
        # Arrays, memory and events of queued work, which must exist until the work is done.
        self._held: list[object] = []

    @property
    def made(self) -> PycudaStream:
        """Return pycuda's object."""
        return self._made.value

    @property
    def handle(self) -> int:
        """Return the driver's handle, for other libraries."""
        return self.made.handle

    def __enter__(self) -> CudaStream:
        self._streams.enter(self)
        return self

    def __exit__(self, *raised: object) -> None:
        self._streams.leave(self)

    def sync(self) -> None:
        """Wait until all queued work is done."""
        with self._context.use("waiting for a stream"):
            self.made.synchronize()
        self._held.clear()

    def record(self) -> CudaEvent:
        """Return a mark after all work that is queued now."""
        with self:
            return CudaEvent(self._context, self._streams)

    def wait(self, event: CudaEvent) -> None:
        """Execute work that is queued from now on only after `event`'s mark is reached."""
        self._held.append(event)
        with self._context.use("waiting for an event in a stream"):
            self.made.wait_for_event(event.made)

    def upload(self, source: HostArray, target: DeviceMemory) -> None:
        """Copy all of `source` to the start of `target`.

        Raise UserError if it is not contiguous.
        """
        self._held += source, target
        piece = bytes_of(source)
        if piece.size:
            with self._context.use(f"copying {piece.size} bytes to the GPU") as cuda:
                cuda.memcpy_htod_async(target.address, piece, self.made)

    def download(self, source: DeviceMemory, target: HostArray) -> None:
        """Fill `target` from the start of `source`. Raise UserError if it is not contiguous."""
        self._held += source, target
        piece = bytes_of(target)
        if piece.size:
            with self._context.use(f"copying {piece.size} bytes from the GPU") as cuda:
                cuda.memcpy_dtoh_async(piece, source.address, self.made)

    def copy(self, source: DeviceMemory, target: DeviceMemory, size: int) -> None:
        """Copy `size` bytes between memory of the device."""
        self._held += source, target
        if size:
            ends = target.address, source.address
            with self._context.use(f"copying {size} bytes on the GPU") as cuda:
                cuda.memcpy_dtod_async(*ends, size, self.made)

    def fill(self, target: DeviceMemory, byte: int, size: int) -> None:
        """Set `size` bytes to `byte`."""
        self._held.append(target)
        if size:
            with self._context.use(f"filling {size} bytes") as cuda:
                cuda.memset_d8_async(target.address, byte, size, self.made)


def bytes_of(array: HostArray) -> npt.NDArray[np.uint8]:
    """Return the memory of an array as bytes. Raise UserError if it is not contiguous."""
    if not array.flags.c_contiguous:
        raise UserError(
            "an array that is not contiguous is copied", remedy="copy it first"
        )
    return array.reshape(-1).view(np.uint8)
