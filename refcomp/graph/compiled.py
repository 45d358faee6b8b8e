"""Compiled graphs without code and weights, as text: what `build` returns beside a module.

The JSON form has the text form of the graph and the types of the weights. For each node, it has the
name of its function and the values that it takes. It is hostile until checked. The text is parsed
like that of any graph. Each name must exist, and each call checks its arrays against the function's
signature.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import as_target
from refcomp.graph.compile import GraphModule
from refcomp.graph.graph import MAX_PRINTED_ELEMENTS, Array, Graph, GraphNode, Value
from refcomp.graph.kernels import NodeKernel
from refcomp.graph.parser import parse_graph
from refcomp.graph.symbol.json import document_from_json
from refcomp.graph.symbol.symbol import Symbol
from refcomp.runtime.module import Module

_FORMAT = "refcomp compiled graph 1"
_MAX_BYTES = 1 << 46  # of one weight
_MAX_RANK = 32


@dataclass(frozen=True, slots=True, eq=False)
class CompiledGraph:
    """A compiled graph without its code and its weights, which `refcomp.graph.build` returns.

    `refcomp.graph.executor.create` makes an executor of it. `str` is its text form.

    Attributes:
        module: the graph after all passes and the calls of its nodes, without code.
        symbol: the symbol that was compiled; None if the graph was read from JSON.

    Source: NNVM, nnvm.graph.Graph.

    Example::

        >>> x = rc.sym.Variable("x")
        >>> net = rc.sym.relu(x, name="y")
        >>> graph, lib, params = rc.graph.build(net, "interp", shape={"x": (2,)})
        >>> print(graph)
        graph net(x: f32[2]) -> (y) {
          y: f32[2] = relu(x)
        }
        >>> rc.graph.CompiledGraph.from_json(graph.json()).json() == graph.json()
        True
        >>> graph.symbol is net, graph.graph.name, graph.with_code(lib).target.kind
        (True, 'net', 'interp')
    """

    module: GraphModule
    symbol: Symbol | None = None

    @property
    def graph(self) -> Graph:
        """Return the graph after all passes."""
        return self.module.graph

    def __str__(self) -> str:
        return str(self.graph)

    def json(self) -> str:
        """Return the JSON form, which `from_json` and `executor.create` read."""
        weights = [
            [value.name, str(value.dtype), list(value.shape)]
            for value in self.module.parameters
        ]
        document = {
            "format": _FORMAT,
            "target": str(self.module.target),
            "graph": str(self.graph),
            "parameters": weights,
            "kernels": [_kernel_to_json(kernel) for kernel in self.module.kernels],
        }
        return json.dumps(document, indent=2)

    @classmethod
    def from_json(cls, text: str) -> CompiledGraph:
        """Return the compiled graph that a JSON text describes.

        Args:
            text: what `json` returned.

        Raises:
            UserError: the text is damaged.
        """
        document = document_from_json(text, "the text", "a compiled graph")
        if document.get("format") != _FORMAT:
            _refuse(f"its format is not {_FORMAT!r}")
        fields = {"target": str, "graph": str, "parameters": list, "kernels": list}
        for name, kind in fields.items():
            if not isinstance(document.get(name), kind):
                _refuse(f"its {name} is not a {kind.__name__}")
        weights = _read_weights(document["parameters"])
        graph = parse_graph(document["graph"], weights, "the compiled graph")
        parameters = tuple(v for v in graph.constants if v.name in weights)
        if len(parameters) != len(weights):
            _refuse("a parameter is not a constant of the graph")
        listed = document["kernels"]
        if len(listed) != len(graph.nodes):
            _refuse(f"it has {len(listed)} kernels for {len(graph.nodes)} nodes")
        pairs = zip(graph.nodes, listed, strict=True)
        kernels = tuple(_read_kernel(node, one) for node, one in pairs)
        target = as_target(document["target"])
        return cls(GraphModule(graph, kernels, None, target, parameters))

    def with_code(self, lib: Module | None) -> GraphModule:
        """Return the compiled graph with the module that has its functions.

        Args:
            lib: what `build` returned, or `refcomp.load_module`; None for a graph without nodes.

        Raises:
            UserError: the module lacks a function, or is for another target.
        """
        if lib is None and not self.module.kernels:
            return self.module
        if not isinstance(lib, Module):
            raise UserError(
                f"a {type(lib).__name__} is not the module of a compiled graph",
                remedy="pass what refcomp.graph.build or refcomp.load_module returned",
            )
        if lib.target != str(self.module.target):
            raise UserError(
                f"the module is for {lib.target!r}, but the graph for "
                f"{str(self.module.target)!r}",
                remedy="pass the module that was built with this graph",
            )
        for kernel in self.module.kernels:
            signature = lib.signatures.get(kernel.name)
            given = len(kernel.inputs) + len(kernel.outputs) + len(kernel.workspaces)
            if signature is None or len(signature.params) != given:
                raise UserError(
                    f"the module has no function {kernel.name!r} of {given} arrays",
                    where=f"it has {', '.join(lib.signatures)}",
                    remedy="pass the module that was built with this graph",
                )
        return replace(self.module, module=lib)


def without_weights(
    module: GraphModule, symbol: Symbol | None
) -> tuple[CompiledGraph, dict[str, Array]]:
    """Return a compiled graph without its weights, and the weights by name.

    Constants of at most 8 elements stay: the text form has their elements.
    """
    weights = {
        value: elements
        for value, elements in module.graph.constants.items()
        if elements.size > MAX_PRINTED_ELEMENTS
    }
    constants = dict(module.graph.constants)
    for value in weights:
        constants[value] = _placeholder(value)
    graph = replace(module.graph, constants=constants)
    bare = replace(module, graph=graph, module=None, parameters=tuple(weights))
    arrays = {value.name: elements for value, elements in weights.items()}
    return CompiledGraph(bare, symbol), arrays


def _placeholder(value: Value) -> Array:
    """Return an array of the value's type that takes no memory."""
    zero = np.zeros((), to_numpy(value.dtype))
    extents = [dim for dim in value.shape if isinstance(dim, int)]
    return np.broadcast_to(zero, extents)


