"""Arithmetic of floats that is rounded once, in any of the directions of PTX.

    rn to the nearest, of two the even one      rz towards zero
    rm down                                     rp up

The nearest f64 and the sign of what rounding cut off, its error, determine all of the results. For
f64 the result moves by one step against the error. Other types round that f64 again, after
it was rounded to odd: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved
algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008.
The error comes from error-free transformations: Shewchuk, "Adaptive precision floating-point
arithmetic and fast robust geometric predicates", Discrete & Computational Geometry 18, 1997.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.instructions.exact import fma_f32, fma_f64
from refcomp.emulator.machine.arrays import Array, Mask

_SPLITTER = float(2**27 + 1)
# A number of which only the sign counts is scaled to 2**-400 of the greatest.
_FAR = -400


class Rounded(NamedTuple):
    """The nearest f64 to a number, and an f64 of the sign of (number - nearest)."""

    nearest: Array
    error: Array


def add(a: Array, b: Array, mode: str = "rn") -> Array:
    """Return a + b of two f32 or two f64."""
    if mode == "rn":
        total: Array = np.asarray(np.add(a, b))
        return total
    rounded = exact_sum(_wide(a), _wide(b))
    both_positive = ~np.signbit(a) & ~np.signbit(b)
    return _finished_sum(rounded, a, mode, both_positive)


def multiply(a: Array, b: Array, mode: str = "rn") -> Array:
    """Return a * b of two f32 or two f64."""
    if mode == "rn":
        product: Array = np.asarray(np.multiply(a, b))
        return product
    return _finished(_product(a, b), a, mode)


def divide(a: Array, b: Array, mode: str = "rn") -> Array:
    """Return a / b of two f32 or two f64."""
    if mode == "rn":
        quotient: Array = np.asarray(np.divide(a, b))
        return quotient
    return _finished(_quotient(_wide(a), _wide(b)), a, mode)


def square_root(a: Array, mode: str = "rn") -> Array:
    """Return the square root of an f32 or f64."""
    if mode == "rn":
        root: Array = np.asarray(np.sqrt(a))
        return root
    return _finished(_square_root(_wide(a)), a, mode)


def fused(a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
    """Return a * b + c of three f32 or three f64."""
    is_f64 = np.asarray(a).dtype == np.float64
    if mode == "rn":
        return fma_f64(a, b, c) if is_f64 else fma_f32(a, b, c)
    x, y, z = np.broadcast_arrays(_wide(a), _wide(b), _wide(c))
    if is_f64:
        nearest = fma_f64(x, y, z)
        rounded = Rounded(nearest, _error_of_fused(x, y, z, nearest))
        rounded = _overflowed(rounded, x, y, z)
    else:
        rounded = exact_sum(x * y, z)  # the product of two f32 is exact
    is_product_positive = np.signbit(x) == np.signbit(y)
    return _finished_sum(rounded, a, mode, is_product_positive & ~np.signbit(z))


def from_integer(value: Array, dtype: np.dtype[Any], mode: str = "rn") -> Array:
    """Return an integer as a float."""
    return narrowed(of_integer(value), dtype, mode)


def of_integer(value: Array) -> Rounded:
    """Return an integer of at most 64 bits as the nearest f64, with the error."""
    value = np.asarray(value)
    wide = value.astype(np.uint64 if value.dtype.kind == "u" else np.int64)
    step = wide.dtype.type(32)
    upper = (wide >> step).astype(np.float64) * 2.0**32
    lower = (wide & wide.dtype.type(0xFFFFFFFF)).astype(np.float64)
    return exact_sum(upper, lower)


def exactly(value: Array) -> Rounded:
    """Return a float as an f64 without error."""
    return Rounded(_wide(value), np.zeros((), np.float64))


def narrowed(rounded: Rounded, dtype: np.dtype[Any], mode: str) -> Array:
    """Return a number as a float of f16, f32 or f64."""
    if dtype == np.float64:
        return _directed(rounded, mode)
    value = to_odd(rounded)
    nearest: Array = np.asarray(value.astype(dtype))
    if mode == "rn":
        return nearest
    error = value - nearest.astype(np.float64)
    return _directed(Rounded(nearest, error), mode)


def to_odd(rounded: Rounded) -> Array:
    """Return the number as an f64 whose last bit is 1 if the number is inexact."""
    nearest, error = np.broadcast_arrays(*rounded)
    bits = np.ascontiguousarray(nearest).reshape(nearest.shape).view(np.uint64)
    is_even = bits & np.uint64(1) == 0
    is_inexact = np.isfinite(nearest) & (error != 0) & ~np.isnan(error)
    # Away from zero if the number was rounded towards zero, else towards zero.
    is_short = (error > 0) == (nearest > 0)
    step = np.where(is_short, 1, -1).astype(np.uint64)
    odd = np.where(is_inexact & is_even, bits + step, bits)
    return odd.view(np.float64)


def _directed(rounded: Rounded, mode: str) -> Array:
    """Return the nearest float, or the next one where the direction asks for it."""
    nearest, error = rounded
    if mode == "rn":
        return np.asarray(nearest)
    one = nearest.dtype.type
    if mode == "rz":
        is_beyond = ((error < 0) & (nearest > 0)) | ((error > 0) & (nearest < 0))
        towards = np.zeros((), nearest.dtype)
    elif mode == "rm":
        is_beyond = error < 0
        towards = np.array(-np.inf, nearest.dtype)
    else:
        is_beyond = error > 0
        towards = np.array(np.inf, nearest.dtype)
    step = np.nextafter(nearest, towards)
    # A step to 0 keeps the sign.
    step = np.where(step == 0, np.copysign(one(0), nearest), step)
    return np.where(is_beyond, step, nearest)


def _finished(rounded: Rounded, like: Array, mode: str) -> Array:
    return narrowed(rounded, np.asarray(like).dtype, mode)


def _wide(value: Array) -> Array:
    return np.asarray(value, np.float64)


def _finished_sum(
    rounded: Rounded, like: Array, mode: str, both_positive: Mask
) -> Array:
    """Return a sum as the type of `like`.

    Rounded down, a sum that is 0 is -0 unless both of its terms are positive.
    """
    result = _finished(rounded, like, mode)
    if mode != "rm":
        return result
    is_zero = (rounded.nearest == 0) & (rounded.error == 0) & ~both_positive
    return np.where(is_zero, -np.zeros((), result.dtype), result)


# Operations on f64, with their errors.


def exact_sum(a: Array, b: Array) -> Rounded:
    """Return a + b of f64 as the nearest f64, with the error."""
    a, b = np.broadcast_arrays(a, b)
    total = np.asarray(a + b)
    is_less = np.abs(a) < np.abs(b)
    larger = np.where(is_less, b, a)
    smaller = np.where(is_less, a, b)
    # Dekker's sum overflows only if the total does.
    error = smaller - (total - larger)
    return _overflowed(Rounded(total, error), a, b)


def _product(a: Array, b: Array) -> Rounded:
    is_narrow = np.asarray(a).dtype != np.float64
    a, b = np.broadcast_arrays(_wide(a), _wide(b))
    product = np.asarray(a * b)
    if is_narrow:
        return exactly(product)
    (x, i), (y, j), (p, k) = map(np.frexp, (a, b, product))
    high, low = _two_product(x, y)
    # Both are near 1 now. p is 0 or exact, since it has no more bits than `product`.
    scaled = np.ldexp(p, k.astype(np.int64) - i - j)
    error = (high - scaled) + low
    return _overflowed(Rounded(product, error), a, b)


def _quotient(a: Array, b: Array) -> Rounded:
    a, b = np.broadcast_arrays(a, b)
    quotient = np.asarray(a / b)
    (x, i), (y, j), (q, k) = map(np.frexp, (a, b, quotient))
    scaled = np.ldexp(q, k.astype(np.int64) - i + j)
    high, low = _two_product(scaled, y)
    error = ((x - high) - low) * np.sign(y)
    return _overflowed(Rounded(quotient, error), a, b, np.where(b == 0, np.inf, b))


def _square_root(a: Array) -> Rounded:
    root = np.asarray(np.sqrt(a))
    x, i = np.frexp(a)
    odd = i & 1
    x = np.ldexp(x, odd)
    scaled = np.ldexp(root, -((i - odd) >> 1))
    high, low = _two_product(scaled, scaled)
    error = (x - high) - low
    return Rounded(root, np.where(np.isfinite(a) & (a > 0), error, 0.0))


def _overflowed(rounded: Rounded, *operands: Array) -> Rounded:
    """Return a result without error if an operand is not finite, and with that of an overflow."""
    nearest, error = rounded
    is_finite = np.ones((), np.bool_)
    for operand in operands:
        is_finite = is_finite & np.isfinite(operand)
    error = np.where(np.isinf(nearest), -nearest, error)
    return Rounded(nearest, np.where(is_finite, error, 0.0))


def _error_of_fused(a: Array, b: Array, c: Array, nearest: Array) -> Array:
    """Return an f64 of the sign of a * b + c - nearest, of f64."""
    (x, i), (y, j), (z, k), (r, m) = map(np.frexp, (a, b, c, nearest))
    high, low = _two_product(x, y)
    exponents = [i.astype(np.int64) + j, k.astype(np.int64), m.astype(np.int64)]
    numbers = [high, z, r]
    # A zero does not count.
    used = [
        np.where(n == 0, -(10**6), e) for n, e in zip(numbers, exponents, strict=True)
    ]
    top = np.maximum(np.maximum(used[0], used[1]), used[2])
    scales = [np.clip(exponent - top, _FAR, 0) for exponent in used]
    terms = [
        np.ldexp(high, scales[0]),
        np.ldexp(low, scales[0]),
        np.ldexp(z, scales[1]),
        np.ldexp(-r, scales[2]),
    ]
    return _sign_of_sum(terms)


def _sign_of_sum(terms: list[Array]) -> Array:
    """Return an f64 of the sign of the exact sum."""
    expansion: list[Array] = []
    for term in terms:
        rest = term
        grown = []
        for part in expansion:
            rest, error = _two_sum(rest, part)
            grown.append(error)
        expansion = [*grown, rest]
    # The parts do not overlap, so that the last one that is not 0 is the greatest.
    sign = np.zeros((), np.float64)
    for part in expansion:
        sign = np.where(part != 0, part, sign)
    return sign


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    part = total - a
    rest = a - (total - part)
    return total, rest + (b - part)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    # Dekker's product: the halves have 26 bits, so that their products are exact.
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error = a_high * b_high - product
    error = error + a_high * b_low
    error = error + a_low * b_high
    return product, error + a_low * b_low


def _halves(a: Array) -> tuple[Array, Array]:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high
