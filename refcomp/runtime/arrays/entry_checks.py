"""Checks the arguments of every call against the function's signature, and reads off what the
machine code takes: addresses, numbers, and the values of the symbols.

Accepts NDArray, numpy arrays (which count as the host's) and numbers. Refuses, by UserError, a
wrong number of arguments, what `argument_rules` and `scalars` refuse, and every output whose bytes
overlap another argument's. See Note [Forms seen before].
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

_HOST = "cpu:0"
# Forms kept per function; a program that meets more shapes than this pays for the slow check.
_FORMS_KEPT = 256


class EntryChecks:
    """The checks of one function whose arguments must lie on `device` (text, as 'cpu:0').

    UserError when the signature itself is not one that calls can be checked against.
    """

    __slots__ = ("_device", "_known", "_readers", "_shape_scalars", "signature")

    def __init__(self, signature: Signature, device: str = _HOST) -> None:
        check_signature(signature)
        self.signature, self._device = signature, device
        self._readers = tuple(
            scalar_reader(param, str(signature))
            if isinstance(param, ScalarParam)
            else None
            for param in signature.params
        )
        self._shape_scalars = shape_scalars(signature)
        self._known: dict[tuple[Any, ...], Admitted] = {}

    def check(self, args: Sequence[Any]) -> list[Any]:
        """The machine values of `args` in order (an array's is its address), then the symbols'.

        The addresses are valid while `args` is alive.
        """
        if len(args) != len(self._readers):
            raise self._wrong_count(len(args))
        forms: list[Form] = []
        values: list[Any] = []
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
            start, other_start = values[output], values[other]
            if start < other_start + other_size and other_start < start + size:
                raise overlap_error(self.signature, output, other)
        values += admitted.symbols
        return values

    def _admit(self, forms: list[Form], values: list[Any]) -> Admitted:
        scalars = {
            name: values[position] for name, position in self._shape_scalars.items()
        }
        key = (*forms, *scalars.values())
        admitted = self._known.get(key)
        if admitted is None:
            admitted = admit(self.signature, self._device, forms, scalars)
            if len(self._known) >= _FORMS_KEPT:
                self._known.clear()
            self._known[key] = admitted
        return admitted

    def _plain_array(self, arg: Any, position: int) -> HostArray:
        """A subclass's array as numpy's own; UserError for what is no array."""
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
            f"{self.signature.name} takes {len(self._readers)} arguments, {found} were given",
            where=str(self.signature),
            remedy=f"pass {names}; outputs are passed too: refcomp.empty(shape, dtype)",
        )


# Note [Forms seen before]
# ~~~~~~~~~~~~~~~~~~~~~~~~
# Dtype, rank, shape, device and layout decide nearly everything, and programs call a function with
# the same few combinations again and again. So a call looks its combination up (one dictionary
# lookup of values that numpy has ready) and only an unseen one is checked rule by rule. What
# differs from call to call is checked each time: numbers, and whether addresses overlap.
