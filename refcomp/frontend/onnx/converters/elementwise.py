"""Arithmetic: operators that compute each element from elements at the same place."""

from __future__ import annotations

from refcomp.foundation.dtype import F64
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


@converter("Erf")
def erf(node: OnnxNode) -> Value:
    """Convert Erf of any version. For integers, the result is truncated to an integer."""
    data = node.required(0)
    if data.dtype.is_float:
        return node.make("erf", [data])
    return node.cast(node.make("erf", [node.cast(data, F64)]), data.dtype)


@converter("Mod")
def mod(node: OnnxNode) -> Value:
    """Convert Mod of any version: the quotient is rounded down, or truncated with `fmod`."""
    operator = "mod" if node.attributes["fmod"] else "floor_mod"
    return combined(node, operator, [node.required(0), node.required(1)])
