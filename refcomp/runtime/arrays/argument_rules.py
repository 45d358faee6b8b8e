"""The rules for the arguments of a call, each with its message.

`check_signature` checks a signature once, when a function is made. `admit` checks the tensor
arguments of one call: dtype, shape, device and layout. It also solves the symbols from the shapes.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from refcomp.foundation.artifacts import (
    Dim,
    ScalarParam,
    Signature,
    TensorParam,
    dim_to_plain_text,
    dim_to_text,
    evaluate_dim,
    names_in_dim,
)
from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.symbol_sizes import Extent, Sizes, least_size, solvable_symbols
from refcomp.runtime.arrays.entry_conditions import check_conditions
from refcomp.runtime.arrays.ndarray import ALIGNED, CONTIGUOUS, WRITABLE, Form
from refcomp.runtime.device import device_kinds


class Admitted(NamedTuple):
    """The consequences of a call's forms, which are the same for all calls with these forms."""

    symbols: tuple[int, ...]  # values, in the signature's order
    # Pairs of arguments that might overlap: (position of an output, its bytes, position of
    # another argument, its bytes). Arguments of 0 bytes are left out.
    pairs: tuple[tuple[int, int, int, int], ...]


def check_signature(signature: Signature) -> None:
    """Raise UserError unless shapes determine every symbol, and all dtypes can be checked."""
    names = [param.name for param in signature.params] + list(signature.symbols)
    for name in names:
        if names.count(name) > 1:
            raise UserError(
                f"two parameters or symbols are called {name}", where=str(signature)
            )
    for param in signature.params:
        if param.dtype.lanes != 1 or param.dtype.kind in ("handle", "string"):
            raise UserError(
                f"parameter {param.name} has dtype {param.dtype}",
                where=str(signature),
                remedy="parameters are arrays or numbers of a scalar dtype",
            )
    _check_names_in_shapes(signature)


def _check_names_in_shapes(signature: Signature) -> None:
    tensors = [param for param in signature.params if isinstance(param, TensorParam)]
    known = set(signature.symbols) | set(shape_scalars(signature))
    for condition in signature.requires:
        for name in condition.names:
            if name not in known:
                raise UserError(
                    f"the condition {condition} depends on {name}, which is unknown",
                    where=str(signature),
                    remedy=f"declare {name} a symbol or an integer parameter",
                )
    for param in tensors:
        for name in chain.from_iterable(map(names_in_dim, param.shape)):
            if name not in known:
                raise UserError(
                    f"the shape of {param.name} depends on {name}, which is unknown",
                    where=str(signature),
                    remedy=f"declare {name} a symbol or an integer parameter",
                )
    dims = [dim for param in tensors for dim in param.shape]
    solvable = solvable_symbols(dims, shape_scalars(signature))
    for symbol in signature.symbols:
        if symbol not in solvable:
            raise _unreadable_symbol(signature, symbol, tensors)


def _unreadable_symbol(
    signature: Signature, symbol: str, tensors: Sequence[TensorParam]
) -> UserError:
    uses = [
        f"{dim_to_text(dim)} in {param.name}"
        for param in tensors
        for dim in param.shape
        if symbol in names_in_dim(dim)
    ]
    return UserError(
        f"no argument's shape determines the symbol {symbol}",
        where=str(signature),
        why=f"it appears only in expressions: {', '.join(uses)}"
        if uses
        else "it appears in no shape",
        remedy=f"make {symbol} alone a dimension of some argument, or pass it as a scalar",
    )


def shape_scalars(signature: Signature) -> dict[str, int]:
    """Return the integer parameters in shapes and conditions: name -> position."""
    used = {
        name
        for param in signature.params
        if isinstance(param, TensorParam)
        for dim in param.shape
        for name in names_in_dim(dim)
    }
    used.update(name for condition in signature.requires for name in condition.names)
    return {
        param.name: position
        for position, param in enumerate(signature.params)
        if isinstance(param, ScalarParam) and param.dtype.is_int and param.name in used
    }


