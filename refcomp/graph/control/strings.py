"""Strings: tensors of texts, which only the executor knows.

Such a tensor is an unshaped tensor of the dtype `string`; in a run it is a numpy array of objects.
Operators that move or compare strings work on numbers in their place. `string_codes` numbers the
texts of some tensors in their order, and `string_lookup` puts the texts back::

    xs: i64[*], table: string[*] = string_codes(x)
    ys: i64[*] = onnx.Transpose(xs)
    y: string[*] = string_lookup(ys, table)

Source: the ONNX operator specification; RE2, "Syntax", for regular expressions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.foundation.dtype import BOOL, I64, STRING
from refcomp.foundation.errors import UserError
from refcomp.graph.control.machine import Machine, RunValue, as_tensor
from refcomp.graph.control.operator import (
    Attributes,
    ControlCall,
    ControlOperator,
    NodeParts,
    check_kind,
    refuse,
)
from refcomp.graph.control.types import NodeType, unshaped
from refcomp.graph.graph import Array, Value, ValueKind
from refcomp.topi.operator import AttributeSpec

# Elements that `string_split` makes at most: each text is padded to the parts of the longest one.
MAX_PARTS = 1 << 26
_TENSORS = (ValueKind.TENSOR, ValueKind.UNSHAPED)


def texts_of(machine: Machine, value: RunValue, what: str) -> Array:
    """Return the elements of a tensor of strings."""
    return machine.read(as_tensor(value, what))


def check_strings(operator: str, name: str, value: Value | None) -> None:
    """Raise UserError unless the input is a tensor of strings."""
    given = check_kind(operator, name, value, *_TENSORS)
    if given.dtype != STRING:
        refuse(f"the input {name} of {operator} cannot be {given}", "give strings")


def objects(texts: list[Any], shape: tuple[int, ...]) -> Array:
    """Return texts as an array of objects."""
    array = np.empty(len(texts), object)
    array[:] = texts
    return array.reshape(shape)


def each(function: Callable[[str], Any], texts: Array) -> Array:
    """Return an array of objects: what `function` makes of each text."""
    return objects([function(text) for text in texts.reshape(-1)], texts.shape)


def _constant_types(node: NodeParts) -> list[NodeType]:
    return [unshaped(STRING)]


def _run_constant(call: ControlCall) -> list[RunValue]:
    shape = call.attributes["shape"]
    assert isinstance(shape, tuple)
    elements = json.loads(str(call.attributes["elements"]))
    return [objects(elements, tuple(int(one) for one in shape))]


def _codes_types(node: NodeParts) -> list[NodeType]:
    for place, value in enumerate(node.inputs):
        check_strings("string_codes", f"texts {place}", value)
    return [unshaped(I64) for _ in node.inputs] + [unshaped(STRING)]


def _run_codes(call: ControlCall) -> list[RunValue]:
    arrays = [texts_of(call.machine, value, "texts") for value in call.inputs]
    # The number 0, with which tensors are padded, means the empty text.
    table = sorted({""}.union(*(array.reshape(-1) for array in arrays)))
    numbers = {text: number for number, text in enumerate(table)}
    codes = [each(numbers.__getitem__, array).astype(np.int64) for array in arrays]
    return [*map(call.machine.tensor, codes), objects(table, (len(table),))]


def _lookup_types(node: NodeParts) -> list[NodeType]:
    codes, table = node.inputs
    check_kind("string_lookup", "codes", codes, *_TENSORS)
    check_strings("string_lookup", "table", table)
    return [unshaped(STRING)]


def _run_lookup(call: ControlCall) -> list[RunValue]:
    codes = call.machine.read(as_tensor(call.inputs[0], "codes"))
    table = texts_of(call.machine, call.inputs[1], "table")
    if codes.size and not 0 <= codes.min() <= codes.max() < table.size:
        raise UserError(
            f"string_lookup finds no text with the number {codes.max()} among {table.size}",
            remedy="give numbers that string_codes returned",
        )
    return [np.asarray(table[codes], object)]


def _concat_types(node: NodeParts) -> list[NodeType]:
    for name, value in zip(("first", "second"), node.inputs, strict=True):
        check_strings("string_concat", name, value)
    return [unshaped(STRING)]


def _run_concat(call: ControlCall) -> list[RunValue]:
    first, second = (texts_of(call.machine, value, "texts") for value in call.inputs)
    try:
        pair = np.broadcast_arrays(first, second)
    except ValueError as error:
        raise UserError(
            f"string_concat cannot join texts of shape {list(first.shape)} and "
            f"{list(second.shape)}",
            remedy="give shapes that broadcast",
        ) from error
    joined = [a + b for a, b in zip(*(one.reshape(-1) for one in pair), strict=True)]
    return [objects(joined, pair[0].shape)]


def _split_types(node: NodeParts) -> list[NodeType]:
    check_strings("string_split", "texts", node.inputs[0])
    return [unshaped(STRING), unshaped(I64)]


def _run_split(call: ControlCall) -> list[RunValue]:
    texts = texts_of(call.machine, call.inputs[0], "texts")
    most = call.attributes.get("most", -1)
    assert isinstance(most, int)
    separator = str(call.attributes.get("separator", ""))
    rows = [_parts(text, separator, most) for text in texts.reshape(-1)]
    longest = max(map(len, rows), default=0)
    if longest * len(rows) > MAX_PARTS:
        raise UserError(
            f"string_split makes {longest * len(rows)} texts, but {MAX_PARTS} at most",
            why=f"each of {len(rows)} texts is padded to {longest} parts",
            remedy="split fewer texts at once, or give the attribute most",
        )
    parts = [part for row in rows for part in (*row, *[""] * (longest - len(row)))]
    counts = np.array([len(row) for row in rows], np.int64).reshape(texts.shape)
    made = objects(parts, (*texts.shape, longest))
    return [made, call.machine.tensor(counts)]


def _parts(text: str, separator: str, most: int) -> list[str]:
    return text.split(separator, most) if separator else text.strip().split(None, most)


def _normalize_types(node: NodeParts) -> list[NodeType]:
    check_strings("string_normalize", "texts", node.inputs[0])
    case = node.attributes.get("case", "none")
    if case not in _CASES:
        refuse(
            f"string_normalize cannot change texts to {case!r}",
            f"choose {', '.join(_CASES)}",
        )
    return [unshaped(STRING)]


_CASES: dict[str, Callable[[str], str]] = {
    "none": str,
    "lower": str.lower,
    "upper": str.upper,
}


def _run_normalize(call: ControlCall) -> list[RunValue]:
    texts = texts_of(call.machine, call.inputs[0], "texts")
    if texts.ndim not in (1, 2) or texts.shape[: texts.ndim - 1] not in ((), (1,)):
        raise UserError(
            f"string_normalize takes no texts of shape {list(texts.shape)}",
            remedy="give a list of texts, or a matrix with one row",
        )
    is_exact = bool(call.attributes.get("is_case_sensitive"))
    compared = str if is_exact else str.lower
    stopwords = json.loads(str(call.attributes.get("stopwords", "[]")))
    dropped = set(map(compared, stopwords))
    change = _CASES[str(call.attributes.get("case", "none"))]
    kept = [change(t) for t in texts.reshape(-1) if compared(t) not in dropped] or [""]
    return [objects(kept, (*texts.shape[:-1], len(kept)))]


def _match_types(node: NodeParts) -> list[NodeType]:
    check_strings("regex_full_match", "texts", node.inputs[0])
    _pattern(node.attributes)
    return [unshaped(BOOL)]


def _run_match(call: ControlCall) -> list[RunValue]:
    texts = texts_of(call.machine, call.inputs[0], "texts")
    pattern = _pattern(call.attributes)
    found = each(lambda text: pattern.fullmatch(text) is not None, texts)
    return [call.machine.tensor(found.astype(np.bool_))]


def _pattern(attributes: Attributes) -> Any:
    """Return the compiled regular expression of a node; UserError if it is not one of RE2's."""
    try:
        import re2  # noqa: PLC0415  optional
    except ImportError as error:
        raise UserError(
            "regex_full_match needs the package google-re2, which is not installed",
            remedy='pip install "refcomp[strings]"',
        ) from error
    options = re2.Options()
    options.log_errors = False
    pattern = str(attributes["pattern"])
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = bytes(error.args[0]).decode("utf-8", "replace")
        raise UserError(
            f"{pattern!r} is not a regular expression of RE2: {reason}",
            remedy="see https://github.com/google/re2/wiki/Syntax",
        ) from error


