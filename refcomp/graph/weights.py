"""Weights of a graph: as constants, as arguments of a run, or in files that are mapped into memory.

A folder of weights has a `.npy` file for each weight. `index.json` has their names and dtypes, in
the order of the files' numbers. bf16, which numpy's format lacks, is stored as u16. The elements of
a file begin at a multiple of 64 bytes. So executors on the host read mapped weights where they are,
and processes that map the same folder share their memory.

Folders are hostile until checked: file names are numbers, and no file holds Python objects.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NoReturn

import numpy as np

from refcomp.foundation.dtype import (
    SCALAR_DTYPES,
    DType,
    as_dtype,
    find_dtype,
    to_numpy,
)
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.paths import checked_path
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.dims import substitute
from refcomp.graph.graph import Array, Graph, spell, spell_condition
from refcomp.graph.verify import verify_graph

_INDEX = "index.json"
_MAX_INDEX = 1 << 24  # bytes
_FORMAT = "refcomp weights 1"


def constants_to_inputs(
    graph: Graph, names: Collection[str] | None = None
) -> tuple[Graph, dict[str, Array]]:
    """Return a graph whose constants are inputs, and their arrays by name.

    Args:
        graph: any graph.
        names: the constants that become inputs, after the inputs of the graph; None for all.

    Raises:
        UserError: the graph has no constant of a name.

    Example::

        >>> text = "graph g(x: f32[2]) -> (y) { const w: f32[2] = [1, 2] y: f32[2] = add(x, w) }"
        >>> graph, weights = rc.graph.constants_to_inputs(rc.graph.parse_graph(text))
        >>> print(graph)
        graph g(x: f32[2], w: f32[2]) -> (y) {
          y: f32[2] = add(x, w)
        }
        >>> weights
        {'w': array([1., 2.], dtype=float32)}
    """
    verify_graph(graph)
    arrays = {value.name: array for value, array in graph.constants.items()}
    chosen = arrays if names is None else names
    for name in chosen:
        _check_known(name, arrays, "constant")
    made = Graph(
        graph.name,
        (*graph.inputs, *(v for v in graph.constants if v.name in chosen)),
        graph.outputs,
        graph.nodes,
        {v: array for v, array in graph.constants.items() if v.name not in chosen},
        graph.requires,
    )
    return made, {name: arrays[name] for name in chosen}


def inputs_to_constants(graph: Graph, weights: Mapping[str, Array]) -> Graph:
    """Return a graph whose inputs of these names are constants.

    Extents of other values that depend on a symbol of such an input become constants, too.

    Args:
        graph: any graph.
        weights: name of an input -> its array, which the graph shares and nobody may change.

    Raises:
        UserError: the graph has no input of a name, or an array does not fit.

    Example::

        >>> text = "graph g(x: f32[N], w: f32[N]) -> (y) { y: f32[N] = add(x, w) }"
        >>> graph = rc.graph.parse_graph(text)
        >>> print(rc.graph.inputs_to_constants(graph, {"w": np.ones(2, "float32")}))
        graph g(x: f32[2]) -> (y) {
          const w: f32[2] = [1.0, 1.0]
          y: f32[2] = add(x, w)
        }
    """
    verify_graph(graph)
    _check_mapping(weights)
    inputs = {value.name: value for value in graph.inputs}
    symbols: dict[str, int] = {}
    for name, array in weights.items():
        _check_known(name, inputs, "input")
        declared = inputs[name]
        elements = _checked_elements(name, array)
        fits = declared.is_tensor and as_dtype(elements.dtype) == declared.dtype
        pairs = list(zip(declared.shape, elements.shape, strict=False))
        for dim, extent in pairs:
            known = symbols.setdefault(dim, extent) if isinstance(dim, str) else extent
            fits = fits and known == extent and (isinstance(dim, str) or dim == extent)
        if not fits or len(declared.shape) != elements.ndim:
            raise UserError(
                f"input {declared} cannot be {as_dtype(elements.dtype)}{list(elements.shape)}",
                remedy="give an array of the input's dtype and shape",
            )
    return _with_constants(graph, weights, symbols)


def _with_constants(
    graph: Graph, weights: Mapping[str, Array], symbols: Mapping[str, int]
) -> Graph:
    builder = GraphBuilder(graph.name)
    values = {}
    for value in graph.inputs:
        if value.name in weights:
            array = np.asarray(weights[value.name])
            values[value] = builder.constant(value.name, array, copy=False)
        else:
            shape = [substitute(dim, symbols) for dim in value.shape]
            values[value] = builder.input(value.name, value.dtype, shape, value.kind)
    for value, array in graph.constants.items():
        values[value] = builder.constant(value.name, array, copy=False)
    for condition in graph.requires:
        left = substitute(condition, symbols)
        if left == 0:
            sizes = ", ".join(f"{spell(name)} = {symbols[name]}" for name in symbols)
            raise UserError(
                f"the graph {spell(graph.name)} requires {spell_condition(condition)}",
                why=f"but {sizes}",
                remedy="give weights of other sizes",
            )
        if not isinstance(left, int):
            builder.require(left)
    for node in graph.nodes:
        made = builder.nodes(
            node.operator,
            [None if value is None else values[value] for value in node.inputs],
            node.attributes,
            [value.name for value in node.outputs],
            node.subgraphs,
            late={name: values[value] for name, value in node.late.items()},
            dtypes=[value.dtype for value in node.outputs],
        )
        values.update(zip(node.outputs, made, strict=True))
    return builder.finish([values[value] for value in graph.outputs])


def save_weights(folder: str | Path, weights: Mapping[str, Array]) -> None:
    """Write weights to a folder, which must not exist or be empty.

    Args:
        folder: the path of the folder.
        weights: name -> array, of any dtype that numpy's format holds.

    Raises:
        UserError: the folder has files, cannot be written, or a weight is not an array of numbers.

    Example::

        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> rc.graph.save_weights(folder, {"w": np.ones(2, "float32")})
        >>> rc.graph.map_weights(folder)["w"].tolist()
        [1.0, 1.0]
    """
    path = Path(checked_path(folder, "a folder of weights"))
    _check_mapping(weights)
    arrays = {name: _checked_elements(name, array) for name, array in weights.items()}
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise UserError(
                f"the folder {str(path)!r} is not empty",
                remedy="give a folder that does not exist",
            )
        for number, array in enumerate(arrays.values()):
            stored = array.view(_stored_dtype(as_dtype(array.dtype)))
            np.save(path / f"{number}.npy", stored, allow_pickle=False)
        listed = [[name, str(as_dtype(a.dtype))] for name, a in arrays.items()]
        index = {"format": _FORMAT, "weights": listed}
        (path / _INDEX).write_text(json.dumps(index), encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"the folder {str(path)!r} cannot be written",
            why=str(error),
            remedy="choose another folder",
        ) from error


def map_weights(folder: str | Path) -> dict[str, Array]:
    """Return the weights in a folder by name, mapped into memory: read where they are needed.

    Give them to `inputs_to_constants`, or to a run. The files must not change while they are used.

    Args:
        folder: the path of a folder that `save_weights` wrote.

    Returns:
        name -> an array that cannot be written.

    Raises:
        UserError: the folder or a file is missing, damaged, or holds something else.

    Example::

        >>> rc.graph.map_weights("/nowhere")
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: the weights in '/nowhere' cannot be read...
    """
    path = Path(checked_path(folder, "a folder of weights"))
    weights = {}
    for number, (name, dtype) in enumerate(_read_index(path).items()):
        file = path / f"{number}.npy"
        try:
            array = np.load(file, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError, SyntaxError, MemoryError) as error:
            _refuse_folder(path, f"{file.name}: {error}")
        if array.dtype != _stored_dtype(dtype):
            _refuse_folder(path, f"{file.name} holds {array.dtype} instead of {dtype}")
        weights[name] = np.asarray(array).view(to_numpy(dtype))
    return weights


def _read_index(path: Path) -> dict[str, DType]:
    """Return the dtype of each weight in a folder by name, in the order of the files."""
    try:
        with (path / _INDEX).open("rb") as file:
            data = file.read(_MAX_INDEX + 1)
        if len(data) > _MAX_INDEX:
            _refuse_folder(path, f"{_INDEX} has more than {_MAX_INDEX} bytes")
        index = json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        _refuse_folder(path, f"{_INDEX}: {error}")
    found: dict[str, DType] = {}
    match index:
        case {"format": str(version), "weights": list(listed)} if version == _FORMAT:
            for item in listed:
                match item:
                    case [str(name), str(word)] if name not in found:
                        dtype = find_dtype(word)
                        if dtype in SCALAR_DTYPES:
                            found[name] = dtype
            if len(found) == len(listed):
                return found
    _refuse_folder(path, f"{_INDEX} is not an index of {_FORMAT!r}")


def _stored_dtype(dtype: DType) -> np.dtype[np.generic]:
    """Return the dtype of a file's elements: that of numpy, or u16 for what numpy lacks."""
    native = to_numpy(dtype)
    return np.dtype(np.uint16) if native.kind == "V" else native


def _refuse_folder(path: Path, why: str) -> NoReturn:
    raise UserError(
        f"the weights in {str(path)!r} cannot be read",
        why=why,
        remedy="write them again by refcomp.graph.save_weights",
    )


def _check_mapping(weights: object) -> None:
    if not isinstance(weights, Mapping):
        raise UserError(
            f"weights are a {type(weights).__name__}, not arrays by name",
            remedy='pass a dict: {"w": array}',
        )


def _check_known(name: str, known: Collection[str], kind: str) -> None:
    if name not in known:
        listed = ", ".join(map(spell, known)) or "none"
        raise UserError(
            f"the graph has no {kind} {name!r}",
            remedy=advise(str(name), known, f"{kind}s: {listed}"),
        )


def _checked_elements(name: str, array: Array) -> Array:
    """Return an array of a dtype that refcomp has, row by row."""
    if not isinstance(array, np.ndarray):
        raise UserError(
            f"weight {name!r} is a {type(array).__name__}",
            remedy="pass a numpy array",
        )
    as_dtype(array.dtype)
    return np.asarray(array, order="C")
