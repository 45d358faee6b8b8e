"""Clip, and operators of any number of tensors: Max, Mean, Min, Sum."""

from __future__ import annotations

import math

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.broadcasting import combined
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value

# ONNX's name -> refcomp's, for operators of any number of tensors.
_VARIADIC = {"Max": "max_n", "Mean": "mean_n", "Min": "min_n", "Sum": "add_n"}


def _register(name: str, operator: str) -> None:
    @converter(name)
    def convert_legacy(node: OnnxNode) -> Value:
        values = _operands(node)
        for value in values[1:]:
            if len(value.shape) != len(values[0].shape):
                raise UserError(
                    f"its inputs {values[0]} and {value} differ in shape",
                    why="tensors are not repeated before version 8",
                    remedy="repeat one of them by Expand or Tile",
                )
        return combined(node, operator, values)

    @converter(name, since=8)
    def convert(node: OnnxNode) -> Value:
        return combined(node, operator, _operands(node))


def _operands(node: OnnxNode) -> list[Value]:
    if not node.inputs:
        raise UserError("it has no input", remedy="give it at least one")
    return node.all_inputs()


for _name, _operator in _VARIADIC.items():
    _register(_name, _operator)


@converter("Clip")
def clip_by_attributes(node: OnnxNode) -> Value:
    """Convert Clip before version 11, whose bounds are attributes."""
    least = node.attributes.get("min", -math.inf)
    greatest = node.attributes.get("max", math.inf)
    return node.make("clip", [node.required(0)], minimum=least, maximum=greatest)


@converter("Clip", since=11)
def clip(node: OnnxNode) -> Value:
    """Convert Clip, whose bounds are inputs. The upper one counts if both exclude all numbers."""
    data = node.required(0)
    bounds = [_bound(node, place, data) for place in (1, 2)]
    stored = [None if b is None else node.builder.elements(b) for b in bounds]
    is_stored = all(
        bound is None or array is not None
        for bound, array in zip(bounds, stored, strict=True)
    )
    if not data.dtype.is_bool and is_stored:
        # An integer stays one: not every i64 is a float.
        number = int if data.dtype.is_int else float
        least = -math.inf if stored[0] is None else number(stored[0])
        greatest = math.inf if stored[1] is None else number(stored[1])
        if not (math.isnan(least) or math.isnan(greatest)):
            return node.make("clip", [data], minimum=least, maximum=greatest)
    for operator, bound in zip(("maximum", "minimum"), bounds, strict=True):
        data = data if bound is None else node.make(operator, [data, bound])
    return data


def _bound(node: OnnxNode, place: int, data: Value) -> Value | None:
    """Return a bound as a scalar; None if it is left out."""
    bound = node.input(place)
    if bound is None or not bound.shape:
        return bound
    if node.size(bound) != 1:
        raise UserError(
            f"its bound {bound} is not a scalar",
            remedy="give one number for all elements; use Min and Max for others",
        )
    return node.make("reshape", [bound], shape=())