def admit(
    signature: Signature, device: str, forms: Sequence[Form], scalars: Mapping[str, int]
) -> Admitted:
    """Check the tensor arguments of a call.

    Args:
        signature: of the function.
        device: where the arguments must be, as text: 'cpu:0'.
        forms: of the tensor arguments, in order.
        scalars: the integer arguments in shapes and conditions, by name.

    Raises UserError for the first broken rule: device, dtype, rank and layout of each argument,
    then dimensions, then the conditions that the function requires.
    """
    tensors = [
        (position, param)
        for position, param in enumerate(signature.params)
        if isinstance(param, TensorParam)
    ]
    for (position, param), form in zip(tensors, forms, strict=True):
        _check_form(_Argument(signature, position), param, device, form)
    values = _check_dims(signature, tensors, forms, scalars)
    sizes = {
        position: _size(form)
        for (position, _), form in zip(tensors, forms, strict=True)
    }
    return Admitted(
        tuple(values[symbol] for symbol in signature.symbols),
        tuple(_pairs(tensors, sizes)),
    )


class _Argument(NamedTuple):
    """One parameter of a signature. Its text is the subject of a message."""

    signature: Signature
    position: int

    def __str__(self) -> str:
        name = self.signature.params[self.position].name
        return f"argument {name} ({self.position + 1} of {len(self.signature.params)})"

    def error(self, what: str, why: str = "", remedy: str = "") -> UserError:
        return UserError(
            f"{self} {what}", where=str(self.signature), why=why, remedy=remedy
        )


def _check_form(place: _Argument, param: TensorParam, device: str, form: Form) -> None:
    dtype, shape, its_device, layout = form
    if its_device != device:
        raise place.error(
            f"lies on {its_device}, expected on {device}",
            remedy=_move_to(device, param.is_output),
        )
    _check_dtype(place, param, dtype)
    if len(shape) != len(param.shape):
        expected = ", ".join(map(dim_to_text, param.shape))
        raise place.error(
            f"has rank {len(shape)} (shape {shape}), "
            f"expected rank {len(param.shape)} ([{expected}])",
            remedy="reshape it",
        )
    _check_layout(place, param, dtype, layout)


def _move_to(device: str, is_output: bool) -> str:
    """Return a remedy in code that a user can write.

    An emulated GPU has no name, so the code takes the device from another array.
    """
    kind, _, index = device.partition(":")
    is_named = kind in device_kinds()
    target = f"refcomp.{kind}({index})" if is_named else "x.device"
    start = "copy it there: refcomp.nd.array(a"
    if is_output:
        start = "make it there: refcomp.nd.empty(shape, dtype"
    call = f"{start}, {target})"
    return call if is_named else f"{call}, of an array x on that device"


def _check_dtype(
    place: _Argument, param: TensorParam, dtype: "np.dtype[np.generic]"
) -> None:
    expected = to_numpy(param.dtype)
    if dtype == expected:
        return
    # as_dtype ignores the byte order.
    try:
        is_foreign = as_dtype(dtype) == param.dtype
    except RefcompError:
        is_foreign = False
    if is_foreign:
        raise place.error(
            f"is in a byte order that is not this machine's (dtype {dtype.str})",
            remedy=f"convert it: a.astype('{expected.name}')",
        )
    raise place.error(
        f"has dtype {dtype.name}, expected {expected.name}",
        remedy=f"convert it: a.astype('{expected.name}')",
    )


def _check_layout(
    place: _Argument, param: TensorParam, dtype: "np.dtype[np.generic]", layout: int
) -> None:
    remedy = (
        "results are written in place: pass a compact array, and copy from it afterwards"
        if param.is_output
        else "pass a compact copy: numpy.array(a, order='C')"
    )
    if not layout & CONTIGUOUS:
        raise place.error(
            "is not C-contiguous",
            why="compiled code needs compact row-major memory",
            remedy=remedy,
        )
    if not layout & ALIGNED:
        raise place.error(
            f"does not start at a multiple of its element's {dtype.itemsize} bytes",
            remedy=remedy,
        )
    if param.is_output and not layout & WRITABLE:
        raise place.error("is an output, but read-only", remedy="pass a writable array")


