"""Bits of small integers in words, and sums of products by AND and popcount.

An integer of b bits is the sum of its bit planes: plane p holds the bits of weight 2^p. A product
of planes is an AND, and a sum of such products a popcount::

    sum of x * w = sum over (p, q) of 2^(p + q) * popcount(plane p of x AND plane q of w)

Reference: Y. Umuroglu and M. Jahre, "Streamlined Deployment for Quantized Neural Networks", arXiv
1709.04060; M. Cowan et al., "Automating Generation of Low Precision Deep Learning Operators", arXiv
1810.11066.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import DType, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    replace_entry,
    require_one_dtype,
    require_rank,
)
from refcomp.topi.tags import REDUCTION


def bitpack(
    data: Tensor,
    *,
    bits: int,
    pack_axis: int = -1,
    bit_axis: int = -1,
    pack_dtype: DTypeLike = "uint32",
) -> Tensor:
    """Return the low bits of integers in words, one plane of words for each bit.

    Along `pack_axis`, w elements share a word of w bits; the first is the most significant bit. The
    last word is filled with zeros. Higher bits than the lowest `bits` are dropped.

    Args:
        data: integers of any shape with at least one dimension.
        bits: the number of bits of an element, from 1 to the width of its dtype.
        pack_axis: the axis along which elements are packed.
        bit_axis: the axis of the planes in the result, whose rank is greater by one; plane p holds
            the bits of weight 2^p.
        pack_dtype: the dtype of words: uint8, uint16, uint32 or uint64.

    Returns:
        A tensor of `pack_dtype`: the shape of `data` with ceil(extent / w) words along `pack_axis`,
        and with an axis of `bits` planes inserted.

    Raises:
        UserError: `data` does not hold integers, or an axis, a dtype or the number of bits does not
            exist.

    Reference: TVM, topi.nn.bitpack.

    Example::

        >>> A = rc.placeholder((4,), "uint8", name="A")
        >>> B = rc.topi.bitpack(A, bits=2, bit_axis=0, pack_dtype="uint8")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, 2, 3, 0], "uint8")}))
        [[160]
         [ 96]]
    """
    require_tensor(data, "bitpack")
    if not data.ndim:
        raise UserError("bitpack: the data have rank 0", remedy="give an axis to pack")
    place = normalize_axis(pack_axis, data.ndim, "bitpack")
    plane = normalize_axis(bit_axis, data.ndim + 1, "bitpack")
    dtype = check_words(pack_dtype, "bitpack")
    return pack_bits(data, bits, place, plane, dtype, "bitpack")


def check_words(pack_dtype: DTypeLike, operator: str) -> DType:
    """Return the dtype of words. Raise UserError unless it is an unsigned integer."""
    dtype = as_dtype(pack_dtype)
    if dtype.kind != "uint" or dtype.lanes != 1:
        raise UserError(
            f"{operator} cannot pack bits into {dtype}",
            remedy="pack them into uint8, uint16, uint32 or uint64",
        )
    return dtype


def pack_bits(
    data: Tensor, bits: int, pack_axis: int, bit_axis: int, dtype: DType, operator: str
) -> Tensor:
    """Return the low bits of integers in words, as `bitpack` does; axes are counted from 0."""
    require_tensor(data, operator)
    if not data.dtype.is_int or not 1 <= bits <= data.dtype.bits:
        raise UserError(
            f"{operator} cannot take {bits} bits of {data.dtype}",
            remedy="give integers, and at least 1 bit, at most all bits of the dtype",
            earlier=[data.declaration()],
        )
    width = dtype.bits
    length = extents(data)[pack_axis]
    words = (length + (width - 1)) // width
    shape = list(replace_entry(extents(data), pack_axis, words))
    shape.insert(bit_axis, bits)
    k = reduce_axis(width, "k")

    def element(*index: Expr) -> Expr:
        source = list(index)
        plane = source.pop(bit_axis)
        place = source[pack_axis] * width + k
        source[pack_axis] = place
        zero = const(0, data.dtype)
        # `if_then_else`, not `select`: elements after the last must not be read.
        read = maths.if_then_else(place < length, data[tuple(source)], zero)
        bit = (read >> plane.astype(data.dtype)) & const(1, data.dtype)
        shift = (width - 1 - k).astype(dtype)
        return reducer.sum(bit.astype(dtype) << shift, axis=k)

    return compute(shape, element, name=operator, tag=REDUCTION)


_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


def _sample_bitpack(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 3), draws.integer_dtype())
    attributes = {
        "bits": draws.integer(1, 8),
        "pack_axis": draws.axis(data.ndim),
        "bit_axis": draws.axis(data.ndim + 1),
        "pack_dtype": draws.choice(_UNSIGNED),
    }
    return Sample((data,), attributes)


@meaning_of(bitpack, sample=_sample_bitpack)
def bitpack_numpy(
    data: Array,
    *,
    bits: int,
    pack_axis: int = -1,
    bit_axis: int = -1,
    pack_dtype: DTypeLike = "uint32",
) -> Array:
    kind = to_numpy(as_dtype(pack_dtype))
    place = pack_axis % data.ndim
    planes = []
    for bit in range(bits):
        is_set = (data >> data.dtype.type(bit)) & data.dtype.type(1)
        octets = np.packbits(is_set.astype(np.uint8), axis=place)
        missing = [(0, 0)] * data.ndim
        missing[place] = (0, -octets.shape[place] % kind.itemsize)
        last = np.moveaxis(np.pad(octets, missing), place, -1)
        count = last.shape[-1] // kind.itemsize
        own = np.ascontiguousarray(last).reshape(*last.shape[:-1], count, kind.itemsize)
        # The first octet is the most significant one of its word.
        words = own.view(kind.newbyteorder(">"))[..., 0]
        planes.append(np.moveaxis(words.astype(kind), -1, place))
    return np.stack(planes, axis=bit_axis)


def product_of_planes(
    data: Expr, weight: Expr, shift: Expr, dtype: DType, unipolar: bool
) -> Expr:
    """Return the term of two words of planes, times 2^shift, as an integer of `dtype`.

    Args:
        data: a word of bits of the data.
        weight: a word of bits of the weights.
        shift: the sum of the places of both planes.
        dtype: the dtype of the result.
        unipolar: True if a bit 0 of the weights means -1.
    """
    count = maths.popcount(data & weight).astype(dtype)
    if unipolar:
        count = count - maths.popcount(data & ~weight).astype(dtype)
    return count << shift.astype(dtype)


def check_sums(out_dtype: DTypeLike, operator: str) -> DType:
    """Return the dtype of sums. Raise UserError unless it is an integer of 16 to 64 bits."""
    dtype = as_dtype(out_dtype)
    if dtype.kind != "int" or dtype.bits < 16 or dtype.lanes != 1:
        raise UserError(
            f"{operator} cannot add up counts of bits in {dtype}",
            remedy="use int16, int32 or int64",
        )
    return dtype


def meant_weights(weight: Array, bits: int, unipolar: bool) -> Array:
    """Return the numbers for which the low bits of weights stand, as int64."""
    low = low_bits(weight, bits)
    # A bit 0 means -1: the sum of 2^q * (2 * bit - 1).
    return 2 * low - (2**bits - 1) if unipolar else low


def low_bits(data: Array, bits: int) -> Array:
    """Return the lowest bits of integers as int64."""
    return np.asarray(data.astype(np.int64) & (2**bits - 1))


def bitserial_dense(
    data: Tensor,
    weight: Tensor,
    *,
    data_bits: int,
    weight_bits: int,
    pack_dtype: DTypeLike = "uint32",
    out_dtype: DTypeLike = "int32",
    unipolar: bool = True,
) -> Tensor:
    """Return data @ transposed weight for integers of few bits, by AND and popcount.

    Bits of the data mean 0 and 1. Bits of the weights mean -1 and 1 if `unipolar`, else 0 and 1. So
    weights w of b bits stand for 2 * w - (2^b - 1), or for w itself.

    Args:
        data: [n, k], integers, of which the lowest `data_bits` are taken.
        weight: [o, k], integers, of which the lowest `weight_bits` are taken.
        data_bits: the number of bits of the data.
        weight_bits: the number of bits of the weights.
        pack_dtype: the dtype of words (see `bitpack`).
        out_dtype: the dtype of sums: int16, int32 or int64, which wraps.
        unipolar: True if bits of the weights mean -1 and 1.

    Returns:
        A tensor [n, o] of `out_dtype`.

    Raises:
        UserError: a rank, extent, dtype or number of bits does not fit.

    Reference: TVM, topi.nn.bitserial_dense.

    Example::

        >>> A, B = (rc.placeholder((1, 3), "uint8", name=name) for name in "AB")
        >>> C = rc.topi.bitserial_dense(A, B, data_bits=2, weight_bits=1)
        >>> a, b = np.array([[3, 2, 1]], "uint8"), np.array([[1, 0, 1]], "uint8")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [[2]]
    """
    name = "bitserial_dense"
    require_rank(data, 2, name, "the data")
    require_rank(weight, 2, name, "the weight")
    rows, depth = extents(data)
    columns, depth_b = extents(weight)
    require_extent(
        depth_b, depth, name, "the weight's second extent", tensors=(data, weight)
    )
    words = check_words(pack_dtype, name)
    dtype = check_sums(out_dtype, name)
    packed = pack_bits(data, data_bits, 1, 1, words, name)
    factors = pack_bits(weight, weight_bits, 1, 1, words, name)
    require_one_dtype(name, packed, factors)
    p = reduce_axis(data_bits, "p")
    q = reduce_axis(weight_bits, "q")
    k = reduce_axis(extents(packed)[2], "k")

    def element(i: Expr, j: Expr) -> Expr:
        term = product_of_planes(
            packed[i, p, k], factors[j, q, k], p + q, dtype, unipolar
        )
        return reducer.sum(term, axis=[p, q, k])

    return compute((rows, columns), element, name=name, tag=REDUCTION)


def _sample_bitserial_dense(draws: Draws) -> Sample:
    depth = draws.choice((0, 1, 5, 9, 17))
    data = draws.array((draws.extent(0), depth), draws.integer_dtype())
    weight = draws.array((draws.extent(), depth), draws.integer_dtype())
    attributes = {
        "data_bits": draws.integer(1, 4),
        "weight_bits": draws.integer(1, 3),
        "pack_dtype": draws.choice(_UNSIGNED),
        "out_dtype": draws.choice(("int16", "int32", "int64")),
        "unipolar": draws.flag(),
    }
    return Sample((data, weight), attributes)


@meaning_of(bitserial_dense, sample=_sample_bitserial_dense)
def bitserial_dense_numpy(
    data: Array,
    weight: Array,
    *,
    data_bits: int,
    weight_bits: int,
    pack_dtype: DTypeLike = "uint32",
    out_dtype: DTypeLike = "int32",
    unipolar: bool = True,
) -> Array:
    factors = meant_weights(weight, weight_bits, unipolar)
    sums = low_bits(data, data_bits) @ factors.T
    return np.asarray(sums.astype(to_numpy(as_dtype(out_dtype))))
