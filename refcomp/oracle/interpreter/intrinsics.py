"""The meaning of each intrinsic of `refcomp.ir.intrinsics`, on single values.

Operands are widened to f64, a function of numpy or of Python's math is applied, and the result is
rounded once to the dtype. For f16, bf16 and f32 that is the true value rounded to nearest, but for
a rare double rounding. For f64 it is as accurate as the library (within 1 or 2 ulp). Exact
intrinsics are exact. Nothing raises: a pole gives inf, an operand outside of the domain NaN.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.oracle.interpreter.scalars import (
    Scalar,
    make_float,
    make_scalar,
    round_exact,
    unsigned,
    wrap,
)

FLOAT_FUNCTIONS: dict[str, Callable[..., Scalar]] = {
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
    "pow": np.float_power,  # np.power is wrong for -inf and -0.0 to the power 0.5
    "atan2": np.arctan2,
    "hypot": np.hypot,
}
_PREDICATES: dict[str, Callable[[float], bool]] = {
    "isnan": math.isnan,
    "isinf": math.isinf,
    "isfinite": math.isfinite,
}
_INTEGER_FUNCTIONS: dict[str, Callable[[int, DType], int]] = {
    "abs": lambda x, dtype: wrap(abs(x), dtype),  # the least value stays
    "popcount": lambda x, dtype: unsigned(x, dtype).bit_count(),
    "clz": lambda x, dtype: dtype.bits - unsigned(x, dtype).bit_length(),
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


def apply_intrinsic(name: str, operands: tuple[Scalar, ...], dtype: DType) -> Scalar:
    """Return the intrinsic `name`, one of `KNOWN`, of scalars of `dtype`."""
    if name in _PREDICATES:
        return bool(_PREDICATES[name](float(operands[0])))
    if name in _BIT_FUNCTIONS:
        return _BIT_FUNCTIONS[name](operands[0], dtype)
    if dtype.is_int:
        return _INTEGER_FUNCTIONS[name](operands[0], dtype)
    if name == "fma":
        a, b, c = map(float, operands)
        return sum_rounded_once([(a, b)], c, dtype)
    with np.errstate(all="ignore"):
        result = FLOAT_FUNCTIONS[name](*map(np.float64, operands))
        return make_scalar(result, dtype)


def sum_rounded_once(
    pairs: Sequence[tuple[float, float]], total: float, dtype: DType
) -> Scalar:
    """Return `total` plus the product of each pair, rounded once to the float type `dtype`."""
    if all(map(math.isfinite, [total, *itertools.chain(*pairs)])):
        terms = [Fraction(a) * Fraction(b) for a, b in pairs]
        terms.append(Fraction(total))
        if any(terms):
            return round_exact(sum(terms, Fraction(0)), dtype)
    # Python's own arithmetic gives NaN and infinities, and the sign of a sum of zeros.
    return make_float(sum((a * b for a, b in pairs), total), dtype)
