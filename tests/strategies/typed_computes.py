"""Random computations of several dtypes, and of several outputs.

Drawn: products of narrow numbers added up in wide ones and perhaps rounded back, masks of bool that
are computed, given and counted, integers of any size that wrap, are divided, shifted and combined
by bits; a stage that is an output and is read, two outputs of one stage, rows with their sums,
sums over all of a tensor.

Never drawn: floats that are no small integers; divisions by zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import refcomp
from refcomp.foundation.dtype import as_dtype
from tests.strategies.computation import Computation, Drawing, finish

_WIDE = {"int8": "int32", "uint8": "int32", "float16": "float32", "bfloat16": "float32"}
_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_LARGE = 0x5BD1E995_9E3779B9


def _wide_product(d: Drawing) -> Computation:
    """Products of narrow numbers, added up in wide ones; perhaps rounded back afterwards."""
    n, m, p = (d.extent() for _ in range(3))
    narrow = d.one(list(_WIDE))
    wide = _WIDE[narrow]
    a, b = d.tensor("A", (n, p), narrow), d.tensor("B", (p, m), narrow)
    k = refcomp.reduce_axis((0, p), "k")

    def term(i: Any, j: Any) -> Any:
        return refcomp.sum(a[i, k].astype(wide) * b[k, j].astype(wide), axis=k)

    t = refcomp.compute((n, m), term, name="T")
    if d.one([True, False]):
        return finish(d, "wide product", [a, b], t)
    c = refcomp.compute((n, m), lambda i, j: (t[i, j] + 1).astype(narrow), name="C")
    return finish(d, "wide product", [a, b], c)


def _masked(d: Drawing) -> Computation:
    """By a mask that is given, or computed, and perhaps an output of its own."""
    shape = d.shape(1, 2)
    a, b = d.tensor("A", shape), d.tensor("B", shape)
    form = d.one(["given", "computed", "output"])
    given = d.tensor("M", shape, "bool")
    mask = given if form == "given" else refcomp.compute(shape, lambda *i: a(*i) > b(*i), name="M")
    c = refcomp.compute(shape, lambda *i: refcomp.select(mask(*i), a(*i) + 1, b(*i)), name="C")
    inputs = [a, b, given] if form == "given" else [a, b]
    return finish(d, "masked", inputs, [mask, c] if form == "output" else c)


def _counted(d: Drawing) -> Computation:
    """How many elements of each row fulfil a condition, or whether one does."""
    n, m = d.extent(), d.extent()
    a = d.tensor("A", (n, m))
    k = refcomp.reduce_axis((0, m), "k")
    if d.one([True, False]):
        c = refcomp.compute(
            (n,), lambda i: refcomp.sum((a[i, k] > 1).astype("int32"), axis=k), name="C"
        )
        return finish(d, "counted", [a], c)
    has = refcomp.comm_reducer(
        lambda x, y: refcomp.any(x, y), lambda dtype: refcomp.const(False, dtype), name="has"
    )
    c = refcomp.compute((n,), lambda i: has(a[i, k] > 2, axis=k), name="C")
    return finish(d, "counted", [a], c)


def _wrapping(d: Drawing) -> Computation:
    """Integers of any size, of all widths."""
    dtype, shape = d.one(_INTEGERS), d.shape(1, 2)
    a, b = d.tensor("A", shape, dtype), d.tensor("B", shape, dtype)
    bits = as_dtype(dtype).bits
    mask = (1 << (bits - 1)) - 1
    large = refcomp.const(_LARGE & mask, dtype)
    form = d.one(
        [
            lambda x, y: x * large + y * large,
            lambda x, y: (x - y) * large >> (y + 1),
            lambda x, y: (x * large ^ y) & large,
            lambda x, y: refcomp.floordiv((x - y) * large, y + 2),
            lambda x, y: refcomp.floormod((x - y) * large, y + 3),
            lambda x, y: refcomp.truncdiv((x - y) * large, y + 2),
            lambda x, y: refcomp.truncmod((x - y) * large, y + 3),
            lambda x, y: ((x - y) * large << y) | x,
            lambda x, y: refcomp.maximum((x - 2) * large, y * large),
            lambda x, y: (x * large).astype("int8").astype(dtype) + y,
            lambda x, y: refcomp.abs((x - 2) * large) + y if dtype[0] == "i" else x ^ y,
        ]
    )
    c = refcomp.compute(shape, lambda *i: form(a(*i), b(*i)), name="C")
    return finish(d, "wrapping", [a, b], c)


def _output_that_is_read(d: Drawing) -> Computation:
    shape = d.shape(1, 2)
    a, b = d.tensor("A", shape), d.tensor("B", shape)
    t = refcomp.compute(shape, lambda *i: d.value(a(*i), b(*i)), name="T")
    c = refcomp.compute(shape, lambda *i: t(*i) * 2 + b(*i), name="C")
    return finish(d, "output that is read", [a, b], [t, c])


def _two_outputs(d: Drawing) -> Computation:
    """Of one stage, which may be inlined into both: elements, and sums of rows."""
    n, m = d.extent(), d.extent()
    a = d.tensor("A", (n, m))
    t = refcomp.compute((n, m), lambda i, j: a[i, j] + 1, name="T")
    k = refcomp.reduce_axis((0, m), "k")
    c = refcomp.compute((n, m), lambda i, j: t[i, j] * 2, name="C")
    s = refcomp.compute((n,), lambda i: refcomp.sum(t[i, k], axis=k), name="S")
    return finish(d, "two outputs", [a], [c, s])


def _whole_sum(d: Drawing) -> Computation:
    """Of all elements, and what they are together with it."""
    n, m = d.extent(), d.extent()
    a = d.tensor("A", (n, m), "float32" if d.dtype == "bfloat16" else None)
    k, r = refcomp.reduce_axis((0, n), "k"), refcomp.reduce_axis((0, m), "r")
    s = refcomp.compute((1,), lambda i: refcomp.sum(a[k, r], axis=[k, r]), name="S")
    if d.one([True, False]):
        return finish(d, "whole sum", [a], s)
    c = refcomp.compute((n, m), lambda i, j: a[i, j] + s[0], name="C")
    return finish(d, "whole sum", [a], c)


def _rounded(d: Drawing) -> Computation:
    """Through narrower dtypes and back."""
    shape, dtypes = d.shape(1, 2), ("int8", "float16", "bfloat16", "int32", "float64", "uint8")
    a = d.tensor("A", shape)
    first, second = d.one(dtypes), d.one(dtypes)
    t = refcomp.compute(shape, lambda *i: a(*i).astype(first), name="T")
    c = refcomp.compute(shape, lambda *i: (t(*i) + 1).astype(second), name="C")
    return finish(d, "rounded", [a], c)


TYPED: tuple[Callable[[Drawing], Computation], ...] = (
    *(_wide_product, _masked, _counted, _wrapping, _output_that_is_read, _two_outputs),
    *(_whole_sum, _rounded),
)
