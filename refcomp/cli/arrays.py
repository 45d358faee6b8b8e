"""Arrays of a command: from and to .npz files, and filled where no file gives them.

Needs the tensors that are wanted as TensorParam, whose dimensions may be symbols; a symbol has the
size that a given array tells, else the one of --symbol, else 1. Refuses, by UserError, a file that
is missing, damaged, no .npz or holds pickled objects, and an array of another name, dtype or shape.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.artifacts import Dim, TensorParam, dim_to_text, evaluate_dim
from refcomp.dtype import DType, to_numpy
from refcomp.errors import UserError

Arrays = dict[str, Any]

_DAMAGE = (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


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
            loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                raise UserError(
                    f"{path} holds one array without a name",
                    remedy="write it by numpy.savez(path, name=array)",
                )
            return {name: loaded[name] for name in loaded.files}
    except OSError as error:
        raise UserError(f"{path} cannot be read", why=error.strerror or str(error)) from error
    except _DAMAGE as error:
        raise UserError(
            f"{path} is not an .npz file of plain arrays",
            why=str(error),
            remedy="write it by numpy.savez(path, name=array)",
        ) from error


def write_npz(path: str, arrays: Mapping[str, Any]) -> None:
    """`arrays` by name to an .npz file. UserError."""
    try:
        with open(path, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
    except OSError as error:
        raise UserError(f"{path} cannot be written", why=error.strerror or str(error)) from error


def complete(
    params: Sequence[TensorParam], given: Mapping[str, Any], filling: Filling
) -> tuple[Arrays, dict[str, int]]:
    """An array for each of `params`, and the size of each symbol. UserError.

    An array is the given one, checked; else it is filled, with zeros if it is an output.
    """
    _refuse_unknown(params, given, filling)
    views = {p.name: _as_dtype(p, given[p.name]) for p in params if p.name in given}
    sizes = _sizes(params, views, filling)
    random = np.random.default_rng(filling.seed)
    made: Arrays = {}
    for param in params:
        shape = tuple(evaluate_dim(dim, sizes) for dim in param.shape)
        if param.name in views:
            made[param.name] = _checked(param, views[param.name], shape, sizes)
        else:
            mode = "zeros" if param.is_output else filling.mode
            made[param.name] = _filled_or_refused(param, shape, mode, random)
    return made, sizes


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


def filled(dtype: DType, shape: tuple[int, ...], mode: str, random: np.random.Generator) -> Any:
    """An array of zeros, ones or random values: floats in [-1, 1), integers in [0, 16)."""
    if mode != "random":
        return np.full(shape, mode == "ones", to_numpy(dtype))
    if dtype.is_bool:
        return random.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_int:
        return random.integers(0, min(16, dtype.max_value + 1), shape).astype(to_numpy(dtype))
    return random.uniform(-1, 1, shape).astype(to_numpy(dtype))


def _refuse_unknown(
    params: Sequence[TensorParam], given: Mapping[str, Any], filling: Filling
) -> None:
    known = ", ".join(map(str, params)) or "none"
    for name in given.keys() - {param.name for param in params}:
        raise UserError(f"there is no input {name!r}", remedy=f"inputs: {known}")
    symbols = sorted(_symbols(params))
    for name, size in filling.symbols.items():
        if name not in symbols:
            remedy = f"symbols: {', '.join(symbols) or 'none'}"
            raise UserError(f"there is no symbolic dimension {name!r}", remedy=remedy)
        if size < 0:
            raise UserError(f"symbolic dimension {name} cannot be {size}", why="sizes are >= 0")


def _symbols(params: Sequence[TensorParam]) -> set[str]:
    found: set[str] = set()
    pending: list[Dim] = [dim for param in params for dim in param.shape]
    while pending:
        dim = pending.pop()
        if isinstance(dim, str):
            found.add(dim)
        elif isinstance(dim, tuple):
            pending.extend(dim[1:])
    return found


def _sizes(
    params: Sequence[TensorParam], given: Mapping[str, Any], filling: Filling
) -> dict[str, int]:
    sizes = {**dict.fromkeys(_symbols(params), 1), **filling.symbols}
    told: dict[str, str] = dict.fromkeys(filling.symbols, "--symbol")
    for param in params:
        if param.name not in given:
            continue
        for dim, size in zip(param.shape, given[param.name].shape, strict=False):
            if not isinstance(dim, str):
                continue
            if dim in told and sizes[dim] != size:
                raise UserError(
                    f"dimension {dim} is {sizes[dim]} by {told[dim]}, but {size} by {param.name}",
                    remedy="give inputs that agree",
                )
            sizes[dim], told[dim] = size, param.name
    return sizes


def _as_dtype(param: TensorParam, array: Any) -> Any:
    wanted = to_numpy(param.dtype)
    # numpy writes types that are not its own, such as bfloat16, as raw bytes.
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
        array = array.view(wanted)
    if array.dtype != wanted:
        raise UserError(
            f"array {param.name} has dtype {array.dtype}, expected {wanted}",
            where=str(param),
            remedy=f"convert it: array.astype({wanted.name!r})",
        )
    return np.ascontiguousarray(array).reshape(array.shape)


def _checked(
    param: TensorParam, array: Any, shape: tuple[int, ...], sizes: Mapping[str, int]
) -> Any:
    if array.shape == shape:
        return array
    dims = ", ".join(map(dim_to_text, param.shape))
    raise UserError(
        f"array {param.name} has shape {array.shape}, expected ({dims})",
        where=str(param),
        why=", ".join(f"{name} is {size}" for name, size in sizes.items()) or None,
    )
