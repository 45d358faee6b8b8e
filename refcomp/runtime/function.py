"""Functions of a module, whose arguments are checked against a signature."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from refcomp.foundation.artifacts import ScalarParam, Signature
from refcomp.foundation.errors import UserError
from refcomp.runtime.arrays.access_status import fresh_status, require_in_bounds
from refcomp.runtime.arrays.entry_checks import EntryChecks, MachineValues
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.arrays.scalars import typed_scalar
from refcomp.runtime.device import Device, HostArray, cpu

# An interpreter of a function. It takes numpy scalars and arrays, and writes outputs in place.
ArrayCallable = Callable[[list[np.generic | HostArray]], None]


class Function(ABC):
    """One function of a module. A call checks the arguments, and then runs the code.

    Arguments are arrays (NDArray or numpy) and numbers, in the signature's order. Outputs are
    arguments too, and are written in place.

    Args:
        signature: the name, the parameters and the symbols of the function.
        device: where the function runs; None for the host.

    Raises:
        UserError: the arguments of a call do not fit the signature.

    Source: TVM, tvm.runtime.PackedFunc.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> module = rc.build(s, [A, B], target="interp", name="increment")
        >>> increment = module["increment"]
        >>> increment
        <refcomp function increment(A: f32[4], B: f32[4] (output)) on cpu:0>
        >>> increment.name, str(increment.device)
        ('increment', 'cpu:0')
        >>> b = np.zeros(4, "float32")
        >>> increment(np.ones(4, "float32"), b)
        >>> print(b)
        [2. 2. 2. 2.]
        >>> a = np.zeros(4, "float32")
        >>> run = increment.bind(a, b)  # checks the arguments once
        >>> run()
        >>> print(b)
        [1. 1. 1. 1.]
        >>> increment.on(rc.cpu()) is increment
        True
        >>> print(increment.refusal_of_names(["A"]).remedy)
        pass A, B in this order
    """

    __slots__ = ("_checks", "device", "signature")

    def __init__(self, signature: Signature, device: Device | None = None) -> None:
        self.signature = signature
        self.device = cpu() if device is None else device
        self._checks = EntryChecks(signature, str(self.device))

    @property
    def name(self) -> str:
        """The function's name in its module."""
        return self.signature.name

    def __call__(self, *args: object, **named: object) -> None:
        if named:
            raise self.refusal_of_names(named)
        self._run(args, self._checks.check(args))

    def bind(self, *args: object) -> Callable[[], None]:
        """Check `args` once, and return a callable that runs the function on them.

        The callable keeps the arrays alive, and reads their present elements. Numbers are copied.

        Args:
            *args: the arguments of a call.

        Raises:
            UserError: the arguments do not fit the signature.
        """
        values = self._checks.check(args)
        if self.signature.checks:
            # Each call needs a new status array.
            return lambda: self._run(args, list(values))
        return self._bound(args, values)

    def refusal_of_names(self, named: Iterable[str]) -> UserError:
        """Return the error for arguments that were passed by name.

        Args:
            named: the names.
        """
        params = ", ".join(param.name for param in self.signature.params)
        return UserError(
            f"{self.name} is called with {', '.join(f'{name}=...' for name in named)}",
            where=str(self.signature),
            why="arguments of a built function are passed by position",
            remedy=f"pass {params} in this order",
        )

    def on(self, device: Device) -> "Function":
        """Return the same function on another device.

        Args:
            device: the device to run on.

        Raises:
            UserError: the function cannot run there.
        """
        if device == self.device:
            return self
        raise UserError(
            f"{self.name} runs on {self.device}, not on {device}",
            remedy=f"pass {self.device}",
        )

    def __repr__(self) -> str:
        return f"<refcomp function {self.signature} on {self.device}>"

    @abstractmethod
    def _run(self, args: Sequence[object], values: MachineValues) -> None:
        """Run on checked `args`, whose machine values are `values`."""

    @abstractmethod
    def _bound(
        self, args: Sequence[object], values: MachineValues
    ) -> Callable[[], None]:
        """Return the result of `bind` for checked `args`."""


class PythonFunction(Function):
    """A Python callable with the same checks, for the target `interp`."""

    __slots__ = ("_callable",)

    def __init__(self, signature: Signature, body: ArrayCallable) -> None:
        super().__init__(signature)
        self._callable = body

    def _run(self, args: Sequence[object], values: MachineValues) -> None:
        # The interpreter takes the arguments themselves, so it does not need `values`.
        if not self.signature.checks:
            self._callable(self._as_numpy(args))
            return
        status = fresh_status(self.signature)
        try:
            self._callable([*self._as_numpy(args), status])
        finally:
            # If the callable raises too, a wrong index is the cause, and is reported.
            require_in_bounds(self.signature, status)

    def _bound(
        self, args: Sequence[object], values: MachineValues
    ) -> Callable[[], None]:
        arguments = self._as_numpy(args)
        return lambda: self._callable(list(arguments))

    def _as_numpy(self, args: Sequence[object]) -> list[np.generic | HostArray]:
        result: list[np.generic | HostArray] = []
        for param, arg in zip(self.signature.params, args, strict=True):
            if isinstance(param, ScalarParam):
                result.append(typed_scalar(param.dtype, arg))
            elif isinstance(arg, NDArray):
                result.append(arg.numpy())
            else:
                assert isinstance(arg, np.ndarray)
                # A subclass such as np.matrix redefines operators.
                result.append(arg.view(np.ndarray))
        return result
