"""`cast_to_string` and `cast_from_string`: numbers as texts, and texts as numbers.

Source: the ONNX operator specification, Cast. A number is written in plain digits, such as
`314.15926`, and read in plain or scientific form. `INF`, `-INF` and `NaN` stand for themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refcomp.foundation.dtype import STRING, DType, as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.graph.control.machine import RunValue, as_tensor
from refcomp.graph.control.operator import (
    ControlCall,
    ControlOperator,
    NodeParts,
    check_kind,
    refuse,
)
from refcomp.graph.control.strings import check_strings, each, texts_of
from refcomp.graph.control.types import NodeType, unshaped
from refcomp.graph.graph import Array, ValueKind
from refcomp.topi.operator import AttributeSpec

_SPECIAL = {"inf": np.inf, "+inf": np.inf, "-inf": -np.inf, "nan": np.nan}
_MAX_DIGITS = 4000  # of an integer; Python itself reads no more than 4300


def _to_types(node: NodeParts) -> list[NodeType]:
    given = check_kind(
        "cast_to_string", "data", node.inputs[0], ValueKind.TENSOR, ValueKind.UNSHAPED
    )
    if given.dtype == STRING:
        refuse(f"cast_to_string cannot convert {given}", "give numbers")
    return [unshaped(STRING)]


def _run_to(call: ControlCall) -> list[RunValue]:
    data = call.machine.read(as_tensor(call.inputs[0], "data"))
    if as_dtype(data.dtype).is_float:
        texts = [_float_text(one) for one in data.reshape(-1)]
    else:
        texts = [str(int(one)) for one in data.reshape(-1)]
    made = np.empty(len(texts), object)
    made[:] = texts
    return [made.reshape(data.shape)]


def _float_text(number: np.floating[Any]) -> str:
    """Return the fewest plain digits that mean a number of its dtype."""
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "INF" if number > 0 else "-INF"
    if not isinstance(number, np.floating):  # bf16: numpy cannot count its digits
        number = np.float32(number)
    return np.format_float_positional(number, unique=True, trim="-")


def _from_types(node: NodeParts) -> list[NodeType]:
    check_strings("cast_from_string", "texts", node.inputs[0])
    return [unshaped(as_dtype(str(node.attributes["to"])))]


def _run_from(call: ControlCall) -> list[RunValue]:
    texts = texts_of(call.machine, call.inputs[0], "texts")
    dtype = as_dtype(str(call.attributes["to"]))
    return [call.machine.tensor(_numbers(texts, dtype))]


def _numbers(texts: Array, dtype: DType) -> Array:
    """Return the numbers that texts mean. An integer keeps its lowest bits."""
    if dtype.is_float:
        return each(_float, texts).astype(np.float64).astype(to_numpy(dtype))
    if dtype.is_bool:
        return each(lambda text: _float(text) != 0, texts).astype(np.bool_)
    bits = each(lambda text: _integer(text) & (1 << 64) - 1, texts).astype(np.uint64)
    return bits.astype(to_numpy(dtype))


def _float(text: str) -> float:
    stripped = text.strip()
    special = _SPECIAL.get(stripped.lower())
    if special is not None:
        return special
    try:
        return float(stripped.replace("_", "?"))
    except ValueError:
        raise _not_a_number(text) from None


def _integer(text: str) -> int:
    stripped = text.strip()
    digits = stripped.lstrip("+-")
    if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS:
        try:
            return int(stripped)
        except ValueError:  # two signs
            raise _not_a_number(text) from None
    number = _float(text)
    if not np.isfinite(number):
        raise _not_a_number(text)
    return int(number)


def _not_a_number(text: str) -> UserError:
    return UserError(
        f"cast_from_string cannot read {text[:40]!r} as a number",
        remedy="give numbers such as 314.15, 1e-5, INF or NaN; integers must be finite",
    )


STRING_CASTS = (
    ControlOperator("cast_to_string", inputs=("data",), rule=_to_types, run=_run_to),
    ControlOperator(
        "cast_from_string",
        inputs=("texts",),
        attributes=(AttributeSpec("to", (str,), required=True),),
        rule=_from_types,
        run=_run_from,
    ),
)
