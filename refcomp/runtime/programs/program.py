"""Programs as callables: the host function runs in Python, its kernels run on a device.

A call checks its arguments, whose arrays must be on the device, and runs the host function. Kernels
are queued in order. A call may return before they are done; `asnumpy` and `device.sync` wait.

The code of the kernels is loaded when the module is made. If the device does not exist then, the
first call loads the code, or raises an error that says what is missing. If the arrays are on
another device with the same driver (a second GPU, an emulated one), the call runs there. It loads
the code there, too. Several threads may call.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import cast

from refcomp.foundation.artifacts import Binary, Signature, Source, TensorParam
from refcomp.foundation.errors import RefcompError
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.func import PrimFunc
from refcomp.runtime.arrays.access_status import fresh_status, require_in_bounds
from refcomp.runtime.arrays.entry_checks import MachineValues
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.device import Device, DeviceMemory
from refcomp.runtime.function import Function
from refcomp.runtime.launch import (
    Argument,
    DeviceDriver,
    Extents,
    KernelSignature,
    Launcher,
    check_alignment,
    check_launch,
)
from refcomp.runtime.programs.host_walk import compile_host
from refcomp.runtime.programs.kernel_lines import explain_lines


class DeviceCode:
    """The code of a module's kernels, which all functions share, on one device.

    `sources` are its source texts by language.
    """

    def __init__(
        self,
        code: Source | Binary,
        kernels: Iterable[KernelSignature],
        device: Device,
        sources: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.code = code
        self.kernels = tuple(kernels)
        self.device = device
        self.sources = sources
        self._lock = Lock()
        self._loaded: tuple[Launcher, DeviceLimits] | None = None
        self._elsewhere: dict[Device, DeviceCode] = {}  # the same code on other devices

    def on(self, device: Device) -> "DeviceCode":
        """Return the same code on another device."""
        if device == self.device:
            return self
        other = DeviceCode(self.code, self.kernels, device, self.sources)
        return self._elsewhere.setdefault(device, other)

    @property
    def driver(self) -> DeviceDriver:
        """The driver of the device, which runs kernels."""
        return cast(DeviceDriver, self.device.driver)

    def load(self) -> tuple[Launcher, DeviceLimits]:
        """Return the launcher of the kernels, and the limits of the device.

        Raises UserError if the device does not exist, and ToolchainError if it refuses the code.
        """
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self.device.require()
                    index = self.device.index
                    launcher = self.driver.load(index, self.code, self.kernels)
                    self._loaded = (launcher, self.driver.limits(index))
        return self._loaded


class ProgramFunction(Function):
    """A function whose host part runs in Python, and launches kernels on a device.

    Numpy arrays and arrays of other kinds of devices are refused: copying is the caller's decision.

    Args:
        signature: the name, the parameters and the symbols of the function.
        host: the loop IR of the host part, with its launches.
        code: the code of the kernels, and the device that they run on.

    Raises:
        UserError: the device does not exist, or the arguments of a call do not fit.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
        >>> module = rc.build(s, [A, B], target="opencl", name="increment")
        >>> increment, gpu = module["increment"], rc.device("opencl")
        >>> isinstance(increment, rc.runtime.ProgramFunction), increment.on(gpu) is increment
        (True, True)
        >>> b = rc.empty(4, device=gpu)
        >>> increment(rc.array(np.ones(4, "float32"), gpu), b)
        >>> print(b.asnumpy())
        [2. 2. 2. 2.]
        >>> from refcomp.runtime.launch import KernelSignature
        >>> kernel = KernelSignature("increment_kernel0", "increment_kernel0", (None, None))
        >>> memory = increment.allocate(16)  # bytes
        >>> increment.launch(kernel, [memory, b.memory], (1, 1, 1), (4, 1, 1), ())
        >>> result = np.zeros(4, "float32")
        >>> gpu.driver.download(0, memory, result)
        >>> print(result)
        [3. 3. 3. 3.]
    """

    __slots__ = ("_code", "_elsewhere", "_home", "_host", "_tensors", "_walk")

    def __init__(self, signature: Signature, host: PrimFunc, code: DeviceCode) -> None:
        super().__init__(signature, code.device)
        self._code = code
        self._host = host
        self._home = str(code.device)
        self._elsewhere: dict[Device, ProgramFunction] = {}  # the same on other devices
        # Positions of the arrays among the arguments.
        self._tensors = [
            place
            for place, param in enumerate(signature.params)
            if isinstance(param, TensorParam)
        ]
        kernels = {kernel.name: kernel for kernel in code.kernels}
        self._walk = compile_host(host, kernels, self)

    def __call__(self, *args: object, **named: object) -> None:
        if named:
            raise self.refusal_of_names(named)
        there = self._where(args)
        if there is not self:
            return there(*args)
        # Load before the check of arguments: a missing device is the better error.
        self._code.load()
        super().__call__(*args)

    def bind(self, *args: object) -> Callable[[], None]:
        there = self._where(args)
        if there is not self:
            return there.bind(*args)
        self._code.load()
        return super().bind(*args)

    def on(self, device: Device) -> Function:
        """Return the function on `device`. UserError if its driver is another one."""
        if device == self.device or type(device.driver) is not type(self.device.driver):
            return super().on(device)
        found = self._elsewhere.get(device)
        if found is None:
            other = ProgramFunction(self.signature, self._host, self._code.on(device))
            found = self._elsewhere.setdefault(device, other)
        return found

    def _where(self, args: Sequence[object]) -> Function:
        """Return the function for the device of the first array whose driver is this one's."""
        driver_type = type(self.device.driver)
        for place in self._tensors:
            array = args[place] if place < len(args) else None
            if type(array) is not NDArray:
                continue
            # Comparing texts is fast, and most arrays are on the home device.
            if array.form[2] == self._home:
                return self
            if type(array.device.driver) is driver_type:
                return self.on(array.device)
        return self

    def _run(self, args: Sequence[object], values: MachineValues) -> None:
        values = self._with_memory(args, values)
        if not self.signature.checks:
            self._walk.run(values)
            return
        driver = self._code.driver
        index = self.device.index
        status = fresh_status(self.signature)
        memory = driver.allocate(index, status.nbytes)
        driver.upload(index, status, memory)
        values.insert(len(self.signature.params), memory)
        self._walk.run(values)
        driver.download(index, memory, status)  # waits for the kernels
        require_in_bounds(self.signature, status)

    def _bound(
        self, args: Sequence[object], values: MachineValues
    ) -> Callable[[], None]:
        bound = self._with_memory(args, values)
        return lambda: self._walk.run(bound)

    def _with_memory(
        self, args: Sequence[object], values: MachineValues
    ) -> MachineValues:
        """Replace the address of each array in `values` by its memory, and return them."""
        for place in self._tensors:
            array = args[place]
            assert isinstance(array, NDArray)
            values[place] = array.memory
        return values

    def allocate(self, size: int) -> DeviceMemory:
        """Return memory of the device for a workspace of one call.

        Args:
            size: bytes.
        """
        return self.device.driver.allocate(self.device.index, size)

    def launch(
        self,
        kernel: KernelSignature,
        values: list[Argument],
        grid: Extents,
        block: Extents,
        shared_bytes: tuple[int, ...],
    ) -> None:
        """Queue a kernel.

        Args:
            kernel: the name and the parameters of the kernel.
            values: one for each parameter: the memory of a buffer, or a number.
            grid: the number of groups in x, y and z.
            block: the number of threads of a group in x, y and z.
            shared_bytes: the size of each piece of a group's shared memory, in bytes.

        Raises:
            UserError: the launch exceeds the device's limits, or a buffer is not aligned as
                the kernel needs it.
        """
        launcher, limits = self._code.load()
        check_launch(kernel, grid, block, shared_bytes, limits, self.device)
        check_alignment(kernel, values)
        try:
            launcher.launch(kernel.name, values, grid, block, shared_bytes)
        except RefcompError as error:
            explain_lines(error, self._code.sources)
            raise
