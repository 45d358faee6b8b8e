"""ProgramFunction: a Program's host function run in Python, its kernels on a device.

A call checks its arguments, which must lie on the device, then walks the host function. Kernels are
queued in order, and a call may return before they are done: `asnumpy` and `device.sync` wait. The
code of the kernels is loaded when the device is there, else at the first call, which tells what is
missing. Where the arrays lie on another device of such a driver (a further GPU, an emulated one),
the call runs there, and the code is loaded there, too. Calls may be made by several threads.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import Any

from refcomp.foundation.artifacts import Binary, Signature, Source, TensorParam
from refcomp.foundation.errors import RefcompError
from refcomp.foundation.target import DeviceLimits
from refcomp.ir.func import PrimFunc
from refcomp.runtime.arrays.access_status import fresh_status, require_in_bounds
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.device import Device, DeviceMemory
from refcomp.runtime.function import Function
from refcomp.runtime.launch import (
    DeviceDriver,
    Extents,
    KernelSignature,
    Launcher,
    check_launch,
)
from refcomp.runtime.programs.host_walk import compile_host
from refcomp.runtime.programs.kernel_lines import explain_lines


class DeviceCode:
    """The code of a module's kernels and what is loaded of it, shared by the functions. `sources`
    are the texts that it was made of, by language."""

    def __init__(
        self,
        code: Source | Binary,
        kernels: Iterable[KernelSignature],
        device: Device,
        sources: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.code, self.kernels, self.device = code, tuple(kernels), device
        self.sources = sources
        self._lock = Lock()
        self._loaded: tuple[Launcher, DeviceLimits] | None = None
        self._elsewhere: dict[Device, DeviceCode] = {}

    def on(self, device: Device) -> "DeviceCode":
        """The same code on another device."""
        if device == self.device:
            return self
        other = DeviceCode(self.code, self.kernels, device, self.sources)
        return self._elsewhere.setdefault(device, other)

    @property
    def driver(self) -> DeviceDriver:
        """The driver of the device, which runs kernels."""
        driver: Any = self.device.driver
        result: DeviceDriver = driver
        return result

    def load(self) -> tuple[Launcher, DeviceLimits]:
        """What launches the kernels, and within which limits.

        UserError when the device does not exist; ToolchainError when it refuses the code.
        """
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = self._load()
        return self._loaded

    def _load(self) -> tuple[Launcher, DeviceLimits]:
        self.device.require()
        launcher = self.driver.load(self.device.index, self.code, self.kernels)
        return launcher, self.driver.limits(self.device.index)


class ProgramFunction(Function):
    """The host function `host`, which launches kernels of `code`.

    Numpy arrays and arrays of other devices are refused: copying is the caller's decision.
    """

    __slots__ = ("_code", "_elsewhere", "_home", "_host", "_tensors", "_walk")

    def __init__(self, signature: Signature, host: PrimFunc, code: DeviceCode) -> None:
        super().__init__(signature, code.device)
        self._code, self._host, self._home = code, host, str(code.device)
        self._elsewhere: dict[Device, ProgramFunction] = {}
        self._tensors = [
            place
            for place, param in enumerate(signature.params)
            if isinstance(param, TensorParam)
        ]
        kernels = {kernel.name: kernel for kernel in code.kernels}
        self._walk = compile_host(host, kernels, self)

    def __call__(self, *args: Any, **named: Any) -> None:
        if named:
            raise self.refusal_of_names(named)
        there = self._where(args)
        if there is not self:
            return there(*args)
        self._code.load()  # before the arguments: none can lie on a device that is not there
        super().__call__(*args)

    def bind(self, *args: Any) -> Callable[[], None]:
        there = self._where(args)
        if there is not self:
            return there.bind(*args)
        self._code.load()
        return super().bind(*args)

    def on(self, device: Device) -> Function:
        """The function on `device`. UserError when its driver is not one for this code."""
        if device == self.device or type(device.driver) is not type(self.device.driver):
            return super().on(device)
        found = self._elsewhere.get(device)
        if found is None:
            other = ProgramFunction(self.signature, self._host, self._code.on(device))
            found = self._elsewhere.setdefault(device, other)
        return found

    def _where(self, args: Sequence[Any]) -> Function:
        """The function on the device that the first array on such a device lies on; where none
        does, this one."""
        first = (
            args[self._tensors[0]]
            if self._tensors and len(args) > self._tensors[0]
            else None
        )
        if type(first) is NDArray and first.form[2] == self._home:
            return self
        for array in (args[place] for place in self._tensors if place < len(args)):
            if type(array) is NDArray and type(array.device.driver) is type(
                self.device.driver
            ):
                return self.on(array.device)
        return self

    def _run(self, args: Sequence[Any], values: list[Any]) -> None:
        values = self._with_memory(args, values)
        if not self.signature.checks:
            self._walk.run(values)
            return
        status, driver, index = (
            fresh_status(self.signature),
            self._code.driver,
            self.device.index,
        )
        memory = driver.allocate(index, status.nbytes)
        driver.upload(index, status, memory)
        values.insert(len(self.signature.params), memory)
        self._walk.run(values)
        driver.download(index, memory, status)  # it waits for the kernels
        require_in_bounds(self.signature, status)

    def _bound(self, args: Sequence[Any], values: list[Any]) -> Callable[[], None]:
        bound = self._with_memory(args, values)
        return lambda: self._walk.run(bound)

    def _with_memory(self, args: Sequence[Any], values: list[Any]) -> list[Any]:
        """`values` with the memory of an array in place of its address."""
        for place in self._tensors:
            values[place] = args[place].memory
        return values

    def allocate(self, size: int) -> DeviceMemory:
        """Memory for a workspace of one call."""
        return self.device.driver.allocate(self.device.index, size)

    def launch(
        self,
        kernel: KernelSignature,
        values: list[Any],
        grid: Extents,
        block: Extents,
        shared_bytes: tuple[int, ...],
    ) -> None:
        """Queue a kernel. UserError when the device's limits do not allow its block."""
        launcher, limits = self._code.load()
        check_launch(kernel, grid, block, shared_bytes, limits, self.device)
        try:
            launcher.launch(kernel.name, values, grid, block, shared_bytes)
        except RefcompError as error:
            explain_lines(error, self._code.sources)
            raise
