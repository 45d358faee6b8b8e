"""Random small computations: one or two stages over tensors of up to three dimensions.

Drawn: elementwise chains, broadcasts, transposes, diagonals, stencils (guarded lazily, or inside a
larger input), gathers by a computed index, sums, minima and maxima over one or two axes with and
without a condition, matrix products, tuple reductions (argmax, products of complex numbers), two
stages one of which can be inlined; integer and float dtypes; constant and symbolic extents, 0 and 1
among them.

Never drawn: values that are not small integers (so that every dtype computes them exactly), scans,
extern operations, more than two computed stages, inexact intrinsics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import refcomp
from refcomp.dtype import to_numpy
from refcomp.ir.expr import Expr, Var
from refcomp.te.tensor import Tensor

DTYPES = ("int8", "int32", "int64", "uint8", "float32", "float64", "float16", "bfloat16")
EXTENTS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17)


@dataclass(frozen=True)
class Computation:
    """`args` in calling order, inputs first; `sizes` gives each shape variable a value."""

    kind: str
    args: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    sizes: dict[Var, int]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The placeholders among the arguments."""
        return tuple(arg for arg in self.args if not arg.op.inputs and arg not in self.outputs)

    def shape_of(self, tensor: Tensor) -> tuple[int, ...]:
        """The concrete shape of `tensor`."""
        return tuple(evaluate_dim(dim, self.sizes) for dim in tensor.shape)

    def arrays(self, seed: int) -> list[np.ndarray]:
        """Inputs of small integers; outputs full of a value that no computation gives."""
        rng = np.random.default_rng(seed)
        return [
            rng.integers(0, 4, self.shape_of(arg)).astype(to_numpy(arg.dtype))
            if arg in self.inputs
            else np.full(self.shape_of(arg), 77).astype(to_numpy(arg.dtype))
            for arg in self.args
        ]


def evaluate_dim(dim: Expr, sizes: dict[Var, int]) -> int:
    """The value of an extent that is a constant, a variable, or a sum of both."""
    if isinstance(dim, Var):
        return sizes[dim]
    value = getattr(dim, "value", None)
    if isinstance(value, int):
        return value
    return evaluate_dim(dim.a, sizes) + evaluate_dim(dim.b, sizes)


class _Drawing:
    """What the makers below share: the draw function and the sizes of symbols so far."""

    def __init__(self, draw: Callable[[Any], Any], dtypes: Sequence[str]) -> None:
        self.draw = draw
        self.sizes: dict[Var, int] = {}
        self.dtype = draw(st.sampled_from(dtypes))

    def extent(self) -> Any:
        size = self.draw(st.sampled_from(EXTENTS))
        if self.draw(st.integers(0, 3)):
            return size
        symbol = refcomp.var(f"n{len(self.sizes)}")
        self.sizes[symbol] = size
        return symbol

    def shape(self, low: int = 1, high: int = 3) -> tuple[Any, ...]:
        return tuple(self.extent() for _ in range(self.draw(st.integers(low, high))))

    def tensor(self, name: str, shape: tuple[Any, ...], dtype: str | None = None) -> Tensor:
        return refcomp.placeholder(shape, dtype or self.dtype, name)

    def value(self, x: Expr, y: Expr) -> Expr:
        """An expression of two values that keeps small integers small and exact."""
        forms = (
            lambda: x + y,
            lambda: x * y,
            lambda: refcomp.maximum(x, y),
            lambda: refcomp.minimum(x, y) + 1,
            lambda: refcomp.select(x > y, x, y * 2),
            lambda: (x + 3).astype("float32").astype(str(x.dtype)) - y.astype(str(x.dtype)),
            lambda: x * 3 + y,
        )
        return forms[self.draw(st.integers(0, len(forms) - 1))]()


def _finish(d: _Drawing, kind: str, inputs: list[Tensor], outputs: Any) -> Computation:
    made = tuple(outputs) if isinstance(outputs, list) else (outputs,)
    return Computation(kind, (*inputs, *made), made, d.sizes)


def _elementwise(d: _Drawing) -> Computation:
    shape = d.shape()
    a, b = d.tensor("A", shape), d.tensor("B", shape)
    form = d.value
    return _finish(
        d, "elementwise", [a, b], refcomp.compute(shape, lambda *i: form(a(*i), b(*i)), name="C")
    )


