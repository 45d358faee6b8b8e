"""Check a node against the schema of its operator: how many inputs it has, and of which types."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.attributes import Proto
from refcomp.frontend.onnx.element_types import ELEMENT_TYPES
from refcomp.graph.graph import Value, ValueKind

_FORMS = {
    ValueKind.SEQUENCE: "seq(tensor({}))",
    ValueKind.OPTIONAL: "optional(tensor({}))",
    ValueKind.OPTIONAL_SEQUENCE: "optional(seq(tensor({})))",
}
# Names of element types in schemas, where numpy has other ones.
_SPELLED = {
    "float32": "float",
    "float64": "double",
    "float8_e8m0fnu": "float8e8m0",
    "float6_e2m3fn": "float6e2m3",
    "float6_e3m2fn": "float6e3m2",
    "float4_e2m1fn": "float4e2m1",
}
_MAPS = tuple(kind for kind in ValueKind if "map" in kind)
_MAX_SHOWN = 8  # types in a message


def check_signature(
    schema: Proto,
    outputs: int,
    inputs: Sequence[Value | None],
    codes: Sequence[int],
) -> None:
    """Raise UserError unless a node has as many inputs and outputs as its operator, of its types.

    Args:
        schema: the OpSchema of the operator.
        outputs: the number of outputs that the node names.
        inputs: the values that it reads; None for one that is left out.
        codes: numbers of their element types; 0 for one that is left out.
    """
    if len(inputs) > schema.max_input:
        raise UserError(
            f"it has {len(inputs)} inputs",
            why=f"{_title(schema)} takes at most {schema.max_input}",
            remedy="the file is damaged: export it again",
        )
    least, most = schema.min_output, schema.max_output
    if not least <= outputs <= most:
        meant = f"{least}" if least == most else f"{least} to {most}"
        raise UserError(
            f"it has {outputs} outputs, not {meant}",
            remedy="the file is damaged: export it again",
        )
    formals = list(schema.inputs)
    for place, formal in enumerate(formals):
        is_single = formal.option == type(formal.option).Single
        is_given = place < len(inputs) and inputs[place] is not None
        if is_single and not is_given:
            raise UserError(f"its input {place} is missing")
    bound: dict[str, int] = {}
    for place, (value, code) in enumerate(zip(inputs, codes, strict=True)):
        if value is None:
            continue
        if value.kind in _MAPS:  # their converters check what they hold
            continue
        formal = formals[min(place, len(formals) - 1)]
        _check_type(schema, place, value, code, formal)
        if formal.is_homogeneous and bound.setdefault(formal.type_str, code) != code:
            raise UserError(
                f"its inputs have the element types {ELEMENT_TYPES[bound[formal.type_str]].name} "
                f"and {ELEMENT_TYPES[code].name}",
                why=f"{_title(schema)} takes one type for both",
                remedy="add a Cast, or export the model again",
            )


def _check_type(
    schema: Proto, place: int, value: Value, code: int, formal: Proto
) -> None:
    name = ELEMENT_TYPES[code].name
    spelled = _SPELLED.get(name, name.replace("_", ""))
    text = _FORMS.get(value.kind, "tensor({})").format(spelled)
    if text in formal.types:
        return
    is_kind = value.kind in _FORMS
    taken = sorted(one for one in formal.types if "complex" not in one)
    more = ", ..." if len(taken) > _MAX_SHOWN else ""
    raise UserError(
        f"its input {place} is {value}, a {text}",
        why=f"{_title(schema)} takes {', '.join(taken[:_MAX_SHOWN])}{more}",
        remedy="the file is damaged: export it again"
        if is_kind
        else "add a Cast, or export the model with a newer operator set",
    )


def _title(schema: Proto) -> str:
    return f"{schema.name}-{schema.since_version}"
