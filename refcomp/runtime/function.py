"""Function: something callable with arguments that were checked against a signature."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from refcomp.foundation.artifacts import ScalarParam, Signature
from refcomp.foundation.errors import UserError
from refcomp.runtime.arrays.access_status import fresh_status, require_in_bounds
from refcomp.runtime.arrays.entry_checks import EntryChecks
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.arrays.scalars import typed_scalar
from refcomp.runtime.device import Device, cpu

# What an interpreter offers: it takes numpy arrays, to be written in place, and numpy scalars.
ArrayCallable = Callable[[list[Any]], None]


class Function(ABC):
    """One function of a module. Calling it checks the arguments and runs it to its end.

    Arguments are NDArray or numpy arrays and numbers, in the signature's order; outputs are
    arguments, written in place. UserError for arguments that the signature does not allow.
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

    def __call__(self, *args: Any, **named: Any) -> None:
        if named:
            raise self.refusal_of_names(named)
        self._run(args, self._checks.check(args))

    def bind(self, *args: Any) -> Callable[[], None]:
        """Check `args` once; the result runs the function on them, and keeps them alive.

        Numbers are taken as they are now, arrays by reference.
        """
        values = self._checks.check(args)
        if self.signature.checks:  # each call has a status of its own
            return lambda: self._run(args, list(values))
        return self._bound(args, values)

    def refusal_of_names(self, named: Iterable[str]) -> UserError:
        """Return the error for arguments given by name."""
        return UserError(
            f"{self.name} is given {', '.join(f'{name}=...' for name in named)}",
            where=str(self.signature),
            why="arguments of a built function are passed by position",
            remedy=f"pass {', '.join(param.name for param in self.signature.params)} in this order",
        )

    def on(self, device: Device) -> "Function":
        """The same function on another device. UserError where its code does not run there."""
        if device == self.device:
            return self
        raise UserError(
            f"{self.name} runs on {self.device}, not on {device}",
            remedy=f"pass {self.device}",
        )

    def __repr__(self) -> str:
        return f"<refcomp function {self.signature} on {self.device}>"

    @abstractmethod
    def _run(self, args: Sequence[Any], values: list[Any]) -> None:
        """Run on checked `args`, whose machine values are `values`."""

    @abstractmethod
    def _bound(self, args: Sequence[Any], values: list[Any]) -> Callable[[], None]:
        """What `bind` returns for checked `args`."""


class PythonFunction(Function):
    """A Python callable behind the same checks: the `interp` target."""

    __slots__ = ("_callable",)

    def __init__(self, signature: Signature, body: ArrayCallable) -> None:
        super().__init__(signature)
        self._callable = body

    def _run(self, args: Sequence[Any], values: list[Any]) -> None:
        if not self.signature.checks:
            self._callable(self._as_numpy(args))
            return
        status = fresh_status(self.signature)
        try:
            self._callable([*self._as_numpy(args), status])
        finally:  # a wrong index comes before what follows from it
            require_in_bounds(self.signature, status)

    def _bound(self, args: Sequence[Any], values: list[Any]) -> Callable[[], None]:
        arguments = self._as_numpy(args)
        return lambda: self._callable(list(arguments))

    def _as_numpy(self, args: Sequence[Any]) -> list[Any]:
        return [
            typed_scalar(param.dtype, arg)
            if isinstance(param, ScalarParam)
            else arg.numpy()
            if isinstance(arg, NDArray)
            else arg.view(np.ndarray)
            for param, arg in zip(self.signature.params, args, strict=True)
        ]
