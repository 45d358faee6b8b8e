"""Integers of 4 bits, of which a byte holds two.

refcomp has no dtype of 4 bits. The first of two elements is in the low half of the byte, as in
ONNX. Reference: the ONNX specification of tensors of INT4 and UINT4.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import extents, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, normalize_axis, replace_entry, require_constant

_U8 = as_dtype("uint8")


def pack_int4(data: Tensor, *, axis: int = -1) -> Tensor:
    """Return two elements in each byte along `axis`: the first in the low four bits.

    Only the low four bits of an element are kept; clamp others first. If the extent is odd, the
    upper four bits of the last byte are 0. It packs signed and unsigned integers, and the bit
    patterns of `to_float4`.

    Args:
        data: a tensor of integers of one or more dimensions, of a constant extent along `axis`.
        axis: the axis along which two elements are joined; -1 is the last one.

    Returns:
        A tensor of u8, with half as many elements along `axis`, rounded up.

    Raises:
        UserError: `data` does not hold integers, the axis does not exist, or its extent is
            symbolic.

    Reference: ONNX, tensors of INT4 and UINT4.

    Example::

        >>> A = rc.placeholder((3,), "int8", name="A")
        >>> B = rc.topi.pack_int4(A)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, -1, 7], "int8")}))
        [241   7]
    """
    place, size = _packed_axis(data, axis, "pack_int4")

    def half(index: tuple[Expr, ...], position: Expr) -> Expr:
        return data[replace_entry(index, place, position)].astype(_U8) & 15

    def element(*index: Expr) -> Expr:
        first = index[place] * 2
        low = half(index, first)
        second = first + 1
        if size % 2 == 0:
            return low | (half(index, second) << 4)
        high = maths.if_then_else(second < size, half(index, second), const(0, _U8))
        return low | (high << 4)

    shape = replace_entry(extents(data), place, (size + 1) // 2)
    return compute(shape, element, name="pack_int4", tag=INJECTIVE)


def _packed_axis(data: Tensor, axis: int, operator: str) -> tuple[int, int]:
    """Return the axis, counted from 0, and its extent; refuse what is not integers."""
    require_tensor(data, operator)
    if not data.dtype.is_int or not data.ndim:
        raise UserError(
            f"{operator} takes a tensor of integers of one or more dimensions, "
            f"not {data.dtype} of {data.ndim}",
            remedy="round floats first, by rc.topi.quantize",
            earlier=[data.declaration()],
        )
    place = normalize_axis(axis, data.ndim, operator)
    size = require_constant(extents(data)[place], f"{operator}: extent {place}")
    return place, size


def _sample_pack_int4(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 4), draws.integer_dtype())
    return Sample((data,), {"axis": draws.axis(data.ndim)})


@meaning_of(pack_int4, sample=_sample_pack_int4)
def pack_int4_numpy(data: Array, *, axis: int = -1) -> Array:
    moved = np.moveaxis(data, axis, -1)
    halves = np.mod(moved, 16).astype(np.uint8)
    padding = [(0, 0)] * (data.ndim - 1) + [(0, data.shape[axis] % 2)]
    halves = np.pad(halves, padding)
    packed = halves[..., 0::2] + 16 * halves[..., 1::2]
    return np.moveaxis(packed.astype(np.uint8), -1, axis).copy()


def unpack_int4(
    data: Tensor, *, axis: int = -1, size: int | None = None, signed: bool = True
) -> Tensor:
    """Return the two integers of 4 bits that each byte holds, along `axis`.

    Args:
        data: a tensor of u8 of one or more dimensions, of a constant extent along `axis`.
        axis: the axis along which the elements lie; -1 is the last one.
        size: the number of elements along `axis`: twice the extent, or one less. None for twice.
        signed: True for -8 ... 7 in i8, False for 0 ... 15 in u8.

    Returns:
        A tensor of i8 or u8, with `size` elements along `axis`.

    Raises:
        UserError: `data` is not a tensor of u8, the axis does not exist, its extent is symbolic, or
            `size` does not fit it.

    Reference: ONNX, tensors of INT4 and UINT4.

    Example::

        >>> A = rc.placeholder((2,), "uint8", name="A")
        >>> B = rc.topi.unpack_int4(A, size=3)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([241, 7], "uint8")}))
        [ 1 -1  7]
    """
    place, count = _packed_axis(data, axis, "unpack_int4")
    if data.dtype != _U8:
        raise UserError(
            f"unpack_int4 takes bytes in u8, not {data.dtype}",
            remedy="view the array as uint8, or apply rc.topi.bitcast",
            earlier=[data.declaration()],
        )
    whole = 2 * count if size is None else size
    if whole < 0 or (whole + 1) // 2 != count:
        raise UserError(
            f"unpack_int4 cannot take {whole} elements from {count} bytes",
            remedy=f"use {2 * count} or one less",
        )

    def element(*index: Expr) -> Expr:
        position = index[place]
        byte = data[replace_entry(index, place, maths.floordiv(position, 2))]
        # Four bits up or not at all, so that the wanted half is the upper one.
        is_low = (maths.floormod(position, 2) == 0).astype(_U8)
        upper = byte << (is_low * 4)
        # The shift of a signed integer repeats its sign.
        return (upper.astype("int8") >> 4) if signed else (upper >> 4)

    shape = replace_entry(extents(data), place, whole)
    return compute(shape, element, name="unpack_int4", tag=INJECTIVE)


def _sample_unpack_int4(draws: Draws) -> Sample:
    data = draws.integers(draws.shape(1, 4), 0, 255, "uint8")
    axis = draws.axis(data.ndim)
    size = 2 * data.shape[axis]
    if size and draws.flag():
        size -= 1
    return Sample((data,), {"axis": axis, "size": size, "signed": draws.flag()})


@meaning_of(unpack_int4, sample=_sample_unpack_int4)
def unpack_int4_numpy(
    data: Array, *, axis: int = -1, size: int | None = None, signed: bool = True
) -> Array:
    moved = np.moveaxis(data, axis, -1)
    pairs = np.stack([moved % 16, moved // 16], axis=-1)
    values = pairs.reshape(*moved.shape[:-1], 2 * moved.shape[-1])[..., :size]
    if signed:
        values = np.where(values > 7, values.astype(np.int8) - 16, values)
    kind = to_numpy(as_dtype("int8" if signed else "uint8"))
    return np.moveaxis(values.astype(kind), -1, axis).copy()
