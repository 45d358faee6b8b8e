"""Floats of 8, of 6 and of 4 bits, held as bit patterns in tensors of u8.

refcomp has no dtype for such floats: a tensor of u8 holds one bit pattern in each element. The
formats, each with its sign, exponent and mantissa bits:

- `e4m3fn`: 1, 4, 3. No infinity; one NaN of each sign. The greatest value is 448.
- `e4m3fnuz`: 1, 4, 3. No infinity, no -0; one NaN. The greatest value is 240.
- `e5m2`: 1, 5, 2. Infinities and NaN as in IEEE 754. The greatest value is 57344.
- `e5m2fnuz`: 1, 5, 2. No infinity, no -0; one NaN. The greatest value is 57344.
- `e2m3fn`: 1, 2, 3. Neither infinity nor NaN. The greatest value is 7.5.
- `e3m2fn`: 1, 3, 2. Neither infinity nor NaN. The greatest value is 28.
- `e2m1fn`: 1, 2, 1. Neither infinity nor NaN. The greatest value is 6.

All arithmetic is on integers, so that each target gives the same bits.

Reference: P. Micikevicius et al., "FP8 Formats for Deep Learning", 2022; B. Noune et al., "8-bit
Numerical Formats for Deep Neural Networks", 2022; Open Compute Project, Microscaling Formats
Specification 1.0, 2023.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import ml_dtypes
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
from refcomp.topi.conversion.bits import (
    bits_of,
    float_of,
    round_to_odd_numpy,
    without_nan,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_float


@dataclass(frozen=True, slots=True)
class NarrowFormat:
    """A float of at most 8 bits.

    Attributes:
        exponent_bits: the number of bits of the exponent.
        mantissa_bits: the number of bits of the mantissa, without the implicit one.
        bias: what is subtracted from the exponent's bits.
        greatest: the bits of the greatest finite value.
        nan: the bits of the NaN that a conversion gives; None if there is not any.
        infinity: the bits of infinity; None if there is not any.
        has_negative_zero: True if the sign bit alone is -0. It is NaN otherwise.
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    greatest: int
    nan: int | None
    infinity: int | None = None
    has_negative_zero: bool = True

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.exponent_bits + self.mantissa_bits)


_FLOAT8 = {
    "e4m3fn": NarrowFormat(4, 3, bias=7, greatest=0x7E, nan=0x7F),
    "e4m3fnuz": NarrowFormat(
        4, 3, bias=8, greatest=0x7F, nan=0x80, has_negative_zero=False
    ),
    "e5m2": NarrowFormat(5, 2, bias=15, greatest=0x7B, nan=0x7E, infinity=0x7C),
    "e5m2fnuz": NarrowFormat(
        5, 2, bias=16, greatest=0x7F, nan=0x80, has_negative_zero=False
    ),
}
_FLOAT6 = {
    "e2m3fn": NarrowFormat(2, 3, bias=1, greatest=0x1F, nan=None),
    "e3m2fn": NarrowFormat(3, 2, bias=3, greatest=0x1F, nan=None),
}
_FLOAT6_NUMPY = {
    "e2m3fn": np.dtype(ml_dtypes.float6_e2m3fn),
    "e3m2fn": np.dtype(ml_dtypes.float6_e3m2fn),
}
_FLOAT4 = NarrowFormat(2, 1, bias=1, greatest=7, nan=None)
# Mantissa bits and bias of the floats from which are converted.
_SOURCES = {F32: (23, 127), F64: (52, 1023)}


def to_float8(data: Tensor, *, format: str, saturate: bool = True) -> Tensor:
    """Return each float rounded to a float of 8 bits, as its bit pattern in u8.

    A tie rounds to the even bit pattern. NaN gives the NaN of the format, without a sign: 0x7F for
    e4m3fn, 0x7E for e5m2, 0x80 for the others. A negative value that rounds to zero gives -0 in the
    formats that have one, else 0.

    Args:
        data: a tensor of floats of any shape.
        format: `"e4m3fn"`, `"e4m3fnuz"`, `"e5m2"` or `"e5m2fnuz"`.
        saturate: True if infinities, and values beyond the greatest one, become the greatest one.
            False if they become infinity in e5m2, and NaN in the others.

    Returns:
        A tensor of u8 of the shape of `data`.

    Raises:
        UserError: `data` is not a tensor of floats, or the format is unknown.

    Reference: ONNX Cast to float8, since opset 19.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.to_float8(A, format="e4m3fn")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, -1.0625, 1000, np.nan], "float32")}))
        [ 56 184 126 127]
    """
    require_float(data, "to_float8")
    form = _format_of(format, _FLOAT8, "to_float8")
    return compute(
        data.shape,
        lambda *index: _encode(data[index], form, saturate),
        name="to_float8",
        tag=INJECTIVE,
    )


