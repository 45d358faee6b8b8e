"""Random small computations: one to four stages over tensors of up to four dimensions.

Drawn: elementwise chains, broadcasts, transposes, diagonals, stencils (guarded lazily, or inside a
larger input), gathers by an index that is read or computed, sums, minima and maxima over one or two
axes with and without a condition, matrix products, convolutions (padded, strided, dilated), tuple
reductions (argmax, products of complex numbers), chains of reductions, two stages one of which can
be inlined; reads beyond the edges (`tests.strategies.edge_computes`); the scans and extern
operations of `tests.strategies.row_computes`; integer and float dtypes; constant and symbolic
extents, 0 and 1 among them. Only where they are named, which keeps the other draws: `MORE`, of
`tests.strategies.rearrangements` and `tests.strategies.typed_computes`, `VECTORS`, of
`tests.strategies.vector_computes`, `MORE_SIZES` and `MORE_SCANS`, of
`tests.strategies.sized_computes`, and `DEPENDENT_REDUCTIONS`.

Never drawn: values that are not small integers (so that every dtype computes them exactly), more
than four computed stages, inexact intrinsics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

import refcomp
from refcomp.ir.expr import Expr
from refcomp.te.tensor import Tensor
from tests.strategies.computation import DTYPES, Computation, Drawing, finish
from tests.strategies.dependent_reductions import DEPENDENT
from tests.strategies.edge_computes import EDGE_MAKERS
from tests.strategies.rearrangements import REARRANGEMENTS
from tests.strategies.row_computes import EXTERN_MAKERS, SCAN_MAKERS
from tests.strategies.sized_computes import SHIFTED_SCAN_MAKERS, SIZED
from tests.strategies.typed_computes import TYPED
from tests.strategies.vector_computes import VECTOR_EXTERN_MAKERS, VECTOR_MAKERS


def _elementwise(d: Drawing) -> Computation:
    shape = d.shape()
    a, b = d.tensor("A", shape), d.tensor("B", shape)
    form = d.value
    return finish(
        d, "elementwise", [a, b], refcomp.compute(shape, lambda *i: form(a(*i), b(*i)), name="C")
    )


def _broadcast(d: Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    a, b = d.tensor("A", (n,)), d.tensor("B", (m, n))
    c = refcomp.compute((n, m), lambda i, j: d.value(a[i], b[j, i]), name="C")
    return finish(d, "broadcast", [a, b], c)


def _transpose(d: Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    a = d.tensor("A", (n, m))
    return finish(d, "transpose", [a], refcomp.compute((m, n), lambda i, j: a[j, i] + 1, name="C"))


def _diagonal(d: Drawing) -> Computation:
    n = d.extent()
    a = d.tensor("A", (n, n, 2))
    c = refcomp.compute((n, 2), lambda i, j: a[i, i, j] + a[n - 1 - i, i, 1 - j], name="C")
    return finish(d, "diagonal", [a], c)


def _two_stages(d: Drawing) -> Computation:
    shape = d.shape(1, 2)
    a, b = d.tensor("A", shape), d.tensor("B", shape)
    t = refcomp.compute(shape, lambda *i: d.value(a(*i), b(*i)), name="T")
    c = refcomp.compute(shape, lambda *i: t(*i) + a(*i), name="C")
    return finish(d, "two stages", [a, b], c)


def _stencil(d: Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    a = d.tensor("A", (n, m + 2))
    c = refcomp.compute((n, m), lambda i, j: a[i, j] + a[i, j + 1] * 2 + a[i, j + 2], name="C")
    return finish(d, "stencil", [a], c)


def _padded_stencil(d: Drawing) -> Computation:
    n = d.extent()
    a = d.tensor("A", (n,))
    padded = refcomp.compute(
        (n + 2,),
        lambda i: refcomp.if_then_else(refcomp.all(i >= 1, i < n + 1), a[i - 1], 0),
        name="P",
    )
    c = refcomp.compute((n,), lambda i: padded[i] + padded[i + 1] + padded[i + 2], name="C")
    return finish(d, "padded stencil", [a], c)


def _gather(d: Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    table, index = d.tensor("A", (4, m)), d.tensor("I", (n,), "int32")
    c = refcomp.compute((n, m), lambda i, j: table[index[i], j] + 1, name="C")
    return finish(d, "gather", [table, index], c)


def _gather_of_computed(d: Drawing) -> Computation:
    """Which rows of a computed table are read is computed, too: all of it is needed."""
    n, m = d.extent(), d.extent()
    a, index, more = (
        d.tensor("A", (4, m)),
        d.tensor("I", (n,), "int32"),
        d.tensor("J", (n,), "int8"),
    )
    table = refcomp.compute((4, m), lambda i, j: a[i, j] * 2, name="T")
    row = refcomp.compute((n,), lambda i: refcomp.minimum(index[i] + more[i], 3), name="R")
    c = refcomp.compute((n, m), lambda i, j: table[row[i], j] + 1, name="C")
    return finish(d, "gather of computed", [a, index, more], c)


def _fold(d: Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    reducer = d.draw(st.sampled_from([refcomp.sum, refcomp.max, refcomp.min]))
    a = d.tensor("A", (n, m))
    k = refcomp.reduce_axis((0, m), "k")
    where = (lambda i: a[i, k] > 1) if d.draw(st.booleans()) else (lambda i: None)
    c = refcomp.compute((n,), lambda i: reducer(a[i, k], axis=k, where=where(i)), name="C")
    return finish(d, "fold", [a], c)


def _fold_two_axes(d: Drawing) -> Computation:
    n, m, p = (d.extent() for _ in range(3))
    # A sum of up to 867 is not exact in bf16, whose integers end at 256.
    a = d.tensor("A", (n, m, p), "float32" if d.dtype == "bfloat16" else d.dtype)
    k, r = refcomp.reduce_axis((0, m), "k"), refcomp.reduce_axis((0, p), "r")
    c = refcomp.compute((n,), lambda i: refcomp.sum(a[i, k, r], axis=[k, r]), name="C")
    return finish(d, "fold two axes", [a], c)


def _matmul(d: Drawing) -> Computation:
    n, m, p = (d.extent() for _ in range(3))
    a, b = d.tensor("A", (n, p)), d.tensor("B", (p, m))
    k = refcomp.reduce_axis((0, p), "k")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")
    return finish(d, "matmul", [a, b], c)


def _matmul_of_computed(d: Drawing) -> Computation:
    n, m, p = (d.extent() for _ in range(3))
    a, b = d.tensor("A", (n, p)), d.tensor("B", (p, m))
    t = refcomp.compute((n, p), lambda i, k: d.one([a[i, k] + 1, 3 - a[i, k]]), name="T")
    k = refcomp.reduce_axis((0, p), "k")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(t[i, k] * b[k, j], axis=k), name="C")
    return finish(d, "matmul of computed", [a, b], c)


def _convolution(d: Drawing) -> Computation:
    """In one or two dimensions, of up to three channels: at most 27 products of up to 9."""
    rank = d.one([1, 1, 2])
    places = [_Places(d, rank) for _ in range(rank)]
    channels, filters = d.one([1, 2, 3]), d.one([1, 2, 4])
    x = d.tensor("X", (channels, *(p.given for p in places)))
    w = d.tensor("W", (filters, channels, *(p.window for p in places)))
    padded = x if all(p.padding == 0 for p in places) else _padded(x, places)
    c = refcomp.reduce_axis((0, channels), "c")
    r = [refcomp.reduce_axis((0, p.window), f"r{k}") for k, p in enumerate(places)]

    def element(f: Any, *at: Any) -> Any:
        reads = [p.first(y) + s * p.dilation for p, y, s in zip(places, at, r, strict=True)]
        return refcomp.sum(padded[(c, *reads)] * w[(f, c, *r)], axis=[c, *r])

    out = (filters, *(p.wanted for p in places))
    return finish(d, "convolution", [x, w], refcomp.compute(out, element, name="C"))


class _Places:
    """One dimension of a convolution: how many elements are given and wanted, and what is read."""

    def __init__(self, d: Drawing, rank: int) -> None:
        self.wanted = d.extent((0, 1, 2, 3, 5) if rank == 2 else (0, 1, 2, 3, 5, 8, 13))
        self.window, self.stride, self.dilation = (
            d.one([1, 2, 3]),
            d.one([1, 1, 2, 3]),
            d.one([1, 2]),
        )
        self.padding = d.one([0, 1, 2])
        reach = self.dilation * (self.window - 1) + 1
        self.given = self.wanted * self.stride + (d.one([0, 1, 3]) if self.padding else reach)
        self.padded = self.wanted * self.stride + reach

    def first(self, at: Any) -> Any:
        return at * self.stride

    def is_inside(self, at: Any) -> Any:
        return refcomp.all(at >= self.padding, at < self.given + self.padding)


def _padded(x: Tensor, places: Sequence[_Places]) -> Tensor:
    def element(c: Any, *at: Any) -> Any:
        inside = [p.is_inside(y) for p, y in zip(places, at, strict=True)]
        value = x[(c, *(y - p.padding for p, y in zip(places, at, strict=True)))]
        return refcomp.if_then_else(refcomp.all(*inside), value, 0)

    return refcomp.compute((x.shape[0], *(p.padded for p in places)), element, name="P")


def _window(d: Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    a, w = d.tensor("A", (n, m + 2)), d.tensor("W", (3,))
    k = refcomp.reduce_axis((0, 3), "k")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(a[i, j + k] * w[k], axis=k), name="C")
    return finish(d, "window", [a, w], c)


def _argmax(d: Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    a = d.tensor("A", (n, m))
    return finish(d, "argmax", [a], _first_greatest(a))


def _argmax_of_sums(d: Drawing) -> Computation:
    n, m, p = d.extent(), d.extent(), d.extent((0, 1, 2, 3, 4, 5))
    a = d.tensor("A", (n, m, p))
    r = refcomp.reduce_axis((0, p), "r")
    t = refcomp.compute((n, m), lambda i, j: refcomp.sum(a[i, j, r], axis=r), name="T")
    return finish(d, "argmax of sums", [a], _first_greatest(t))


def _first_greatest(a: Tensor) -> list[Tensor]:
    """The index and the value of the first of the greatest elements of each row."""
    k = refcomp.reduce_axis((0, a.shape[1]), "k")
    argmax = refcomp.comm_reducer(
        lambda x, y: tuple(refcomp.select(_is_better(x, y), x[q], y[q]) for q in (0, 1)),
        lambda index, value: (refcomp.max_value(index), refcomp.min_value(value)),
        name="argmax",
    )
    return refcomp.compute(
        (a.shape[0],), lambda i: argmax((k.as_expr(), a[i, k]), axis=k), name="C"
    )


def _chain_of_folds(d: Drawing) -> Computation:
    """As softmax goes: the greatest of a row, what each is below it, and the sum of these."""
    n, m = d.extent(), d.extent()
    a = d.tensor("A", (n, m))
    k, r = refcomp.reduce_axis((0, m), "k"), refcomp.reduce_axis((0, m), "r")
    top = refcomp.compute((n,), lambda i: refcomp.max(a[i, k], axis=k), name="M")
    below = refcomp.compute((n, m), lambda i, j: top[i] - a[i, j], name="T")
    total = refcomp.compute((n,), lambda i: refcomp.sum(below[i, r], axis=r), name="S")
    c = refcomp.compute((n, m), lambda i, j: below[i, j] + total[i], name="C")
    return finish(d, "chain of folds", [a], c)


def _is_better(x: tuple[Expr, ...], y: tuple[Expr, ...]) -> Expr:
    """Whether (index, value) x wins over y: the greater value, of equal ones the first."""
    return refcomp.any(x[1] > y[1], refcomp.all(x[1] == y[1], x[0] < y[0]))


def _complex_product(d: Drawing) -> Computation:
    """A tuple reduction whose values each depend on both: products of complex integers."""
    n, m = d.extent(), d.extent()
    re, im = d.tensor("A", (n, m), "int32"), d.tensor("B", (n, m), "int32")
    k = refcomp.reduce_axis((0, m), "k")
    product = refcomp.comm_reducer(
        lambda x, y: (x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]),
        lambda *_: (1, 0),
        name="product",
    )
    made = refcomp.compute((n,), lambda i: product((re[i, k], im[i, k]), axis=k), name="C")
    return finish(d, "complex product", [re, im], made)


# Those with two stages stand twice: few others can be inlined.
_FEW_STAGES = (
    *(_elementwise, _broadcast, _transpose, _diagonal, _stencil, _gather),
    *(_two_stages, _padded_stencil),
    *(_fold, _fold_two_axes, _matmul, _window, _argmax, _complex_product),
    *(_two_stages, _padded_stencil),
)
_MORE_STAGES = (
    *(_gather_of_computed, _argmax_of_sums, _chain_of_folds, _matmul_of_computed, _convolution),
)


def kind_of(maker: Callable[[Drawing], Computation]) -> str:
    """The name of a kind of computation: that of its maker."""
    return maker.__name__.strip("_").replace("_", " ")


FEW_STAGES = tuple(dict.fromkeys(map(kind_of, _FEW_STAGES)))
EDGES = tuple(map(kind_of, EDGE_MAKERS))
COMPUTES = (*FEW_STAGES, *map(kind_of, _MORE_STAGES), *EDGES)
SCANS = tuple(map(kind_of, SCAN_MAKERS))
EXTERNS = tuple(map(kind_of, EXTERN_MAKERS))
_MAKERS = (*_FEW_STAGES, *_MORE_STAGES, *EDGE_MAKERS, *EDGE_MAKERS, *SCAN_MAKERS, *EXTERN_MAKERS)
MORE = tuple(map(kind_of, (*REARRANGEMENTS, *TYPED)))
VECTORS = tuple(map(kind_of, VECTOR_MAKERS))
VECTOR_EXTERNS = tuple(map(kind_of, VECTOR_EXTERN_MAKERS))
MORE_SIZES = tuple(map(kind_of, SIZED))
MORE_SCANS = tuple(map(kind_of, SHIFTED_SCAN_MAKERS))
DEPENDENT_REDUCTIONS = tuple(map(kind_of, DEPENDENT))
_WHERE_NAMED = (
    *(*REARRANGEMENTS, *TYPED, *VECTOR_MAKERS, *VECTOR_EXTERN_MAKERS),
    *(*SIZED, *SHIFTED_SCAN_MAKERS, *DEPENDENT),
)
# Of all kinds but MORE. Scans alone have inits to attach, products alone can be tensorized.
_RARE = (*SCAN_MAKERS, _matmul, _matmul_of_computed)
WEIGHTS = Counter(map(kind_of, (*_MAKERS, *_RARE)))


@st.composite
def computations(
    draw: Callable[[Any], Any], kinds: Sequence[str] = (), dtypes: Sequence[str] = DTYPES
) -> Computation:
    """A computation of one of the forms of the module docstring, or of those of `kinds` only."""
    known = (*_MAKERS, *_WHERE_NAMED)
    named = [maker for maker in known if kind_of(maker) in kinds]
    return draw(st.sampled_from(named or _MAKERS))(Drawing(draw, dtypes))
