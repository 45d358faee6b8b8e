"""convert: Python values as refcomp takes them, in lists and dicts, too."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.promotion import as_expr

_PACKAGE = __name__.partition(".")[0]


def convert(value: object) -> Any:
    """Return a Python value as refcomp takes it. Lists and dicts are converted item by item.

    Args:
        value: a number becomes a constant, as in `const`. An axis, or a tensor of rank 0, becomes
            an expression. A list or tuple becomes a tuple, a mapping a dict; each item is
            converted, and keys stay. bytearray becomes bytes. Texts, bytes, None, functions and
            refcomp's own objects, such as expressions and tensors, are returned as they are.

    Returns:
        The converted value. A function needs no wrapper: `register_func` and calls take it.

    Raises:
        UserError: the value is nothing of these, for example a set or a numpy array; or a list
            contains itself.

    Source: TVM, tvm.convert.

    Example::

        >>> k = rc.reduce_axis((0, 8), name="k")
        >>> rc.convert(k) * rc.convert(2)
        k * 2
        >>> rc.convert([4, (1.5, "text"), {"k": 5}])
        (4i32, (1.5f32, 'text'), {'k': 5i32})
        >>> rc.placeholder(rc.convert([4, 5]), name="A").shape
        (4, 5)
        >>> rc.convert(lambda x: x + 1)(2)
        3
    """
    try:
        return _converted(value)
    except RecursionError as error:
        raise UserError(
            f"a {type(value).__name__} that contains itself cannot be converted",
            why="its items are converted without end",
            remedy="pass a list without itself among its items",
        ) from error


def _converted(value: object) -> Any:
    match value:
        case list() | tuple():
            return tuple(_converted(item) for item in value)
        case Mapping():
            return {key: _converted(item) for key, item in value.items()}
        case bytearray():
            return bytes(value)
        case None | str() | bytes():
            return value
        case Number() | np.generic():
            return as_expr(value)
    rank = getattr(value, "ndim", 0)
    if hasattr(value, "as_expr") and rank == 0:
        return as_expr(value)
    is_own = type(value).__module__.partition(".")[0] == _PACKAGE
    if is_own or callable(value):
        return value
    is_array = isinstance(value, np.ndarray)
    raise UserError(
        f"{type(value).__name__} {value!r} cannot be converted",
        why="it is neither a number, a text, a list, a dict, nor an object of refcomp",
        remedy="refcomp.nd.array(x) makes an array" if is_array else "pass a list",
    )