def _check_dims(
    signature: Signature,
    tensors: Sequence[tuple[int, TensorParam]],
    forms: Sequence[Form],
    scalars: Mapping[str, int],
) -> dict[str, int]:
    """Return the values of all names in shapes. UserError for the first wrong dimension."""
    sizes = Sizes(dict(scalars), {name: f"argument {name}" for name in scalars})
    dims = [
        (position, axis, expected, found)
        for (position, param), form in zip(tensors, forms, strict=True)
        for axis, (expected, found) in enumerate(zip(param.shape, form[1], strict=True))
    ]
    sizes.solve(
        Extent(
            expected, found, f"dimension {axis} of {signature.params[position].name}"
        )
        for position, axis, expected, found in dims
    )
    for symbol in signature.symbols:
        if symbol not in sizes.values:
            if not _writes_nothing(tensors, forms):
                raise _unsolved(signature, symbol, sizes)
            sizes.add(symbol, 0, "no argument, because nothing is computed")
    for position, axis, expected, found in dims:
        value = evaluate_dim(expected, sizes.values)
        if value != found:
            raise _wrong_dim(
                _Argument(signature, position), axis, expected, value, found, sizes
            )
    check_conditions(signature, sizes)
    return sizes.values


def _writes_nothing(
    tensors: Sequence[tuple[int, TensorParam]], forms: Sequence[Form]
) -> bool:
    """Return True if all outputs are empty, so that an unknown size has no effect."""
    outputs = [
        form for (_, param), form in zip(tensors, forms, strict=True) if param.is_output
    ]
    return bool(outputs) and not any(map(_size, outputs))


def _unsolved(signature: Signature, symbol: str, sizes: Sizes) -> UserError:
    """Return the error for a symbol whose factor is 0, so that any size would fit."""
    zeros = ", ".join(name for name, size in sizes.values.items() if size == 0)
    return UserError(
        f"the size of {symbol} does not follow from the shapes of the arguments",
        where=str(signature),
        why=f"a factor of {symbol} is 0 in this call: {zeros} is 0",
        remedy=f"make {symbol} alone a dimension of some argument, or pass it as a scalar",
    )


def _wrong_dim(
    place: _Argument, axis: int, expected: Dim, value: int, found: int, sizes: Sizes
) -> UserError:
    is_symbolic = any(names_in_dim(expected))
    text = f"{dim_to_plain_text(expected)} = {value}" if is_symbolic else str(value)
    remedy = "pass arrays whose shapes agree"
    # No array has a negative extent, so other sizes are needed.
    if value < 0:
        least = least_size(expected)
        needed = f"make {dim_to_plain_text(expected)} at least 0"
        if least is not None:
            needed = f"fit: {least.name} must be at least {least.size}"
        remedy = f"pass arrays of sizes that {needed}"
    return UserError(
        f"dimension {axis} of {place} is {found}, expected {text}",
        where=str(place.signature),
        why=sizes.explain(expected),
        remedy=remedy,
    )


def _size(form: Form) -> int:
    size = form[0].itemsize
    for dim in form[1]:
        size *= dim
    return size


def _pairs(
    tensors: Sequence[tuple[int, TensorParam]], sizes: Mapping[int, int]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield every output with every other argument, and each two outputs once."""
    outputs = {position for position, param in tensors if param.is_output}
    for output in sorted(outputs):
        for other, _ in tensors:
            is_counted = other in outputs and other <= output
            if sizes[output] and sizes[other] and not is_counted:
                yield output, sizes[output], other, sizes[other]


def overlap_error(signature: Signature, output: int, other: int) -> UserError:
    """Return the error for an output that overlaps another argument."""
    return UserError(
        f"{_Argument(signature, output)} is an output and shares memory with "
        f"{_Argument(signature, other)}",
        where=str(signature),
        why="compiled code may write the output before it has read the other",
        remedy="pass an output with memory of its own, or a copy of the other argument",
    )
