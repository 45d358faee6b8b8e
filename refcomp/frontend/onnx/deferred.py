"""ONNX nodes that become macros of a graph, since only a run knows what they depend on.

The attributes of the macro are those that the conversion needs: the node's domain, its version, the
element types of its inputs, and its attributes in ONNX. Tensors among these are constant inputs
behind the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.errors import Unsupported
from refcomp.frontend.onnx.attributes import Attributes
from refcomp.frontend.onnx.element_types import ELEMENT_TYPES, code_of
from refcomp.frontend.onnx.node import OnnxNode, Subgraph
from refcomp.frontend.onnx.registry import find_converter
from refcomp.graph.control.types import NodeType
from refcomp.graph.graph import Value
from refcomp.graph.macros import MacroCall, register_macros
from refcomp.topi.operator import Attribute

FAMILY = "onnx"
# Attributes that no ONNX operator has.
_DOMAIN, _VERSION, _TYPES, _TENSORS, _TEXTS = (
    "onnx_domain",
    "onnx_version",
    "onnx_types",
    "onnx_tensors",
    "onnx_texts",
)


def defer(
    node: OnnxNode, domain: str, prefix: str, types: Sequence[int | None]
) -> list[Value]:
    """Add a macro that a run converts, and return its outputs.

    Args:
        node: the node.
        domain: the domain of its operator.
        prefix: stands before the names of its outputs.
        types: the element types of its outputs, as far as they are known.

    Raises:
        Unsupported: a type is not known, or the operator is one of control.
    """
    if None in types:
        raise Unsupported("it needs values that only a run computes")
    inputs = list(node.inputs)
    attributes: dict[str, Attribute] = {_VERSION: node.version}
    if domain:
        attributes[_DOMAIN] = domain
    codes = [0 if v is None else node.element_type(v) for v in node.inputs]
    if any(code and ELEMENT_TYPES[code].is_narrow for code in codes):
        attributes[_TYPES] = tuple(codes)
    tensors: list[str] = []
    texts: list[str] = []
    for name, value in node.attributes.items():
        if isinstance(value, np.ndarray):
            tensors.append(name)
            inputs.append(node.builder.constant(f"{node.operator}.{name}", value))
        elif isinstance(value, bool | int | float | str):
            attributes[name] = value
        elif isinstance(value, tuple) and all(isinstance(v, str) for v in value):
            texts.append(name)
            attributes[name] = json.dumps(value)
        elif isinstance(value, tuple):
            attributes[name] = value
        else:
            raise Unsupported("it needs values that only a run computes")
    if tensors:
        attributes[_TENSORS] = ",".join(tensors)
    if texts:
        attributes[_TEXTS] = ",".join(texts)
    names = [prefix + (name or f"{node.operator}.unused") for name in node.outputs]
    dtypes = [ELEMENT_TYPES[code].storage for code in types if code is not None]
    made = node.builder.nodes(
        f"{FAMILY}.{node.operator}", inputs, attributes, names, dtypes=dtypes
    )
    return list(made)


@dataclass(frozen=True, slots=True)
class _RunSurroundings:
    """The element types of the values of one node in a run."""

    codes: dict[Value, int]

    def element_type(self, value: Value) -> int:
        return self.codes.get(value) or code_of(value.dtype)

    def set_element_type(self, value: Value, code: int) -> None:
        self.codes[value] = code

    def subgraph(
        self, proto: object, inputs: Sequence[tuple[NodeType, int]]
    ) -> Subgraph:
        raise Unsupported("its subgraph is converted before a run")

    def part(self, inputs: Mapping[str, Value], output: str) -> Subgraph:
        raise Unsupported("the model around it is converted before a run")


def _expand(call: MacroCall) -> list[Value]:
    """Convert the ONNX node of a macro, and return its outputs."""
    given = dict(call.attributes)
    domain = str(given.pop(_DOMAIN, ""))
    version = given.pop(_VERSION)
    types = given.pop(_TYPES, ())
    tensors = [name for name in str(given.pop(_TENSORS, "")).split(",") if name]
    texts = [name for name in str(given.pop(_TEXTS, "")).split(",") if name]
    attributes: Attributes = dict(given)
    for name in texts:
        attributes[name] = tuple(json.loads(str(attributes[name])))
    count = len(call.inputs) - len(tensors)
    for name, value in zip(tensors, call.inputs[count:], strict=True):
        assert value is not None
        attributes[name] = call.known(value)
    inputs = call.inputs[:count]
    codes: dict[Value, int] = {}
    if isinstance(types, tuple):
        pairs = zip(inputs, types, strict=False)
        codes = {value: int(code) for value, code in pairs if value is not None}
    assert isinstance(version, int)
    found = find_converter(domain, call.operator, version)
    if found is None:
        raise Unsupported(
            f"no converter of {call.operator!r} is registered",
            remedy="call refcomp.frontend.register_converter before the run",
        )
    node = OnnxNode(
        call.builder,
        call.operator,
        version,
        inputs,
        call.outputs,
        attributes,
        _RunSurroundings(codes),
        call.known,
        is_in_run=True,
    )
    converted = found.convert(node)
    made = [converted] if isinstance(converted, Value) else list(converted)
    kept: list[Value] = []
    for name, value in zip(call.outputs, made, strict=False):
        if value is None:
            raise Unsupported(f"the output {name!r} of {call.operator} is used")
        is_old = value in call.inputs or call.builder.elements(value) is not None
        same = value if is_old else call.builder.rename(value, name)
        kept.append(same if value not in made[: len(kept)] else value)
    return kept


register_macros(FAMILY, _expand)