def _broadcast(d: _Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    a, b = d.tensor("A", (n,)), d.tensor("B", (m, n))
    c = refcomp.compute((n, m), lambda i, j: d.value(a[i], b[j, i]), name="C")
    return _finish(d, "broadcast", [a, b], c)


def _transpose(d: _Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    a = d.tensor("A", (n, m))
    return _finish(d, "transpose", [a], refcomp.compute((m, n), lambda i, j: a[j, i] + 1, name="C"))


def _diagonal(d: _Drawing) -> Computation:
    n = d.extent()
    a = d.tensor("A", (n, n, 2))
    c = refcomp.compute((n, 2), lambda i, j: a[i, i, j] + a[n - 1 - i, i, 1 - j], name="C")
    return _finish(d, "diagonal", [a], c)


def _two_stages(d: _Drawing) -> Computation:
    shape = d.shape(1, 2)
    a, b = d.tensor("A", shape), d.tensor("B", shape)
    t = refcomp.compute(shape, lambda *i: d.value(a(*i), b(*i)), name="T")
    c = refcomp.compute(shape, lambda *i: t(*i) + a(*i), name="C")
    return _finish(d, "two stages", [a, b], c)


def _stencil(d: _Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    a = d.tensor("A", (n, m + 2))
    c = refcomp.compute((n, m), lambda i, j: a[i, j] + a[i, j + 1] * 2 + a[i, j + 2], name="C")
    return _finish(d, "stencil", [a], c)


def _padded_stencil(d: _Drawing) -> Computation:
    n = d.extent()
    a = d.tensor("A", (n,))
    padded = refcomp.compute(
        (n + 2,),
        lambda i: refcomp.if_then_else(refcomp.all(i >= 1, i < n + 1), a[i - 1], 0),
        name="P",
    )
    c = refcomp.compute((n,), lambda i: padded[i] + padded[i + 1] + padded[i + 2], name="C")
    return _finish(d, "padded stencil", [a], c)


def _gather(d: _Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    table, index = d.tensor("A", (4, m)), d.tensor("I", (n,), "int32")
    c = refcomp.compute((n, m), lambda i, j: table[index[i], j] + 1, name="C")
    return _finish(d, "gather", [table, index], c)


def _fold(d: _Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    reducer = d.draw(st.sampled_from([refcomp.sum, refcomp.max, refcomp.min]))
    a = d.tensor("A", (n, m))
    k = refcomp.reduce_axis((0, m), "k")
    where = (lambda i: a[i, k] > 1) if d.draw(st.booleans()) else (lambda i: None)
    c = refcomp.compute((n,), lambda i: reducer(a[i, k], axis=k, where=where(i)), name="C")
    return _finish(d, "fold", [a], c)


def _fold_two_axes(d: _Drawing) -> Computation:
    n, m, p = (d.extent() for _ in range(3))
    # A sum of up to 867 is not exact in bf16, whose integers end at 256.
    a = d.tensor("A", (n, m, p), "float32" if d.dtype == "bfloat16" else d.dtype)
    k, r = refcomp.reduce_axis((0, m), "k"), refcomp.reduce_axis((0, p), "r")
    c = refcomp.compute((n,), lambda i: refcomp.sum(a[i, k, r], axis=[k, r]), name="C")
    return _finish(d, "fold over two axes", [a], c)


def _matmul(d: _Drawing) -> Computation:
    n, m, p = (d.extent() for _ in range(3))
    a, b = d.tensor("A", (n, p)), d.tensor("B", (p, m))
    k = refcomp.reduce_axis((0, p), "k")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")
    return _finish(d, "matmul", [a, b], c)


def _window(d: _Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    a, w = d.tensor("A", (n, m + 2)), d.tensor("W", (3,))
    k = refcomp.reduce_axis((0, 3), "k")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(a[i, j + k] * w[k], axis=k), name="C")
    return _finish(d, "window", [a, w], c)


def _argmax(d: _Drawing) -> Computation:
    n, m = d.extent(), d.extent()
    a = d.tensor("A", (n, m))
    k = refcomp.reduce_axis((0, m), "k")
    argmax = refcomp.comm_reducer(
        lambda x, y: tuple(refcomp.select(_is_better(x, y), x[q], y[q]) for q in (0, 1)),
        lambda index, value: (refcomp.max_value(index), refcomp.min_value(value)),
        name="argmax",
    )
    made = refcomp.compute((n,), lambda i: argmax((k.as_expr(), a[i, k]), axis=k), name="C")
    return _finish(d, "argmax", [a], made)


def _is_better(x: tuple[Expr, ...], y: tuple[Expr, ...]) -> Expr:
    """Whether (index, value) x wins over y: the greater value, of equal ones the first."""
    return refcomp.any(x[1] > y[1], refcomp.all(x[1] == y[1], x[0] < y[0]))


def _complex_product(d: _Drawing) -> Computation:
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
    return _finish(d, "complex product", [re, im], made)


# Those with two stages stand twice: only they can be inlined.
MAKERS = (
    *(
        _elementwise,
        _broadcast,
        _transpose,
        _diagonal,
        _stencil,
        _gather,
        _two_stages,
        _padded_stencil,
    ),
    *(_fold, _fold_two_axes, _matmul, _window, _argmax, _complex_product),
    *(_two_stages, _padded_stencil),
)


@st.composite
def computations(
    draw: Callable[[Any], Any], kinds: Sequence[str] = (), dtypes: Sequence[str] = DTYPES
) -> Computation:
    """A computation of one of the forms of the module docstring, or of those of `kinds` only."""
    makers = [maker for maker in MAKERS if not kinds or _kind_of(maker) in kinds]
    return draw(st.sampled_from(makers))(_Drawing(draw, dtypes))


def _kind_of(maker: Callable[[_Drawing], Computation]) -> str:
    return maker.__name__.strip("_").replace("_", " ")
