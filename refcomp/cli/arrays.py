"""Arrays of a command: from and to .npz files, and filled where no file gives them.

Needs the tensors that are wanted as TensorParam, whose dimensions may depend on symbols. A symbol
has the size that --symbol says, else the one that follows from the given arrays, else 1. Refuses,
by UserError, a file that is missing, damaged, not an .npz file or holds pickled objects, and an
array of another name, dtype or shape.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from errno import EINVAL
from itertools import chain
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from refcomp.foundation.artifacts import (
    Dim,
    TensorParam,
    dim_to_text,
    evaluate_dim,
    names_in_dim,
)
from refcomp.foundation.dtype import DType, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.symbol_sizes import Extent, Sizes

Arrays = dict[str, Any]

DEFAULT = "default"  # the origin of a size that nobody gave

_NPY = b"\x93NUMPY"
_ZIPS = (b"PK\x03\x04", b"PK\x05\x06")  # an archive, and one without members
# zipfile raises RuntimeError and NotImplementedError for what is encrypted or packed in other ways.
_DAMAGE = (
    ValueError,
    TypeError,
    EOFError,
    KeyError,
    RuntimeError,
    SyntaxError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True, slots=True)
class Filling:
    """How arrays are made that nobody gives: `mode` is random, zeros or ones."""

    mode: str
    seed: int
    symbols: Mapping[str, int]


def read_npz(path: str | None) -> Arrays:
    """The arrays of an .npz file by name; none when `path` is None. UserError."""
    if path is None:
        return {}
    try:
        with open(path, "rb") as file:
            _check_beginning(path, file)
            loaded = np.load(file, allow_pickle=False)
            return {name: _member(path, loaded, name) for name in loaded.files}
    except OSError as error:
        if error.errno == EINVAL:  # a place before the beginning of the file
            raise _not_plain_arrays(path, "the archive is damaged") from error
        raise UserError(
            f"{path} cannot be read", why=error.strerror or str(error)
        ) from error
    except _DAMAGE as error:
        raise _not_plain_arrays(path, "the archive is damaged") from error


def _check_beginning(path: str, file: BinaryIO) -> None:
    """UserError unless the file begins as archives do. numpy would take any other for a pickle."""
    magic = file.read(len(_NPY))
    file.seek(0)
    if magic == _NPY:
        raise UserError(
            f"{path} holds one array without a name",
            remedy="write it by numpy.savez(path, name=array)",
        )
    if not magic.startswith(_ZIPS):
        raise _not_plain_arrays(path, "it does not begin as an .npz file does")


def _member(path: str, loaded: Any, name: str) -> Any:
    try:
        array = loaded[name]
    except (MemoryError, OverflowError) as error:
        raise _not_plain_arrays(path, f"{name!r} is too large for memory") from error
    except _DAMAGE as error:
        is_pickled = "pickle" in str(error)
        why = (
            "holds Python objects, and reading these could run code"
            if is_pickled
            else "is damaged"
        )
        raise _not_plain_arrays(path, f"{name!r} {why}") from error
    if not isinstance(array, np.ndarray):
        raise _not_plain_arrays(path, f"{name!r} is not an array")
    return array


def _not_plain_arrays(path: str, why: str) -> UserError:
    return UserError(
        f"{path} is not an .npz file of plain arrays",
        why=why,
        remedy="write it by numpy.savez(path, name=array)",
    )


def write_npz(path: str, arrays: Mapping[str, Any]) -> None:
    """`arrays` by name to an .npz file. UserError."""
    try:
        with open(path, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
    except OSError as error:
        raise UserError(
            f"{path} cannot be written", why=error.strerror or str(error)
        ) from error


@dataclass(frozen=True, slots=True)
class GivenArrays:
    """Arrays by name that a user gives for `params`; `source` is where they come from."""

    params: Sequence[TensorParam]
    arrays: Mapping[str, Any]
    source: str = ""


def chosen_sizes(
    params: Sequence[TensorParam],
    symbols: Mapping[str, int],
    scalars: Mapping[str, int] = MappingProxyType({}),
) -> Sizes:
    """Return the sizes that a user chose: `symbols` (--symbol), and integer arguments (--scalar).

    UserError for a symbol that is negative, or that no shape of `params` has.
    """
    known = sorted({name for param in params for name in _symbols(param)})
    sizes = Sizes()
    for name, size in symbols.items():
        if name not in known:
            remedy = f"symbols: {', '.join(known) or 'none'}"
            raise UserError(f"there is no symbolic dimension {name!r}", remedy=remedy)
        if size < 0:
            raise UserError(
                f"symbolic dimension {name} cannot be {size}", why="sizes are >= 0"
            )
        sizes.add(name, size, "--symbol")
    for name, size in scalars.items():
        sizes.add(name, size, "--scalar")
    return sizes


def add_sizes(sizes: Sizes, groups: Sequence[GivenArrays]) -> None:
    """Add the size of each symbol in the params of `groups` that is not known yet.

    The arrays of each group tell it; it is 1 if no array mentions it. UserError for a symbol that
    given arrays mention, but do not determine.
    """
    for group in groups:
        sizes.solve(_extents(group))
    _refuse_undetermined(groups, sizes)
    for group in groups:
        for param in group.params:
            for name in _symbols(param):
                sizes.add(name, 1, DEFAULT)


def _extents(group: GivenArrays) -> Iterator[Extent]:
    for param in group.params:
        array = group.arrays.get(param.name)
        if array is None or array.ndim != len(param.shape):  # ranks are compared later
            continue
        for dim, size in zip(param.shape, array.shape, strict=True):
            yield Extent(dim, size, param.name)


def _refuse_undetermined(groups: Sequence[GivenArrays], sizes: Sizes) -> None:
    for group in groups:
        for extent in _extents(group):
            for name in names_in_dim(extent.dim):
                if name not in sizes.values:
                    raise UserError(
                        f"the size of {name} is not known",
                        where=f"{dim_to_text(extent.dim)} is {extent.size} in {extent.origin}",
                        why="no array that is given has one extent that determines it",
                        remedy=f"say it: --symbol {name}=10",
                    )


def complete(
    params: Sequence[TensorParam],
    given: Mapping[str, Any],
    filling: Filling,
    *,
    source: str = "",
    sizes: Sizes | None = None,
) -> tuple[Arrays, dict[str, int]]:
    """An array for each of `params`, and the size of each symbol. UserError.

    An array is the given one, checked; else it is filled, with zeros if it is an output. `source`
    is the file that gives the arrays, for messages. `sizes` are solved from the arrays if left out.
    """
    known = ", ".join(map(str, params)) or "none"
    for name in given.keys() - {param.name for param in params}:
        raise UserError(
            f"there is no input {name!r}",
            where=source or None,
            remedy=f"inputs: {known}",
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
        shape = tuple(_extent_of(param, dim, sizes) for dim in param.shape)
        if param.name in views:
            made[param.name] = _checked(param, views[param.name], shape, sizes, source)
        else:
            mode = "zeros" if param.is_output else filling.mode
            made[param.name] = _filled_or_refused(param, shape, mode, random)
    return made, sizes.values


def _extent_of(param: TensorParam, dim: Dim, sizes: Sizes) -> int:
    """The value of `dim`, 0 if it is negative. UserError where nobody chose the sizes."""
    extent = evaluate_dim(dim, sizes.values)
    chosen = [name for name in names_in_dim(dim) if sizes.origins[name] == DEFAULT]
    if extent < 0 and chosen:
        raise UserError(
            f"an extent of {param.name} is {dim_to_text(dim)} = {extent}",
            where=str(param),
            why=sizes.explain(dim),
            remedy=f"give an array that determines {chosen[0]}, or --symbol {chosen[0]}=10",
        )
    return max(0, extent)


def _filled_or_refused(
    param: TensorParam, shape: tuple[int, ...], mode: str, random: np.random.Generator
) -> Any:
    try:
        return filled(param.dtype, shape, mode, random)
    except (MemoryError, ValueError, OverflowError) as error:
        raise UserError(
            f"no memory for {param.name} of shape {shape}",
            where=str(param),
            why=str(error),
            remedy="give smaller sizes by --symbol, or inputs of them",
        ) from error


def filled(
    dtype: DType, shape: tuple[int, ...], mode: str, random: np.random.Generator
) -> Any:
    """An array of zeros, ones or random values: floats in [-1, 1), integers in [0, 16)."""
    if mode != "random":
        return np.full(shape, mode == "ones", to_numpy(dtype))
    if dtype.is_bool:
        return random.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_int:
        return random.integers(0, min(16, dtype.max_value + 1), shape).astype(
            to_numpy(dtype)
        )
    return random.uniform(-1, 1, shape).astype(to_numpy(dtype))


def _symbols(param: TensorParam) -> Iterator[str]:
    return chain.from_iterable(map(names_in_dim, param.shape))


def _as_dtype(param: TensorParam, array: Any, source: str) -> Any:
    wanted = to_numpy(param.dtype)
    # numpy writes types that are not its own, such as bfloat16, as raw bytes.
    is_raw = array.dtype.kind == wanted.kind == "V" and array.dtype.names is None
    if is_raw and array.dtype.itemsize == wanted.itemsize:
        array = array.view(wanted)
    if array.dtype != wanted:
        raise UserError(
            f"array {param.name} has dtype {array.dtype}, expected {wanted}",
            where=_place(param, source),
            remedy=f"convert it: array.astype({wanted.name!r})",
        )
    return np.ascontiguousarray(array).reshape(array.shape)


def _checked(
    param: TensorParam, array: Any, shape: tuple[int, ...], sizes: Sizes, source: str
) -> Any:
    if array.shape == shape:
        return array
    is_symbolic = any(_symbols(param))
    has_rank = array.ndim == len(shape)
    numbers = f" = {shape}" if is_symbolic and has_rank else ""
    ranks = f"its rank is {array.ndim}, not {len(shape)}"
    raise UserError(
        f"array {param.name} has shape {array.shape}, expected {_dims_to_text(param)}{numbers}",
        where=_place(param, source),
        why=sizes.explain(*param.shape) if has_rank else ranks,
        remedy="give arrays whose shapes agree",
    )


def _dims_to_text(param: TensorParam) -> str:
    """The shape as numpy writes one: `(n - 2, 4)`, `(n,)`."""
    dims = [dim_to_text(dim) for dim in param.shape]
    plain = [text[1:-1] if text.startswith("(") else text for text in dims]
    return f"({plain[0]},)" if len(plain) == 1 else f"({', '.join(plain)})"


def _place(param: TensorParam, source: str) -> str:
    return f"{param}, in {source}" if source else str(param)
