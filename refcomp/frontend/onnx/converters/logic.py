"""Comparisons, logic, operators on bits, and choice by a condition."""

from __future__ import annotations

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.frontend.onnx.broadcasting import combined, legacy_operands
from refcomp.frontend.onnx.conversions import plain_numbers
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value

# ONNX's name -> refcomp's, for operators of two tensors that exist since version 1.
_BINARY = {
    "And": "logical_and",
    "Greater": "greater",
    "Less": "less",
    "Or": "logical_or",
    "Xor": "logical_xor",
}
# The same, for operators that were added when all operands broadcast as in numpy.
_LATER_BINARY = {
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "GreaterOrEqual": "greater_equal",
    "LessOrEqual": "less_equal",
}
_SHIFTS = {"LEFT": "left_shift", "RIGHT": "right_shift"}
_UNARY = {"BitwiseNot": "bitwise_not", "Not": "logical_not"}


def _register(name: str, operator: str, *, is_old: bool) -> None:
    @converter(name)
    def convert(node: OnnxNode) -> Value:
        return combined(node, operator, [node.required(0), node.required(1)])

    if is_old:
        converter(name, since=7)(convert)

        @converter(name)
        def convert_legacy(node: OnnxNode) -> Value:
            return combined(node, operator, legacy_operands(node))


def _register_unary(name: str, operator: str) -> None:
    @converter(name)
    def convert(node: OnnxNode) -> Value:
        return node.make(operator, [node.required(0)])


for _name, _operator in _BINARY.items():
    _register(_name, _operator, is_old=True)
for _name, _operator in _LATER_BINARY.items():
    _register(_name, _operator, is_old=False)
for _name, _operator in _UNARY.items():
    _register_unary(_name, _operator)


@converter("Equal")
def legacy_equal(node: OnnxNode) -> Value:
    """Convert Equal before version 7."""
    return _equal(node, *legacy_operands(node))


@converter("Equal", since=7)
def equal(node: OnnxNode) -> Value:
    """Convert Equal, of numbers or bool."""
    return _equal(node, node.required(0), node.required(1))


def _equal(node: OnnxNode, a: Value, b: Value) -> Value:
    if not a.dtype.is_bool:
        return combined(node, "equal", [a, b])
    return node.make("logical_not", [combined(node, "logical_xor", [a, b])])


@converter("Where")
def where(node: OnnxNode) -> Value:
    """Convert Where of any version."""
    return combined(node, "where", node.all_inputs())


@converter("IsNaN")
def isnan(node: OnnxNode) -> Value:
    """Convert IsNaN of any version."""
    return node.make("isnan", [plain_numbers(node, node.required(0))])


@converter("IsInf")
def isinf(node: OnnxNode) -> Value:
    """Convert IsInf of any version."""
    return node.make(
        "isinf",
        [plain_numbers(node, node.required(0))],
        detect_negative=bool(node.attributes["detect_negative"]),
        detect_positive=bool(node.attributes["detect_positive"]),
    )


@converter("BitShift")
def bit_shift(node: OnnxNode) -> Value:
    """Convert BitShift of any version. Signed integers keep their sign in a right shift."""
    direction = node.attributes["direction"]
    if direction not in _SHIFTS:
        raise UserError(
            f"its attribute direction is {direction!r}",
            remedy=advise(str(direction), _SHIFTS, "use LEFT or RIGHT"),
        )
    operands = [node.required(0), node.required(1)]
    return combined(node, _SHIFTS[direction], operands)
