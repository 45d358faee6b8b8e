"""Products of matrices in the forms of neural networks: dense, and batch_matmul.

NaN, infinities, integers that overflow and empty sums are as in `matmul`.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.contraction.dense import WIDER, multiply_matrices
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_one_dtype, require_rank, widen


def batch_matmul(
    a: Tensor,
    b: Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = True,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the product of each matrix of a batch with the matrix at its place in another batch.

        result[n, i, j] = sum over k of a[n, i, k] * b[n, j, k]

    Args:
        a: [n, i, k], or [n, k, i] if it is transposed, of any numeric dtype. n may be 1, and is
            then repeated.
        b: [n, j, k], or [n, k, j] if it is not transposed, of the dtype of `a`. n may be 1.
        transpose_a: True if the last two axes of `a` are exchanged.
        transpose_b: the same of `b`; True unless given.
        out_dtype: a wider dtype of the same kind, in which products are added up. By default the
            dtype of `a`.

    Returns:
        A tensor [n, i, j] of `out_dtype`.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: TVM, topi.nn.batch_matmul.

    Example::

        >>> A, B = rc.placeholder((1, 2, 2), name="A"), rc.placeholder((1, 1, 2), name="B")
        >>> C = rc.topi.batch_matmul(A, B)
        >>> a, b = np.array([[[1, 2], [3, 4]]], "float32"), np.array([[[1, 10]]], "float32")
        >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
        [[[21.]
          [43.]]]
    """
    require_rank(a, 3, "batch_matmul", "a")
    require_rank(b, 3, "batch_matmul", "b")
    return multiply_matrices(
        a,
        b,
        "batch_matmul",
        trans_a=transpose_a,
        trans_b=transpose_b,
        out_dtype=out_dtype,
    )


def _sample_batch_matmul(draws: Draws) -> Sample:
    i = draws.extent(0)
    k = draws.extent(0)
    j = draws.extent()
    batch = draws.extent(0)
    dtype = draws.number_dtype()
    transpose_a = draws.flag()
    transpose_b = draws.flag()
    left = (k, i) if transpose_a else (i, k)
    right = (j, k) if transpose_b else (k, j)
    a = draws.array((draws.choice((1, batch)), *left), dtype)
    b = draws.array((batch, *right), dtype)
    attributes: dict[str, object] = {
        "transpose_a": transpose_a,
        "transpose_b": transpose_b,
    }
    if dtype in WIDER and draws.flag():
        attributes["out_dtype"] = WIDER[dtype]
    return Sample((a, b), attributes)


@meaning_of(batch_matmul, sample=_sample_batch_matmul)
def batch_matmul_numpy(
    a: Array,
    b: Array,
    *,
    transpose_a: bool = False,
    transpose_b: bool = True,
    out_dtype: DTypeLike | None = None,
) -> Array:
    result = to_numpy(as_dtype(out_dtype or a.dtype))
    left = widen(a.astype(result))
    right = widen(b.astype(result))
    if transpose_a:
        left = left.transpose(0, 2, 1)
    if transpose_b:
        right = right.transpose(0, 2, 1)
    return np.asarray(left @ right, result)


def dense(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return data @ transposed weight + bias, the layer that connects each input to each output.

        result[..., o] = bias[o] + sum over i of data[..., i] * weight[o, i]

    Args:
        data: [..., i], with at least one dimension, of any numeric dtype.
        weight: [o, i], of the dtype of `data`.
        bias: [o], of `out_dtype`; optional.
        out_dtype: a wider dtype of the same kind, in which products are added up, such as int32 for
            int8. By default the dtype of `data`.

    Returns:
        A tensor [..., o] of `out_dtype`.

    Raises:
        UserError: a rank, extent or dtype does not fit.

    Reference: TVM, topi.nn.dense; PyTorch, torch.nn.functional.linear.

    Example::

        >>> X = rc.placeholder((1, 2), "int8", name="X")
        >>> W = rc.placeholder((2, 2), "int8", name="W")
        >>> Y = rc.topi.dense(X, W, out_dtype="int32")
        >>> x, w = np.array([[100, 2]], "int8"), np.array([[100, 0], [1, 1]], "int8")
        >>> print(*rc.oracle.evaluate([Y], {X: x, W: w}))
        [[10000   102]]
    """
    require_tensor(data, "dense")
    require_rank(weight, 2, "dense", "the weight")
    if not data.ndim:
        raise UserError(
            "dense: the data have rank 0", remedy="give a tensor [..., inputs]"
        )
    product = multiply_matrices(
        data, weight, "dense", trans_b=True, out_dtype=out_dtype
    )
    return product if bias is None else add_bias(product, bias, "dense", -1)


def add_bias(data: Tensor, bias: Tensor, operator: str, axis: int) -> Tensor:
    """Return `data` plus the element of `bias` for each place along `axis`.

    Raises:
        UserError: the bias is not a vector of this extent, or has another dtype.
    """
    require_rank(bias, 1, operator, "the bias")
    require_one_dtype(operator, data, bias)
    expected = extents(data)[axis]
    (actual,) = extents(bias)
    require_extent(actual, expected, operator, "the bias' extent", tensors=(data, bias))
    # A compute of its own: a reduction must be the whole body of a compute.
    return compute(
        data.shape, lambda *at: data[at] + bias[at[axis]], name="bias", tag=INJECTIVE
    )


def _sample_dense(draws: Draws) -> Sample:
    inputs = draws.extent(0)
    outputs = draws.extent()
    dtype = draws.number_dtype()
    data = draws.array((*draws.shape(0, 2), inputs), dtype)
    weight = draws.array((outputs, inputs), dtype)
    out_dtype = WIDER[dtype] if dtype in WIDER and draws.flag() else dtype
    bias = draws.array((outputs,), out_dtype) if draws.flag() else None
    attributes = {} if out_dtype == dtype else {"out_dtype": out_dtype}
    return Sample((data, weight, bias), attributes)


@meaning_of(dense, sample=_sample_dense)
def dense_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    out_dtype: DTypeLike | None = None,
) -> Array:
    kind = to_numpy(as_dtype(out_dtype or data.dtype))
    result = np.inner(widen(data.astype(kind)), widen(weight.astype(kind)))
    if bias is not None:
        result = result + widen(bias)
    return np.asarray(result, kind)
