"""Check the inputs that a caller gives a graph, and solve the values of its symbols from them.

Refuses, with UserError: unknown and missing names, another dtype, rank or extent, extents that give
one symbol two values, and sizes that break a condition of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from refcomp.foundation.artifacts import evaluate_dim, names_in_dim
from refcomp.foundation.dtype import STRING, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.symbol_sizes import Extent, Sizes
from refcomp.graph.graph import Graph, Value, spell, spell_condition, spell_dim
from refcomp.runtime.arrays.ndarray import NDArray


def check_feeds(
    graph: Graph, feeds: Mapping[str, tuple[object, tuple[int, ...]]]
) -> dict[str, int]:
    """Return the value of each symbol, given the dtype and shape of each input by name."""
    for name in feeds:
        check_name(graph, name)
    missing = [value.name for value in graph.inputs if value.name not in feeds]
    if missing:
        raise UserError(
            f"no value is given for input {', '.join(map(repr, missing))}",
            remedy=f"inputs: {_listed(graph)}",
        )
    sizes = Sizes()
    for value in graph.inputs:
        check_type(value, *feeds[value.name])
    sizes.solve(
        Extent(dim, extent, value.name)
        for value in graph.inputs
        for dim, extent in zip(value.shape, feeds[value.name][1], strict=True)
    )
    # Only now: an extent may depend on a symbol that a later input determines.
    for value in graph.inputs:
        _check_shape(value, feeds[value.name][1], sizes.values)
    check_conditions(graph, sizes.values)
    return sizes.values


def check_conditions(graph: Graph, symbols: Mapping[str, int]) -> None:
    """Raise UserError for the first condition of the graph that the sizes break."""
    for condition in graph.requires:
        if evaluate_dim(condition, symbols) == 0:
            names = sorted(set(names_in_dim(condition)))
            sizes = ", ".join(f"{spell(name)} = {symbols[name]}" for name in names)
            raise UserError(
                f"the graph {spell(graph.name)} requires {spell_condition(condition)}",
                why=f"but {sizes}",
                remedy="give inputs of other sizes",
            )


def check_name(graph: Graph, name: str) -> Value:
    """Return the input called `name`, or raise UserError that lists all inputs."""
    for value in graph.inputs:
        if value.name == name:
            return value
    raise UserError(
        f"the graph has no input {name!r}",
        remedy=advise(
            name, (value.name for value in graph.inputs), f"inputs: {_listed(graph)}"
        ),
    )


def _listed(graph: Graph) -> str:
    return ", ".join(map(str, graph.inputs)) or "none"


def form_of(name: str, value: object) -> tuple[object, tuple[int, ...]]:
    """Return the dtype and shape of an array that is given for the input `name`."""
    if isinstance(value, NDArray):
        return value.type, value.shape
    dtype = getattr(value, "dtype", None)
    shape = getattr(value, "shape", None)
    if dtype is None or not isinstance(shape, tuple):
        raise UserError(
            f"input {name!r} cannot be a {type(value).__name__}",
            remedy="pass an NDArray or a numpy array",
        )
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUT":
        _check_texts(name, value)
        return STRING, shape
    return dtype, shape


def _check_texts(name: str, value: np.ndarray[Any, Any]) -> None:
    """Raise UserError unless all elements of an array of objects are texts."""
    for element in value.reshape(-1) if value.dtype.kind == "O" else ():
        if not isinstance(element, str):
            raise UserError(
                f"input {name!r} has an element {element!r:.40}, which is not a text",
                remedy="pass an array of numbers, or one of texts only",
            )


def check_type(value: Value, dtype: object, shape: tuple[int, ...]) -> None:
    """Raise UserError if `dtype` or the rank of `shape` is not that of the input `value`."""
    if as_dtype(dtype) != value.dtype:
        raise UserError(
            f"input {value.name!r} is {value.dtype}, but the array is {as_dtype(dtype)}",
            remedy=f"convert it to {to_numpy(value.dtype).name} first",
        )
    if len(shape) != len(value.shape):
        raise UserError(
            f"input {value} has {len(value.shape)} dimensions, but the array has {len(shape)}",
            remedy="reshape the array",
        )


def _check_shape(
    value: Value, shape: tuple[int, ...], symbols: Mapping[str, int]
) -> None:
    for place, (dim, extent) in enumerate(zip(value.shape, shape, strict=True)):
        unknown = [name for name in names_in_dim(dim) if name not in symbols]
        if unknown:
            raise UserError(
                f"the extent {spell_dim(dim)} of input {value} has no value",
                why=f"no extent of an input determines {spell(unknown[0])}",
                remedy=f"give the graph an input with the extent {spell(unknown[0])}",
            )
        expected = evaluate_dim(dim, symbols)
        if extent != expected:
            raise UserError(
                f"extent {place} of input {value.name!r} is {extent} instead of {expected}",
                where=f"input {value}; the array has shape {shape}",
                remedy="give arrays whose shapes agree with the graph's inputs",
            )
