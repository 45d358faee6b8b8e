"""Arguments to run a computation on: sizes of its symbols, random arrays and numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.func import Requirement
from refcomp.ir.rewrite import variables_in
from refcomp.oracle.exact.field import P, field_dtype
from refcomp.oracle.interpreter.interpret import evaluate_expr, is_fulfilled
from refcomp.te.tensor import Tensor

Argument = Tensor | Buffer | Var
Arrays = list[Any]  # a numpy array for each tensor or buffer, a number for each scalar
# Sizes of the symbols, in order; a second run adds the largest factor.
_SIZES = (5, 3, 7, 4, 6, 2)
_MAX_FACTOR = 64
_MAX_TRIED = 5000  # choices of sizes, until one fulfils what a function requires
_DOUBLINGS = 5  # of sizes that leave an extent empty
_MAX_DOUBLED = 4  # symbols: 5^4 = 625 choices of sizes
# The largest random integers, to be tried in this order until every index is in range.
MAX_INTEGERS = (None, 99, 1)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Random values of `args`, the same on every call."""

    args: tuple[Argument, ...]
    sizes: Mapping[Var, int]  # of the symbols, and values of whole-number scalars
    seed: int = 0
    max_integer: int | None = None  # None for all values of the dtype

    def floats(self) -> Arrays:
        """Return values of the declared dtypes."""
        rng = np.random.default_rng(self.seed)
        return [self._value(arg, arg.dtype, rng) for arg in self.args]

    def residues(self) -> Arrays:
        """Return values of the declared dtypes, but field elements in place of floats."""
        rng = np.random.default_rng(self.seed)
        return [self._value(arg, field_dtype(arg.dtype), rng) for arg in self.args]

    def _value(self, arg: Argument, dtype: DType, rng: np.random.Generator) -> Any:
        if isinstance(arg, Var) and arg in self.sizes:
            return self.sizes[arg]
        dims = () if isinstance(arg, Var) else arg.shape
        shape = tuple(max(0, evaluate_expr(dim, self.sizes)) for dim in dims)
        values: npt.ArrayLike
        if dtype != arg.dtype:
            values = rng.integers(0, P, shape)
        elif dtype.is_float:
            values = rng.standard_normal(shape)
        elif dtype.is_bool:
            values = rng.integers(0, 2, shape)
        elif self.max_integer is not None:
            values = rng.integers(0, self.max_integer, shape, endpoint=True)
        else:
            low = dtype.min_value
            wide = np.uint64 if dtype.kind == "uint" else np.int64
            values = rng.integers(
                low, dtype.max_value, shape, dtype=wide, endpoint=True
            )
        array = np.asarray(values).astype(to_numpy(dtype))
        return array[()] if isinstance(arg, Var) else array


def symbols_of(args: Sequence[Argument]) -> list[Var]:
    """Return the shape variables and whole-number scalars, in order of appearance."""
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
    """Return values of all symbols: small ones, and some beyond the largest of `factors`.

    If possible they fulfil `requires`, and no extent of an argument is 0: programs that compute
    nothing would agree.
    """
    small = _small_sizes(args, requires)
    max_factor = max((f for f in factors if f <= _MAX_FACTOR), default=1)
    if not small or max_factor == 1:
        return [small]
    large = {var: size + max_factor for var, size in small.items()}
    if _is_fit(large, args, requires) or not _is_fit(small, args, requires):
        return [small, large]
    return [small]


def _small_sizes(
    args: Sequence[Argument], requires: Sequence[Requirement]
) -> dict[Var, int]:
    """Return the first sizes that fit, else the first that fulfil `requires`, else the usual."""
    symbols = symbols_of(args)
    usual = {var: _SIZES[k % len(_SIZES)] for k, var in enumerate(symbols)}
    fulfilling: dict[Var, int] | None = None
    for values in _choices(list(usual.values())):
        sizes = dict(zip(symbols, values, strict=True))
        if _is_fit(sizes, args, requires):
            return sizes
        if fulfilling is None and _fulfil(sizes, requires):
            fulfilling = sizes
    return fulfilling or usual


def _choices(usual: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield sizes to try: the usual ones, other small ones, then doubled ones, smallest first."""
    yield usual
    small = itertools.product(_SIZES, repeat=len(usual))
    yield from itertools.islice(small, _MAX_TRIED)
    if len(usual) <= _MAX_DOUBLED:
        doubled = [[size << k for k in range(_DOUBLINGS)] for size in usual]
        yield from sorted(itertools.product(*doubled), key=sum)


def _is_fit(
    sizes: Mapping[Var, int], args: Sequence[Argument], requires: Sequence[Requirement]
) -> bool:
    """Return True if `sizes` fulfil `requires` and leave no extent empty."""
    if not _fulfil(sizes, requires):
        return False
    dims = [dim for arg in args if not isinstance(arg, Var) for dim in arg.shape]
    return all(evaluate_expr(dim, sizes) > 0 for dim in dims)


def _fulfil(sizes: Mapping[Var, int], requires: Sequence[Requirement]) -> bool:
    """Return True if `sizes` fulfil each requirement on these symbols alone."""
    stated = [
        requirement
        for requirement in requires
        if {*sizes, *requirement.axes} >= set(variables_in(requirement))
    ]
    return all(is_fulfilled(requirement, sizes) for requirement in stated)
