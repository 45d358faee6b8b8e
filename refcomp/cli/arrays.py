"""Arrays of a command: checks what an .npz file gives, and fills what no file gives.

Arrays are wanted as TensorParams, whose dimensions may depend on symbols. The size of a symbol is,
in this order: the size that --symbol gives; the size that follows from the given arrays; 1.

All functions raise UserError. They refuse arrays with an unknown name or another dtype or shape.
`refcomp.runtime.arrays.npz` reads and writes the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType

import numpy as np

from refcomp.foundation.artifacts import (
    TensorParam,
    dim_to_text,
    evaluate_dim,
    names_in_dim,
)
from refcomp.foundation.dtype import DType, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.symbol_sizes import Extent, Sizes
from refcomp.runtime.device import HostArray

Arrays = dict[str, HostArray]

DEFAULT = "default"  # the origin of a size that nobody gave


@dataclass(frozen=True, slots=True)
class Filling:
    """The values of arrays that nobody gives."""

    mode: str  # random, zeros or ones
    seed: int  # of random values
    symbols: Mapping[str, int]  # symbolic dimension -> size in elements, from --symbol


@dataclass(frozen=True, slots=True)
class GivenArrays:
    """Arrays that a user gives for `params`, by name."""

    params: Sequence[TensorParam]
    arrays: Mapping[str, HostArray]
    source: str = ""  # where they come from, such as a file; for messages


def chosen_sizes(
    params: Sequence[TensorParam],
    symbols: Mapping[str, int],
    scalars: Mapping[str, int] = MappingProxyType({}),
) -> Sizes:
    """Return the sizes that a user chose: `symbols` (--symbol), and integer arguments (--scalar).

    Raise UserError for a negative size, and for a symbol that no shape of `params` has.
    """
    known = sorted({name for param in params for name in _symbols(param)})
    sizes = Sizes()
    for name, size in symbols.items():
        if name not in known:
            remedy = advise(name, known, f"symbols: {', '.join(known) or 'none'}")
            raise UserError(f"unknown symbolic dimension {name!r}", remedy=remedy)
        if size < 0:
            raise UserError(
                f"symbolic dimension {name} cannot be {size}", why="sizes are >= 0"
            )
        sizes.add(name, size, "--symbol")
    for name, size in scalars.items():
        sizes.add(name, size, "--scalar")
    return sizes


def add_sizes(sizes: Sizes, groups: Sequence[GivenArrays]) -> None:
    """Add the symbols in the params of `groups` that have no size yet.

    Their sizes follow from the arrays; a symbol that no array mentions gets 1. Raise UserError for
    a symbol that arrays mention, but do not determine.
    """
    for group in groups:
        sizes.solve(_extents(group))
    for group in groups:
        for extent in _extents(group):
            for name in names_in_dim(extent.dim):
                if name not in sizes.values:
                    raise UserError(
                        f"the size of {name} is not known",
                        where=f"{dim_to_text(extent.dim)} is {extent.size} in {extent.origin}",
                        why="no array that is given has one extent that determines it",
                        remedy=f"give it: --symbol {name}=10",
                    )
    for group in groups:
        for param in group.params:
            for name in _symbols(param):
                sizes.add(name, 1, DEFAULT)


def _extents(group: GivenArrays) -> Iterator[Extent]:
    for param in group.params:
        array = group.arrays.get(param.name)
        # `_checked` refuses wrong ranks, after the sizes are known.
        if array is None or array.ndim != len(param.shape):
            continue
        for dim, size in zip(param.shape, array.shape, strict=True):
            yield Extent(dim, size, param.name)


def complete(
    params: Sequence[TensorParam],
    given: Mapping[str, HostArray],
    filling: Filling,
    *,
    source: str = "",
    sizes: Sizes | None = None,
) -> tuple[Arrays, dict[str, int]]:
    """Return an array for each of `params`, and the size of each symbol.

    Given arrays are checked. Missing inputs are filled; missing outputs are filled with zeros.

    Args:
        params: the arrays that are wanted.
        given: arrays by name.
        filling: how missing inputs are filled.
        source: the file that gives the arrays, for messages.
        sizes: of all symbols. If left out, they follow from `filling` and from the arrays.

    Raises:
        UserError: an array has an unknown name, or another dtype or shape; or a symbol has no size.
    """
    names = [param.name for param in params]
    for name in given.keys() - set(names):
        known = ", ".join(map(str, params)) or "none"
        raise UserError(
            f"unknown input {name!r}",
            where=source or None,
            remedy=advise(name, names, f"inputs: {known}"),
        )
    views = {
        p.name: _as_dtype(p, given[p.name], source) for p in params if p.name in given
    }
    if sizes is None:
        sizes = chosen_sizes(params, filling.symbols)
        add_sizes(sizes, [GivenArrays(params, views, source)])
    random = np.random.default_rng(filling.seed)
    made: Arrays = {}
    for param in params:
        shape = _shape_of(param, sizes)
        if param.name in views:
            made[param.name] = _checked(param, views[param.name], shape, sizes, source)
            continue
        mode = "zeros" if param.is_output else filling.mode
        try:
            made[param.name] = filled(param.dtype, shape, mode, random)
        except (MemoryError, ValueError, OverflowError) as error:
            raise UserError(
                f"no memory for {param.name} of shape {shape}",
                where=str(param),
                why=str(error),
                remedy="give smaller sizes by --symbol, or inputs of them",
            ) from error
    return made, sizes.values


def _shape_of(param: TensorParam, sizes: Sizes) -> tuple[int, ...]:
    """Return the shape of `param`. A negative extent is 0, unless it follows from a default."""
    shape = []
    for dim in param.shape:
        extent = evaluate_dim(dim, sizes.values)
        defaults = [n for n in names_in_dim(dim) if sizes.origins[n] == DEFAULT]
        if extent < 0 and defaults:
            name = defaults[0]
            raise UserError(
                f"an extent of {param.name} is {dim_to_text(dim)} = {extent}",
                where=str(param),
                why=sizes.explain(dim),
                remedy=f"give an array that determines {name}, or --symbol {name}=10",
            )
        shape.append(max(0, extent))
    return tuple(shape)


def filled(
    dtype: DType, shape: tuple[int, ...], mode: str, random: np.random.Generator
) -> HostArray:
    """Return an array of zeros, ones or random values: floats in [-1, 1), integers in [0, 16)."""
    if mode != "random":
        return np.full(shape, mode == "ones", to_numpy(dtype))
    if dtype.is_bool:
        return random.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_int:
        end = min(16, dtype.max_value + 1)
        return random.integers(0, end, shape).astype(to_numpy(dtype))
    return random.uniform(-1, 1, shape).astype(to_numpy(dtype))


def _symbols(param: TensorParam) -> Iterator[str]:
    return chain.from_iterable(map(names_in_dim, param.shape))


def _as_dtype(param: TensorParam, array: HostArray, source: str) -> HostArray:
    wanted = to_numpy(param.dtype)
    # numpy writes dtypes that it does not know, such as bfloat16, as raw bytes.
    is_raw = array.dtype.kind == wanted.kind == "V" and array.dtype.names is None
    if is_raw and array.dtype.itemsize == wanted.itemsize:
        array = array.view(wanted)
    if array.dtype != wanted:
        raise UserError(
            f"array {param.name} has dtype {array.dtype}, expected {wanted}",
            where=_place(param, source),
            remedy=f"convert it: array.astype({wanted.name!r})",
        )
    # `ascontiguousarray` makes one dimension of none.
    return np.ascontiguousarray(array).reshape(array.shape)


def _checked(
    param: TensorParam,
    array: HostArray,
    shape: tuple[int, ...],
    sizes: Sizes,
    source: str,
) -> HostArray:
    """Return `array`. Raise UserError if its shape is not `shape`."""
    if array.shape == shape:
        return array
    dims = [dim_to_text(dim) for dim in param.shape]
    # As numpy writes shapes: `(n - 2, 4)`, `(n,)`.
    plain = [text[1:-1] if text.startswith("(") else text for text in dims]
    expected = f"({plain[0]},)" if len(plain) == 1 else f"({', '.join(plain)})"
    why = f"its rank is {array.ndim}, not {len(shape)}"
    if array.ndim == len(shape):
        why = sizes.explain(*param.shape)
        if any(_symbols(param)):
            expected += f" = {shape}"
    raise UserError(
        f"array {param.name} has shape {array.shape}, expected {expected}",
        where=_place(param, source),
        why=why,
        remedy="give arrays whose shapes agree",
    )


def _place(param: TensorParam, source: str) -> str:
    return f"{param}, in {source}" if source else str(param)
