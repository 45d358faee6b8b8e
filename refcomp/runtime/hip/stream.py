"""Streams and events of an AMD GPU: queues of work beside the default stream, and marks in them.

    stream = rocm(0).driver.stream(0)
    with stream:                      # kernels that this thread launches go to the stream
        function(a, b)
    stream.upload(pinned, memory)     # returns at once; the array is held until `sync`
    event = stream.record()
    other.wait(event)                 # `other` continues when the mark is reached
    stream.sync()

Copies between a numpy array and the device are asynchronous only if the array is pinned
(`HipDriver.pinned`). The default stream and `asnumpy` wait for all streams, as in HIP.
"""

import ctypes
import threading
from typing import Protocol

from refcomp.foundation.errors import UserError
from refcomp.runtime.device import DeviceMemory, HostArray, address_of
from refcomp.runtime.hip.handle import make
from refcomp.runtime.hip.library import CopyKind, HipLibrary


class CurrentStreams(threading.local):
    """The current stream of each thread, by device. Without one it is the default stream."""

    def __init__(self) -> None:
        # Index of a device -> the streams that were entered and not left, the innermost last.
        self._entered: dict[int, list[HipStream]] = {}

    def of(self, index: int) -> int | None:
        """Return the handle of the stream that was entered last on device `index`."""
        entered = self._entered.get(index)
        return entered[-1].handle if entered else None

    def enter(self, stream: "HipStream") -> None:
        self._entered.setdefault(stream.index, []).append(stream)

    def leave(self, stream: "HipStream") -> None:
        self._entered[stream.index].pop()


class Owner(Protocol):
    """The part of a HipDriver that a stream needs: the library, with a device made current."""

    streams: CurrentStreams

    def use(self, index: int) -> HipLibrary: ...


class HipEvent:
    """A mark in the work of a stream of device `index`, recorded in its current stream."""

    def __init__(self, driver: Owner, index: int) -> None:
        self._driver = driver
        self.index = index  # of the device
        self._made = make(
            driver.use(index), "hipEventCreate", give_back="hipEventDestroy"
        )
        self.record()

    @property
    def handle(self) -> int:
        """Return the library's handle."""
        return self._made.value

    def record(self, stream: int | None = None) -> None:
        """Set the mark again: in `stream`, by default the thread's current one."""
        where = stream or self._driver.streams.of(self.index)
        self._driver.use(self.index).call("hipEventRecord", self.handle, where)

    def sync(self) -> None:
        """Wait until the mark is reached."""
        self._driver.use(self.index).call("hipEventSynchronize", self.handle)

    def seconds_since(self, start: "HipEvent") -> float:
        """Wait for both marks, and return the seconds between them, by the device's clock."""
        self.sync()
        milliseconds = ctypes.c_float()
        ends = start.handle, self.handle
        self._driver.use(self.index).call("hipEventElapsedTime", milliseconds, *ends)
        return milliseconds.value / 1e3


class HipStream:
    """A queue of work of device `index`, beside the others. One thread at a time may use it."""

    def __init__(self, driver: Owner, index: int) -> None:
        self._driver = driver
        self.index = index  # of the device
        self._made = make(
            driver.use(index), "hipStreamCreate", give_back="hipStreamDestroy"
        )
        # Arrays, memory and events of queued work, which must exist until the work is done.
        self._held: list[object] = []

    @property
    def handle(self) -> int:
        """Return the library's handle."""
        return self._made.value

    def __enter__(self) -> "HipStream":
        self._driver.streams.enter(self)
        return self

    def __exit__(self, *raised: object) -> None:
        self._driver.streams.leave(self)

    def sync(self) -> None:
        """Wait until all queued work is done."""
        self._call("hipStreamSynchronize", self.handle)
        self._held.clear()

    def record(self) -> HipEvent:
        """Return a mark after all work that is queued now."""
        with self:
            return HipEvent(self._driver, self.index)

    def wait(self, event: HipEvent) -> None:
        """Execute work that is queued from now on only after `event`'s mark is reached."""
        self._held.append(event)
        self._call("hipStreamWaitEvent", self.handle, event.handle, 0)

    def upload(self, source: HostArray, target: DeviceMemory) -> None:
        """Copy all of `source` to the start of `target`.

        Raise UserError if it is not contiguous.
        """
        self._copy(
            target.address,
            _place(source),
            source.nbytes,
            CopyKind.HOST_TO_DEVICE,
            held=(source, target),
        )

    def download(self, source: DeviceMemory, target: HostArray) -> None:
        """Fill `target` from the start of `source`. Raise UserError if it is not contiguous."""
        self._copy(
            _place(target),
            source.address,
            target.nbytes,
            CopyKind.DEVICE_TO_HOST,
            held=(source, target),
        )

    def copy(self, source: DeviceMemory, target: DeviceMemory, size: int) -> None:
        """Copy `size` bytes between memory of the device."""
        self._copy(
            target.address,
            source.address,
            size,
            CopyKind.DEVICE_TO_DEVICE,
            held=(source, target),
        )

    def fill(self, target: DeviceMemory, byte: int, size: int) -> None:
        """Set `size` bytes to `byte`."""
        self._held.append(target)
        if size:
            self._call("hipMemsetAsync", target.address, byte, size, self.handle)

    def _copy(
        self,
        target: int,
        source: int,
        size: int,
        kind: CopyKind,
        held: tuple[object, ...],
    ) -> None:
        """Queue a copy of `size` bytes between addresses; keep `held` until it is done."""
        self._held += held
        library = self._driver.use(self.index)
        if size:
            number = library.number(kind)
            library.call("hipMemcpyAsync", target, source, size, number, self.handle)

    def _call(self, function: str, *args: object) -> None:
        self._driver.use(self.index).call(function, *args)


def _place(array: HostArray) -> int:
    if not array.flags.c_contiguous:
        raise UserError(
            "an array that is not contiguous is copied", remedy="copy it first"
        )
    return address_of(array)
