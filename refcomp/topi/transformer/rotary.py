"""Rotary embedding: pairs of channels are rotated by an angle that grows with the position.

Reference: J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021; ONNX
RotaryEmbedding.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import Extent, extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
    widen,
)


def rotary_embedding(
    data: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None = None,
    *,
    interleaved: bool = False,
    rotary_dim: int = 0,
) -> Tensor:
    """Return `data` with pairs of channels rotated by the angle of their position.

        y1 = cos * x1 - sin * x2
        y2 = sin * x1 + cos * x2

    The pair k of r rotated channels is (k, k + r / 2), or (2 * k, 2 * k + 1) if interleaved. Other
    channels stay. A NaN or an infinity spreads within its pair only.

    Args:
        data: floats [batch, heads, length, channels]. The channels are constant.
        cos: [positions, r / 2], the cosines, of the dtype of `data`. Without `positions`,
            [batch, length, r / 2].
        sin: the sines, of the shape and dtype of `cos`.
        positions: integers [batch, length], the rows of `cos` and `sin`. A number that is out of
            range is clamped to the nearest row.
        interleaved: True if the channels of a pair are neighbours.
        rotary_dim: the number r of rotated channels, which come first; 0 for all channels.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: `data` does not hold floats, a rank, extent or dtype does not fit, r is odd or
            greater than the number of channels, or the positions have no row to choose.

    Reference: ONNX RotaryEmbedding, of 4 dimensions.

    Example::

        >>> X = rc.placeholder((1, 1, 1, 2), name="X")
        >>> C, S = rc.placeholder((1, 1, 1), name="C"), rc.placeholder((1, 1, 1), name="S")
        >>> Y = rc.topi.rotary_embedding(X, C, S)
        >>> x, one = np.array([[[[3, 4]]]], "float32"), np.ones((1, 1, 1), "float32")
        >>> rc.oracle.evaluate([Y], {X: x, C: 0 * one, S: one})[0].tolist()
        [[[[-4.0, 3.0]]]]
    """
    rotated = _check_operands(data, cos, sin, positions, rotary_dim)
    half = rotated // 2

    def factor(table: Tensor, b: Expr, i: Expr, k: Expr) -> Expr:
        if positions is None:
            return table[b, i, k]
        row = positions[b, i]
        last = require_constant(extents(table)[0], "rotary_embedding: the rows") - 1
        clamped = maths.maximum(row.astype("int64"), const(0, "int64"))
        return table[maths.minimum(clamped, const(last, "int64")), k]

    def element(b: Expr, h: Expr, i: Expr, c: Expr) -> Expr:
        if not rotated:
            return data[b, h, i, c]
        if interleaved:
            k = maths.floordiv(c, 2)
            is_first = maths.floormod(c, 2) == 0
            partner = maths.select(is_first, c + 1, c - 1)
        else:
            is_first = c < half
            k = maths.select(is_first, c, c - half)
            partner = maths.select(is_first, c + half, c - half)

        # Channels that stay have no pair; they read the last one, also in gradients.
        k = maths.minimum(k, half - 1)

        def turned() -> Expr:
            along = factor(cos, b, i, k) * data[b, h, i, c]
            across = factor(sin, b, i, k) * data[b, h, i, partner]
            return maths.select(is_first, along - across, across + along)

        # `if_then_else`, not `select`: other channels have no partner.
        return maths.if_then_else(c < rotated, turned(), data[b, h, i, c])

    return compute(data.shape, element, name="rotary_embedding", tag=INJECTIVE)


def _check_operands(
    data: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None, rotary_dim: int
) -> int:
    """Return the number of rotated channels. Raise UserError for operands that do not fit."""
    operator = "rotary_embedding"
    require_float(data, operator)
    require_rank(data, 4, operator, "the data")
    batch, _, length, last = extents(data)
    channels = require_constant(last, f"{operator}: the number of channels")
    rotated = rotary_dim or channels
    if not 0 <= rotated <= channels or rotated % 2:
        raise UserError(
            f"{operator} cannot rotate {rotated} of {channels} channels",
            remedy="give an even number that is not greater than that of the channels",
        )
    require_one_dtype(operator, data, cos, sin)
    expected: tuple[Extent, ...] = (batch, length, rotated // 2)
    if positions is not None:
        _check_positions(positions, batch, length)
        require_rank(cos, 2, operator, "cos")
        rows = require_constant(extents(cos)[0], f"{operator}: the rows of cos")
        if rows < 1:
            raise UserError(
                f"{operator} cannot choose among 0 rows of cos",
                remedy="give a row for each position",
                earlier=[cos.declaration()],
            )
        expected = (rows, rotated // 2)
    for name, table in (("cos", cos), ("sin", sin)):
        require_rank(table, len(expected), operator, name)
        for actual, extent in zip(extents(table), expected, strict=True):
            require_extent(actual, extent, operator, name, tensors=(data, table))
    return rotated


def _check_positions(positions: Tensor, batch: Extent, length: Extent) -> None:
    operator = "rotary_embedding"
    require_tensor(positions, operator)
    if positions.dtype.is_float or positions.dtype.is_bool:
        raise UserError(
            f"{operator} takes positions as integers, not {positions.dtype}",
            remedy="give a tensor of int64",
            earlier=[positions.declaration()],
        )
    require_rank(positions, 2, operator, "positions")
    for actual, expected in zip(extents(positions), (batch, length), strict=True):
        require_extent(actual, expected, operator, "positions", tensors=(positions,))


def _sample_rotary_embedding(draws: Draws) -> Sample:
    batch = draws.integer(0, 2)
    length = draws.integer(0, 3)
    half = draws.integer(1, 2)
    rest = draws.integer(0, 2)
    dtype = draws.float_dtype()
    data = draws.array((batch, draws.integer(1, 2), length, 2 * half + rest), dtype)
    rows = draws.integer(1, 3)
    has_positions = draws.flag()
    shape = (rows, half) if has_positions else (batch, length, half)
    positions = draws.integers((batch, length), -1, rows) if has_positions else None
    operands = (data, draws.array(shape, dtype), draws.array(shape, dtype), positions)
    attributes = {"interleaved": draws.flag(), "rotary_dim": 2 * half}
    return Sample(operands, attributes)


@meaning_of(rotary_embedding, sample=_sample_rotary_embedding)
def rotary_embedding_numpy(
    data: Array,
    cos: Array,
    sin: Array,
    positions: Array | None = None,
    *,
    interleaved: bool = False,
    rotary_dim: int = 0,
) -> Array:
    if positions is not None:
        rows = np.clip(positions, 0, len(cos) - 1)
        cos = cos[rows]
        sin = sin[rows]
    rotated = rotary_dim or data.shape[3]
    half = rotated // 2
    first = slice(0, rotated, 2) if interleaved else slice(0, half)
    second = slice(1, rotated, 2) if interleaved else slice(half, rotated)
    x1 = widen(data)[..., first]
    x2 = widen(data)[..., second]
    c = widen(cos)[:, None]
    s = widen(sin)[:, None]
    result = data.copy()
    result[..., first] = (c * x1 - s * x2).astype(data.dtype)
    result[..., second] = (s * x1 + c * x2).astype(data.dtype)
    return result
