"""Networks in the classic forms: `nnvm.graph`, `nnvm.frontend` and `nnvm.compiler`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from refcomp.classic.methods import with_classic_attributes
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import Target
from refcomp.graph import building
from refcomp.graph.building import GraphConfig
from refcomp.graph.compiled import CompiledGraph
from refcomp.graph.dims import Shape
from refcomp.graph.feeds import check_name
from refcomp.graph.graph import Graph, Value
from refcomp.graph.symbol.json import document_from_json
from refcomp.graph.symbol.sources import load_json
from refcomp.graph.symbol.symbol import Symbol
from refcomp.graph.weights import constants_to_inputs
from refcomp.runtime.arrays.ndarray import NDArray, array
from refcomp.runtime.module import Module

# Classic passes of a build -> passes of refcomp.
_PASSES = {
    "SimplifyInference": "simplify_inference",
    "OpFusion": "fuse_operators",
    "PrecomputePrune": "fold_constants",
    "FoldScaleAxis": "fold_scale_axis",
    "AlterOpLayout": "block_channels",
}


@with_classic_attributes("Graph")
@dataclass(frozen=True, slots=True)
class SymbolGraph:
    """A network of symbols as a graph, which `nnvm.graph.create` returns.

    Attributes:
        symbol: the outputs of the network.

    Example::

        >>> from refcomp.classic import nnvm
        >>> graph = nnvm.graph.create(nnvm.sym.relu(nnvm.sym.Variable("x"), name="y"))
        >>> nnvm.graph.load_json(graph.json()).symbol.list_output_names()
        ['y_output']
    """

    symbol: Symbol

    def json(self) -> str:
        """Return the classic JSON form."""
        return self.symbol.json()

    def ir(self) -> str:
        """Return the nodes in order, with their inputs and attributes, as text."""
        return self.symbol.debug_str()


def create(symbol: Symbol) -> SymbolGraph:
    """Return the graph of a symbol, by its classic name `nnvm.graph.create`."""
    if not isinstance(symbol, Symbol):
        raise UserError(
            f"a {type(symbol).__name__} is not a network", remedy="pass a symbol"
        )
    return SymbolGraph(symbol)


def load_graph(json_str: str) -> SymbolGraph | CompiledGraph:
    """Return the graph that a JSON text describes, by its classic name `nnvm.graph.load_json`.

    Args:
        json_str: what `json` of a graph returned; it may be a compiled graph.

    Raises:
        UserError: the text is damaged.
    """
    document = document_from_json(json_str, "the text", "a graph")
    if "format" in document:
        return CompiledGraph.from_json(json_str)
    return SymbolGraph(load_json(json_str))


@dataclass(frozen=True, slots=True)
class ImportedNetwork:
    """A network from an ONNX model, which `nnvm.frontend.from_onnx` returns.

    Attributes:
        graph: the graph. Its weights are inputs, behind the others.
    """

    graph: Graph

    def list_input_names(self) -> list[str]:
        """Return the names of the inputs, then the names of the weights."""
        return [value.name for value in self.graph.inputs]

    def list_output_names(self) -> list[str]:
        """Return the names of the outputs."""
        return [value.name for value in self.graph.outputs]

    def debug_str(self) -> str:
        """Return the text form of the graph."""
        return str(self.graph)


class SerializableModel(Protocol):
    """A model of the package `onnx`."""

    def SerializeToString(self) -> bytes:
        """Return the bytes of the model."""


def from_onnx(
    model: SerializableModel | str | os.PathLike[str] | bytes,
) -> tuple[ImportedNetwork, dict[str, NDArray]]:
    """Return a network and its parameters, by the classic name `nnvm.frontend.from_onnx`.

    Args:
        model: an ONNX model of the package `onnx`, its bytes, or the path of its file.

    Raises:
        UserError: as for `refcomp.from_onnx`.
        Unsupported: operators or attributes that refcomp cannot run.
    """
    # Here, since it takes longer to import than all other names of this file.
    from refcomp.frontend.onnx.importer import (  # noqa: PLC0415
        from_onnx as graph_from_onnx,
    )

    source = model if isinstance(model, str | os.PathLike | bytes) else _bytes_of(model)
    graph, weights = constants_to_inputs(graph_from_onnx(source))
    params = {name: array(elements) for name, elements in weights.items()}
    return ImportedNetwork(graph), params


def _bytes_of(model: SerializableModel) -> bytes:
    if not hasattr(model, "SerializeToString"):
        raise UserError(
            f"a {type(model).__name__} is not an ONNX model",
            remedy="pass what onnx.load returned, or the path of a file",
        )
    return model.SerializeToString()


def build(
    graph: Symbol | SymbolGraph | ImportedNetwork | Graph,
    target: Target | str | None = None,
    shape: Mapping[str, Sequence[int]] | None = None,
    dtype: str | Mapping[str, object] = "float32",
    params: Mapping[str, object] | None = None,
    target_host: Target | str | None = None,
    layout: str | Mapping[str, str] | None = None,
) -> tuple[CompiledGraph, Module | None, dict[str, NDArray]]:
    """Compile a network, by the classic name `nnvm.compiler.build`; see `refcomp.graph.build`.

    Args:
        graph: a symbol, a graph of a symbol, or a network from an ONNX model.
        target: what to compile for.
        shape: name of an input -> its shape.
        dtype: the dtype of the inputs; or name of a variable -> its dtype. An imported network has
            its own.
        params: name of a parameter -> its array.
        target_host: what the host's part is compiled for, `"llvm"`.
        layout: accepted, and not needed: attributes of operators say layouts.

    Raises:
        UserError: as for `refcomp.graph.build`, or a shape does not fit the imported network.
    """
    if isinstance(target, Mapping):
        raise UserError(
            f"one network cannot be built for {' and '.join(map(str, target))}",
            why="all kernels of a network run on one device",
            remedy="build a network for each device, and copy arrays from one to the next",
        )
    if isinstance(graph, ImportedNetwork):
        for name, extents in (shape or {}).items():
            _check_extents(check_name(graph.graph, name), tuple(extents))
        graph = graph.graph
    net = graph.symbol if isinstance(graph, SymbolGraph) else graph
    return building.build(net, target, shape, dtype, params, target_host, layout)


def _check_extents(value: Value, extents: tuple[int, ...]) -> None:
    """Raise UserError unless an input may have a shape."""
    fits = len(extents) == len(value.shape) and all(
        given == dim or not isinstance(dim, int)
        for given, dim in zip(extents, value.shape, strict=True)
    )
    if not fits:
        raise UserError(
            f"input {value} cannot have the shape {extents}",
            why="the model says its shape",
            remedy="give an array of that shape; an extent that is a name may be any",
        )


@contextmanager
def build_config(
    opt_level: int = building.MAX_LEVEL, add_pass: str | Sequence[str] | None = None
) -> Iterator[GraphConfig]:
    """Set options of builds in a scope; see `refcomp.graph.build_config`.

    Args:
        opt_level: 0 to 3.
        add_pass: names of passes that run at any level. Those of NNVM stand for passes of refcomp:
            OpFusion, PrecomputePrune, SimplifyInference, FoldScaleAxis and AlterOpLayout.

    Example::

        >>> from refcomp.classic import nnvm
        >>> with nnvm.compiler.build_config(opt_level=0, add_pass=["OpFusion"]) as config:
        ...     print(config.passes()[-1])
        fuse_operators
    """
    if isinstance(add_pass, str) or not isinstance(add_pass, Sequence | None):
        add_pass = [add_pass]
    names = [_PASSES.get(name, name) for name in add_pass or ()]
    with building.build_config(opt_level, names) as config:
        yield config


def infer_shape(
    graph: SymbolGraph | Symbol, **shape: object
) -> tuple[list[Shape], list[Shape]]:
    """Return the shapes of the variables and of the outputs: `graph_util.infer_shape`."""
    return _symbol_of(graph).infer_shape(**shape)


def infer_dtype(
    graph: SymbolGraph | Symbol, **dtype: object
) -> tuple[list[str], list[str]]:
    """Return the dtypes of the variables and of the outputs: `graph_util.infer_dtype`."""
    return _symbol_of(graph).infer_dtype(**dtype)


def _symbol_of(graph: SymbolGraph | Symbol) -> Symbol:
    return graph.symbol if isinstance(graph, SymbolGraph) else create(graph).symbol
