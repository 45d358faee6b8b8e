"""Each operation and direction on pairs of edge values, against Python's fractions."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.emulator.ptx.instructions import rounding
from tests.emulator.ptx.instructions.edges import floats, grid, integers, signed
from tests.emulator.ptx.instructions.exact_floats import F16, F32, F64, Format, root, rounded
from tests.emulator.ptx.instructions.worded import bits

MODES = ("rn", "rz", "rm", "rp")
KINDS = {"f32": F32, "f64": F64}


def finite(kind: Format, count: int) -> list[int]:
    return [x for x in floats(kind, count) if kind.value(x) is not None]


def number(kind: Format, x: int) -> Fraction:
    value = kind.value(x)
    assert value is not None
    return value


def zero_sign(kind: Format, x: int, y: int, mode: str) -> bool:
    """The sign of a sum that is 0, of terms with these sign bits."""
    both = {bool(x & kind.sign), bool(y & kind.sign)}
    return both == {True} or (mode == "rm" and True in both)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", KINDS)
def test_sums_and_products_are_rounded_once(name: str, mode: str) -> None:
    kind = KINDS[name]
    a, b = grid(finite(kind, 4), finite(kind, 4), kind=f"u{kind.width // 8}")
    x, y = a.view(name.replace("f", "float")), b.view(name.replace("f", "float"))
    with np.errstate(all="ignore"):
        sums = bits(rounding.add(x, y, mode))
        products = bits(rounding.multiply(x, y, mode))
    for p, q, total, product in zip(a.tolist(), b.tolist(), sums, products, strict=True):
        m, n = number(kind, p), number(kind, q)
        assert total == rounded(m + n, kind, mode, zero_sign(kind, p, q, mode)), (hex(p), hex(q))
        expected = rounded(m * n, kind, mode, bool((p ^ q) & kind.sign))
        if expected & (kind.sign - 1) == 0:
            expected = (p ^ q) & kind.sign  # an underflow keeps the sign
        assert product == expected, (hex(p), hex(q))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", KINDS)
def test_quotients_and_roots_are_rounded_once(name: str, mode: str) -> None:
    kind = KINDS[name]
    nonzero = [x for x in finite(kind, 4) if x & (kind.sign - 1)]
    a, b = grid(nonzero, nonzero, kind=f"u{kind.width // 8}")
    dtype = name.replace("f", "float")
    with np.errstate(all="ignore"):
        quotients = bits(rounding.divide(a.view(dtype), b.view(dtype), mode))
    for p, q, found in zip(a.tolist(), b.tolist(), quotients, strict=True):
        assert found == rounded(number(kind, p) / number(kind, q), kind, mode), (hex(p), hex(q))
    positive = [x for x in nonzero if not x & kind.sign]
    roots = bits(rounding.square_root(np.array(positive, a.dtype).view(dtype), mode))
    for p, found in zip(positive, roots, strict=True):
        assert found == root(number(kind, p), kind, mode), hex(p)


def _fused_agrees(name: str, mode: str, triples: list[tuple[int, ...]]) -> None:
    kind = KINDS[name]
    columns = np.array(triples, f"u{kind.width // 8}").T
    a, b, c = (np.ascontiguousarray(x).view(name.replace("f", "float")) for x in columns)
    with np.errstate(all="ignore"):
        found = bits(rounding.fused(a, b, c, mode))
    for (p, q, r), result in zip(triples, found, strict=True):
        exact = number(kind, p) * number(kind, q) + number(kind, r)
        expected = rounded(exact, kind, mode, zero_sign(kind, p ^ q, r, mode))
        if expected & (kind.sign - 1) == 0 and exact != 0:
            expected = kind.sign if exact < 0 else 0
        assert result == expected, (hex(p), hex(q), hex(r))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", KINDS)
def test_fused_multiply_add_is_rounded_once(name: str, mode: str) -> None:
    kind = KINDS[name]
    axis = finite(kind, 3)
    draw = random.Random(7)
    _fused_agrees(name, mode, [tuple(draw.choices(axis, k=3)) for _ in range(1200)])


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@given(a=st.floats(0.5, 2), b=st.floats(0.5, 2), steps=st.integers(-3, 3), far=st.integers(-60, 3))
def test_fused_multiply_add_that_cancels_is_rounded_once(
    mode: str, a: float, b: float, steps: int, far: int
) -> None:
    c = np.float64(-a * b)
    c = c + steps * np.spacing(c) + np.float64(2.0**far * (steps % 2))
    triple = [int(np.float64(x).view(np.uint64)) for x in (a, b, c)]
    _fused_agrees("f64", mode, [tuple(triple)])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["f16", *KINDS])
def test_integers_are_rounded_once(name: str, mode: str) -> None:
    kind = {"f16": F16, **KINDS}[name]
    dtype = np.dtype(name.replace("f", "float"))
    for width in (32, 64):
        given = integers(width, 60)
        for is_signed in (False, True):
            array = np.array(given, f"u{width // 8}").view(f"{'ui'[is_signed]}{width // 8}")
            with np.errstate(all="ignore"):
                found = bits(rounding.from_integer(array, dtype, mode))
            numbers = [signed(x, width) if is_signed else x for x in given]
            assert found == [rounded(Fraction(x), kind, mode) for x in numbers]


@pytest.mark.parametrize("mode", MODES)
def test_infinities_and_nan_stay(mode: str) -> None:
    infinity = np.array([np.inf, -np.inf])
    with np.errstate(all="ignore"):
        assert rounding.add(infinity, np.ones(2), mode).tolist() == infinity.tolist()
        assert rounding.divide(np.ones(2), infinity, mode).tolist() == [0, 0]
        assert (
            rounding.divide(np.ones(2), np.array([0.0, -0.0]), mode).tolist() == infinity.tolist()
        )
        assert rounding.fused(np.ones(2), np.ones(2), infinity, mode).tolist() == infinity.tolist()
        assert rounding.square_root(infinity, mode)[0] == np.inf
        for result in (
            rounding.add(infinity, -infinity, mode),
            rounding.multiply(infinity, np.zeros(2), mode),
            rounding.square_root(-np.ones(2), mode),
            rounding.fused(infinity, np.ones(2), -infinity, mode),
        ):
            assert np.isnan(result).all()
