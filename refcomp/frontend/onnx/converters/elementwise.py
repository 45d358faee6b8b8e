"""Arithmetic: operators that compute each element from elements at the same place."""

from __future__ import annotations

from refcomp.frontend.onnx.broadcasting import combined, legacy_operands
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value

# ONNX's name -> refcomp's, for operators of one tensor of any version.
_UNARY = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Exp": "exp",
    "Floor": "floor",
    "Log": "log",
    "Neg": "negative",
    "Reciprocal": "reciprocal",
    "Round": "round",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
}
_BINARY = {"Add": "add", "Div": "divide", "Mul": "multiply", "Sub": "subtract"}


def _register_unary(name: str, operator: str) -> None:
    @converter(name)
    def convert(node: OnnxNode) -> Value:
        return node.make(operator, [node.required(0)])


def _register_binary(name: str, operator: str) -> None:
    @converter(name)
    def convert_legacy(node: OnnxNode) -> Value:
        return combined(node, operator, legacy_operands(node))

    @converter(name, since=7)
    def convert(node: OnnxNode) -> Value:
        return combined(node, operator, [node.required(0), node.required(1)])


for _name, _operator in _UNARY.items():
    _register_unary(_name, _operator)
for _name, _operator in _BINARY.items():
    _register_binary(_name, _operator)