def _format_of(
    name: str, formats: Mapping[str, NarrowFormat], operator: str
) -> NarrowFormat:
    if name in formats:
        return formats[name]
    known = f"formats: {', '.join(formats)}"
    raise UserError(
        f"{operator}: {name!r} is not one of its formats",
        remedy=advise(str(name), formats, known),
    )


def _encode(value: Expr, form: NarrowFormat, saturate: bool) -> Expr:
    """Return the bit pattern, in u8, of `value` rounded to `form`."""
    wide = value if value.dtype == F64 else value.astype(F32)
    digits, bias = _SOURCES[wide.dtype]
    all_bits = bits_of(without_nan(wide))
    sign_place = wide.dtype.bits - 1
    magnitude = all_bits & ((1 << sign_place) - 1)
    field = magnitude >> digits
    fraction = magnitude & ((1 << digits) - 1)
    implicit = maths.select(field > 0, const(1 << digits, field.dtype), 0)
    significand = fraction | implicit
    # The exponent above that of the subnormal numbers of `form`; it may be below.
    exponent = maths.maximum(field, 1).astype("int32") - (bias + 1 - form.bias)
    dropped = (digits - form.mantissa_bits) - maths.minimum(exponent, 0)
    # All digits and the rounding bit are gone beyond; a shift needs to be less than the width.
    shift = maths.minimum(dropped, digits + 2).astype(field.dtype)
    one = const(1, field.dtype)
    half = one << (shift - 1)
    is_odd = (significand >> shift) & 1
    rounded = (significand + (half - one) + is_odd) >> shift
    # A carry out of the mantissa goes to the exponent, as it should.
    steps = maths.maximum(exponent, 0).astype(field.dtype) << form.mantissa_bits
    code = rounded + steps
    code = maths.select(code > form.greatest, _beyond(form, saturate), code)
    negative = (all_bits >> sign_place) << (form.sign.bit_length() - 1)
    is_signed = code <= (form.infinity or form.greatest)
    if not form.has_negative_zero:
        is_signed = maths.all(is_signed, code > 0)
    code = maths.select(is_signed, code | negative, code)
    return maths.select(maths.isnan(wide), form.nan or 0, code).astype("uint8")


def _beyond(form: NarrowFormat, saturate: bool) -> int:
    """Return the bits of what is greater than the greatest value."""
    if saturate or form.nan is None:
        return form.greatest
    return form.nan if form.infinity is None else form.infinity


def _sample_to_float8(draws: Draws) -> Sample:
    dtype = draws.choice(("float32", "float32", "float64", "float16", "bfloat16"))
    attributes = {"format": draws.choice(tuple(_FLOAT8)), "saturate": draws.flag()}
    return Sample((_sample_floats(draws, dtype),), attributes)


def _sample_floats(draws: Draws, dtype: str) -> Array:
    """Return floats of many magnitudes, among them ties of narrow formats."""
    shape = draws.shape()
    source = "float32" if dtype == "bfloat16" else dtype
    scale = 2.0 ** draws.integer(-14, 15)
    # Of few digits, so that many are ties.
    ties = draws.integers(shape, -40, 40) / 16
    array = ties if draws.flag() else draws.array(shape, source)
    with np.errstate(over="ignore"):
        scaled = np.asarray(array * scale)
        return scaled.astype(to_numpy(as_dtype(dtype)))


@meaning_of(to_float8, sample=_sample_to_float8, pattern="elementwise")
def to_float8_numpy(data: Array, *, format: str, saturate: bool = True) -> Array:
    wide = data.astype(np.float64)
    kind = np.dtype(getattr(ml_dtypes, f"float8_{format}"))
    if saturate:
        greatest = np.array(_FLOAT8[format].greatest, np.uint8)
        limit = greatest.view(kind).astype(np.float64)
        wide = np.clip(wide, -limit, limit)
    narrow = round_to_odd_numpy(wide).astype(kind)
    nan = np.uint8(_FLOAT8[format].nan or 0)
    return np.where(np.isnan(narrow), nan, narrow.view(np.uint8))


def from_float8(data: Tensor, *, format: str, dtype: DTypeLike = "float32") -> Tensor:
    """Return the value of each bit pattern of a float of 8 bits.

    Args:
        data: a tensor of u8 of any shape, whose elements are bit patterns.
        format: `"e4m3fn"`, `"e4m3fnuz"`, `"e5m2"` or `"e5m2fnuz"`.
        dtype: the float dtype of the result. Each value is exact, but in f16 the least subnormal
            numbers of e5m2fnuz are rounded.

    Returns:
        A tensor of `dtype` of the shape of `data`.

    Raises:
        UserError: `data` is not a tensor of u8, the format is unknown, or `dtype` is not a float.

    Reference: ONNX Cast from float8, since opset 19.

    Example::

        >>> A = rc.placeholder((3,), "uint8", name="A")
        >>> B = rc.topi.from_float8(A, format="e5m2")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([0x3C, 0xFB, 0x7C], "uint8")}))
        [ 1.0000e+00 -5.7344e+04         inf]
    """
    form = _format_of(format, _FLOAT8, "from_float8")
    return _decoded(data, form, dtype, "from_float8")


