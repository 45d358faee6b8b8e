"""Constants in the languages of the C family: texts that stand for exactly one value.

A float is written in decimal digits where few of them are its exact value (`0.5f`), else in
hexadecimal ones (`0x1.99999ap-4f`), and by its bits where it is no number. So no compiler rounds.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import CompilerBug

_LAYOUTS = {16: ">e", 32: ">f", 64: ">d"}
_LONGEST = 12  # digits of an exact decimal that a reader still takes in


def spell_literal(
    say: Any, tables: dict[str, Any], value: float, dtype: DType
) -> tuple[str, bool]:
    """The text of a scalar constant, and whether it needs no parentheses anywhere."""
    if dtype.lanes != 1:
        raise CompilerBug(f"a constant of dtype {dtype} is printed as a scalar")
    if dtype.is_float:
        return _spell_float(say, tables, float(value), dtype)
    if dtype.is_bool:
        return tables["literal"]["true" if value else "false"], True
    return _spell_int(say, tables, int(value), dtype)


def _spell_int(
    say: Any, tables: dict[str, Any], value: int, dtype: DType
) -> tuple[str, bool]:
    suffix, name = tables["literal_suffix"].get(str(dtype)), str(dtype)
    if suffix is None:  # C has no literals of that type
        return say.cast(tables["type"][name], value), False
    if value == dtype.min_value and dtype.kind == "int":
        return tables["least"][name], True
    return f"{value}{suffix}", value >= 0


def _spell_float(
    say: Any, tables: dict[str, Any], value: float, dtype: DType
) -> tuple[str, bool]:
    if math.isfinite(value):
        return (
            f"{_digits(value)}{tables['literal_suffix'][str(dtype)]}",
            not _is_negative(value),
        )
    bits = struct.pack(_LAYOUTS[dtype.bits], value).hex()
    if dtype.bits == 16:
        return say.half_of_bits(bits), True
    return say.float_of_bits(tables["type"][str(dtype)], bits), True


def _is_negative(value: float) -> bool:
    return math.copysign(1.0, value) < 0


def _digits(value: float) -> str:
    shortest = repr(value)
    if (
        len(shortest) <= _LONGEST
        and "e" not in shortest
        and Decimal(shortest) == Decimal(value)
    ):
        return shortest
    mantissa, _, exponent = value.hex().partition("p")
    return f"{mantissa.rstrip('0').removesuffix('.')}p{exponent}"
