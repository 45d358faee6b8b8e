"""Vector instructions on floats: arithmetic, rounding, and approximate functions."""

from __future__ import annotations

from functools import cache

import numpy as np

from refcomp.emulator.instructions import exact
from refcomp.emulator.instructions.operation import Function, Semantics, operation
from refcomp.emulator.instructions.tables.unfused import UNFUSED_F16
from refcomp.emulator.machine.arrays import NUMPY, Array, Mask

_FLOATS = ("f16", "f32", "f64")
_FMA: dict[str, Function] = {
    "f16": exact.fma_f16,
    "f32": exact.fma_f32,
    "f64": exact.fma_f64,
}


def minimum(a: Array, b: Array) -> Array:
    """Return the minimum: the number where the other is a quiet NaN; -0 is less than +0."""
    low: Array = np.fmin(a, b)
    low = np.where(a == b, (_bits(a) | _bits(b)).view(low.dtype), low)
    return _or_signalling(low, a, b)


def maximum(a: Array, b: Array) -> Array:
    """Return the maximum: the number where the other is a quiet NaN; +0 is greater than -0."""
    high: Array = np.fmax(a, b)
    high = np.where(a == b, (_bits(a) & _bits(b)).view(high.dtype), high)
    return _or_signalling(high, a, b)


def _or_signalling(found: Array, first: Array, second: Array) -> Array:
    """Return `found`, but a signalling NaN made quiet where `first`, or else `second`, is one.

    numpy's own result for signalling NaNs depends on the length of the array.
    """
    for value in (second, first):
        if np.isnan(value).any():
            bits = _bits(value)
            quiet = (bits | bits.dtype.type(1 << quiet_bit(value))).view(found.dtype)
            found = np.where(is_signalling(value), quiet, found)
    return found


def quiet_bit(a: Array) -> int:
    """Return the number of the bit that a NaN of that type has unless it is signalling."""
    return {2: 9, 4: 22, 8: 51}[np.asarray(a).dtype.itemsize]


def is_signalling(a: Array) -> Array:
    """Return which elements are signalling NaNs."""
    bits = _bits(a)
    is_quiet: Array = bits >> bits.dtype.type(quiet_bit(a)) & bits.dtype.type(1) == 1
    return np.isnan(a) & ~is_quiet


def _bits(a: Array) -> Array:
    """Return the bits of floats as unsigned integers."""
    a = np.asarray(a)
    return a.view(f"u{a.itemsize}")


def median_by(low: Function, high: Function) -> Function:
    """Return the median of three, made of a minimum and a maximum of two.

    Where one operand is a NaN, it is the minimum of the three.
    """

    def median(a: Array, b: Array, c: Array) -> Array:
        highest = high(high(a, b), c)
        is_a = highest == a
        is_b = highest == b
        middle = np.where(is_a, high(b, c), np.where(is_b, high(a, c), high(a, b)))
        any_nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
        least: Array = low(low(a, b), c)
        return np.where(any_nan, least, middle)

    return median


def _fraction(a: Array) -> Array:
    """Return a - floor(a), less than 1."""
    a = np.asarray(a)
    below_one = np.nextafter(a.dtype.type(1), a.dtype.type(0))
    result = np.minimum(a - np.floor(a), below_one)
    return np.where(np.isinf(a), np.array(np.nan, a.dtype), result)


def _mantissa(a: Array) -> Array:
    return np.where(np.isfinite(a), np.frexp(a)[0], exact.quiet(a))


def _exponent(a: Array) -> Array:
    return np.where(np.isfinite(a), np.frexp(a)[1], 0).astype(np.int32)


def _scaled(a: Array, exponent: Array) -> Array:
    wide = np.clip(exponent, -5000, 5000).astype(np.int32)
    if np.asarray(a).dtype == np.float16:
        return np.ldexp(np.asarray(a, np.float64), wide).astype(np.float16)
    return np.ldexp(a, wide)