def _kernel_to_json(kernel: NodeKernel) -> dict[str, object]:
    # The text form of a graph is the only text form of types.
    workspaces = Graph("workspaces", kernel.workspaces, (), ())
    return {
        "function": kernel.name,
        "inputs": [value.name for value in kernel.inputs],
        "workspaces": str(workspaces),
    }


def _read_kernel(node: GraphNode, kernel: object) -> NodeKernel:
    given: Mapping[str, Any] = kernel if isinstance(kernel, dict) else {}
    function = given.get("function")
    names = given.get("inputs")
    text = given.get("workspaces")
    is_kernel = isinstance(function, str) and isinstance(text, str)
    if not is_kernel or not isinstance(names, list):
        _refuse(f"the kernel of node {node.name[:60]!r} is malformed")
    known = {value.name: value for value in node.reads}
    unknown = [name for name in names if not isinstance(name, str) or name not in known]
    if unknown or len(set(names)) != len(names):
        _refuse(
            f"the inputs of the kernel of node {node.name[:60]!r} are not its values"
        )
    workspaces = parse_graph(str(text), filename="workspaces")
    return NodeKernel(
        str(function),
        inputs=tuple(known[name] for name in names),
        outputs=node.outputs,
        workspaces=workspaces.inputs,
    )


def _read_weights(listed: Sequence[object]) -> dict[str, Array]:
    weights: dict[str, Array] = {}
    for item in listed:
        name, dtype, shape = _weight_type(item)
        if name in weights:
            _refuse(f"two parameters are named {name[:60]!r}")
        element = to_numpy(as_dtype(dtype))
        size = element.itemsize
        for extent in shape:
            size *= extent
        if size > _MAX_BYTES:
            _refuse(f"the parameter {name[:60]!r} has {size} bytes")
        weights[name] = np.broadcast_to(np.zeros((), element), shape)
    return weights


def _weight_type(item: object) -> tuple[str, str, list[int]]:
    """Return name, dtype and shape of a weight, as `json` wrote them."""
    match item:
        case [str(name), str(dtype), list(shape)] if len(shape) <= _MAX_RANK:
            if all(type(n) is int and 0 <= n < _MAX_BYTES for n in shape):
                return name, dtype, shape
    _refuse(f"a parameter is {reprlib.repr(item)} instead of [name, dtype, shape]")


def _refuse(why: str) -> NoReturn:
    raise UserError(
        "the compiled graph cannot be read from JSON",
        why=why,
        remedy="give a text that the `json` of a compiled graph returned",
    )
