"""Functions: operators that ONNX or a model defines by nodes."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.frontend.onnx.attributes import Proto
from refcomp.frontend.onnx.reading import onnx_package
from refcomp.graph.graph import Value, ValueKind


def schema_function(
    schema: Proto | None,
    node: Proto,
    version: int,
    inputs: Sequence[Value | None],
    codes: Sequence[int],
) -> Proto | None:
    """Return the FunctionProto by which ONNX defines an operator; None if it has none.

    Args:
        schema: the OpSchema of the operator; None for an operator that ONNX does not define.
        node: the NodeProto. Some functions depend on its attributes and inputs.
        version: the version of the model's operator set.
        inputs: the values of its inputs.
        codes: numbers of their element types; 0 for an input that is left out.
    """
    if schema is None:
        return None
    onnx = onnx_package()
    if schema.has_context_dependent_function:
        types = [_type(v, code) for v, code in zip(inputs, codes, strict=True)]
        wanted = _version(schema.context_dependent_function_opset_versions, version)
        try:
            raw = schema.get_context_dependent_function_with_opset_version(
                wanted,
                node.SerializeToString(),
                [one.SerializeToString() for one in types],
            )
        except Exception:  # onnx's own classes
            return None
        return onnx.FunctionProto.FromString(raw) if raw else None
    if schema.has_function:
        wanted = _version(schema.function_opset_versions, version)
        raw = schema.get_function_with_opset_version(wanted)
        return onnx.FunctionProto.FromString(raw)
    return None


def _version(known: Sequence[int], version: int) -> int:
    """Return the last version of a function that a model of `version` may use."""
    return max((one for one in known if one <= version), default=min(known))


def _type(value: Value | None, code: int) -> Proto:
    onnx = onnx_package()
    if value is None:
        return onnx.TypeProto()
    if value.kind is ValueKind.UNSHAPED:
        return onnx.helper.make_tensor_type_proto(code, None)
    if value.kind is not ValueKind.TENSOR:
        tensor = onnx.helper.make_tensor_type_proto(code, None)
        return onnx.helper.make_sequence_type_proto(tensor)
    shape = [dim if isinstance(dim, int) else str(dim) for dim in value.shape]
    return onnx.helper.make_tensor_type_proto(code, shape)


def bound_node(node: Proto, call: Proto, function: Proto) -> Proto:
    """Return a node of a function with the attributes that its call gives.

    Args:
        node: a NodeProto of the function. An attribute may refer to one of the function.
        call: the NodeProto that calls the function.
        function: the FunctionProto.
    """
    onnx = onnx_package()
    given = {one.name: one for one in function.attribute_proto}
    given |= {one.name: one for one in call.attribute}
    bound = onnx.NodeProto()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            source = given.get(attribute.ref_attr_name)
            if source is None:
                continue  # it is left out, as in the call
            made = bound.attribute.add()
            made.CopyFrom(source)
            made.name = attribute.name
            continue
        made = bound.attribute.add()
        made.CopyFrom(attribute)
        if made.HasField("g"):
            inner = [bound_node(one, call, function) for one in made.g.node]
            del made.g.node[:]
            made.g.node.extend(inner)
    return bound
