"""Fused multiply-add and the steps of a division, held against exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from refcomp.emulator.instructions import exact

_EDGES = [0.0, -0.0, 1.0, -1.0, 3.0, 1e-3, math.inf, -math.inf, math.nan]


def _rounded(value: Fraction, kind):
    """An exact number as a float of that type, rounded once to nearest even."""
    info = np.finfo(kind)
    if value == 0:
        return kind(0)
    size = abs(value.numerator).bit_length() - value.denominator.bit_length() - 1
    exponent = max(size - info.nmant, info.minexp - info.nmant)
    while abs(value) / Fraction(2) ** exponent >= 2 ** (info.nmant + 1):
        exponent += 1
    units = round(value / Fraction(2) ** exponent)
    with np.errstate(over="ignore"):
        return np.ldexp(np.float64(units), exponent).astype(kind)


def _operands(kind, count, seed):
    rng = np.random.default_rng(seed)
    info = np.finfo(kind)
    exponents = rng.integers(info.minexp - info.nmant, info.maxexp, (3, count))
    near = rng.integers(-4, 5, (3, count))
    exponents = np.where(rng.integers(0, 2, (3, count)) == 1, exponents, near)
    mantissas = rng.integers(-(2 ** (info.nmant + 1)), 2 ** (info.nmant + 1), (3, count))
    mantissas >>= rng.integers(0, info.nmant, (3, count))
    with np.errstate(over="ignore"):
        return np.ldexp(mantissas.astype(np.float64), exponents - info.nmant).astype(kind)


@pytest.mark.parametrize(
    ("function", "kind"),
    [(exact.fma_f16, np.float16), (exact.fma_f32, np.float32), (exact.fma_f64, np.float64)],
)
def test_fma_rounds_once(function, kind):
    a, b, c = _operands(kind, 1500, 3)
    with np.errstate(all="ignore"):
        c[::3] = -(a[::3] * b[::3])  # what is left after cancelling
        results = function(a, b, c)
        for x, y, z, result in zip(a, b, c, results, strict=True):
            if not all(map(math.isfinite, map(float, (x, y, z)))):
                continue
            value = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
            assert result == _rounded(value, kind), (x, y, z)


@pytest.mark.parametrize("function", [exact.fma_f16, exact.fma_f32, exact.fma_f64])
def test_fma_of_infinities_and_nan(function):
    kind = {"fma_f16": np.float16, "fma_f32": np.float32}.get(function.__name__, np.float64)
    a, b, c = (grid.ravel() for grid in np.meshgrid(*[np.array(_EDGES, kind)] * 3))
    with np.errstate(all="ignore"):
        wide = a.astype(np.longdouble) * b + c
        result = function(a, b, c)
    assert (np.isnan(result) == np.isnan(wide)).all()
    whole = ~np.isfinite(wide) & ~np.isnan(wide)
    assert (result[whole] == wide[whole]).all()


def test_a_product_that_overflows_may_be_cancelled_by_no_infinity():
    big = np.array([1.7e308])
    with np.errstate(all="ignore"):
        assert exact.fma_f64(big, big, np.array([-np.inf])) == [-np.inf]
        assert exact.fma_f64(big, np.array([2.0]), -big)[0] == 1.7e308


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_division_by_its_steps_is_exact(kind):
    """As LLVM expands it."""
    numerator, denominator, _ = _operands(kind, 3000, 5)
    edges = np.array([1.0, -3.5, 1e3, np.finfo(kind).max, np.finfo(kind).tiny], kind)
    edges = np.concatenate([edges, [np.finfo(kind).smallest_subnormal, 0, np.inf, np.nan]])
    pairs = [grid.ravel().astype(kind) for grid in np.meshgrid(edges, edges)]
    n, d = (np.concatenate(both) for both in zip(pairs, (numerator, denominator), strict=True))
    with np.errstate(all="ignore"):
        quotient, wanted = _divide(n, d), n / d
    same = (quotient == wanted) | (np.isnan(quotient) & np.isnan(wanted))
    bad = np.flatnonzero(~same)
    assert not bad.size, (n[bad[0]], d[bad[0]], quotient[bad[0]], wanted[bad[0]])


def _divide(n, d):
    fma = exact.fma_f32 if n.dtype == np.float32 else exact.fma_f64
    fmas = exact.div_fmas_f32 if n.dtype == np.float32 else exact.div_fmas_f64
    low, _ = exact.div_scale(d, d, n)
    high, is_scaled = exact.div_scale(n, d, n)
    inverse = (1.0 / low).astype(n.dtype)
    one = np.ones_like(n)
    inverse = fma(fma(-low, inverse, one), inverse, inverse)
    q = (high * inverse).astype(n.dtype)
    q = fma(fma(-low, q, high), inverse, q)
    rest = fma(-low, q, high)
    return exact.div_fixup(fmas(rest, inverse, q, is_scaled), d, n)


def test_only_doubtful_sums_are_done_again(monkeypatch):
    """Of those near 0 not a 0 that is one; of others those in the middle between two f32."""
    asked, again = [], exact.add_to_odd

    def add_to_odd(a, b):
        asked.append(np.size(a))
        return again(a, b)

    monkeypatch.setattr(exact, "add_to_odd", add_to_odd)
    ones, zeros = np.ones((2, 4), np.float32), np.zeros((2, 4), np.float32)
    assert exact.fma_f32(ones, zeros, zeros).tolist() == zeros.tolist() and asked == []
    half_a_unit = np.array([0, 2.0**-24, 3 * 2.0**-24, 2.0**-140], np.float32)
    result = exact.fma_f32(ones, half_a_unit, ones[:, :1])
    assert result[1].tolist() == [1, 1, 1 + 2.0**-22, 1] and asked == [4]
    assert exact.fma_f32(ones, half_a_unit, np.float32(0))[0].tolist() == half_a_unit.tolist()
    assert asked == [4, 2]
    assert exact.fma_f32(np.float32(3), np.float32(0.5), np.float32(2)) == 3.5
    assert exact.fma_f32(np.float32(2.0**-75), np.float32(2.0**-75), np.float32(0)) == 0