def _decoded(
    data: Tensor, form: NarrowFormat, dtype: DTypeLike, operator: str
) -> Tensor:
    require_tensor(data, operator)
    if data.dtype != as_dtype("uint8"):
        raise UserError(
            f"{operator} takes bit patterns in u8, not {data.dtype}",
            remedy="view the array as uint8, or apply rc.topi.bitcast",
            earlier=[data.declaration()],
        )
    kind = as_dtype(dtype)
    if not kind.is_float or kind.lanes > 1:
        raise UserError(
            f"{operator} cannot return {kind}",
            remedy="use a float dtype: float16, bfloat16, float32 or float64",
        )
    return compute(
        data.shape,
        lambda *index: _decode(data[index], form).astype(kind),
        name=operator,
        tag=INJECTIVE,
    )


def _decode(code: Expr, form: NarrowFormat) -> Expr:
    """Return the value, in f32, of a bit pattern of `form`."""
    bits = code.astype("uint32")
    magnitude = bits & (form.sign - 1)
    field = magnitude >> form.mantissa_bits
    mantissa = magnitude & ((1 << form.mantissa_bits) - 1)
    implicit = maths.select(field > 0, const(1 << form.mantissa_bits, field.dtype), 0)
    significand = (mantissa | implicit).astype(F32)
    # The power of two by which the significand is multiplied has these bits of exponent in f32.
    exponent = maths.maximum(field, 1) + (127 - form.bias - form.mantissa_bits)
    size = significand * float_of(exponent << 23, F32)
    if form.infinity is not None:
        infinite = const(float("inf"), F32)
        size = maths.select(magnitude == form.infinity, infinite, size)
    value = maths.select((bits & form.sign) > 0, -size, size)
    if form.nan is None:
        return value
    if form.has_negative_zero:
        is_nan = magnitude > (form.infinity or form.greatest)
    else:
        is_nan = bits == form.nan
    return maths.select(is_nan, const(float("nan"), F32), value)


def _sample_from_float8(draws: Draws) -> Sample:
    codes = draws.integers(draws.shape(), 0, 255, "uint8")
    dtype = draws.choice(("float32", "float64", "float16", "bfloat16"))
    attributes = {"format": draws.choice(tuple(_FLOAT8)), "dtype": dtype}
    return Sample((codes,), attributes)


@meaning_of(from_float8, sample=_sample_from_float8, pattern="elementwise")
def from_float8_numpy(
    data: Array, *, format: str, dtype: DTypeLike = "float32"
) -> Array:
    kind = np.dtype(getattr(ml_dtypes, f"float8_{format}"))
    values = data.view(kind).astype(np.float32)
    return np.asarray(values.astype(to_numpy(as_dtype(dtype))))


def to_float6(data: Tensor, *, format: str) -> Tensor:
    """Return each float rounded to a float of 6 bits, in the low bits of a u8.

    A tie rounds to the even bit pattern. Infinities, and values beyond the greatest one, become the
    greatest one of their sign. NaN gives 0.

    Args:
        data: a tensor of floats of any shape.
        format: `"e2m3fn"` or `"e3m2fn"`.

    Returns:
        A tensor of u8 of the shape of `data`, whose upper two bits are 0.

    Raises:
        UserError: `data` is not a tensor of floats, or the format is unknown.

    Reference: ONNX Cast to float6e2m3 and float6e3m2, since opset 28. The result for NaN is
    refcomp's own.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.to_float6(A, format="e2m3fn")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, -0.125, 3.2, 1000], "float32")}))
        [ 8 33 21 31]
    """
    require_float(data, "to_float6")
    form = _format_of(format, _FLOAT6, "to_float6")
    return compute(
        data.shape,
        lambda *index: _encode(data[index], form, saturate=True),
        name="to_float6",
        tag=INJECTIVE,
    )


def _sample_to_float6(draws: Draws) -> Sample:
    dtype = draws.choice(("float32", "float32", "float64", "float16", "bfloat16"))
    attributes = {"format": draws.choice(tuple(_FLOAT6))}
    return Sample((_sample_floats(draws, dtype),), attributes)


@meaning_of(to_float6, sample=_sample_to_float6, pattern="elementwise")
def to_float6_numpy(data: Array, *, format: str) -> Array:
    wide = data.astype(np.float64)
    narrow = round_to_odd_numpy(wide).astype(_FLOAT6_NUMPY[format])
    return np.where(np.isnan(wide), np.uint8(0), narrow.view(np.uint8) & np.uint8(63))


