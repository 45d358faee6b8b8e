"""Write an ONNX graph node by node from arrays, where a package holds only the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

_OPSET, _IR_VERSION = 17, 8

Array = np.ndarray[Any, Any]
Shape = Sequence[int | str]


class OnnxWriter:
    """A graph that grows; each method returns the name of a value.

    Example::

        writer = OnnxWriter()
        y = writer.node("Mul", "x", writer.constant("two", np.float32(2)), name="y")
        model = writer.finish("twice", {"x": (np.float32, ["N"])}, {"y": ["N"]})
    """

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, array: Array | np.generic) -> str:
        """Store an array under a name, once."""
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.asarray(array), name)
        return name

    def integers(self, *numbers: int) -> str:
        """Store i64 numbers, such as axes or a shape."""
        text = "_".join(map(str, numbers))
        return self.constant(f"integers_{text}", np.array(numbers, np.int64))

    def node(self, operator: str, *inputs: str, name: str, **attributes: object) -> str:
        """Add a node; its only output has the node's name."""
        self._nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def finish(
        self, name: str, inputs: Mapping[str, tuple[type, Shape]], outputs: Mapping[str, Shape]
    ) -> bytes:
        """Return the model, which ONNX's checker has read. The outputs are f32."""
        given = [
            helper.make_tensor_value_info(
                key, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), dims
            )
            for key, (kind, dims) in inputs.items()
        ]
        made = [
            helper.make_tensor_value_info(key, onnx.TensorProto.FLOAT, dims)
            for key, dims in outputs.items()
        ]
        graph = helper.make_graph(self._nodes, name, given, made, list(self._constants.values()))
        opsets = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        onnx.checker.check_model(model, full_check=True)
        return model.SerializeToString()