STRING_OPERATORS = (
    ControlOperator(
        "string_constant",
        inputs=(),
        attributes=(
            AttributeSpec("elements", (str,), required=True),
            AttributeSpec("shape", (tuple,), required=True),
        ),
        rule=_constant_types,
        run=_run_constant,
    ),
    ControlOperator(
        "string_codes",
        inputs=("texts",),
        variadic=True,
        rule=_codes_types,
        run=_run_codes,
    ),
    ControlOperator(
        "string_lookup", inputs=("codes", "table"), rule=_lookup_types, run=_run_lookup
    ),
    ControlOperator(
        "string_concat", inputs=("first", "second"), rule=_concat_types, run=_run_concat
    ),
    ControlOperator(
        "string_split",
        inputs=("texts",),
        attributes=(
            AttributeSpec("separator", (str,), ""),
            AttributeSpec("most", (int,), -1),
        ),
        rule=_split_types,
        run=_run_split,
    ),
    ControlOperator(
        "string_normalize",
        inputs=("texts",),
        attributes=(
            AttributeSpec("case", (str,), "none"),
            AttributeSpec("stopwords", (str,), "[]"),
            AttributeSpec("is_case_sensitive", (bool,), False),
        ),
        rule=_normalize_types,
        run=_run_normalize,
    ),
    ControlOperator(
        "regex_full_match",
        inputs=("texts",),
        attributes=(AttributeSpec("pattern", (str,), required=True),),
        rule=_match_types,
        run=_run_match,
    ),
)
