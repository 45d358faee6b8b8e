"""Inputs and outputs of a model, as arrays by name.

A tensor has an array of its name. The elements of a sequence have arrays `NAME.0`, `NAME.1`, ...,
those of a map `NAME.KEY`, and an optional that holds nothing has none. Only tensors whose shape is
known are filled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from refcomp.cli.arrays import Arrays, Filling, complete
from refcomp.foundation.artifacts import TensorParam
from refcomp.foundation.errors import UserError
from refcomp.graph.graph import Graph, Value, ValueKind
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.runtime.device import HostArray

_SEQUENCES = (ValueKind.SEQUENCE, ValueKind.OPTIONAL_SEQUENCE)
_OPTIONALS = (ValueKind.OPTIONAL, ValueKind.OPTIONAL_SEQUENCE)


def params_of(graph: Graph) -> list[TensorParam]:
    """Return the inputs of a model whose shapes are known."""
    tensors = [value for value in graph.inputs if value.is_tensor]
    return [TensorParam(value.name, value.dtype, value.shape) for value in tensors]


def feeds_of(
    graph: Graph, given: Mapping[str, HostArray], filling: Filling
) -> dict[str, Any]:
    """Return what a run of the model takes: given arrays, and filled ones.

    Args:
        graph: the model.
        given: arrays by name.
        filling: how missing tensors are filled.

    Raises:
        UserError: an array has an unknown name, or another dtype or shape; or an input without a
            shape is not given.
    """
    left: Arrays = dict(given)
    feeds: dict[str, Any] = {}
    for value in graph.inputs:
        if not value.is_tensor:
            feeds[value.name] = _taken(value, left)
    arrays, _ = complete(params_of(graph), left, filling)
    return arrays | feeds


def _taken(value: Value, left: Arrays) -> Any:
    """Return the arrays of an input without a shape, after taking them from `left`."""
    if value.kind in _SEQUENCES:
        names = (f"{value.name}.{place}" for place in count())
        elements = []
        while (name := next(names)) in left:
            elements.append(left.pop(name))
        if elements or value.kind is ValueKind.SEQUENCE:
            return elements
        return None
    if value.name in left:
        return left.pop(value.name)
    if value.kind in _OPTIONALS:
        return None
    if value.kind is not ValueKind.UNSHAPED:
        raise UserError(
            f"the input {value} cannot be read from a file",
            why="files hold arrays, and no maps",
            remedy="run the model from Python: rc.graph.executor_for(graph)",
        )
    raise UserError(
        f"no array is given for the input {value}",
        why="its shape is not known, so that it cannot be filled",
        remedy=f"give an .npz file with an array {value.name!r}: -i FILE.npz",
    )


def inputs_of(trace: Graph, feeds: Mapping[str, Any]) -> Arrays:
    """Return the arrays that the inputs of a trace take, given what the model takes."""
    arrays: Arrays = {}
    for name, value in feeds.items():
        arrays |= arrays_of(name, value)
    return {value.name: arrays[value.name] for value in trace.inputs}


def arrays_of(name: str, value: Any) -> dict[str, HostArray]:
    """Return the arrays of an output of a run, by name. Nothing has none."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {f"{name}.{key}": np.asarray(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        parts = (arrays_of(f"{name}.{k}", one) for k, one in enumerate(value))
        return {key: array for part in parts for key, array in part.items()}
    array = value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
    return {name: array}
