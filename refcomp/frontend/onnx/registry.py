"""The converters of ONNX operators, by domain, operator, and first version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.graph.graph import Value

# None stands for an output that nothing reads.
Converted = Value | Sequence[Value | None]
Convert = Callable[[OnnxNode], Converted]

# Two names of ONNX's own operator set.
STANDARD_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True, slots=True)
class Converter:
    """The conversion of an ONNX operator, from one version on.

    Attributes:
        convert: adds the nodes that mean one ONNX node, and returns the values of its outputs.
        since: the first version of the operator that it converts.
        is_control: True if its nodes are run by the executor. Then it gets values of all kinds;
            otherwise only tensors whose rank is known.
        is_custom: True if a user registered it.
    """

    convert: Convert
    since: int
    is_control: bool
    is_custom: bool = False


_CONVERTERS: dict[tuple[str, str], list[Converter]] = {}


def converter(
    operator: str, since: int = 1, *, domain: str = "", control: bool = False
) -> Callable[[Convert], Convert]:
    """Let the function below convert an ONNX operator, from version `since` on.

    It holds up to the version before the next one that is registered.
    """

    def register(convert: Convert) -> Convert:
        _register(domain, operator, Converter(convert, since, control))
        return convert

    return register


def _register(domain: str, operator: str, row: Converter) -> None:
    key = (standard(domain), operator)
    rows = [one for one in _CONVERTERS.get(key, []) if one.since != row.since]
    _CONVERTERS[key] = sorted([*rows, row], key=lambda one: one.since)


def register_converter(
    operator: str, convert: Convert, *, domain: str = "", since: int = 1
) -> None:
    """Register a converter of an ONNX operator, or replace refcomp's own.

    Args:
        operator: the name of the operator in ONNX.
        convert: gets an OnnxNode, adds nodes by its `make`, and returns the value of the output, or
            a list of values. It raises Unsupported for what it cannot convert.
        domain: the domain of the operator; empty for ONNX's own.
        since: the first version of the operator that it converts.

    Raises:
        UserError: the name is not a text, or `convert` cannot be called.

    Example::

        >>> def convert_double(node):
        ...     x = node.required(0)
        ...     return node.make("add", [x, x])
        >>> rc.frontend.register_converter("Double", convert_double, domain="com.example")
        >>> from onnx import TensorProto, helper
        >>> info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
        >>> node = helper.make_node("Double", ["x"], ["y"], domain="com.example")
        >>> model = helper.make_model(
        ...     helper.make_graph([node], "net", info[:1], info[1:]),
        ...     opset_imports=[helper.make_opsetid("com.example", 1)],
        ... )
        >>> print(rc.from_onnx(model.SerializeToString()))
        graph net(x: f32[2]) -> (y) {
          y: f32[2] = add(x, x)
        }
    """
    if not isinstance(operator, str) or not isinstance(domain, str):
        raise UserError(
            f"a converter cannot be registered for {operator!r} of {domain!r}",
            remedy='give names as texts: register_converter("Double", convert)',
        )
    if not callable(convert):
        raise UserError(
            f"the converter of {operator} is {convert!r}, which cannot be called",
            remedy="give a function that takes a node and returns its output",
        )
    if isinstance(since, bool) or not isinstance(since, int) or since < 1:
        raise UserError(
            f"the converter of {operator} begins with version {since!r}",
            remedy="give a number from 1 on",
        )
    row = Converter(convert, since, is_control=False, is_custom=True)
    _register(domain, operator, row)


def find_converter(domain: str, operator: str, version: int) -> Converter | None:
    """Return the converter of a version of an operator; None if there is none."""
    rows = _CONVERTERS.get((standard(domain), operator), [])
    return next((one for one in reversed(rows) if one.since <= version), None)


def converted_operators() -> list[tuple[str, str]]:
    """Return domain and name of each operator that has a converter."""
    return sorted(_CONVERTERS)


def standard(domain: str) -> str:
    """Return a domain, by one name only."""
    return "" if domain in STANDARD_DOMAINS else domain