def _legacy_product(a: Array, b: Array) -> Array:
    """Return a * b, where 0 times anything is 0."""
    return np.where((a == 0) | (b == 0), np.float32(0), a * b)


def _by_f64(function: Function) -> Function:
    def computed(a: Array) -> Array:
        result: Array = function(np.asarray(a, np.float64))
        return result.astype(np.asarray(a).dtype)

    return computed


def _turns(function: Function) -> Function:
    """Return the sine or cosine of a number of turns, exact at quarters of a turn."""

    def computed(a: Array) -> Array:
        part = np.remainder(np.asarray(a, np.float64), 1.0)
        found: Array = np.asarray(function(2 * np.pi * part))
        result: Array = found.round(15)
        return result.astype(np.asarray(a).dtype)

    return computed


def _reciprocal(a: Array) -> Array:
    return 1.0 / a


def _reciprocal_root(a: Array) -> Array:
    # The root and its inverse would round twice, by more than a unit in the last place together.
    return 1.0 / np.sqrt(np.asarray(a, np.longdouble))


@cache
def _two_over_pi() -> int:
    """Return the first 1201 bits of 2/pi, by Machin's formula."""
    one = 1 << 1400

    def arctangent_of_inverse(n: int) -> int:
        total = 0
        term = one // n
        k = 0
        while term:
            total += (-1) ** k * (term // (2 * k + 1))
            term = term // (n * n)
            k = k + 1
        return total

    pi = 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))
    return (2 << (1400 + 1201)) // pi


def _two_over_pi_at(a: Array, segment: Array) -> Array:
    """Return the 53 bits of 2/pi that a product with `a` needs, `segment` * 53 bits further on."""
    a, segment = np.broadcast_arrays(a, segment)
    result = np.empty(a.shape)
    exponents = (a.view(np.int64) >> 52) & 0x7FF
    for place in np.ndindex(a.shape):
        exponent = int(exponents[place])
        shift = (int(segment[place]) & 31) * 53 + max(0, exponent - 1077)
        left = 1201 - 53 - shift
        bits = _two_over_pi() >> left if left >= 0 else _two_over_pi() << -left
        scale = -53 - shift + (128 if exponent >= 1968 else 0)
        result[place] = np.ldexp(float(bits & ((1 << 53) - 1)), scale)
    return result


def _class_of(a: Array, wanted: Array) -> Array:
    """Return whether `a` is of one of the ten classes whose bits are set in `wanted`."""
    a = np.asarray(a)
    kind = NUMPY[f"f{8 * a.dtype.itemsize}"]
    signals = is_signalling(a)
    is_nan = np.isnan(a)
    negative = np.signbit(a)
    size = np.abs(a)
    subnormal = (size > 0) & (size < np.finfo(kind).tiny)
    normal = (size >= np.finfo(kind).tiny) & np.isfinite(a)
    classes = [signals, is_nan & ~signals]
    classes += [c & negative for c in (np.isinf(a), normal, subnormal, size == 0)]
    classes += [c & ~negative for c in (size == 0, subnormal, normal, np.isinf(a))]
    chosen = [
        c & ((wanted >> np.uint32(n)) & np.uint32(1) == 1)
        for n, c in enumerate(classes)
    ]
    found: Mask = np.logical_or.reduce(np.broadcast_arrays(*chosen))
    return found


