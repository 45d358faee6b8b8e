"""Arguments to run a computation on: sizes of its symbols, random arrays and numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.func import Requirement
from refcomp.ir.rewrite import variables_in
from refcomp.oracle.exact.field import P, field_dtype
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.te.tensor import Tensor

Argument = Tensor | Buffer | Var
Arrays = list[Any]
_SIZES = (
    5,
    3,
    7,
    4,
    6,
    2,
)  # of the symbols in order; another run adds the greatest factor
_GREATEST_FACTOR = 64
_MOST_TRIED = 5000  # choices of sizes, until one fulfils what a function requires
_DOUBLINGS = 5  # of sizes that leave an extent empty
_MOST_DOUBLED = 4  # symbols: 5^4 = 625 choices of sizes
# Of random integers, one after the other until none that is an index is out of range.
GREATEST = (None, 99, 1)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Random values of `args`, the same on every call; `greatest` is that of the integers, None:
    of all that their dtype has. Whole-number scalars have the value that `sizes` gives them."""

    args: tuple[Argument, ...]
    sizes: Mapping[Var, int]
    seed: int = 0
    greatest: int | None = None

    def floats(self) -> Arrays:
        """Arguments of the dtypes that they are declared with; floats round."""
        return self._made(lambda dtype: dtype)

    def residues(self) -> Arrays:
        """The same where they are no floats; field elements in place of these."""
        return self._made(field_dtype)

    def _made(self, stored: Callable[[DType], DType]) -> Arrays:
        rng = np.random.default_rng(self.seed)
        return [self._one(arg, stored(arg.dtype), rng) for arg in self.args]

    def _one(self, arg: Argument, dtype: DType, rng: np.random.Generator) -> Any:
        if isinstance(arg, Var) and arg in self.sizes:
            return self.sizes[arg]
        dims = () if isinstance(arg, Var) else arg.shape
        shape = tuple(max(0, evaluate_expr(dim, self.sizes)) for dim in dims)
        if dtype != arg.dtype:
            values: Any = rng.integers(0, P, shape)
        elif dtype.is_float:
            values = rng.standard_normal(shape)
        else:
            values = self._integers(dtype, shape, rng)
        array = np.asarray(values).astype(to_numpy(dtype))
        return array[()] if isinstance(arg, Var) else array

    def _integers(
        self, dtype: DType, shape: tuple[int, ...], rng: np.random.Generator
    ) -> Any:
        if dtype.is_bool:
            return rng.integers(0, 2, shape)
        if self.greatest is not None:
            return rng.integers(0, self.greatest, shape, endpoint=True)
        low = 0 if dtype.kind == "uint" else -(1 << dtype.bits - 1)
        high = (1 << dtype.bits) - 1 + low
        wide = np.uint64 if dtype.kind == "uint" else np.int64
        return rng.integers(low, high, shape, dtype=wide, endpoint=True)


def symbols_of(args: Sequence[Argument]) -> list[Var]:
    """The shape variables and whole-number scalars among `args`, in order of appearance."""
    found: dict[Var, None] = {}
    for arg in args:
        dims: Iterable[Expr] = (arg,) if isinstance(arg, Var) else arg.shape
        found.update(dict.fromkeys(var for dim in dims for var in variables_in(dim)))
    return [var for var in found if not var.dtype.is_float]


def size_sets(
    args: Sequence[Argument],
    factors: Iterable[int],
    requires: Sequence[Requirement] = (),
) -> list[dict[Var, int]]:
    """Values of all symbols: small, and beyond the greatest of the factors of splits.

    Where small values allow it, they fulfil what is required, and no extent of an argument is 0:
    programs that compute nothing would agree.
    """

    def is_fit(sizes: Mapping[Var, int]) -> bool:
        return _fulfil(sizes, requires) and not _leave_empty(sizes, args)

    small = _small_sizes(symbols_of(args), requires, is_fit)
    most = max((f for f in factors if f <= _GREATEST_FACTOR), default=1)
    if not small or most == 1:
        return [small]
    great = {var: size + most for var, size in small.items()}
    return [small, great] if is_fit(great) or not is_fit(small) else [small]


def _small_sizes(
    symbols: Sequence[Var],
    requires: Sequence[Requirement],
    is_fit: Callable[[Mapping[Var, int]], bool],
) -> dict[Var, int]:
    """The first sizes that fit; else the first that fulfil what is required; else the usual."""
    usual = {var: _SIZES[k % len(_SIZES)] for k, var in enumerate(symbols)}
    fulfilling: dict[Var, int] | None = None
    for values in _choices(list(usual.values())):
        sizes = dict(zip(symbols, values, strict=True))
        if is_fit(sizes):
            return sizes
        if fulfilling is None and _fulfil(sizes, requires):
            fulfilling = sizes
    return fulfilling or usual


def _choices(usual: Sequence[int]) -> Iterator[Sequence[int]]:
    """Sizes to try: the usual ones, other small ones, and then doubled ones, the least first."""
    yield usual
    yield from itertools.islice(
        itertools.product(_SIZES, repeat=len(usual)), _MOST_TRIED
    )
    if len(usual) <= _MOST_DOUBLED:
        doubled = [[size << k for k in range(_DOUBLINGS)] for size in usual]
        yield from sorted(itertools.product(*doubled), key=sum)


def _leave_empty(sizes: Mapping[Var, int], args: Sequence[Argument]) -> bool:
    dims = (dim for arg in args if not isinstance(arg, Var) for dim in arg.shape)
    return any(evaluate_expr(dim, sizes) <= 0 for dim in dims)


def _fulfil(sizes: Mapping[Var, int], requires: Sequence[Requirement]) -> bool:
    """Return True if `sizes` fulfil each requirement that speaks of these symbols alone."""
    stated = [
        r.condition for r in requires if sizes.keys() >= set(variables_in(r.condition))
    ]
    return all(evaluate_expr(condition, sizes) for condition in stated)
