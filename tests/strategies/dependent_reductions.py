"""Random reductions whose ranges depend on other axes, or on elements of tensors.

Drawn: triangles and bands of matrices, below and above the diagonal, with empty rows and with rows
that end before they begin; sums of prefixes and of suffixes, causal convolutions, products of
triangular matrices; pairs of reduction axes of which one bounds the other; rows whose bounds are
read, as in sparse matrices, also from a stage; lengths that are read and limited; conditions beside
the range; the position of the greatest element; stages that a row reads or that read the rows.

Never drawn: values that are not small integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import refcomp
from refcomp.te.tensor import Tensor
from tests.strategies.computation import Computation, Drawing, finish

_SIZES = (0, 1, 2, 3, 5, 8, 9, 13)
_READ = 12  # elements of a tensor at places that are read; the bounds that are read are 0 .. 3


def _row_range(d: Drawing, n: Any) -> Callable[[Any], tuple[Any, Any]]:
    """The first column of row i, and the column behind its last one, of n columns."""
    ranges: dict[str, Callable[[Any], tuple[Any, Any]]] = {
        "lower": lambda i: (0, i + 1),
        "strictly lower": lambda i: (0, i),
        "upper": lambda i: (i, n),
        "strictly upper": lambda i: (i + 1, n),
        "band": lambda i: (refcomp.maximum(i - 2, 0), refcomp.minimum(i + 2, n)),
        "every second": lambda i: (0, (i + 1) // 2),
        "ends before it begins": lambda i: (2, i - 1),
        "from behind": lambda i: (0, n - i),
    }
    return ranges[d.one(sorted(ranges))]


def _reducer(d: Drawing) -> Callable[..., Any]:
    return d.one([refcomp.sum, refcomp.sum, refcomp.max, refcomp.min])


def _triangle(d: Drawing) -> Computation:
    """Row by row, perhaps under a condition, of a tensor that is given or computed."""
    n = d.extent(_SIZES)
    a, x = d.tensor("A", (n, n)), d.tensor("X", (n,))
    row, reduce = _row_range(d, n), _reducer(d)
    has_condition = d.one([False, False, True])
    rows = refcomp.compute((n, n), lambda i, j: a[i, j] + x[j], name="T")
    read = rows if d.one([True, False]) else a

    def reduced(i: Any) -> Any:
        k = refcomp.reduce_axis(row(i), "k")
        where = read[i, k] < 3 if has_condition else None
        return reduce(read[i, k] * x[k], axis=k, where=where)

    c = refcomp.compute((n,), reduced, name="C")
    if d.one([True, False, False]):
        last = refcomp.compute((n,), lambda i: c[i] + x[i], name="D")
        return finish(d, "triangle", [a, x], last)
    return finish(d, "triangle", [a, x], c)


def _prefixes(d: Drawing) -> Computation:
    """Sums of the first or of the last elements, or of products with elements before."""
    n = d.extent(_SIZES)
    x = d.tensor("X", (n,))
    form = d.one(["prefix", "suffix", "causal"])

    def reduced(i: Any) -> Any:
        k = refcomp.reduce_axis((i, n) if form == "suffix" else (0, i + 1), "k")
        return refcomp.sum(x[i - k] * x[k] if form == "causal" else x[k], axis=k)

    return finish(d, "prefixes", [x], refcomp.compute((n,), reduced, name="C"))


def _triangular_product(d: Drawing) -> Computation:
    """The product of a triangular matrix and another matrix."""
    n, m = d.extent(_SIZES), d.extent((1, 2, 3, 4, 8))
    a, b = d.tensor("A", (n, n)), d.tensor("B", (n, m))
    row = _row_range(d, n)

    def reduced(i: Any, j: Any) -> Any:
        k = refcomp.reduce_axis(row(i), "k")
        return refcomp.sum(a[i, k] * b[k, j], axis=k)

    c = refcomp.compute((n, m), reduced, name="C")
    return finish(d, "triangular product", [a, b], c)


def _pairs(d: Drawing) -> Computation:
    """Two reduction axes, of which the first bounds the second; perhaps the row bounds both."""
    n, m = d.extent((1, 2, 3, 5)), d.extent((1, 2, 3, 5, 7))
    a = d.tensor("A", (m, m))
    is_bound = d.one([True, False])
    form = d.one(["upper", "lower"])

    def reduced(i: Any) -> Any:
        end = refcomp.minimum(i + 1, m) if is_bound else m
        k = refcomp.reduce_axis((0, end), "k")
        r = refcomp.reduce_axis((k, end) if form == "upper" else (0, k), "r")
        return refcomp.sum(a[k, r] + i.astype(str(a.dtype)), axis=[k, r])

    return finish(d, "pairs", [a], refcomp.compute((n,), reduced, name="C"))


def _sparse_rows(d: Drawing) -> Computation:
    """Rows of a sparse matrix. Bounds that are read may end before they begin."""
    n = d.extent((1, 2, 3, 5, 8))
    data, places = d.tensor("data", (_READ,)), d.tensor("places", (_READ,), "int32")
    given = d.tensor("begins", (n + 1,), d.one(["int32", "int64", "uint8"]))
    begins: Tensor = given
    if d.one([True, False, False]):
        begins = refcomp.compute((n + 1,), lambda i: given[i] + 1, name="P")
    x = d.tensor("X", (4,))
    form = d.one(["begin", "count"])

    def reduced(i: Any) -> Any:
        first, end = (begins[at].astype("int64") for at in (i, i + 1))
        k = refcomp.reduce_axis((first, end) if form == "begin" else (0, end - first), "k")
        at = k.as_expr() if form == "begin" else first + k
        return refcomp.sum(data[at] * x[places[at]], axis=k)

    c = refcomp.compute((n,), reduced, name="C")
    return finish(d, "sparse rows", [data, places, given, x], c)


def _lengths(d: Drawing) -> Computation:
    """Rows of different lengths, which are read and limited by the columns."""
    n, m = d.extent((1, 2, 3, 5, 8)), d.extent((1, 2, 3, 4))
    a, lengths = d.tensor("A", (n, m)), d.tensor("lengths", (n,), "int32")
    reduce = _reducer(d)

    def reduced(i: Any) -> Any:
        count = refcomp.minimum(lengths[i].astype("int64"), m)
        k = refcomp.reduce_axis((0, count), "k")
        return reduce(a[i, k], axis=k)

    return finish(d, "lengths", [a, lengths], refcomp.compute((n,), reduced, name="C"))


def _greatest_so_far(d: Drawing) -> Computation:
    """The greatest element up to each one, and its position."""
    n = d.extent(_SIZES)
    x = d.tensor("X", (n,))

    def better(a: Any, b: Any) -> Any:
        wins = refcomp.any(b[1] > a[1], refcomp.all(b[1] == a[1], b[0] < a[0]))
        return refcomp.select(wins, b[0], a[0]), refcomp.select(wins, b[1], a[1])

    def identity(index: str, value: str) -> Any:
        return refcomp.max_value(index), refcomp.min_value(value)

    greatest = refcomp.comm_reducer(better, identity, name="greatest")

    def reduced(i: Any) -> Any:
        k = refcomp.reduce_axis((0, i + 1), "k")
        return greatest((k.as_expr(), x[k]), axis=k)

    return finish(d, "greatest so far", [x], refcomp.compute((n,), reduced, name="C"))


DEPENDENT: tuple[Callable[[Drawing], Computation], ...] = (
    *(_triangle, _prefixes, _triangular_product, _pairs),
    *(_sparse_rows, _lengths, _greatest_so_far),
)
