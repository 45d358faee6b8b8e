"""Calls of registered functions whose value is used: the call, and the check of its result.

Machine code, the interpreter and the oracle call here, so that they agree on every result. A
result is a number of the dtype that the program asks for. Refuses None, except from an action that
traces a value, and numbers that the dtype cannot hold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.foundation.registry import get_global_func, register_func

# The function that a trace calls by default.
DEFAULT_ACTION = "tvm.default_trace_action"


def call_registered(
    name: str, args: Sequence[object], dtype: DType, *, traces: bool = False
) -> bool | int | float:
    """Call a registered function, and return its result as a number of `dtype`.

    Args:
        name: the name under which the function is registered.
        args: Python numbers and texts, in order.
        dtype: the dtype of the value that the program uses. A float is not rounded to it here.
        traces: True if the function is the action of a trace: if it returns None, the value is the
            last argument.

    Raises:
        UserError: no function has the name, or the result does not fit `dtype`. The function's own
            exceptions pass through.

    Example::

        >>> from refcomp.foundation.registered_calls import call_registered
        >>> _ = rc.register_func("demo.half", lambda x: x / 2, override=True)
        >>> call_registered("demo.half", [3], rc.as_dtype("float32"))
        1.5
    """
    function = get_global_func(name)
    assert function is not None
    result = function(*args)
    if result is None and traces:
        result = args[-1]
    if isinstance(result, np.generic) or getattr(result, "ndim", None) == 0:
        result = np.asarray(result).item()
    if isinstance(result, bool | int | float):
        fitting = _as_number(result, dtype)
        if fitting is not None:
            return fitting
    raise UserError(
        f"the registered function {name} returned {result!r}",
        why=f"the program uses its value as {dtype}",
        remedy=_remedy(result, dtype),
    )


def _as_number(result: float, dtype: DType) -> bool | int | float | None:
    """Return `result` as a number of the kind of `dtype`, None if it does not fit."""
    if dtype.is_float:
        try:
            return float(result)
        except OverflowError:
            return None
    if dtype.is_bool:
        return bool(result) if result in (0, 1) else None
    if isinstance(result, float):
        return None
    return int(result) if dtype.min_value <= result <= dtype.max_value else None


def _remedy(result: object, dtype: DType) -> str:
    if isinstance(result, float) and dtype.is_int:
        return 'round it, or ask for a float: call_packed(..., dtype="float32")'
    if dtype.is_int:
        return f"return an int in {dtype.min_value} .. {dtype.max_value}"
    return "return a number"


@register_func(DEFAULT_ACTION)
def _print_traced(*args: object) -> None:
    print(list(args))
