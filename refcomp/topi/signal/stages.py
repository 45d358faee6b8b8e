"""Fourier transforms as chains of computes: a stage for each factor of the length.

A transform of length N = r1 * r2 * ... has a stage for each factor. After some stages, L is the
product of their factors, and the state holds N / L interleaved transforms of length L:

    state[q, k] = sum over j < L of x[q + (N / L) * j] * w ** (j * k),   w = exp(-2i * pi / L)

The next stage, of factor r, joins r of them by direct sums:

    next[q, k] = sum over s < r of state[q + (N / (r * L)) * s, k mod L] * v ** (s * k)

with v = exp(-2i * pi / (r * L)). It needs N * r products, so all stages need N * (r1 + r2 + ...).
One stage with r = N is the direct sum. The last axis of each state holds real and imaginary part.

Reference: J. W. Cooley and J. W. Tukey, "An Algorithm for the Machine Calculation of Complex
Fourier Series", 1965; C. Van Loan, "Computational Frameworks for the Fast Fourier Transform", 1992,
section 1.7 (Stockham).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from refcomp.foundation.dtype import F32, F64, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent, extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.shapes import Array, replace_entry
from refcomp.topi.tags import REDUCTION, SHARED

# A factor of 4 halves the number of stages that two factors of 2 would need.
_FACTORS = (4, 2, 3)
# Reads the real (0) or imaginary (1) part at an index.
Part = Callable[[tuple[Expr, ...], Expr], Expr]


def factors_of(length: int) -> list[int]:
    """Return the factors of a length, one for each stage of a fast transform."""
    found = []
    rest = length
    for factor in (*_FACTORS, *range(5, length + 1, 2)):
        while rest % factor == 0 and rest > 1:
            found.append(factor)
            rest //= factor
        if rest == 1:
            break
    return found or [1]


def wide_dtype(dtype: DType) -> DType:
    """Return the dtype of the sums: f64 for f64, else f32."""
    return F64 if dtype == F64 else F32


def check_length(length: int, operator: str) -> int:
    """Return the length of a transform, or raise UserError if it is less than 1."""
    if length < 1:
        raise UserError(
            f"{operator} cannot transform {length} elements",
            remedy="give a length of at least 1",
        )
    return length


def as_state(
    part: Part, shape: Sequence[Extent], axis: int, *, size: int, length: int
) -> Tensor:
    """Return the state before the first stage.

    Elements at `size` and beyond are 0. Infinities become NaN, so that all results along the axis
    are NaN: else which ones are would depend on the stages.

    Args:
        part: reads the real or imaginary part, in the dtype of the sums.
        shape: the extents of the signal, without the axis of real and imaginary parts.
        axis: the axis of the transform.
        size: the extent of the signal along the axis.
        length: the length of the transform.
    """
    whole = (*shape[:axis], length, 1, *shape[axis + 1 :], 2)

    def finite(index: tuple[Expr, ...], side: Expr) -> Expr:
        value = part(index, side)
        nan = const(math.nan, value.dtype)
        return maths.select(maths.isfinite(value), value, nan)

    def element(*index: Expr) -> Expr:
        place = (*index[: axis + 1], *index[axis + 2 : -1])
        value = finite(place, index[-1])
        if length <= size:
            return value
        zero = const(0.0, value.dtype)
        return maths.if_then_else(index[axis] < size, value, zero)

    return compute(whole, element, name="signal", tag=INJECTIVE)


def transform(
    state: Tensor, axis: int, factors: Sequence[int], *, inverse: bool
) -> Tensor:
    """Return the state after all stages: [..., 1, N, ..., 2], not divided by N.

    Args:
        state: [..., N, 1, ..., 2], as `as_state` returns.
        axis: the axis of extent N.
        factors: the factors of N.
        inverse: True for exp(+2i * pi / N).
    """
    length = math.prod(factors)
    table = _roots_of_unity(length, state.dtype, inverse)
    done = 1
    for factor in factors:
        state = _stage(state, axis, done, factor, table)
        done *= factor
    return state


def _stage(state: Tensor, axis: int, done: int, factor: int, table: Tensor) -> Tensor:
    sizes = extents(state)
    length = extents(table)[0]
    assert isinstance(length, int)
    joined = done * factor
    rows = length // joined
    shape = replace_entry(replace_entry(sizes, axis, rows), axis + 1, joined)
    s = reduce_axis(factor, "s")

    def element(*index: Expr) -> Expr:
        row = index[axis] + s.var * rows
        column = maths.floormod(index[axis + 1], done) if done > 1 else as_dim(0)
        turn = maths.floormod(s.var * index[axis + 1], joined) * rows
        side = index[-1]
        before = index[:axis]
        after = index[axis + 2 : -1]
        own = state[(*before, row, column, *after, side)]
        other = state[(*before, row, column, *after, 1 - side)]
        # (a + ib) * (c + id) = (a * c - b * d) + i * (b * c + a * d)
        crossed = other * table[turn, 1]
        signed = maths.select(side == 0, -crossed, crossed)
        return reducer.sum(own * table[turn, 0] + signed, axis=s)

    return compute(shape, element, name="stage", tag=REDUCTION)


def _roots_of_unity(length: int, dtype: DType, inverse: bool) -> Tensor:
    """Return [length, 2]: cosine and sine of -2 * pi * j / length, or of its opposite.

    They are computed in f64 for angles of at most pi / 4, and are exact at multiples of pi / 2.
    """
    step = math.pi / 4 / length

    def element(j: Expr, side: Expr) -> Expr:
        eighths = j * 8
        octant = maths.floordiv(eighths, length)
        rest = eighths - octant * length
        # Odd octants are mirrored, so that each angle is counted from the nearest axis.
        folded = maths.select(maths.floormod(octant, 2) == 1, length - rest, rest)
        angle = folded.astype(F64) * step
        # Sine and cosine change places in octants 1, 2, 5 and 6.
        quarter = maths.floordiv(maths.floormod(octant + 1, 4), 2)
        is_cosine = quarter == side
        size = maths.select(is_cosine, maths.cos(angle), maths.sin(angle))
        # The cosine is negative in octants 2 to 5, the sine in octants 4 to 7.
        left = maths.all(octant >= 2, octant <= 5)
        below = octant < 4 if not inverse else octant >= 4
        is_negative = maths.any(maths.all(side == 0, left), maths.all(side == 1, below))
        return maths.select(is_negative, -size, size).astype(dtype)

    return compute((length, 2), element, name="roots", tag=SHARED)


def transform_numpy(data: Array, axis: int, length: int, inverse: bool) -> Array:
    """Return the transform of complex numbers along `axis`, by its definition.

    The elements that are missing are 0. A NaN or an infinity makes all results along the axis NaN.
    """
    moved = np.moveaxis(data, axis, -1)[..., :length].astype(np.clongdouble)
    missing = length - moved.shape[-1]
    moved = np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, missing)])
    turns = np.outer(np.arange(length), np.arange(length)) % length
    angle = turns * (2 * np.longdouble(_PI) / length)
    sine = np.sin(angle) if inverse else -np.sin(angle)
    roots = np.cos(angle) + 1j * sine
    # Multiples of a right angle are exact.
    roots = np.where(4 * turns % length == 0, np.round(roots), roots)
    is_finite = np.isfinite(moved).all(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        result = np.where(is_finite, moved, 0) @ roots
    if inverse:
        result = result / length
    result = np.where(is_finite, result, np.clongdouble(complex(math.nan, math.nan)))
    return np.moveaxis(result, -1, axis)


_PI = "3.14159265358979323846264338327950288"


def complex_numpy(data: Array) -> Array:
    """Return complex numbers from an array whose last axis holds real and imaginary parts."""
    wide = data.astype(np.longdouble)
    if data.shape[-1] == 1:
        return np.asarray(wide[..., 0].astype(np.clongdouble))
    result = np.empty(data.shape[:-1], np.clongdouble)
    result.real = wide[..., 0]
    result.imag = wide[..., 1]
    return result


def parts_numpy(data: Array, dtype: np.dtype[np.generic]) -> Array:
    """Return real and imaginary parts along a new last axis, rounded to `dtype`."""
    both = np.stack([data.real, data.imag], axis=-1)
    with np.errstate(over="ignore"):
        if as_dtype(dtype).kind == "bfloat":
            both = both.astype(np.float64)
        return np.asarray(both.astype(dtype))
