"""Manual pages of classic operators, which `help(refcomp.symbol.conv2d)` prints.

A page has the docstring of the operator's declaration, one line for each input and attribute, and
an example. An example of the docstring itself is kept; otherwise a simple one is made.
"""

from __future__ import annotations

from collections.abc import Mapping

from refcomp.foundation.errors import CompilerBug
from refcomp.graph.symbol.attributes import attribute_to_text
from refcomp.graph.symbol.operator import SymbolAttributeSpec, SymbolOperator

_TEXTS = {
    "data": "the tensor.",
    "lhs": "the left operand.",
    "rhs": "the right operand, of the dtype of `lhs`.",
    "scalar": "the number, which is rounded to the dtype of `data`.",
    "weight": "the weights, a variable `NAME_weight` by default.",
    "bias": "the bias, a variable `NAME_bias` by default; only if `use_bias` is True.",
    "axis": "the axis; a negative one counts from the last.",
    "keepdims": "True to keep reduced axes, with extent 1.",
    "exclude": "True to reduce over all axes but those of `axis`.",
    "layout": "the order of the axes of `data`.",
    "kernel_layout": "the order of the axes of the weights; empty for that of `layout`.",
    "out_layout": "the order of the axes of the result; it must be `layout`, or empty.",
    "out_dtype": "the dtype of the sums and the result; `same` or empty for that of `data`.",
    "use_bias": "True to add a bias to each channel.",
    "channels": "the number of channels of the result.",
    "kernel_size": "rows and columns of a filter.",
    "pool_size": "rows and columns of a window.",
    "strides": "elements from one window to the next, down and across.",
    "padding": "elements to add: one number for all sides, two for rows and columns, or four for "
    "top, left, bottom and right.",
    "dilation": "elements from one element of a window to the next, down and across.",
    "groups": "the number of groups into which channels are divided.",
    "ceil_mode": "True for a last window that reaches beyond the padding.",
    "dtype": "the dtype of the result, by its name.",
    "shape": "the extents of the result.",
    "clip": "True to move all coordinates to 0 ... 1.",
}


def manual_page(operator: SymbolOperator, prose: str, texts: Mapping[str, str]) -> str:
    """Return the manual page of an operator.

    Args:
        operator: the record.
        prose: the docstring of its declaration: sentences, and maybe an example.
        texts: the texts of parameters that differ from the usual ones.

    Raises:
        CompilerBug: a parameter has no text.
    """
    body, has_example, example = prose.partition("Example::")
    lines = [body.rstrip(), "", "Args:"]
    for spec in operator.inputs:
        star = "*" if operator.is_variadic else ""
        lines.append(f"    {star}{spec.name}: {_text(operator, spec.name, texts)}")
    for attribute in operator.attributes:
        text = _text(operator, attribute.name, texts)
        lines.append(f"    {attribute.name}: {attribute.kind.text}. {_sentence(text)}")
        lines[-1] += _default(attribute)
    label = operator.name
    lines += [
        f"    name: the name of the node; by default `{label}0`, `{label}1`, and so on.",
        "",
        "Returns:",
        "    A symbol with an output for each result.",
        "",
        "Raises:",
        "    UserError: an argument is unknown, missing, given twice, or of another type.",
        "",
        f"Source: NNVM, nnvm.symbol.{operator.name}.",
        "",
        "Example::",
        "",
    ]
    if has_example:
        return "\n".join(lines) + example.strip("\n").replace("\n\n", "\n") + "\n"
    return "\n".join([*lines, *_example(operator), ""])


def _text(operator: SymbolOperator, name: str, texts: Mapping[str, str]) -> str:
    text = texts.get(name) or _TEXTS.get(name)
    if text is None:
        raise CompilerBug(f"the parameter {name} of {operator.name} has no text")
    return text


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _default(attribute: SymbolAttributeSpec) -> str:
    if attribute.required:
        return ""
    value = attribute.default
    if value in ("", (), None):
        return ""
    return f" The default is {attribute_to_text(value)}."


def _example(operator: SymbolOperator) -> list[str]:
    """Return an example that applies an operator without required attributes."""
    if any(attribute.required for attribute in operator.attributes):
        raise CompilerBug(f"{operator.name} needs an example in its docstring")
    names = [spec.name for spec in operator.inputs]
    if operator.is_variadic:
        names = ["a", "b"]
    made = [f"    >>> {name} = rc.sym.Variable({name!r})" for name in names]
    call = f"rc.sym.{operator.name}({', '.join([*names, 'name=' + repr('y')])})"
    return [*made, f"    >>> {call}.list_input_names()", f"    {names}"]
