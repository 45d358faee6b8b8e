"""From a Python or numpy number to what a compiled function takes for a scalar parameter.

Integers go as they are, bool as 0 or 1, f32 and f64 as a Python float, f16 and bf16 as their 16
bits. Refuses a number of another kind (a float for an integer, an integer for a bool) and one
that the dtype cannot hold: nothing is rounded to infinity or wrapped around in silence.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.foundation.artifacts import ScalarParam
from refcomp.foundation.dtype import DType, as_dtype, to_numpy
from refcomp.foundation.errors import RefcompError, UserError

ReadScalar = Callable[[Any], int | float]

_F32_MAX = float(np.finfo(np.float32).max)


def scalar_reader(param: ScalarParam, where: str) -> ReadScalar:
    """A function that turns an argument for `param` into its machine value or raises UserError."""
    if param.dtype.is_bool:
        return _bool_reader(param, where)
    if param.dtype.is_int:
        return _int_reader(param, where)
    return _float_reader(param, where)


def typed_scalar(dtype: DType, value: Any) -> Any:
    """A number that `scalar_reader` accepts, as a numpy scalar of `dtype`."""
    with np.errstate(over="ignore"):
        return to_numpy(dtype).type(value)


def _bool_reader(param: ScalarParam, where: str) -> ReadScalar:
    def read(value: Any) -> int:
        if not isinstance(value, bool | np.bool_):
            raise _wrong_kind(param, value, where, "pass bool(value)")
        return int(value)

    return read


def _int_reader(param: ScalarParam, where: str) -> ReadScalar:
    least, most = param.dtype.min_value, param.dtype.max_value

    def read(value: Any) -> int:
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise _wrong_kind(param, value, where, "pass int(value)")
        if not least <= value <= most:
            raise _out_of_range(param, value, where, f"{least} to {most}")
        return int(value)

    return read


def _float_reader(param: ScalarParam, where: str) -> ReadScalar:
    dtype = param.dtype

    def read(value: Any) -> int | float:
        number = value if type(value) is float else _as_float(param, value, where)
        if dtype.bits == 64 or (dtype.bits == 32 and -_F32_MAX <= number <= _F32_MAX):
            return number
        stored = typed_scalar(dtype, number)
        if math.isinf(stored) and not math.isinf(number):
            limit = float(_largest(dtype))
            raise _out_of_range(
                param, value, where, f"{-limit:g} to {limit:g}, or infinite"
            )
        return float(stored) if dtype.bits == 32 else int(stored.view(np.uint16))

    return read


def _as_float(param: ScalarParam, value: Any, where: str) -> float:
    if not _is_real(value):
        raise _wrong_kind(param, value, where, "pass float(value)")
    try:
        return float(value)
    except OverflowError as error:
        raise _out_of_range(param, value, where, "those of a float") from error


def _is_real(value: Any) -> bool:
    if isinstance(value, np.generic):
        try:
            dtype = as_dtype(value.dtype)
        except RefcompError:
            return isinstance(value, np.floating)
        return dtype.is_float or dtype.is_int
    return isinstance(value, int | float) and not isinstance(value, bool)


def _largest(dtype: DType) -> Any:
    bits = {"bfloat": 0x7F7F, "float": 0x7BFF if dtype.bits == 16 else 0x7F7FFFFF}[
        dtype.kind
    ]
    return np.array(bits, np.dtype(f"u{dtype.bytes}")).view(to_numpy(dtype))


def _wrong_kind(param: ScalarParam, value: Any, where: str, remedy: str) -> UserError:
    return UserError(
        f"argument {param.name} is a {type(value).__name__}, expected a scalar {param.dtype}",
        where=where,
        remedy=remedy,
    )


def _out_of_range(
    param: ScalarParam, value: Any, where: str, allowed: str
) -> UserError:
    return UserError(
        f"argument {param.name} is {value}, which {param.dtype} cannot hold",
        where=where,
        remedy=f"values are {allowed}",
    )
