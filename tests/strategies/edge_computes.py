"""Random computations at the edges of their tensors, of several symbols.

Drawn: reads at clamped indices (edge padding), at remainders (circular shifts) and at reflected
ones, of what is given or computed, by elements and as sums over windows of constant or symbolic
length; extents that are computed of symbols (`n - 2`, `n // 2`, `n + m`, `n * 2`); up to four
symbols in a program.

Never drawn: values that are not small integers; reads beyond a tensor; tensors without elements
that are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import refcomp
from refcomp.ir.expr import Var
from refcomp.te.tensor import Tensor
from tests.strategies.computation import Computation, Drawing, finish

_SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 17)
_WINDOWS = (1, 2, 3, 4, 5, 8)

_Index = Callable[[Any, Any], Any]  # a place, perhaps beyond the tensor, and the tensor's extent


def _clamped_at(x: Any, n: Any) -> Any:
    return refcomp.minimum(refcomp.maximum(x, 0), n - 1)


# An index that may be negative, and one that may not: the forms that users write for it.
_CLAMPS: tuple[_Index, ...] = (
    _clamped_at,
    lambda x, n: refcomp.maximum(refcomp.minimum(x, n - 1), 0),
    lambda x, n: refcomp.select(x < 0, 0, refcomp.minimum(x, n - 1)),
    lambda x, n: _clamped_at(n - 1 - x, n),
    lambda x, n: _clamped_at(refcomp.floordiv(x, 2), n),
    lambda x, n: _clamped_at(x * 2, n),
)
_CLAMPS_BEHIND: tuple[_Index, ...] = (
    lambda x, n: refcomp.minimum(x, n - 1),
    lambda x, n: refcomp.maximum(n - 1 - x, 0),
    lambda x, n: refcomp.minimum(x // 2, n - 1),
)
_REMAINDERS: tuple[_Index, ...] = (refcomp.floormod, lambda x, n: refcomp.floormod(n - 1 - x, n))
_REMAINDERS_BEHIND: tuple[_Index, ...] = (
    lambda x, n: x % n,
    lambda x, n: (x + n) % n,
    lambda x, n: x // 2 % n,
    lambda x, n: (x + 1) * 3 % n,
)


def _reflected_at(x: Any, n: Any) -> Any:
    """Of what lies further beyond than the tensor is long, the last one that it has."""
    inner = refcomp.select(x < 0, 0 - x, x)
    return _clamped_at(refcomp.select(inner < n, inner, n * 2 - 2 - inner), n)


_REFLECTIONS: tuple[_Index, ...] = (
    _reflected_at,
    lambda x, n: _clamped_at(n - 1 - refcomp.abs(n - 1 - refcomp.abs(x)), n),
)


class _Sizes:
    """Extents of one computation: most of them symbolic, some of them computed of symbols."""

    def __init__(self, d: Drawing) -> None:
        self.d = d
        self.known = [self._plain(_SIZES)]

    def _plain(self, sizes: Sequence[int]) -> tuple[Any, int]:
        size = self.d.one(sizes)
        return (self.d.symbol(size) if self.d.one([True, True, False]) else size), size

    def one(self, sizes: Sequence[int] = _SIZES) -> Any:
        """An extent of 1 or more."""
        form = self.d.one(["new", "new", "same", "less", "half", "sum", "twice"])
        extent, size = self.known[0] if form == "same" else self._plain(sizes)
        if form == "less" and size > 2:
            extent, size = extent - 2, size - 2
        elif form == "half" and size > 1:
            extent, size = extent // 2, size // 2
        elif form == "sum":
            extent, size = extent + self.known[0][0], size + self.known[0][1]
        elif form == "twice":
            extent, size = extent * 2, size * 2
        self.known.append((extent, size))
        return extent


class _Givers:
    """Tensors that give values to the symbols that no dimension is by itself."""

    def __init__(self, d: Drawing, *shapes: tuple[Any, ...]) -> None:
        plain = {dim for shape in shapes for dim in shape if isinstance(dim, Var)}
        hidden = [symbol for symbol in d.sizes if symbol not in plain]
        self.tensors = [d.tensor(f"of_{symbol.name}", (symbol,)) for symbol in hidden]

    def added_to(self, value: Any) -> Any:
        """`value` and the first element of each: what is given has to be read."""
        for tensor in self.tensors:
            value = value + tensor[0]
        return value


def _source(d: Drawing, extent: Any, more: tuple[Any, ...] = ()) -> tuple[Tensor, Tensor]:
    """What is given, and what is read: the same, or computed from it by one stage or two."""
    a = d.tensor("A", (extent, *more))
    of = a
    for name in d.one([(), ("E",), ("E",), ("E", "F")]):
        of = _increased(of, name)
    return a, of


def _increased(of: Tensor, name: str) -> Tensor:
    return refcomp.compute(of.shape, lambda *i: of(*i) + 1, name=name)


def _by_elements(
    d: Drawing, kind: str, before: Sequence[_Index], behind: Sequence[_Index]
) -> Computation:
    """Two elements or three around each place, or first ones; perhaps of each row."""
    sizes = _Sizes(d)
    n, rows = sizes.one(), sizes.one()
    more = (sizes.one((1, 2, 3, 5, 8)),) if d.one([True, False]) else ()
    a, of = _source(d, n, more)
    reads = [(d.one(before), -d.one([1, 2, 3])), (d.one([*before, *behind]), d.one([0, 1, 2]))]
    if d.one([True, False]):
        reads = [(d.one(behind or before), 0), (lambda x, n: 0, 0)]

    def element(i: Any, *j: Any) -> Any:
        first, second = (of[(index(i + by, n), *j)] for index, by in reads)
        return givers.added_to(first + second)

    givers = _Givers(d, a.shape, (rows, *more))
    c = refcomp.compute((rows, *more), element, name="C")
    return finish(d, kind, [a, *givers.tensors], c)


def _clamped(d: Drawing) -> Computation:
    return _by_elements(d, "clamped", _CLAMPS, _CLAMPS_BEHIND)


def _circular(d: Drawing) -> Computation:
    return _by_elements(d, "circular", _REMAINDERS, _REMAINDERS_BEHIND)


def _reflected(d: Drawing) -> Computation:
    return _by_elements(d, "reflected", _REFLECTIONS, ())


def _edge_sums(d: Drawing) -> Computation:
    """Sums, or greatest elements, of windows that reach beyond the tensor."""
    sizes = _Sizes(d)
    n, rows, window = sizes.one(), sizes.one(), sizes.one(_WINDOWS)
    a, of = _source(d, n)
    k = refcomp.reduce_axis((0, window), "k")
    index = d.one([*_CLAMPS, *_CLAMPS_BEHIND, *_REMAINDERS, *_REMAINDERS_BEHIND, *_REFLECTIONS])
    reducer, step = d.one([refcomp.sum, refcomp.sum, refcomp.max]), d.one([1, 1, 2])
    is_before = index in (*_CLAMPS, *_REMAINDERS, *_REFLECTIONS)
    first = d.one([0, 1, 2]) if is_before else 0
    givers = _Givers(d, (n, rows))

    def element(i: Any) -> Any:
        return reducer(givers.added_to(of[index(i * step + k - first, n)]), axis=k)

    c = refcomp.compute((rows,), element, name="C")
    return finish(d, "edge sums", [a, *givers.tensors], c)


def _halves(d: Drawing) -> Computation:
    """Pairs, windows without their edges, or two tensors joined: extents computed of symbols."""
    sizes = _Sizes(d)
    n = sizes.one((2, 3, 4, 5, 8, 9, 13))
    form = d.one(["pairs", "windows", "joined"])
    if form == "joined":
        return _joined_at_edges(d, n, sizes.one())
    a, of = _source(d, n * 2 if form == "pairs" else n + 2)
    givers, k = _Givers(d, a.shape, (n,)), refcomp.reduce_axis((0, 3), "k")

    def pair(i: Any) -> Any:
        return givers.added_to(of[i * 2] + of[i * 2 + 1])

    def window(i: Any) -> Any:
        return refcomp.sum(givers.added_to(of[i + k]), axis=k)

    c = refcomp.compute((n,), pair if form == "pairs" else window, name="C")
    return finish(d, "halves", [a, *givers.tensors], c)


def _joined_at_edges(d: Drawing, n: Any, m: Any) -> Computation:
    a, of = _source(d, n)
    b = d.tensor("B", (m,))
    givers = _Givers(d, (n, m))

    def element(i: Any) -> Any:
        behind = b[_clamped_at(i - n, m)]
        joined = refcomp.if_then_else(i < n, of[refcomp.minimum(i, n - 1)], behind)
        return givers.added_to(joined)

    c = refcomp.compute((n + m,), element, name="C")
    return finish(d, "halves", [a, b, *givers.tensors], c)


EDGE_MAKERS: tuple[Callable[[Drawing], Computation], ...] = (
    *(_clamped, _circular, _reflected, _edge_sums, _halves),
)
