"""What each intrinsic of `refcomp.ir.intrinsics` means, one line each.

Operands are widened to f64, the function of numpy or of Python's math is applied there, and the
result is rounded once to the dtype. For f16, bf16 and f32 that is the true value rounded to
nearest, but for a rare double rounding; for f64 it is as good as the library (within 1 or 2 ulp).
Exact intrinsics are exact. Numpy raises no exceptions here: a pole is inf, a domain error NaN.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.oracle.interpreter.scalars import (
    Scalar,
    make_float,
    make_scalar,
    round_exact,
    wrap,
)

FLOAT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,  # ties to even
    "abs": np.abs,
    "copysign": np.copysign,
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(np.float64(10), x),
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "erf": math.erf,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "pow": np.float_power,  # np.power takes a root for 0.5, and so -inf and -0.0 amiss
    "atan2": np.arctan2,
    "hypot": np.hypot,
}
_PREDICATES: dict[str, Callable[[float], Any]] = {
    "isnan": math.isnan,
    "isinf": math.isinf,
    "isfinite": math.isfinite,
}
_INTEGER_FUNCTIONS: dict[str, Callable[[int, DType], int]] = {
    "abs": lambda x, dtype: wrap(abs(x), dtype),  # the least value stays as it is
    "popcount": lambda x, dtype: (x & _ones(dtype)).bit_count(),
    "clz": lambda x, dtype: dtype.bits - (x & _ones(dtype)).bit_length(),
}
_BIT_FUNCTIONS: dict[str, Callable[[Scalar, DType], Scalar]] = {
    "float_to_bits": lambda x, dtype: int(x.view(f"uint{dtype.bits}")),
    "bits_to_float": lambda x, dtype: (
        np.dtype(f"uint{dtype.bits}").type(x).view(f"float{dtype.bits}")
    ),
}
KNOWN = frozenset(
    {*FLOAT_FUNCTIONS, *_PREDICATES, *_INTEGER_FUNCTIONS, *_BIT_FUNCTIONS, "fma"}
)


def _ones(dtype: DType) -> int:
    return (1 << dtype.bits) - 1


def apply_intrinsic(name: str, operands: tuple[Scalar, ...], dtype: DType) -> Scalar:
    """The intrinsic `name` of scalars of `dtype`; `name` is one of KNOWN."""
    if name in _PREDICATES:
        return bool(_PREDICATES[name](float(operands[0])))
    if name in _BIT_FUNCTIONS:
        return _BIT_FUNCTIONS[name](operands[0], dtype)
    if dtype.is_int:
        return _INTEGER_FUNCTIONS[name](operands[0], dtype)
    if name == "fma":
        return _fma(dtype, *map(float, operands))
    with np.errstate(all="ignore"):
        return make_scalar(FLOAT_FUNCTIONS[name](*map(np.float64, operands)), dtype)


def _fma(dtype: DType, a: float, b: float, c: float) -> Scalar:
    """a * b + c, rounded once. Python numbers give NaN and inf, and the sign of a zero sum."""
    if all(map(math.isfinite, (a, b, c))):
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        if exact:
            return round_exact(exact, dtype)
    return make_float(a * b + c, dtype)
