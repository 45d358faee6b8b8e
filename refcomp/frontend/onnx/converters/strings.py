"""Strings, which the executor handles. What only moves them is in `string_codes`."""

from __future__ import annotations

import json

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value

# Languages whose letters have upper and lower cases of their own.
_OWN_CASES = ("az", "lt", "tr")


@converter("StringConcat", since=20, control=True)
def string_concat(node: OnnxNode) -> Value:
    """Convert StringConcat."""
    return node.make("string_concat", [node.required(0), node.required(1)])


@converter("StringSplit", since=20, control=True)
def string_split(node: OnnxNode) -> tuple[Value, ...]:
    """Convert StringSplit; without a delimiter, texts are split where they have white space."""
    separator = node.attributes.get("delimiter", "")
    most = node.attributes.get("maxsplit", -1)
    return node.make_all(
        "string_split", [node.required(0)], separator=separator, most=most
    )


@converter("StringNormalizer", since=10, control=True)
def string_normalizer(node: OnnxNode) -> Value:
    """Convert StringNormalizer. Letters have the cases of Unicode, in any locale."""
    locale = str(node.attributes.get("locale", ""))
    case = str(node.attributes["case_change_action"])
    is_exact = node.flag("is_case_sensitive")
    if locale.lower().startswith(_OWN_CASES) and not (is_exact and case == "NONE"):
        raise Unsupported(f"its locale {locale!r} has upper and lower cases of its own")
    if case not in ("NONE", "LOWER", "UPPER"):
        raise UserError(
            f"its attribute case_change_action is {case!r}",
            remedy="choose NONE, LOWER or UPPER",
        )
    return node.make(
        "string_normalize",
        [node.required(0)],
        case=case.lower(),
        stopwords=json.dumps(node.attributes.get("stopwords", ())),
        is_case_sensitive=is_exact,
    )


@converter("RegexFullMatch", since=20, control=True)
def regex_full_match(node: OnnxNode) -> Value:
    """Convert RegexFullMatch, whose patterns are those of RE2."""
    if "pattern" not in node.attributes:
        raise UserError("its attribute pattern is missing")
    pattern = node.attributes["pattern"]
    return node.make("regex_full_match", [node.required(0)], pattern=pattern)
