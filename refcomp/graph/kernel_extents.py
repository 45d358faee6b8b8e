"""Symbols of a kernel: extents that the shapes of its own arguments determine.

A graph's inputs determine all its symbols, but one kernel may see only what was computed from them.
A convolution with stride 2 makes `((H - 1) // 2) + 1` rows, which do not determine H. So the
kernel behind it has a symbol of its own for `(H - 1) // 2`, and its arguments determine that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, count

from refcomp.foundation.artifacts import Dim, names_in_dim
from refcomp.foundation.symbol_sizes import solvable_symbols
from refcomp.graph.dims import Shape, substitute

_LINEAR = {"add", "sub", "mul"}


def with_own_symbols(
    shapes: Sequence[Shape],
) -> tuple[tuple[Shape, ...], Mapping[str, Dim]]:
    """Return shapes whose symbols they determine, and what their new symbols mean.

    The innermost quotient, minimum or maximum of a symbol that cannot be determined is replaced
    first. So relations between extents are kept where they can be.

    Args:
        shapes: the shapes of what a kernel reads.

    Returns:
        The shapes, and new symbol -> the extent of the graph that it stands for. The same shapes
        and nothing, if they determine all their symbols.

    Example::

        >>> from refcomp.graph.kernel_extents import with_own_symbols
        >>> half = ("floordiv", "H", 2)
        >>> with_own_symbols([("N", half), (("add", half, 1),)])
        ((('N', 'extent0'), (('add', 'extent0', 1),)), {'extent0': ('floordiv', 'H', 2)})
    """
    shapes = tuple(map(tuple, shapes))
    replacement = _Replacement(shapes)
    while unknown := _undetermined(shapes):
        shapes = replacement.apply(shapes, unknown)
    return shapes, replacement.meanings


def _names(dims: Sequence[Dim]) -> set[str]:
    return set(chain.from_iterable(map(names_in_dim, dims)))


def _undetermined(shapes: Sequence[Shape]) -> set[str]:
    dims = list(chain.from_iterable(shapes))
    return _names(dims) - solvable_symbols(dims)


class _Replacement:
    """New symbols for extents."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.meanings: dict[str, Dim] = {}
        self._new: dict[Dim, str] = {}  # extent, perhaps with new symbols -> its symbol
        taken = _names(list(chain.from_iterable(shapes)))
        names = (f"extent{number}" for number in count())
        self._names = (name for name in names if name not in taken)

    def apply(self, shapes: Sequence[Shape], unknown: set[str]) -> tuple[Shape, ...]:
        """Return shapes with fewer operators on `unknown` symbols."""
        made = tuple(tuple(self._inside(d, unknown) for d in shape) for shape in shapes)
        if made != shapes:
            return made
        # Sums of several unknown symbols.
        return tuple(tuple(self._whole(d, unknown) for d in shape) for shape in shapes)

    def _inside(self, dim: Dim, unknown: set[str]) -> Dim:
        """Replace the innermost operators that are not linear."""
        if not isinstance(dim, tuple):
            return dim
        operator, a, b = dim
        parts = self._inside(a, unknown), self._inside(b, unknown)
        if parts != (a, b):
            return (operator, *parts)
        return dim if operator in _LINEAR else self._whole(dim, unknown)

    def _whole(self, dim: Dim, unknown: set[str]) -> Dim:
        if isinstance(dim, int) or not _names([dim]) & unknown:
            return dim
        if dim not in self._new:
            name = self._new[dim] = next(self._names)
            self.meanings[name] = substitute(dim, self.meanings)
        return self._new[dim]
