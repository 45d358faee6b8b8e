"""Activations of neural networks."""

from __future__ import annotations

from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value

# ONNX's name -> refcomp's, for operators without attributes that have one meaning.
_PLAIN = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh"}


def _register(name: str, operator: str) -> None:
    @converter(name)
    def convert(node: OnnxNode) -> Value:
        return node.make(operator, [node.required(0)])


for _name, _operator in _PLAIN.items():
    _register(_name, _operator)
