"""A computation for a random schedule, and what those that draw one share.

Never drawn: values that are not small integers, so that every dtype computes them exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import refcomp
from refcomp.foundation.dtype import to_numpy
from refcomp.ir.expr import Expr, Var
from refcomp.oracle.interpreter.interpret import evaluate_expr
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
        """The concrete shape of an array for `tensor`, with the lanes of vectors last."""
        shape = tuple(int(evaluate_expr(dim, self.sizes)) for dim in tensor.shape)
        return shape if tensor.dtype.lanes == 1 else (*shape, tensor.dtype.lanes)

    def arrays(self, seed: int) -> list[np.ndarray]:
        """Inputs of small integers; outputs full of a value that no computation gives."""
        rng = np.random.default_rng(seed)
        return [
            rng.integers(0, 4, self.shape_of(arg)).astype(to_numpy(arg.dtype))
            if arg in self.inputs
            else np.full(self.shape_of(arg), 77).astype(to_numpy(arg.dtype))
            for arg in self.args
        ]


class Drawing:
    """What makers of computations share: the draw function and the sizes of symbols so far."""

    def __init__(self, draw: Callable[[Any], Any], dtypes: Sequence[str]) -> None:
        self.draw = draw
        self.sizes: dict[Var, int] = {}
        self.dtype = draw(st.sampled_from(dtypes))

    def one(self, items: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(items))

    def extent(self, sizes: Sequence[int] = EXTENTS) -> Any:
        size = self.one(sizes)
        return size if self.draw(st.integers(0, 3)) else self.symbol(size)

    def symbol(self, size: int) -> Var:
        """A shape variable that no other dimension has."""
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


def finish(d: Drawing, kind: str, inputs: list[Tensor], outputs: Any) -> Computation:
    """The computation of `outputs`, a tensor or a list of them."""
    made = tuple(outputs) if isinstance(outputs, list) else (outputs,)
    return Computation(kind, (*inputs, *made), made, d.sizes)
