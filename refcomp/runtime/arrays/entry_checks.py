"""The checks of a call: its arguments are compared with the signature and become machine values.

Machine values are addresses, numbers, and the sizes of symbols. Arguments are NDArrays, numpy
arrays (which are on the host) and numbers. Refuses, with UserError, a wrong number of arguments,
whatever `argument_rules` and `scalars` refuse, and an output that overlaps another argument.
See Note [Known forms].
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from refcomp.foundation.artifacts import ScalarParam, Signature
from refcomp.foundation.errors import UserError
from refcomp.runtime.arrays.argument_rules import (
    Admitted,
    admit,
    check_signature,
    overlap_error,
    shape_scalars,
)
from refcomp.runtime.arrays.ndarray import LAYOUT, Form, NDArray
from refcomp.runtime.arrays.scalars import scalar_reader
from refcomp.runtime.device import HostArray

# The machine values of a call's arguments, then of its symbols. For an array the address (on
# devices, programs replace it by the DeviceMemory), for a number an int or a float, for a symbol
# its size.
MachineValues = list[Any]

_HOST = "cpu:0"
# Combinations of forms that a function remembers. With more shapes, some calls are slow.
_MAX_KNOWN = 256


class EntryChecks:
    """The checks of one function's arguments, which each call runs.

    Args:
        signature: the calling convention of the function.
        device: the device that the arrays must be on, as text: 'cpu:0'.

    Raises:
        UserError: arguments cannot be checked against the signature.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> module = rc.build(s, [A, B], target="interp", name="increment")
        >>> checks = rc.runtime.EntryChecks(module.entry.signature)
        >>> len(checks.check([np.ones(4, "float32"), np.zeros(4, "float32")]))  # two addresses
        2
        >>> checks.check([1])
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: increment takes 2 arguments, not 1...
    """

    __slots__ = ("_device", "_known", "_readers", "_shape_scalars", "signature")

    def __init__(self, signature: Signature, device: str = _HOST) -> None:
        check_signature(signature)
        self.signature = signature
        self._device = device
        self._readers = tuple(
            scalar_reader(param, str(signature))
            if isinstance(param, ScalarParam)
            else None
            for param in signature.params
        )
        self._shape_scalars = shape_scalars(signature)
        # (forms of the arrays, integers that shapes need) -> the result of `admit`
        self._known: dict[tuple[object, ...], Admitted] = {}

    # This runs in every call, so it is written for speed.
    def check(self, args: Sequence[object]) -> MachineValues:
        """Return the machine values of `args` in order, and then the sizes of the symbols.

        The value of an array is its address, which is valid while `args` is alive.

        Args:
            args: NDArrays, numpy arrays (which are on the host) and numbers, one for each
                parameter.

        Raises:
            UserError: an argument does not fit the signature, or an output overlaps another
                argument.
        """
        if len(args) != len(self._readers):
            raise self._wrong_count(len(args))
        forms: list[Form] = []
        values: MachineValues = []
        for arg, read in zip(args, self._readers, strict=True):
            if read is not None:
                values.append(read(arg))
                continue
            if type(arg) is NDArray:
                forms.append(arg.form)
                values.append(arg.address)
                continue
            if type(arg) is not np.ndarray:
                arg = self._plain_array(arg, len(values))
            forms.append((arg.dtype, arg.shape, _HOST, arg.flags.num & LAYOUT))
            values.append(arg.__array_interface__["data"][0])
        admitted = self._admit(forms, values)
        for output, size, other, other_size in admitted.pairs:
            start = values[output]
            other_start = values[other]
            if start < other_start + other_size and other_start < start + size:
                raise overlap_error(self.signature, output, other)
        values += admitted.symbols
        return values

    def _admit(self, forms: list[Form], values: MachineValues) -> Admitted:
        scalars = {
            name: values[position] for name, position in self._shape_scalars.items()
        }
        key = (*forms, *scalars.values())
        admitted = self._known.get(key)
        if admitted is None:
            admitted = admit(self.signature, self._device, forms, scalars)
            # A new start is as good as a queue: nobody calls with so many shapes for long.
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[key] = admitted
        return admitted

    def _plain_array(self, arg: object, position: int) -> HostArray:
        """Return `arg` as an ndarray, if it is of a subclass. UserError for other values."""
        if isinstance(arg, np.ndarray) and not isinstance(arg, np.ma.MaskedArray):
            return arg.view(np.ndarray)
        count = len(self._readers)
        raise UserError(
            f"argument {self.signature.params[position].name} ({position + 1} of {count}) is a "
            f"{type(arg).__name__}, expected an array",
            where=str(self.signature),
            remedy="pass an NDArray or a numpy array: refcomp.array(value)",
        )

    def _wrong_count(self, found: int) -> UserError:
        names = ", ".join(param.name for param in self.signature.params)
        return UserError(
            f"{self.signature.name} takes {len(self._readers)} arguments, not {found}",
            where=str(self.signature),
            remedy=f"pass {names}; outputs are arguments, too: refcomp.empty(shape, dtype)",
        )


# Note [Known forms]
# ~~~~~~~~~~~~~~~~~~
# Dtype, rank, shape, device and layout decide nearly all rules, and a program calls a function with
# the same few combinations again and again. So a call looks its combination up in a dictionary, and
# only a new combination is checked rule by rule. Numbers, and the overlap of addresses, differ from
# call to call, and are checked each time.
