"""The conversion of a Python or numpy number to the machine value of a scalar parameter.

The machine value of a bool is 0 or 1, of f32 and f64 a Python float, and of f16 and bf16 their 16
bits as an integer. Refuses a number of another kind (a float for an integer, an integer for a bool)
and a number that the dtype cannot hold: no value silently becomes infinite or wraps around.
"""

import math
import sys
from collections.abc import Callable
from typing import SupportsFloat, TypeGuard

import numpy as np

from refcomp.foundation.artifacts import ScalarParam
from refcomp.foundation.dtype import DType, as_dtype, to_numpy
from refcomp.foundation.errors import RefcompError, UserError

ReadScalar = Callable[[object], int | float]

# (bits, kind) of a dtype -> the bits of its largest finite number
_LARGEST_BITS = {
    (16, "bfloat"): 0x7F7F,
    (16, "float"): 0x7BFF,
    (32, "float"): 0x7F7FFFFF,
}
_F32_MAX = float(np.finfo(np.float32).max)


def scalar_reader(param: ScalarParam, where: str) -> ReadScalar:
    """Return a function that converts an argument of `param` to its machine value.

    The function raises UserError for a number that `param` cannot hold. `where` is the signature.
    """
    if param.dtype.is_bool:
        return _bool_reader(param, where)
    if param.dtype.is_int:
        return _int_reader(param, where)
    return _float_reader(param, where)


def typed_scalar(dtype: DType, value: object) -> np.generic:
    """Return a number that `scalar_reader` accepts as a numpy scalar of `dtype`."""
    make: Callable[[object], np.generic] = to_numpy(dtype).type
    # A number beyond the range becomes infinite. `scalar_reader` refuses it.
    with np.errstate(over="ignore"):
        return make(value)


def _bool_reader(param: ScalarParam, where: str) -> ReadScalar:
    def read(value: object) -> int:
        if not isinstance(value, bool | np.bool_):
            raise _wrong_kind(param, value, where, "pass bool(value)")
        return int(value)

    return read


def _int_reader(param: ScalarParam, where: str) -> ReadScalar:
    minimum = param.dtype.min_value
    maximum = param.dtype.max_value

    def read(value: object) -> int:
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise _wrong_kind(param, value, where, "pass int(value)")
        if not minimum <= value <= maximum:
            raise _out_of_range(param, value, where, f"{minimum} to {maximum}")
        return int(value)

    return read


def _float_reader(param: ScalarParam, where: str) -> ReadScalar:
    dtype = param.dtype

    def read(value: object) -> int | float:
        number = value if type(value) is float else _as_float(param, value, where)
        if dtype.bits == 64 or (dtype.bits == 32 and -_F32_MAX <= number <= _F32_MAX):
            return number
        stored = typed_scalar(dtype, number)
        # Rounding to nearest decides: a number slightly above the largest one fits.
        if math.isinf(stored.item()) and not math.isinf(number):
            largest = np.array(_LARGEST_BITS[dtype.bits, dtype.kind], f"u{dtype.bytes}")
            limit = float(largest.view(to_numpy(dtype)))
            raise _out_of_range(
                param, value, where, f"{-limit:g} to {limit:g}, or infinite"
            )
        if dtype.bits == 32:
            return float(stored.item())
        return int.from_bytes(stored.tobytes(), sys.byteorder)

    return read


def _as_float(param: ScalarParam, value: object, where: str) -> float:
    if not _is_real(value):
        raise _wrong_kind(param, value, where, "pass float(value)")
    try:
        return float(value)
    except OverflowError as error:
        raise _out_of_range(param, value, where, "those of a float") from error


def _is_real(value: object) -> TypeGuard[SupportsFloat]:
    if isinstance(value, np.generic):
        try:
            dtype = as_dtype(value.dtype)
        except RefcompError:  # such as numpy's longdouble
            return isinstance(value, np.floating)
        return dtype.is_float or dtype.is_int
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wrong_kind(
    param: ScalarParam, value: object, where: str, remedy: str
) -> UserError:
    return UserError(
        f"argument {param.name} is a {type(value).__name__}, expected a scalar {param.dtype}",
        where=where,
        remedy=remedy,
    )


def _out_of_range(
    param: ScalarParam, value: object, where: str, allowed: str
) -> UserError:
    return UserError(
        f"argument {param.name} is {value}, which {param.dtype} cannot hold",
        where=where,
        remedy=f"values are {allowed}",
    )
