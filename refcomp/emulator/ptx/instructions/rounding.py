"""Arithmetic of floats that is rounded once, in any of the directions of PTX.

    rn to nearest, ties to even      rz towards zero
    rm down                          rp up

Each operation first computes the nearest f64 and its error. The error is the exact number minus
that f64. Only its sign matters.

- A result of type f64 is the nearest f64, or its neighbour on the side of the error.
- A result of a smaller type is rounded a second time. Before that, the f64 is rounded to odd, which
  makes the second result correct: Boldo and Melquiond, "Emulation of FMA and correctly rounded
  sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008.
- The error comes from error-free transformations: Shewchuk, "Adaptive precision floating-point
  arithmetic and fast robust geometric predicates", Discrete & Computational Geometry 18, 1997.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.instructions.exact import fma_f32, fma_f64
from refcomp.emulator.machine.arrays import Array, Mask

_SPLITTER = float(2**27 + 1)
# Terms of an exact sum that are smaller than 2**-400 of the greatest are scaled to that size, so
# that they do not become 0. Only the sign of the sum counts.
_LEAST_SCALE = -400
_EXPONENT_OF_ZERO = -(10**6)  # below those of all other numbers


class Rounded(NamedTuple):
    """An exact number, as the nearest f64 and the error of this f64."""

    nearest: Array
    error: Array  # an f64 with the sign of (number - nearest)


def add(a: Array, b: Array, mode: str = "rn") -> Array:
    """Return a + b of two f32 or two f64."""
    if mode == "rn":
        return np.asarray(np.add(a, b))
    rounded = exact_sum(_wide(a), _wide(b))
    both_positive = ~np.signbit(a) & ~np.signbit(b)
    return _finished_sum(rounded, a, mode, both_positive)


def multiply(a: Array, b: Array, mode: str = "rn") -> Array:
    """Return a * b of two f32 or two f64."""
    if mode == "rn":
        return np.asarray(np.multiply(a, b))
    return _finished(_product(a, b), a, mode)


def divide(a: Array, b: Array, mode: str = "rn") -> Array:
    """Return a / b of two f32 or two f64."""
    if mode == "rn":
        return np.asarray(np.divide(a, b))
    quotient = _quotient(_wide(a), _wide(b))
    return _finished(quotient, a, mode)


def square_root(a: Array, mode: str = "rn") -> Array:
    """Return the square root of an f32 or f64."""
    if mode == "rn":
        return np.asarray(np.sqrt(a))
    root = _square_root(_wide(a))
    return _finished(root, a, mode)


def fused(a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
    """Return a * b + c of three f32 or three f64."""
    is_f64 = np.asarray(a).dtype == np.float64
    if mode == "rn":
        return fma_f64(a, b, c) if is_f64 else fma_f32(a, b, c)
    wide = map(_wide, (a, b, c))
    x, y, z = np.broadcast_arrays(*wide)
    if is_f64:
        nearest = fma_f64(x, y, z)
        error = _error_of_fused(x, y, z, nearest)
        rounded = _overflowed(Rounded(nearest, error), x, y, z)
    else:
        # The product of two f32 is exact.
        rounded = exact_sum(x * y, z)
    is_product_positive = np.signbit(x) == np.signbit(y)
    both_positive = is_product_positive & ~np.signbit(z)
    return _finished_sum(rounded, a, mode, both_positive)


def from_integer(value: Array, dtype: np.dtype[Any], mode: str = "rn") -> Array:
    """Return an integer as a float."""
    return narrowed(of_integer(value), dtype, mode)


def of_integer(value: Array) -> Rounded:
    """Return an integer of at most 64 bits as the nearest f64, with the error."""
    value = np.asarray(value)
    is_unsigned = value.dtype.kind == "u"
    wide = value.astype(np.uint64 if is_unsigned else np.int64)
    upper = wide >> 32
    lower = wide & 0xFFFFFFFF
    # Both halves are exact as f64.
    high = upper.astype(np.float64) * 2.0**32
    low = lower.astype(np.float64)
    return exact_sum(high, low)


def exactly(value: Array) -> Rounded:
    """Return a float as an f64 without error."""
    no_error = np.zeros((), np.float64)
    return Rounded(_wide(value), no_error)


def narrowed(rounded: Rounded, dtype: np.dtype[Any], mode: str) -> Array:
    """Return a number as a float of f16, f32 or f64."""
    if dtype == np.float64:
        return _directed(rounded, mode)
    value = to_odd(rounded)
    nearest = np.asarray(value.astype(dtype))
    if mode == "rn":
        return nearest
    error = value - nearest.astype(np.float64)
    return _directed(Rounded(nearest, error), mode)


def to_odd(rounded: Rounded) -> Array:
    """Return the number rounded to odd: if it is inexact, an f64 next to it whose last bit is 1."""
    nearest, error = np.broadcast_arrays(*rounded)
    contiguous = np.ascontiguousarray(nearest).reshape(nearest.shape)
    bits = contiguous.view(np.uint64)
    is_even = bits & 1 == 0
    has_error = (error != 0) & ~np.isnan(error)
    is_inexact = has_error & np.isfinite(nearest)
    # The odd neighbour on the side of the number. More bits are further from zero.
    is_short = (error > 0) == (nearest > 0)
    odd = np.where(is_short, bits + 1, bits - 1)
    result = np.where(is_inexact & is_even, odd, bits)
    return result.view(np.float64)


def _directed(rounded: Rounded, mode: str) -> Array:
    """Return the nearest float, or its neighbour where the direction requires it."""
    nearest = np.asarray(rounded.nearest)
    error = rounded.error
    if mode == "rn":
        return nearest
    if mode == "rz":
        is_too_large = (error < 0) & (nearest > 0)
        is_too_small = (error > 0) & (nearest < 0)
        is_beyond = is_too_large | is_too_small
        limit = 0.0
    elif mode == "rm":
        is_beyond = error < 0
        limit = -np.inf
    else:
        is_beyond = error > 0
        limit = np.inf
    number = nearest.dtype.type
    neighbour = np.nextafter(nearest, number(limit))
    # A step to 0 keeps the sign.
    signed_zero = np.copysign(number(0), nearest)
    neighbour = np.where(neighbour == 0, signed_zero, neighbour)
    return np.where(is_beyond, neighbour, nearest)


def _finished(rounded: Rounded, like: Array, mode: str) -> Array:
    return narrowed(rounded, np.asarray(like).dtype, mode)


def _wide(value: Array) -> Array:
    return np.asarray(value, np.float64)


def _finished_sum(
    rounded: Rounded, like: Array, mode: str, both_positive: Mask
) -> Array:
    """Return a sum as the type of `like`.

    A sum of 0 that is rounded down is -0, unless both of its terms are positive.
    """
    result = _finished(rounded, like, mode)
    if mode != "rm":
        return result
    is_zero = (rounded.nearest == 0) & (rounded.error == 0)
    negative_zero = result.dtype.type(-0.0)
    return np.where(is_zero & ~both_positive, negative_zero, result)


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
    # Scale the factors to [0.5, 1), where no part of the product overflows or vanishes.
    a_scaled, a_exponent = np.frexp(a)
    b_scaled, b_exponent = np.frexp(b)
    product_scaled, product_exponent = np.frexp(product)
    high, low = _two_product(a_scaled, b_scaled)
    # Scale the product by the same powers. It gains no bits, so it stays exact, or becomes 0.
    shift = product_exponent.astype(np.int64) - a_exponent - b_exponent
    error = (high - np.ldexp(product_scaled, shift)) + low
    return _overflowed(Rounded(product, error), a, b)


def _quotient(a: Array, b: Array) -> Rounded:
    a, b = np.broadcast_arrays(a, b)
    quotient = np.asarray(a / b)
    a_scaled, a_exponent = np.frexp(a)
    b_scaled, b_exponent = np.frexp(b)
    quotient_scaled, quotient_exponent = np.frexp(quotient)
    shift = quotient_exponent.astype(np.int64) - a_exponent + b_exponent
    high, low = _two_product(np.ldexp(quotient_scaled, shift), b_scaled)
    # a - quotient * b has the sign of the error, unless b is negative.
    remainder = (a_scaled - high) - low
    error = remainder * np.sign(b_scaled)
    # Infinity from a division by 0 is exact, and not an overflow.
    divisor = np.where(b == 0, np.inf, b)
    return _overflowed(Rounded(quotient, error), a, divisor)


def _square_root(a: Array) -> Rounded:
    root = np.asarray(np.sqrt(a))
    scaled, exponent = np.frexp(a)
    # Make the exponent even, so that half of it is the root's.
    odd = exponent & 1
    scaled = np.ldexp(scaled, odd)
    root_exponent = (exponent - odd) >> 1
    root_scaled = np.ldexp(root, -root_exponent)
    high, low = _two_product(root_scaled, root_scaled)
    error = (scaled - high) - low
    is_number = np.isfinite(a) & (a > 0)
    return Rounded(root, np.where(is_number, error, 0.0))


def _overflowed(rounded: Rounded, *operands: Array) -> Rounded:
    """Correct the error where a result is infinite or an operand is not finite.

    A result that overflowed to infinity is larger than the number: its error points back to 0. A
    result of an infinite or NaN operand has no error.
    """
    nearest, error = rounded
    are_finite = np.ones((), np.bool_)
    for operand in operands:
        are_finite = are_finite & np.isfinite(operand)
    error = np.where(np.isinf(nearest), -nearest, error)
    return Rounded(nearest, np.where(are_finite, error, 0.0))


def _error_of_fused(a: Array, b: Array, c: Array, nearest: Array) -> Array:
    """Return an f64 with the sign of a * b + c - nearest, of f64."""
    a_scaled, a_exponent = np.frexp(a)
    b_scaled, b_exponent = np.frexp(b)
    c_scaled, c_exponent = np.frexp(c)
    nearest_scaled, nearest_exponent = np.frexp(nearest)
    high, low = _two_product(a_scaled, b_scaled)
    product_exponent = _exponent_in_sum(high, a_exponent.astype(np.int64) + b_exponent)
    c_exponent = _exponent_in_sum(c_scaled, c_exponent)
    nearest_exponent = _exponent_in_sum(nearest_scaled, nearest_exponent)
    top = np.maximum(product_exponent, c_exponent)
    top = np.maximum(top, nearest_exponent)
    product_scale = np.clip(product_exponent - top, _LEAST_SCALE, 0)
    c_scale = np.clip(c_exponent - top, _LEAST_SCALE, 0)
    nearest_scale = np.clip(nearest_exponent - top, _LEAST_SCALE, 0)
    terms = [
        np.ldexp(high, product_scale),
        np.ldexp(low, product_scale),
        np.ldexp(c_scaled, c_scale),
        np.ldexp(-nearest_scaled, nearest_scale),
    ]
    return _sign_of_sum(terms)


def _exponent_in_sum(value: Array, exponent: Array) -> Array:
    """Return the exponent as int64. That of 0 is lower than any other."""
    wide = exponent.astype(np.int64)
    return np.where(value == 0, _EXPONENT_OF_ZERO, wide)


def _sign_of_sum(terms: list[Array]) -> Array:
    """Return an f64 with the sign of the exact sum."""
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
    """Return a + b, and its exact error: Knuth's sum."""
    total = a + b
    b_in_total = total - a
    a_in_total = total - b_in_total
    a_error = a - a_in_total
    b_error = b - b_in_total
    return total, a_error + b_error


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a * b, and its exact error: Dekker's product."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    # The halves have 26 bits, so that their products are exact.
    error = a_high * b_high - product
    error = error + a_high * b_low
    error = error + a_low * b_high
    return product, error + a_low * b_low


def _halves(a: Array) -> tuple[Array, Array]:
    """Return the upper and the lower half of the mantissa, whose sum is a: Veltkamp's split."""
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high
