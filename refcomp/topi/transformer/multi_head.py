"""Multi-head attention: attention between projections, and a projection of what it gives.

Reference: A. Vaswani et al., "Attention Is All You Need", NIPS 2017, section 3.2.2.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir.expr import Expr
from refcomp.te import reducer
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.normalization.moments import sum_dtype
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_float,
    require_one_dtype,
    require_rank,
    widen,
)
from refcomp.topi.tags import REDUCTION
from refcomp.topi.transformer.scaled_dot_product import (
    divide_heads,
    divided_numpy,
    join_heads,
)
from refcomp.topi.transformer.weighted_values import Scoring, attend, attend_numpy


def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_weight: Tensor,
    key_weight: Tensor,
    value_weight: Tensor,
    output_weight: Tensor,
    query_bias: Tensor | None = None,
    key_bias: Tensor | None = None,
    value_bias: Tensor | None = None,
    output_bias: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    num_heads: int,
    is_causal: bool = False,
) -> Tensor:
    """Return the projected attention between projections of queries, keys and values.

        q, k, v = query Wq' + bq, key Wk' + bk, value Wv' + bv, each divided into heads
        y = (softmax(q k' / sqrt(channels)) v, heads joined) Wo' + bo

    A query whose keys are all masked gets the output's bias. Floats of 16 bits are added up in f32.
    NaN propagates as in `scaled_dot_product_attention`.

    Args:
        query: floats [batch, queries, a].
        key: [batch, keys, b], of the dtype of `query`, as are all others but the mask.
        value: [batch, keys, c].
        query_weight: [num_heads * channels, a], the matrix Wq.
        key_weight: [num_heads * channels, b], the matrix Wk.
        value_weight: [num_heads * out_channels, c], the matrix Wv.
        output_weight: [d, num_heads * out_channels], the matrix Wo.
        query_bias: [num_heads * channels], bq; left out, it is 0, as are the next three.
        key_bias: [num_heads * channels], bk.
        value_bias: [num_heads * out_channels], bv.
        output_bias: [d], bo.
        mask: bools, of which True keeps a key, or floats that are added to the scores. Its shape
            broadcasts to [batch, num_heads, queries, keys]. Left out, all keys count.
        num_heads: the number of heads.
        is_causal: True if query i sees only the keys 0 to i.

    Returns:
        A tensor [batch, queries, d] of the dtype of `query`.

    Raises:
        UserError: `query` does not hold floats, a rank, extent or dtype does not fit, or the number
            of heads does not divide the channels.

    Reference: PyTorch, torch.nn.MultiheadAttention.

    Example::

        >>> X, W = rc.placeholder((1, 2, 1), name="X"), rc.placeholder((1, 1), name="W")
        >>> Y = rc.topi.multi_head_attention(X, X, X, W, W, W, W, num_heads=1, is_causal=True)
        >>> x, w = np.array([[[0], [0]]], "float32"), np.array([[2]], "float32")
        >>> rc.oracle.evaluate([Y], {X: x, W: w})[0].tolist()
        [[[0.0], [0.0]]]
    """
    operator = "multi_head_attention"
    require_float(query, operator)
    wide = sum_dtype(query)
    projected = [
        _project(operator, query, query_weight, query_bias, wide, "query"),
        _project(operator, key, key_weight, key_bias, wide, "key"),
        _project(operator, value, value_weight, value_bias, wide, "value"),
    ]
    for tensor in (key, value):
        require_one_dtype(operator, query, tensor)
    queries, keys, values = (
        divide_heads(tensor, num_heads, operator, name)
        for tensor, name in zip(projected, ("query", "key", "value"), strict=True)
    )
    scoring = Scoring(operator, is_causal=is_causal, mask=mask)
    joined = join_heads(attend(queries, keys, values, scoring, wide), operator)
    return _project(operator, joined, output_weight, output_bias, query.dtype, "output")


def _project(
    operator: str,
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    dtype: DType,
    name: str,
) -> Tensor:
    """Return data weight' + bias along the last axis, in `dtype`."""
    require_rank(data, 3, operator, name)
    require_rank(weight, 2, operator, f"{name}_weight")
    rows, columns = extents(weight)
    last = extents(data)[2]
    require_extent(columns, last, operator, f"{name}_weight", tensors=(data, weight))
    if bias is not None:
        require_rank(bias, 1, operator, f"{name}_bias")
        what = f"{name}_bias"
        require_extent(extents(bias)[0], rows, operator, what, tensors=(weight, bias))
    require_one_dtype(operator, weight, bias)
    if name != "output":
        require_one_dtype(operator, data, weight)
    wide = sum_dtype(data)
    k = reduce_axis(last, "k")

    def product(b: Expr, i: Expr, row: Expr) -> Expr:
        factor = weight[row, k.var].astype(wide)
        return reducer.sum(data[b, i, k.var].astype(wide) * factor, axis=k)

    shape = (*extents(data)[:2], rows)
    products = compute(shape, product, name=name, tag=REDUCTION)
    if bias is None and wide == dtype:
        return products

    def element(b: Expr, i: Expr, row: Expr) -> Expr:
        total: Expr = products[b, i, row]
        if bias is not None:
            total = total + bias[row].astype(wide)
        return total.astype(dtype)

    return compute(shape, element, name=f"{name}_projection", tag=INJECTIVE)


def _sample_multi_head_attention(draws: Draws) -> Sample:
    batch = draws.integer(0 if draws.integer(0, 9) == 0 else 1, 2)
    queries = draws.integer(0, 2)
    keys = draws.integer(0, 2)
    heads = draws.integer(1, 2)
    inner = heads * draws.integer(1, 2)
    out = heads * draws.integer(1, 2)
    last = draws.integer(1, 2)
    dtype = draws.float_dtype()
    sizes = [draws.integer(1, 2) for _ in range(3)]
    rows = (inner, inner, out, last)
    data = [
        draws.uniform((batch, length, size), -1, 1, dtype)
        for length, size in zip((queries, keys, keys), sizes, strict=True)
    ]
    weights = [
        draws.uniform(shape, -1, 1, dtype)
        for shape in zip(rows, (*sizes, out), strict=True)
    ]
    biases = [
        draws.uniform((count,), -1, 1, dtype) if draws.flag() else None
        for count in rows
    ]
    shape = (batch, heads, queries, keys)
    mask = draws.array(shape, "bool") if draws.flag() else None
    attributes = {"num_heads": heads, "is_causal": draws.flag()}
    return Sample((*data, *weights, *biases, mask), attributes)


@meaning_of(multi_head_attention, sample=_sample_multi_head_attention)
def multi_head_attention_numpy(
    query: Array,
    key: Array,
    value: Array,
    query_weight: Array,
    key_weight: Array,
    value_weight: Array,
    output_weight: Array,
    query_bias: Array | None = None,
    key_bias: Array | None = None,
    value_bias: Array | None = None,
    output_bias: Array | None = None,
    mask: Array | None = None,
    *,
    num_heads: int,
    is_causal: bool = False,
) -> Array:
    def project(data: Array, weight: Array, bias: Array | None) -> Array:
        result = widen(data) @ widen(weight).T
        return np.asarray(result if bias is None else result + widen(bias))

    result = attend_numpy(
        divided_numpy(project(query, query_weight, query_bias), num_heads),
        divided_numpy(project(key, key_weight, key_bias), num_heads),
        divided_numpy(project(value, value_weight, value_bias), num_heads),
        is_causal=is_causal,
        mask=mask,
    )
    batch, _, length, _ = result.shape
    joined = result.transpose(0, 2, 1, 3).reshape(batch, length, output_weight.shape[1])
    return project(joined, output_weight, output_bias).astype(query.dtype)
