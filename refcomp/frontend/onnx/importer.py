"""Read an ONNX model as a graph. Needs the optional package `onnx`.

Each node is converted by the converter of its operator and version. Without a converter, it is
replaced by the function that ONNX, or the model, defines for it. A node that depends on what only a
run knows becomes a macro (`refcomp.frontend.onnx.deferred`).

Raises UserError for files that are too large, truncated or not ONNX, and for inconsistent shapes
and dtypes. Raises one Unsupported that counts all operators and attributes that refcomp cannot run.
Names in a model are hostile, so messages and text contain them only quoted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import converters as _converters  # registers them  # noqa: F401
from refcomp.frontend.onnx.attributes import Proto
from refcomp.frontend.onnx.element_types import INT64, STRINGS, element_type
from refcomp.frontend.onnx.nodes import Model, convert_nodes
from refcomp.frontend.onnx.reading import MAX_BYTES, parse_model, read_model
from refcomp.frontend.onnx.refusals import Refusals
from refcomp.frontend.onnx.registry import standard
from refcomp.frontend.onnx.scope import ValueScope
from refcomp.frontend.onnx.tensors import TensorReader
from refcomp.frontend.onnx.weights import take_weights
from refcomp.graph.folding import FoldingBuilder
from refcomp.graph.graph import Graph, Value, ValueKind
from refcomp.graph.verify import verify_graph


def from_onnx(
    source: str | os.PathLike[str] | bytes, *, max_bytes: int = MAX_BYTES
) -> Graph:
    """Return the graph of an ONNX model. It needs the optional package `onnx`.

    Symbolic extents keep their names. Each operator has the meaning of the model's operator set.
    Element types of less than 8 bits, and floats of 8 bits, take a byte. An integer becomes i8 or
    u8, and the bits of a float become u8.

    A graph with shapes, axes or counts that only a run knows has macros, and control operators
    have subgraphs. `refcomp.graph.executor_for` runs any of them.

    Random numbers are those of refcomp's own generator. A node without a seed gets one from the
    name of its output. So each run gives the same numbers, and nodes give different ones.

    The graph's weights are parts of the model's file, if it is large: the file is mapped into
    memory. It may be replaced by another or deleted, but must not be written before the graph is
    compiled and an executor is made. Later uses of the graph refuse a file that has changed. Files
    with external data must not be written for as long as executors use them.

    Args:
        source: the path of a model file, or its bytes.
        max_bytes: the largest file that is read, and the largest constant, in bytes. Default 1 GiB.

    Raises:
        UserError: `onnx` is not installed; or the file is missing, too large, truncated or not
            ONNX, has data outside of its folder, or has inconsistent shapes or dtypes.
        Unsupported: operators or attributes that refcomp cannot run. The error counts all of them.

    Source: the ONNX operator specification.

    Example::

        >>> from onnx import TensorProto, helper
        >>> x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
        >>> y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])
        >>> node = helper.make_node("Relu", ["x"], ["y"])
        >>> model = helper.make_model(
        ...     helper.make_graph([node], "net", [x], [y]),
        ...     opset_imports=[helper.make_opsetid("", 17)],
        ... )
        >>> print(rc.from_onnx(model.SerializeToString()))
        graph net(x: f32[N, 4]) -> (y) {
          y: f32[N, 4] = relu(x)
        }
    """
    weights = take_weights(read_model(source, max_bytes))
    proto = parse_model(weights.rest)
    folder = None if isinstance(source, bytes) else Path(source).parent
    versions = {standard(one.domain): one.version for one in proto.opset_import}
    functions = {
        (standard(one.domain), one.name, one.overload): one for one in proto.functions
    }
    model = Model(TensorReader(folder, max_bytes), functions, Refusals())
    scope = ValueScope(
        FoldingBuilder(proto.graph.name or "model"), versions or {"": 1}, None
    )
    outputs = _convert_graph(model, scope, proto.graph, weights.taken)
    graph = scope.builder.finish(outputs)
    verify_graph(graph)
    return graph


def _convert_graph(
    model: Model, scope: ValueScope, proto: Proto, weights: Mapping[int, memoryview]
) -> list[Value]:
    """Convert the graph of a model, and return its outputs under their names."""
    stored = model.read_constants(proto, weights)
    for info in proto.input:
        if (
            info.name not in stored
        ):  # older models list their constants among the inputs
            _add_input(scope, info)
    for name, (array, code) in stored.items():
        scope.add_constant(name, array, code)
    convert_nodes(model, scope, proto.node)
    model.refusals.raise_any()
    return [scope.output(output.name) for output in proto.output]


_OPTIONALS = {
    "tensor_type": ValueKind.OPTIONAL,
    "sequence_type": ValueKind.OPTIONAL_SEQUENCE,
}


def _add_input(scope: ValueScope, info: Proto) -> None:
    what = f"input {info.name!r}"
    kind = ValueKind.TENSOR
    given = info.type
    if given.HasField("optional_type"):
        given = given.optional_type.elem_type
        kind = _OPTIONALS.get(given.WhichOneof("value"), ValueKind.OPTIONAL)
    if given.HasField("sequence_type"):
        given = given.sequence_type.elem_type
        if kind is ValueKind.TENSOR:
            kind = ValueKind.SEQUENCE
    if kind is ValueKind.TENSOR and given.HasField("map_type"):
        _add_map(scope, info.name, given.map_type)
        return
    if not given.HasField("tensor_type"):
        raise UserError(
            f"{what} is a {given.WhichOneof('value') or 'value without a type'}",
            remedy="export it as a tensor, a sequence of tensors, an optional one, or a map",
        )
    tensor = given.tensor_type
    element = element_type(tensor.elem_type, what)
    shape: list[int | str] = []
    if kind is ValueKind.TENSOR:
        if element.code == STRINGS or not tensor.HasField("shape"):
            kind = ValueKind.UNSHAPED
        else:
            dims = enumerate(tensor.shape.dim)
            shape = [_dim(dim, info.name, place) for place, dim in dims]
    value = scope.builder.input(info.name, element.storage, shape, kind)
    scope.add(info.name, value)
    scope.set_element_type(value, element.code)


def _add_map(scope: ValueScope, name: str, map_type: Proto) -> None:
    """Add an input that is a map from texts or integers to single elements."""
    what = f"input {name!r}"
    key = element_type(map_type.key_type, f"the key of {what}")
    kinds = {STRINGS: ValueKind.STRING_MAP, INT64: ValueKind.INTEGER_MAP}
    if key.code not in kinds or not map_type.value_type.HasField("tensor_type"):
        raise UserError(
            f"{what} is a map that refcomp does not know",
            why="it knows maps from int64 or strings to elements",
            remedy="export the model with another input",
        )
    code = map_type.value_type.tensor_type.elem_type
    element = element_type(code, f"an element of {what}")
    value = scope.builder.input(name, element.storage, (), kinds[key.code])
    scope.add(name, value)
    scope.set_element_type(value, element.code)


def _dim(dim: Proto, name: str, place: int) -> int | str:
    """Return extent `place` of input `name`. An unknown extent becomes a symbol of its own."""
    if not dim.HasField("dim_value"):
        return str(dim.dim_param) or f"{name!r}.extent{place}"
    if dim.dim_value < 0:
        raise UserError(
            f"extent {place} of input {name!r} is {dim.dim_value}",
            why="an extent cannot be negative",
            remedy="the file is damaged: export it again",
        )
    return int(dim.dim_value)
