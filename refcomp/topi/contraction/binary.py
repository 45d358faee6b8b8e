"""Products of signs: a bit stands for 1 or -1, and a word for 32 of them.

For k signs x and k signs w::

    sum of x * w = k - 2 * popcount(bits of x XOR bits of w)

Reference: I. Hubara et al., "Binarized Neural Networks", NIPS 2016; M. Rastegari et al.,
"XNOR-Net", ECCV 2016.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import I32, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    replace_entry,
    require_constant,
    require_rank,
)
from refcomp.topi.tags import REDUCTION

_WIDTH = 32  # signs in a word
_WORD = as_dtype("uint32")


def binarize_pack(data: Tensor, *, axis: int = -1) -> Tensor:
    """Return the signs of numbers in words of 32 bits along an axis.

    A number above 0 gives the bit 1; all others, NaN and both zeros included, give 0. The first
    number of a word is its most significant bit.

    Args:
        data: numbers of any shape with at least one dimension, of any dtype but bool.
        axis: the axis along which 32 numbers become a word. Its extent is a constant multiple of
            32.

    Returns:
        A tensor of uint32, of the shape of `data` with the extent along `axis` divided by 32.

    Raises:
        UserError: the axis does not exist, or its extent is not a constant multiple of 32, or the
            dtype does not fit.

    Reference: TVM, topi.nn.binarize_pack.

    Example::

        >>> A = rc.placeholder((32,), name="A")
        >>> B = rc.topi.binarize_pack(A)
        >>> a = np.full(32, -1, "float32")
        >>> a[30] = 5
        >>> print(*rc.oracle.evaluate([B], {A: a}))
        [2]
    """
    require_tensor(data, "binarize_pack")
    if data.dtype.is_bool or not data.ndim:
        raise UserError(
            f"binarize_pack takes numbers with an axis, not {data.dtype} of {data.ndim} dimensions",
            remedy="give a tensor of numbers with at least one dimension",
            earlier=[data.declaration()],
        )
    place = normalize_axis(axis, data.ndim, "binarize_pack")
    length = extents(data)[place]
    count = require_constant(length, "binarize_pack: the extent of the packed axis")
    if count % _WIDTH:
        raise UserError(
            f"binarize_pack cannot pack {count} signs into words of {_WIDTH}",
            remedy=f"pad the axis to a multiple of {_WIDTH}",
            earlier=[data.declaration()],
        )
    k = reduce_axis(_WIDTH, "k")

    def element(*index: Expr) -> Expr:
        source = replace_entry(index, place, index[place] * _WIDTH + k)
        bit = (data[source] > const(0, data.dtype)).astype(_WORD)
        return reducer.sum(bit << (_WIDTH - 1 - k).astype(_WORD), axis=k)

    shape = replace_entry(extents(data), place, count // _WIDTH)
    return compute(shape, element, name="binarize_pack", tag=REDUCTION)


def _sample_binarize_pack(draws: Draws) -> Sample:
    shape = list(draws.shape(1, 3))
    place = draws.integer(0, len(shape) - 1)
    shape[place] = _WIDTH * draws.integer(0, 2)
    data = draws.array(shape, draws.number_dtype())
    return Sample((data,), {"axis": place - draws.choice((0, len(shape)))})


@meaning_of(binarize_pack, sample=_sample_binarize_pack)
def binarize_pack_numpy(data: Array, *, axis: int = -1) -> Array:
    octets = np.packbits(np.moveaxis(data > 0, axis, -1), axis=-1)
    own = np.ascontiguousarray(octets).reshape(
        *octets.shape[:-1], octets.shape[-1] // 4, 4
    )
    # The first octet is the most significant one of its word.
    words = own.view(">u4")[..., 0].astype(np.uint32)
    return np.ascontiguousarray(np.moveaxis(words, -1, axis))


def binary_dense(data: Tensor, weight: Tensor) -> Tensor:
    """Return data @ transposed weight for signs that are packed in words.

        result[i, j] = 32 * k - 2 * sum of popcount(data[i, w] XOR weight[j, w]) over k words w

    Args:
        data: [n, k], uint32: words of `binarize_pack`.
        weight: [o, k], uint32.

    Returns:
        A tensor [n, o] of int32.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: TVM, topi.nn.binary_dense.

    Example::

        >>> A, B = (rc.placeholder((1, 1), "uint32", name=name) for name in "AB")
        >>> C = rc.topi.binary_dense(A, B)
        >>> a, b = np.array([[7]], "uint32"), np.array([[1]], "uint32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [[28]]
    """
    for tensor, what in ((data, "the data"), (weight, "the weight")):
        require_rank(tensor, 2, "binary_dense", what)
        if tensor.dtype != _WORD:
            raise UserError(
                f"binary_dense: {what} is {tensor.dtype}, not uint32",
                remedy="pack the signs with rc.topi.binarize_pack",
                earlier=[tensor.declaration()],
            )
    rows, depth = extents(data)
    columns, depth_b = extents(weight)
    what = "the weight's second extent"
    require_extent(depth_b, depth, "binary_dense", what, tensors=(data, weight))
    k = reduce_axis(depth, "k")

    def differences(i: Expr, j: Expr) -> Expr:
        differing = maths.popcount(data[i, k] ^ weight[j, k])
        return reducer.sum(differing.astype(I32), axis=k)

    shape = (rows, columns)
    count = compute(shape, differences, name="differences", tag=REDUCTION)
    signs = const(depth, I32) if isinstance(depth, int) else depth.astype(I32)

    def element(i: Expr, j: Expr) -> Expr:
        return signs * _WIDTH - count[i, j] * 2

    return compute(shape, element, name="binary_dense", tag=INJECTIVE)


def _sample_binary_dense(draws: Draws) -> Sample:
    depth = draws.extent(0)
    data = draws.array((draws.extent(0), depth), "uint32")
    weight = draws.integers((draws.extent(), depth), 0, 2**32 - 1, "uint32")
    return Sample((data, weight))


@meaning_of(binary_dense, sample=_sample_binary_dense)
def binary_dense_numpy(data: Array, weight: Array) -> Array:
    return np.asarray((_signs(data) @ _signs(weight).T).astype(np.int32))


def _signs(words: Array) -> Array:
    """Return the signs 1 and -1 in the last axis of words."""
    places = np.arange(_WIDTH, dtype=np.uint32)
    bits = (words[..., None] >> places) & np.uint32(1)
    signs = 2 * bits.astype(np.int64) - 1
    return np.asarray(signs.reshape(len(words), words.shape[1] * _WIDTH))
