"""Legal evaluations of float expressions on whole arrays, beside the oracle and without its code.

Each operation rounds once, by numpy where it does so itself, else by rounding to odd in a wider
format first (S. Boldo and G. Melquiond, Emulation of FMA and correctly rounded sums, IEEE
Transactions on Computers 57, 2008). A fused multiply-add of f64 is computed by fractions.
"""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np

from refcomp.foundation.dtype import as_dtype, to_numpy

# Digits, and the exponents of the least and the greatest normal number (IEEE 754, table 3.5).
FORMATS = {
    "float16": (11, -14, 15),
    "bfloat16": (8, -126, 127),
    "float32": (24, -126, 127),
    "float64": (53, -1022, 1023),
}


def as_type(dtype):
    return to_numpy(as_dtype(dtype))


def _wide(x):
    return x.astype(np.float64)


def _two_sum(a, b):
    total = a + b
    shadow = total - a
    rest = (a - (total - shadow)) + (b - shadow)
    return total, np.where(np.isfinite(total), rest, 0)


def _to_odd(near, rest):
    """`near` + `rest`, of which `near` is the nearest float, rounded to odd."""
    is_even = (near.view(f"u{near.dtype.itemsize}") & 1) == 0
    towards = np.where(rest > 0, np.inf, -np.inf).astype(near.dtype)
    moves = (rest != 0) & is_even & np.isfinite(near)
    return np.where(moves, np.nextafter(near, towards), near)


def narrow(x, dtype):
    """f64 values rounded once to `dtype`."""
    if dtype != "bfloat16":
        return x.astype(as_type(dtype))
    single = x.astype(np.float32)
    with np.errstate(all="ignore"):
        rest = np.where(np.isfinite(single), x - single, 0)
    over = np.isinf(single) & np.isfinite(x)  # rounded to odd it is the greatest f32
    single = np.where(over, np.copysign(np.finfo(np.float32).max, single), single)
    return _to_odd(single, rest).astype(ml_dtypes.bfloat16)


def add(a, b, dtype):
    if dtype == "float64":
        return a + b
    return narrow(_to_odd(*_two_sum(_wide(a), _wide(b))), dtype)


def multiply(a, b, dtype):
    return a * b if dtype == "float64" else narrow(_wide(a) * _wide(b), dtype)


def divide(a, b, dtype):
    if dtype == "float64":
        return a / b
    (x, e), (y, f) = np.frexp(_wide(a)), np.frexp(_wide(b))
    plain, quotient = _wide(a) / _wide(b), x / y
    ordinary = np.isfinite(plain) & (plain != 0)
    high = np.where(ordinary, quotient, 1).astype(np.float32).astype(np.float64)
    rest = (x - high * y) - (quotient - high) * y  # exact
    rest = np.where(ordinary, rest * np.sign(y), 0)
    odd = np.ldexp(_to_odd(quotient, rest), e - f)
    return narrow(np.where(ordinary, odd, plain), dtype)


def fused(a, b, c, dtype):
    """a * b + c, rounded once."""
    if dtype != "float64":
        return narrow(_to_odd(*_two_sum(_wide(a) * _wide(b), _wide(c))), dtype)
    triples = zip(a.ravel().tolist(), b.ravel().tolist(), c.ravel().tolist(), strict=True)
    return np.array([_fused_f64(*triple) for triple in triples]).reshape(a.shape)


def _fused_f64(a, b, c):
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else a * b + c
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


def remainder(a, b, dtype):
    return narrow(np.fmod(_wide(a), _wide(b)), dtype)  # exact


def function(rng, compute, dtype, *operands):
    """`compute` of the operands, off by up to one unit in the last place more than it rounds."""
    if dtype == "float64":
        exact = compute(*[x.astype(np.longdouble) for x in operands]).astype(np.float64)
    else:
        exact = narrow(compute(*map(_wide, operands)), dtype)
    steps = rng.integers(-1, 2, exact.shape) * (np.isfinite(exact) & (exact != 0))
    bits = exact.view(f"i{exact.dtype.itemsize}") + steps.astype(f"i{exact.dtype.itemsize}")
    return bits.view(exact.dtype)


def convert(x, dtype):
    """x in another float type."""
    return narrow(_wide(x), dtype)


# Numbers near the edges of a format.


def _sizes(rng, dtype, count):
    """Positive numbers, as long doubles: most of them near a power of two that is an edge."""
    digits, least, greatest = FORMATS[dtype]
    eta = least - digits + 1
    edges = (eta, eta, least, least, eta // 2, least // 2, 0, greatest // 2, greatest, greatest)
    exponents = rng.choice(edges, count) + rng.integers(-3, 4, count)
    anywhere = rng.integers(eta, greatest + 1, count)
    exponents = np.where(rng.random(count) < 0.3, anywhere, exponents)
    ulps = rng.integers(-3, 4, count) * np.ldexp(np.longdouble(1), 1 - digits)
    fractions = np.where(rng.random(count) < 0.4, 1 + ulps, 1 + rng.random(count))
    fractions = np.where(rng.random(count) < 0.3, rng.integers(4, 8, count) / 4, fractions)
    # Products of these are near ties, and have many digits that are 0.
    bits = np.ldexp(rng.choice([-1.0, 1.0], count), -rng.integers(1, digits, count))
    fractions = np.where(rng.random(count) < 0.1, 1 + bits, fractions)
    return np.ldexp(fractions.astype(np.longdouble), np.minimum(exponents, greatest))


def _rounded(wide, dtype):
    return convert(np.clip(wide, -1.7e308, 1.7e308).astype(np.float64), dtype)


def edge_numbers(rng, dtype, count):
    """Numbers of `dtype` near its edges, of both signs; some zeros, infinities and NaN, quiet or
    signalling, of any payload."""
    numbers = _rounded(_sizes(rng, dtype, count), dtype)
    digits, _, greatest = FORMATS[dtype]
    most = np.ldexp(2 - np.ldexp(1.0, 1 - digits), greatest)
    for share, value in ((0.03, 0.0), (0.03, most), (0.01, np.inf)):
        numbers[rng.random(count) < share] = value
    payloads = rng.integers(1, 1 << (digits - 1), count, dtype=np.uint64)
    bits = f"u{numbers.dtype.itemsize}"
    infinity = np.full(count, np.inf).astype(numbers.dtype).view(bits)
    nans = (infinity | payloads.astype(bits)).view(numbers.dtype)
    numbers = np.where(rng.random(count) < 0.01, nans, numbers)
    return np.where(rng.random(count) < 0.5, numbers, -numbers)


def edge_operands(rng, dtype, count):
    """Three arrays: of many elements the product of the first two is near an edge, and the third
    near that product."""
    a, b, c = (edge_numbers(rng, dtype, count) for _ in "abc")
    wide = [x.astype(np.longdouble) for x in (a, b)]
    target = _sizes(rng, dtype, count) * rng.choice([-1, 1], count)
    aimed = _rounded(target / np.where(wide[0] == 0, 1, wide[0]), dtype)
    aimed = np.where(rng.random(count) < 0.5, b, aimed)
    b = np.where(np.isfinite(a) & np.isfinite(aimed), aimed, b)
    product = _rounded(-wide[0] * b.astype(np.longdouble), dtype)
    return a, b, np.where(rng.random(count) < 0.4, product, c)
