"""ONNX models made for tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, Sequence[Any]],
    outputs: Sequence[str],
    constants: dict[str, np.ndarray] | None = None,
    dtype: int = TensorProto.FLOAT,
    opset: int = OPSET,
) -> onnx.ModelProto:
    """A model whose inputs have the shapes given; outputs have no shape of their own."""
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in inputs.items()],
        [helper.make_value_info(name, onnx.TypeProto()) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    for output in graph.output:
        output.type.tensor_type.elem_type = dtype
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def single(operator: str, *inputs: str, outputs: Sequence[str] = ("y",), **attributes: Any) -> Any:
    """A node of `operator`."""
    return helper.make_node(operator, inputs, outputs, **attributes)


def one_node_model(
    operator: str,
    feeds: dict[str, np.ndarray],
    constants: dict[str, np.ndarray] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] = ("y",),
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of a single node. The first extent of each input is symbolic."""
    shapes = {name: ["N", *array.shape[1:]] for name, array in feeds.items()}
    names = inputs if inputs is not None else [*feeds, *(constants or {})]
    node = single(operator, *names, outputs=outputs, **attributes)
    (dtype,) = {helper.np_dtype_to_tensor_dtype(array.dtype) for array in feeds.values()}
    return make_model([node], shapes, outputs, constants, dtype)