def from_float6(data: Tensor, *, format: str, dtype: DTypeLike = "float32") -> Tensor:
    """Return the value of each bit pattern of a float of 6 bits.

    Args:
        data: a tensor of u8 of any shape. The upper two bits of each element are ignored.
        format: `"e2m3fn"` or `"e3m2fn"`.
        dtype: the float dtype of the result. Each value is exact.

    Returns:
        A tensor of `dtype` of the shape of `data`.

    Raises:
        UserError: `data` is not a tensor of u8, the format is unknown, or `dtype` is not a float.

    Reference: ONNX Cast from float6e2m3 and float6e3m2, since opset 28.

    Example::

        >>> A = rc.placeholder((3,), "uint8", name="A")
        >>> B = rc.topi.from_float6(A, format="e3m2fn")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([12, 33, 31], "uint8")}))
        [ 1.     -0.0625 28.    ]
    """
    form = _format_of(format, _FLOAT6, "from_float6")
    return _decoded(data, form, dtype, "from_float6")


def _sample_from_float6(draws: Draws) -> Sample:
    codes = draws.integers(draws.shape(), 0, 255, "uint8")
    dtype = draws.choice(("float32", "float64", "float16", "bfloat16"))
    return Sample((codes,), {"format": draws.choice(tuple(_FLOAT6)), "dtype": dtype})


@meaning_of(from_float6, sample=_sample_from_float6, pattern="elementwise")
def from_float6_numpy(
    data: Array, *, format: str, dtype: DTypeLike = "float32"
) -> Array:
    values = (data & 63).view(_FLOAT6_NUMPY[format]).astype(np.float32)
    return np.asarray(values.astype(to_numpy(as_dtype(dtype))))


def to_float4(data: Tensor) -> Tensor:
    """Return each float rounded to e2m1fn, a float of 4 bits, in the low half of a u8.

    The values are 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their opposites. A tie rounds to the even bit
    pattern. Infinities, and values beyond 6, become 6 of their sign. NaN gives 0.
    `pack_int4` puts two such values in a byte.

    Args:
        data: a tensor of floats of any shape.

    Returns:
        A tensor of u8 of the shape of `data`, whose upper four bits are 0.

    Raises:
        UserError: `data` is not a tensor of floats.

    Reference: ONNX Cast to float4e2m1, since opset 23. The result for NaN is refcomp's own.

    Example::

        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.topi.to_float4(A)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, -0.5, 2.5, np.inf], "float32")}))
        [2 9 4 7]
    """
    require_float(data, "to_float4")
    return compute(
        data.shape,
        lambda *index: _encode(data[index], _FLOAT4, saturate=True),
        name="to_float4",
        tag=INJECTIVE,
    )


def _sample_to_float4(draws: Draws) -> Sample:
    dtype = draws.choice(("float32", "float32", "float64", "float16", "bfloat16"))
    return Sample((_sample_floats(draws, dtype),))


@meaning_of(to_float4, sample=_sample_to_float4, pattern="elementwise")
def to_float4_numpy(data: Array) -> Array:
    wide = data.astype(np.float64)
    narrow = round_to_odd_numpy(wide).astype(ml_dtypes.float4_e2m1fn)
    return np.where(np.isnan(wide), np.uint8(0), narrow.view(np.uint8) & np.uint8(15))


def from_float4(data: Tensor, *, dtype: DTypeLike = "float32") -> Tensor:
    """Return the value of each bit pattern of e2m1fn, a float of 4 bits.

    Args:
        data: a tensor of u8 of any shape. The upper four bits of each element are ignored.
        dtype: the float dtype of the result. Each value is exact.

    Returns:
        A tensor of `dtype` of the shape of `data`.

    Raises:
        UserError: `data` is not a tensor of u8, or `dtype` is not a float.

    Reference: ONNX Cast from float4e2m1, since opset 23.

    Example::

        >>> A = rc.placeholder((3,), "uint8", name="A")
        >>> B = rc.topi.from_float4(A)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([2, 9, 7], "uint8")}))
        [ 1.  -0.5  6. ]
    """
    return _decoded(data, _FLOAT4, dtype, "from_float4")


def _sample_from_float4(draws: Draws) -> Sample:
    codes = draws.integers(draws.shape(), 0, 255, "uint8")
    dtype = draws.choice(("float32", "float64", "float16", "bfloat16"))
    return Sample((codes,), {"dtype": dtype})


@meaning_of(from_float4, sample=_sample_from_float4, pattern="elementwise")
def from_float4_numpy(data: Array, *, dtype: DTypeLike = "float32") -> Array:
    codes = (data & 15).view(ml_dtypes.float4_e2m1fn)
    values = codes.astype(np.float32)
    return np.asarray(values.astype(to_numpy(as_dtype(dtype))))
