"""Values of a run: check those that a caller gives, and read attributes from tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.graph.control.machine import RunValue
from refcomp.graph.control.maps import check_map
from refcomp.graph.feeds import check_conditions, check_feeds, check_name, form_of
from refcomp.graph.graph import Array, Graph, Value, ValueKind
from refcomp.topi.operator import Attribute

_OPTIONALS = (ValueKind.OPTIONAL, ValueKind.OPTIONAL_SEQUENCE)
_FORMS = {
    ValueKind.SEQUENCE: "a list of arrays",
    ValueKind.OPTIONAL_SEQUENCE: "a list of arrays",
    ValueKind.INTEGER_MAPS: "a list of dictionaries",
    ValueKind.STRING_MAPS: "a list of dictionaries",
    ValueKind.INTEGER_MAP: "a dictionary",
    ValueKind.STRING_MAP: "a dictionary",
}
_SEQUENCES = [kind for kind, form in _FORMS.items() if "list" in form]
_MAPS = [kind for kind, form in _FORMS.items() if "dictionar" in form]


def as_run_value(value: Any) -> RunValue:
    """Return what a caller gave as a value of a run.

    A list becomes a tuple, and an array of texts one of objects.
    """
    if isinstance(value, list | tuple):
        return cast("RunValue", tuple(map(as_run_value, value)))
    if isinstance(value, Mapping):
        return dict(value)
    is_texts = isinstance(value, np.ndarray) and value.dtype.kind in "UT"
    return value.astype(object) if is_texts else value  # type: ignore[no-any-return]


def check_run_values(graph: Graph, feeds: Mapping[str, Any]) -> dict[str, int]:
    """Return the value of each symbol of a graph, given its inputs by name.

    Raises:
        UserError: a name is unknown or missing, or a value does not fit its input.
    """
    tensors = {}
    for name, value in feeds.items():
        declared = check_name(graph, name)
        if declared.is_tensor:
            tensors[name] = form_of(declared.name, value)
        else:
            _check_container(declared, value)
    missing = [v for v in graph.inputs if v.name not in feeds and not v.is_tensor]
    if missing:
        raise UserError(
            f"no value is given for input {', '.join(map(str, missing))}",
            remedy="give a list for a sequence, None for an optional without an element",
        )
    only_tensors = Graph(
        graph.name, tuple(v for v in graph.inputs if v.is_tensor), (), ()
    )
    symbols = check_feeds(only_tensors, tensors)
    check_conditions(graph, symbols)
    return symbols


def _check_container(declared: Value, value: Any) -> None:
    """Raise UserError unless `value` may be given for an input that is not a shaped tensor."""
    if value is None and declared.kind in _OPTIONALS:
        return
    is_list = isinstance(value, list | tuple)
    may_be_list = declared.kind in _SEQUENCES
    if is_list != may_be_list or value is None:
        raise UserError(
            f"input {declared} cannot be a {type(value).__name__}",
            remedy=f"pass {_FORMS.get(declared.kind, 'an array')}",
        )
    if declared.kind in _MAPS:
        is_text = declared.kind in (ValueKind.STRING_MAP, ValueKind.STRING_MAPS)
        for one in value if is_list else [value]:
            check_map(one, declared.dtype, is_text, f"input {declared}")
        return
    for element in value if is_list else [value]:
        dtype, _ = form_of(declared.name, element)
        if as_dtype(dtype) != declared.dtype:
            raise UserError(
                f"input {declared} is given an array of {as_dtype(dtype)}",
                remedy=f"convert it to {declared.dtype} first",
            )


def late_attribute(elements: Array) -> Attribute:
    """Return the attribute that a tensor holds: a number, or a tuple of numbers."""
    array = np.asarray(elements)
    if array.ndim == 0:
        return array.item()  # type: ignore[no-any-return]
    return tuple(array.tolist())
