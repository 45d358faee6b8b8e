"""Random computations that move elements about: what users write as reshape, concat, pad, flip.

Drawn: rows joined to one and cut again (floor quotients and remainders in indices), packing in
blocks and back, two tensors joined along an axis, both axes in reverse, slices with strides,
elements repeated and tiled, triangles, greatest elements of padded windows, windows unrolled to
rows of a product, transposed convolutions, reductions
that do not begin at 0.

Never drawn: values that are not small integers; indices that are read (see
`tests.strategies.computes`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import refcomp
from refcomp.te.tensor import Tensor
from tests.strategies.computation import Computation, Drawing, finish

_SOME = (1, 2, 3, 5, 8, 12)


def _reshape(d: Drawing) -> Computation:
    """Rows joined to one, or a row cut into several, of what is read or computed."""
    n, m = d.extent(), d.extent()
    if d.one([True, False]):
        a = d.tensor("A", (n, m))
        of = _perhaps_computed(d, a)
        c = refcomp.compute((n * m,), lambda i: of[i // m, i % m] + 1, name="C")
    else:
        a = d.tensor("A", (n * m,))
        of = _perhaps_computed(d, a)
        c = refcomp.compute((n, m), lambda i, j: of[i * m + j] + 1, name="C")
    return finish(d, "reshape", [a], c)


def _perhaps_computed(d: Drawing, a: Tensor) -> Tensor:
    if d.one([True, False]):
        return a
    return refcomp.compute(a.shape, lambda *i: a(*i) * 2, name="T")


def _packing(d: Drawing) -> Computation:
    """Columns in blocks, the last one filled up with zeros, and perhaps back again."""
    n, m, block = d.extent(), d.extent(), d.one([2, 4, 3])
    a = d.tensor("A", (n, m))

    def packed(i: Any, outer: Any, inner: Any) -> Any:
        column = outer * block + inner
        return refcomp.if_then_else(column < m, a[i, column], 0)

    p = refcomp.compute((n, (m + block - 1) // block, block), packed, name="P")
    if d.one([True, False]):
        return finish(d, "packing", [a], p)
    c = refcomp.compute((n, m), lambda i, j: p[i, j // block, j % block] * 2, name="C")
    return finish(d, "packing", [a], c)


def _joined(d: Drawing) -> Computation:
    """Two tensors, one after the other along one of the axes."""
    n, m, p = (d.extent() for _ in range(3))
    a, is_last = d.tensor("A", (n, m)), d.one([True, False])
    b = d.tensor("B", (n, p) if is_last else (p, m))
    begin = m if is_last else n

    def element(i: Any, j: Any) -> Any:
        at = j if is_last else i
        behind = b[i, j - begin] if is_last else b[i - begin, j]
        return refcomp.if_then_else(at < begin, a[i, j], behind)

    t = refcomp.compute((n, m + p) if is_last else (n + p, m), element, name="T")
    if d.one([True, False]):
        return finish(d, "joined", [a, b], t)
    c = refcomp.compute(t.shape, lambda i, j: t[i, j] * 3, name="C")
    return finish(d, "joined", [a, b], c)


def _in_reverse(d: Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    a = d.tensor("A", (n, m))
    of = _perhaps_computed(d, a)
    c = refcomp.compute((n, m), lambda i, j: of[n - 1 - i, m - 1 - j] + of[i, m - 1 - j], name="C")
    return finish(d, "in reverse", [a], c)


def _slice(d: Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    step, first = d.one([2, 3]), d.one([0, 1, 2])
    a = d.tensor("A", (n * step + first, m + 3))
    of = _perhaps_computed(d, a)
    c = refcomp.compute((n, m), lambda i, j: of[i * step + first, j + 3] * 2, name="C")
    return finish(d, "slice", [a], c)


def _repeated(d: Drawing) -> Computation:
    """Each element several times, or all of them several times."""
    n, m, times = d.extent(_SOME), d.extent(), d.one([2, 3, 4])
    a = d.tensor("A", (n, m))
    of = _perhaps_computed(d, a)
    index = d.one([lambda i: i // times, lambda i: i % n])
    c = refcomp.compute((n * times, m), lambda i, j: of[index(i), j] + 1, name="C")
    return finish(d, "repeated", [a], c)


def _triangle(d: Drawing) -> Computation:
    """The lower triangle, or the sums of its rows."""
    n = d.extent()
    a = d.tensor("A", (n, n))
    if d.one([True, False]):
        c = refcomp.compute((n, n), lambda i, j: refcomp.if_then_else(j <= i, a[i, j], 0), name="C")
        return finish(d, "triangle", [a], c)
    k = refcomp.reduce_axis((0, n), "k")
    c = refcomp.compute((n,), lambda i: refcomp.sum(a[i, k], axis=k, where=k <= i), name="C")
    return finish(d, "triangle", [a], c)


def _pooling(d: Drawing) -> Computation:
    """The greatest of each window of a padded image."""
    n, m, window, step = d.extent((0, 1, 2, 3, 5, 8)), d.extent((1, 2, 3, 7)), 3, d.one([1, 2])
    high, wide = n * step + 1, m * step + 1
    a = d.tensor("A", (high, wide))
    r, q = refcomp.reduce_axis((0, window), "r"), refcomp.reduce_axis((0, window), "q")
    least = refcomp.min_value(a.dtype)

    def value(y: Any, x: Any) -> Any:
        inside = refcomp.all(y >= 0, y < high, x >= 0, x < wide)
        return refcomp.if_then_else(inside, a[y, x], least)

    c = refcomp.compute(
        (n, m),
        lambda i, j: refcomp.max(value(i * step + r - 1, j * step + q - 1), axis=[r, q]),
        name="C",
    )
    return finish(d, "pooling", [a], c)


def _product_of_windows(d: Drawing) -> Computation:
    """Windows unrolled to rows, and their product with weights."""
    n, m, window = d.extent(), d.extent((1, 2, 4)), d.one([2, 3])
    a, w = d.tensor("A", (n + window - 1,)), d.tensor("W", (window, m))
    t = refcomp.compute((n, window), lambda i, k: a[i + k], name="T")
    k = refcomp.reduce_axis((0, window), "k")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(t[i, k] * w[k, j], axis=k), name="C")
    return finish(d, "product of windows", [a, w], c)


def _transposed_convolution(d: Drawing) -> Computation:
    n, window, step = d.extent(), 3, d.one([1, 2, 3])
    a, w = d.tensor("A", (n,)), d.tensor("W", (window,))
    k = refcomp.reduce_axis((0, window), "k")

    def term(i: Any) -> Any:
        is_there = refcomp.all(i >= 0, i % step == 0, i // step < n)
        return refcomp.if_then_else(is_there, a[i // step], 0) * w[k]

    c = refcomp.compute((n * step + 2,), lambda i: refcomp.sum(term(i - k), axis=k), name="C")
    return finish(d, "transposed convolution", [a, w], c)


def _later_terms(d: Drawing) -> Computation:
    """Sums over axes that do not begin at 0."""
    n, m, first = d.extent(), d.extent(), d.one([1, 2, 5])
    a = d.tensor("A", (n, m))
    k = refcomp.reduce_axis((first, m + first), "k")
    c = refcomp.compute((n,), lambda i: refcomp.sum(a[i, k - first] * 2, axis=k), name="C")
    return finish(d, "later terms", [a], c)


REARRANGEMENTS: tuple[Callable[[Drawing], Computation], ...] = (
    *(_reshape, _packing, _joined, _in_reverse, _slice, _repeated, _triangle),
    *(_pooling, _product_of_windows, _transposed_convolution, _later_terms),
)
