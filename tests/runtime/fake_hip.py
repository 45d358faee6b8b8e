"""A HIP library without a GPU: its memory is the host's, and its launches are written down."""

import ctypes
from collections.abc import Callable
from typing import Any

from refcomp import hip_api

ATTRIBUTES = {26: 1024, 27: 512, 28: 64, 56: 1024, 74: 65536}
WORDS = {100: b"no ROCm-capable device is detected", 101: b"invalid device ordinal"}


class FakeHip:
    """`devices` GPUs called `arch`; `errors` maps a function to the number it returns.

    `calls` are the names of all functions called, `launches` what hipModuleLaunchKernel was given,
    its arguments as bytes; `on_launch` takes the same and runs the kernel.
    """

    def __init__(self, devices: int = 1, arch: bytes = b"gfx90a:sramecc+:xnack-") -> None:
        self.devices, self.arch = devices, arch
        self.errors: dict[str, int] = {}
        self.calls: list[str] = []
        self.memory: dict[int, Any] = {}
        self.launches: list[tuple[Any, ...]] = []
        self.on_launch: Callable[..., None] = lambda *launch: None
        self.current = -1
        self.symbols: list[str] = []
        self.code = b""

    def __getattr__(self, name: str) -> Any:
        if name == hip_api.ERROR_TEXT:
            return lambda number: WORDS.get(number, b"hipError%d" % number)
        if name not in hip_api.FUNCTIONS and name != "hipGetDevicePropertiesR0600":
            raise AttributeError(name)

        def function(*args: Any) -> int:
            self.calls.append(name)
            expected = len(hip_api.FUNCTIONS.get(name, ("", "")))
            assert len(args) == expected, f"{name} takes {expected} arguments"
            error = self.errors.get(name, 0)
            return error or getattr(self, f"_{name}")(*args) or 0

        return function

    def _hipGetDeviceCount(self, count: Any) -> int:
        count._obj.value = self.devices
        return 0 if self.devices else hip_api.NO_DEVICE

    def _hipSetDevice(self, index: int) -> int:
        self.current = index
        return 0 if index < self.devices else hip_api.INVALID_DEVICE

    def _hipDeviceGetName(self, text: Any, size: int, index: int) -> None:
        text.value = b"AMD Instinct"

    def _hipGetDevicePropertiesR0600(self, answer: Any, index: int) -> None:
        ctypes.memmove(ctypes.addressof(answer) + 1160, self.arch, len(self.arch))

    def _hipDeviceGetAttribute(self, value: Any, number: int, index: int) -> None:
        value._obj.value = ATTRIBUTES[number]

    def _hipDeviceSynchronize(self) -> None:
        return None

    def _hipMalloc(self, address: Any, size: int) -> None:
        if not size:
            return  # as HIP does: no memory has no address
        piece = ctypes.create_string_buffer(size)
        address._obj.value = ctypes.addressof(piece)
        self.memory[ctypes.addressof(piece)] = piece

    def _hipFree(self, address: Any) -> None:
        del self.memory[address.value]

    def _hipMemcpy(self, target: Any, source: Any, size: int, kind: int) -> None:
        assert (target.value if kind == 1 else source.value) in self.memory
        ctypes.memmove(target, source, size)

    def _hipModuleLoadData(self, module: Any, code: bytes) -> None:
        self.code, module._obj.value = code, 77

    def _hipModuleUnload(self, module: Any) -> None:
        assert module.value == 77

    def _hipModuleGetFunction(self, function: Any, module: Any, symbol: bytes) -> None:
        assert module.value == 77
        self.symbols.append(symbol.decode())
        function._obj.value = len(self.symbols)

    def _hipModuleLaunchKernel(self, function: Any, *rest: Any) -> None:
        *numbers, stream, unused, extra = rest
        assert (stream, unused) == (None, None)
        assert (extra[0], extra[2], extra[4]) == (1, 2, 3)
        size = ctypes.c_size_t.from_address(extra[3]).value
        arguments, symbol = ctypes.string_at(extra[1], size), self.symbols[function.value - 1]
        self.launches.append((symbol, *numbers, arguments))
        self.on_launch(*self.launches[-1])

    def _hipEventCreate(self, event: Any) -> None:
        event._obj.value = 5

    def _hipEventDestroy(self, event: Any) -> None:
        return None

    _hipEventSynchronize = _hipEventDestroy

    def _hipEventRecord(self, event: Any, stream: Any) -> None:
        return None

    def _hipEventElapsedTime(self, milliseconds: Any, start: Any, stop: Any) -> None:
        milliseconds._obj.value = 2.5
