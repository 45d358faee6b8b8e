"""The classic JSON form of symbols: `nodes`, `arg_nodes`, `heads` and `node_row_ptr`.

A node has an `op` (`null` for a variable), a `name`, `inputs` as [node, output, version], and
`attrs`, whose values are texts. A node reads only nodes before it.

Files are hostile until checked: text longer than `MAX_JSON`, more than `MAX_NODES` nodes, wrong
types, and numbers out of range are refused by a UserError that names the node.

Source: NNVM, `nnvm::pass::SaveJSON`.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from refcomp.foundation.errors import UserError
from refcomp.graph.symbol.nodes import SymbolEntry, SymbolNode, ordered_nodes
from refcomp.graph.symbol.operator import attribute_texts, find_symbol_operator

MAX_JSON = 1 << 27  # characters
MAX_NODES = 2_000_000
_VARIABLE = "null"
_ATTRIBUTE_KEYS = ("attrs", "attr", "param")  # the last two in old files


def entries_to_json(entries: Sequence[SymbolEntry]) -> str:
    """Return the outputs of a symbol, and all that they depend on, as JSON."""
    nodes = ordered_nodes(entries)
    numbers = {node: number for number, node in enumerate(nodes)}
    rows = [0]
    listed = []
    for node in nodes:
        hidden = 0 if node.operator is None else node.operator.hidden_outputs
        rows.append(rows[-1] + node.output_count + hidden)
        listed.append(_node_to_json(node, numbers))
    document = {
        "nodes": listed,
        "arg_nodes": [numbers[node] for node in nodes if node.operator is None],
        "heads": [[numbers[entry.node], entry.output, 0] for entry in entries],
        "node_row_ptr": rows,
    }
    return json.dumps(document, indent=2)


def _node_to_json(
    node: SymbolNode, numbers: Mapping[SymbolNode, int]
) -> dict[str, object]:
    attributes = {**attribute_texts(node.attributes), **node.notes}
    made: dict[str, object] = {
        "op": _VARIABLE if node.operator is None else node.operator.name,
        "name": node.name,
    }
    if attributes:
        made["attrs"] = attributes
    made["inputs"] = [[numbers[entry.node], entry.output, 0] for entry in node.inputs]
    return made


def entries_from_json(text: str, source: str) -> tuple[SymbolEntry, ...]:
    """Return the outputs of the symbol that JSON describes.

    Args:
        text: what `entries_to_json` returned, or a file of the classic compilers.
        source: the name of the file in messages.

    Raises:
        UserError: the text is damaged, or uses what refcomp does not have.
    """
    document = document_from_json(text, source, "a symbol")
    nodes = _list_of(document, "nodes", source)
    if len(nodes) > MAX_NODES:
        _refuse(source, f"it has {len(nodes)} nodes; at most {MAX_NODES} are read")
    made: list[SymbolNode] = []
    names: set[str] = set()  # of variables
    for number, node in enumerate(nodes):
        where = f"{source}, node {number}"
        if not isinstance(node, dict):
            _refuse(where, f"it is {_shown(node)} instead of an object")
        made.append(_read_node(node, made, where))
        if made[-1].operator is None and made[-1].name in names:
            _refuse(where, f"another variable is named {_shown(made[-1].name)}")
        if made[-1].operator is None:
            names.add(made[-1].name)
    heads = _list_of(document, "heads", source)
    if not heads:
        _refuse(source, "it has no heads, which are the outputs")
    entries = tuple(_read_entry(head, made, f"{source}, heads") for head in heads)
    _check_arguments(document, made, source)
    _check_rows(document, made, source)
    return entries


def document_from_json(text: str, source: str, of_what: str) -> dict[str, Any]:
    """Return the object that a JSON text holds.

    Args:
        text: the text.
        source: the name of the file in messages.
        of_what: what the text describes, for messages.

    Raises:
        UserError: the text is too long, malformed, nested too deeply, or not an object.
    """
    if not isinstance(text, str):
        raise UserError(
            f"a {type(text).__name__} is not the JSON text of {of_what}",
            remedy="pass a str",
        )
    if len(text) > MAX_JSON:
        _refuse(source, f"it has {len(text)} characters; at most {MAX_JSON} are read")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        _refuse(source, f"it is not JSON: {str(error)[:100]}")
    if not isinstance(document, dict):
        _refuse(source, f"it is {_shown(document)} instead of an object")
    return document


def _read_node(
    node: Mapping[str, Any], made: Sequence[SymbolNode], where: str
) -> SymbolNode:
    name = node.get("name")
    if not isinstance(name, str) or not name:
        _refuse(where, f"its name is {_shown(name)} instead of a text")
    where = f"{where} ({_shown(name)})"
    op = node.get("op")
    if not isinstance(op, str):
        _refuse(where, f"its op is {_shown(op)} instead of the name of an operator")
    for field in ("control_deps", "subgraphs"):
        if node.get(field):
            _refuse(where, f"it has {field}, which refcomp does not read")
    listed = node.get("inputs", [])
    if not isinstance(listed, list):
        _refuse(where, f"its inputs are {_shown(listed)} instead of a list")
    inputs = tuple(_read_entry(entry, made, where) for entry in listed)
    attributes = _read_attributes(node, where)
    notes = {key: text for key, text in attributes.items() if _is_note(key)}
    if op == _VARIABLE:
        if inputs:
            _refuse(where, "it is a variable, but has inputs")
        return SymbolNode(name, notes=attributes)
    given = {key: text for key, text in attributes.items() if not _is_note(key)}
    # Some writers count inputs and outputs in the attributes.
    for count in ("num_args", "num_inputs", "num_outputs"):
        given.pop(count, None)
    operator = find_symbol_operator(op, where)
    values = operator.checked_attributes(given, where)
    try:
        operator.count_outputs(values)
    except UserError as error:
        error.where = where
        raise
    expected = operator.input_names(values)
    if not operator.is_variadic and len(inputs) != len(expected):
        _refuse(
            where,
            f"{operator.name} takes {len(expected)} inputs ({', '.join(expected)}), "
            f"but the node has {len(inputs)}",
        )
    if operator.is_variadic and not inputs:
        _refuse(where, f"{operator.name} takes at least one input")
    return SymbolNode(
        name,
        operator=operator,
        inputs=inputs,
        attributes=values,
        notes=notes,
    )


def _read_attributes(node: Mapping[str, Any], where: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for key in _ATTRIBUTE_KEYS:
        found = node.get(key, {})
        if not isinstance(found, dict):
            _refuse(where, f"its {key} are {_shown(found)} instead of an object")
        for name, text in found.items():
            if not isinstance(text, str):
                _refuse(
                    where, f"its attribute {_shown(name)} is {_shown(text)}, not a text"
                )
        attributes.update(found)
    return attributes


def _is_note(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _read_entry(entry: object, made: Sequence[SymbolNode], where: str) -> SymbolEntry:
    numbers = entry if isinstance(entry, list) else []
    are_integers = all(type(number) is int for number in numbers)
    if len(numbers) not in (2, 3) or not are_integers:
        _refuse(
            where,
            f"it refers to {_shown(entry)} instead of [node, output, version]",
        )
    number: int = numbers[0]
    index: int = numbers[1]
    if not 0 <= number < len(made):
        _refuse(
            where,
            f"it refers to node {_shown(number)}, but only nodes 0 to {len(made) - 1} come before",
        )
    outputs = made[number].output_count
    if not 0 <= index < outputs:
        _refuse(
            where,
            f"it refers to output {_shown(index)} of {made[number].place}, which has {outputs}",
        )
    return SymbolEntry(made[number], index)


def _check_arguments(
    document: Mapping[str, Any], made: Sequence[SymbolNode], source: str
) -> None:
    if "arg_nodes" not in document:
        return
    expected = [number for number, node in enumerate(made) if node.operator is None]
    found = document["arg_nodes"]
    if found != expected:
        _refuse(
            source,
            f"its arg_nodes are {_shown(found)}, but the variables are {_shown(expected)}",
        )


def _check_rows(
    document: Mapping[str, Any], made: Sequence[SymbolNode], source: str
) -> None:
    if "node_row_ptr" not in document:
        return
    rows = [0]
    for node in made:
        hidden = 0 if node.operator is None else node.operator.hidden_outputs
        rows.append(rows[-1] + node.output_count + hidden)
    found = document["node_row_ptr"]
    if found != rows:
        _refuse(
            source,
            f"its node_row_ptr is {_shown(found)}, but the outputs begin at {_shown(rows)}",
        )


def _list_of(document: Mapping[str, Any], key: str, source: str) -> list[Any]:
    found = document.get(key)
    if not isinstance(found, list):
        _refuse(source, f"its {key} are {_shown(found)} instead of a list")
    return found


def _shown(value: object) -> str:
    """Return a value of unknown size as a short text."""
    return reprlib.repr(value)


def _refuse(where: str, why: str) -> NoReturn:
    raise UserError(
        "the symbol cannot be read from JSON",
        where=where,
        why=why,
        remedy="give a text that `Symbol.json` returned, or a file of NNVM",
    )