def _rows_of(kind: str) -> dict[str, Semantics]:
    one, two, three = (f"{kind} = {' '.join([kind] * n)}" for n in (1, 2, 3))
    fma = _FMA[kind]
    keeps = {"keeps_high": kind == "f16"}
    rows = {
        "add": operation(two, np.add),
        "mul": operation(two, np.multiply),
        "sub": operation(two, np.subtract),
        "subrev": operation(two, lambda a, b: b - a),
        "min": operation(two, minimum),
        "max": operation(two, maximum),
        "fma": operation(three, fma, **keeps),
        "fmac": operation(f"{two}; result", fma, **keeps),
        "floor": operation(one, np.floor),
        "ceil": operation(one, np.ceil),
        "trunc": operation(one, np.trunc),
        "rndne": operation(one, np.rint),
        "fract": operation(one, _fraction),
        "frexp_mant": operation(one, _mantissa),
        "ldexp": operation(
            f"{kind} = {kind} {'i16' if kind == 'f16' else 'i32'}", _scaled
        ),
        "cmp_class": operation(f"mask = {kind} u32", _class_of),
        "div_fixup": operation(three, exact.div_fixup, **keeps),
        "sqrt": operation(one, np.sqrt, is_approximate=True),
        "rcp": operation(one, _by_f64(_reciprocal), is_approximate=True),
        "rsq": operation(one, _by_f64(_reciprocal_root), is_approximate=True),
    }
    return {f"v_{name}_{kind}": row for name, row in rows.items()}


def _rows_of_single_and_half(kind: str) -> dict[str, Semantics]:
    one = f"{kind} = {kind}"
    three = f"{kind} = {kind} {kind} {kind}"
    keeps = {"keeps_high": kind == "f16"}
    rows = {
        "exp": operation(one, _by_f64(np.exp2), is_approximate=True),
        "log": operation(one, _by_f64(np.log2), is_approximate=True),
        "sin": operation(one, _turns(np.sin), is_approximate=True),
        "cos": operation(one, _turns(np.cos), is_approximate=True),
        "min3": operation(three, lambda a, b, c: minimum(minimum(a, b), c), **keeps),
        "max3": operation(three, lambda a, b, c: maximum(maximum(a, b), c), **keeps),
        "med3": operation(three, median_by(minimum, maximum), **keeps),
    }
    return {f"v_{name}_{kind}": row for name, row in rows.items()}


def _unpaired() -> dict[str, Semantics]:
    return {
        "v_frexp_exp_i32_f32": operation("i32 = f32", _exponent),
        "v_frexp_exp_i32_f64": operation("i32 = f64", _exponent),
        "v_frexp_exp_i16_f16": operation(
            "i16 = f16", lambda a: _exponent(a).astype(np.int16)
        ),
        "v_fmamk_f32": operation(
            "f32 = f32 f32 f32", lambda a, k, b: exact.fma_f32(a, k, b)
        ),
        "v_fmaak_f32": operation("f32 = f32 f32 f32", exact.fma_f32),
        "v_fma_legacy_f16": operation("f16 = f16 f16 f16", exact.fma_f16),
        "v_div_fixup_legacy_f16": operation("f16 = f16 f16 f16", exact.div_fixup),
        "v_exp_legacy_f32": operation(
            "f32 = f32", _by_f64(np.exp2), is_approximate=True
        ),
        "v_log_legacy_f32": operation(
            "f32 = f32", _by_f64(np.log2), is_approximate=True
        ),
        "v_mul_legacy_f32": operation("f32 = f32 f32", _legacy_product),
        "v_rcp_iflag_f32": operation(
            "f32 = f32", _by_f64(_reciprocal), is_approximate=True
        ),
        "v_div_scale_f32": operation("f32 mask = f32 f32 f32", exact.div_scale),
        "v_div_scale_f64": operation("f64 mask = f64 f64 f64", exact.div_scale),
        "v_div_fmas_f32": operation("f32 = f32 f32 f32; vcc", exact.div_fmas_f32),
        "v_div_fmas_f64": operation("f64 = f64 f64 f64; vcc", exact.div_fmas_f64),
        "v_trig_preop_f64": operation("f64 = f64 u32", _two_over_pi_at),
    }


VECTOR_FLOATS: dict[str, Semantics] = {
    **{name: row for kind in _FLOATS for name, row in _rows_of(kind).items()},
    **{
        n: row
        for kind in ("f16", "f32")
        for n, row in _rows_of_single_and_half(kind).items()
    },
    **_unpaired(),
    **UNFUSED_F16,
}
