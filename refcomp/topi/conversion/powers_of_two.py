"""The format e8m0: powers of two as 8 bits of exponent, which scale blocks of narrow floats.

A byte c stands for 2**(c - 127), and 255 for NaN. There is neither a sign, nor 0, nor infinity.

Reference: Open Compute Project, Microscaling Formats Specification 1.0, 2023, section 5.4.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import F32, F64, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.conversion.bits import bits_of, float_of, without_nan
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_float

_BIAS = 127
_NAN = 255
_LEAST = 2.0**-127
_DIGITS = 52  # of f64, in which all values of the other floats are normal numbers
_BIAS_F64 = 1023
_MODES = ("nearest", "up", "down")


def to_float8_e8m0(
    data: Tensor, *, round_mode: str = "up", saturate: bool = True
) -> Tensor:
    """Return each float rounded to a power of two, as the byte of its exponent.

    NaN and negative values give NaN.

    Args:
        data: a tensor of floats of any shape.
        round_mode: `"up"`, `"down"` or `"nearest"`. Halfway between two powers, 1.5 * 2**n, is
            rounded up.
        saturate: True if infinity, and what rounds to more than 2**127, becomes 2**127, and what is
            less than 2**-127 becomes 2**-127. False if these, zeros among them, become NaN.

    Returns:
        A tensor of u8 of the shape of `data`.

    Raises:
        UserError: `data` is not a tensor of floats, or the mode is unknown.

    Reference: ONNX Cast to float8e8m0, since opset 24. It leaves negative values and -0 open.
    Negative values are those of ml_dtypes, -0 is 0.

    Example::

        >>> A = rc.placeholder((5,), name="A")
        >>> B = rc.topi.to_float8_e8m0(A)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, 1.1, 2, 0, np.inf], "float32")}))
        [127 128 128   0 254]
    """
    require_float(data, "to_float8_e8m0")
    if round_mode not in _MODES:
        raise UserError(
            f"to_float8_e8m0 cannot round by {round_mode!r}",
            remedy=advise(str(round_mode), _MODES, f"modes: {', '.join(_MODES)}"),
        )

    def element(*index: Expr) -> Expr:
        value = data[index].astype(F64)
        bits = bits_of(without_nan(value))
        # Without the sign: that of -0 would count.
        exponent = ((bits >> _DIGITS) & 0x7FF).astype("int32") - _BIAS_F64
        fraction = bits & ((1 << _DIGITS) - 1)
        code = exponent + _BIAS
        if round_mode != "down":
            least = 1 if round_mode == "up" else 1 << (_DIGITS - 1)
            code = code + (fraction >= least).astype("int32")
        code = maths.maximum(code, 0)
        over = _NAN - 1 if saturate else _NAN
        code = maths.select(code > _NAN - 1, const(over, code.dtype), code)
        # False for NaN, too.
        is_in_range = value >= (0.0 if saturate else _LEAST)
        code = maths.select(is_in_range, code, const(_NAN, code.dtype))
        return code.astype("uint8")

    return compute(data.shape, element, name="to_float8_e8m0", tag=INJECTIVE)


def _sample_to_float8_e8m0(draws: Draws) -> Sample:
    dtype = draws.choice(("float32", "float64", "float16", "bfloat16"))
    source = "float32" if dtype == "bfloat16" else dtype
    array = draws.array(draws.shape(), source)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.abs(array) if draws.flag() else array
        scaled = spread * 2.0 ** draws.choice((-1, -130, -10, 1, 10, 127))
        data = scaled.astype(to_numpy(as_dtype(dtype)))
    attributes = {"round_mode": draws.choice(_MODES), "saturate": draws.flag()}
    return Sample((data,), attributes)


@meaning_of(to_float8_e8m0, sample=_sample_to_float8_e8m0, pattern="elementwise")
def to_float8_e8m0_numpy(
    data: Array, *, round_mode: str = "up", saturate: bool = True
) -> Array:
    wide = data.astype(np.float64)
    is_number = np.isfinite(wide) & (wide > 0)
    significand, exponent = np.frexp(np.where(is_number, wide, 1.0))
    # frexp gives 0.5 <= significand < 1: a power of two has 0.5.
    least = {"up": np.nextafter(0.5, 1), "nearest": 0.75, "down": 1.0}[round_mode]
    code = exponent - 1 + _BIAS + (significand >= least)
    code = np.where(np.isposinf(wide), 10**6, code)
    code = np.where(code > _NAN - 1, _NAN - 1 if saturate else _NAN, code)
    code = np.where(wide == 0, 0, code)
    is_in_range = wide >= (0 if saturate else _LEAST)
    code = np.where(is_in_range, np.maximum(code, 0), _NAN)
    return code.astype(np.uint8)


def from_float8_e8m0(data: Tensor, *, dtype: DTypeLike = "float32") -> Tensor:
    """Return the power of two that each byte stands for: 2**(c - 127), and NaN for 255.

    Args:
        data: a tensor of u8 of any shape.
        dtype: the float dtype of the result. Each value is exact, but in f16 large powers become
            infinite, and small ones 0.

    Returns:
        A tensor of `dtype` of the shape of `data`.

    Raises:
        UserError: `data` is not a tensor of u8, or `dtype` is not a float.

    Reference: ONNX Cast from float8e8m0, since opset 24.

    Example::

        >>> A = rc.placeholder((3,), "uint8", name="A")
        >>> B = rc.topi.from_float8_e8m0(A)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([127, 130, 255], "uint8")}))
        [ 1.  8. nan]
    """
    require_tensor(data, "from_float8_e8m0")
    if data.dtype != as_dtype("uint8"):
        raise UserError(
            f"from_float8_e8m0 takes bit patterns in u8, not {data.dtype}",
            remedy="view the array as uint8, or apply rc.topi.bitcast",
            earlier=[data.declaration()],
        )
    kind = as_dtype(dtype)
    if not kind.is_float or kind.lanes > 1:
        raise UserError(
            f"from_float8_e8m0 cannot return {kind}",
            remedy="use a float dtype: float16, bfloat16, float32 or float64",
        )

    def element(*index: Expr) -> Expr:
        code = data[index].astype("uint32")
        # The exponent of a normal f32, but 2**-127 is subnormal.
        bits = maths.select(code == 0, const(1 << 22, code.dtype), code << 23)
        value = float_of(bits, F32)
        nan = const(float("nan"), F32)
        return maths.select(code == _NAN, nan, value).astype(kind)

    return compute(data.shape, element, name="from_float8_e8m0", tag=INJECTIVE)


def _sample_from_float8_e8m0(draws: Draws) -> Sample:
    codes = draws.integers(draws.shape(), 0, 255, "uint8")
    dtype = draws.choice(("float32", "float64", "float16", "bfloat16"))
    return Sample((codes,), {"dtype": dtype})


@meaning_of(from_float8_e8m0, sample=_sample_from_float8_e8m0, pattern="elementwise")
def from_float8_e8m0_numpy(data: Array, *, dtype: DTypeLike = "float32") -> Array:
    power = np.ldexp(1.0, data.astype(np.int32) - _BIAS)
    value = np.where(data == _NAN, np.nan, power)
    with np.errstate(over="ignore"):
        return value.astype(to_numpy(as_dtype(dtype)))
