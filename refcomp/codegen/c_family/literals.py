"""Constants in the languages of the C family: texts that stand for exactly one value.

A float is written in decimal digits if few of them are its exact value (`0.5f`), else in
hexadecimal digits (`0x1.99999ap-4f`). An infinity or a NaN is written by its bits. So is a float of
which the language has no literals. So no compiler rounds a constant.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal

from refcomp.codegen.spelling import Macros, Table
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import CompilerBug

_LAYOUTS = {16: ">e", 32: ">f", 64: ">d"}
_MAX_DIGITS = 12  # of an exact decimal


def spell_literal(
    say: Macros,
    tables: Table,
    value: float,
    dtype: DType,
) -> tuple[str, bool]:
    """Return the text of a scalar constant, and True if it never needs parentheses."""
    if dtype.lanes != 1:
        raise CompilerBug(f"a constant of dtype {dtype} is printed as a scalar")
    if dtype.is_bool:
        return tables["literal"]["true" if value else "false"], True
    suffix = tables["literal_suffix"].get(str(dtype))
    if dtype.is_float and (suffix is None or not math.isfinite(value)):
        digits = struct.pack(_LAYOUTS[dtype.bits], value).hex()
        if dtype.bits == 16:
            return say.half_of_bits(digits=digits), True
        return say.float_of_bits(type=tables["type"][str(dtype)], digits=digits), True
    if dtype.is_float:
        return _digits(float(value)) + suffix, math.copysign(1.0, value) > 0
    value = int(value)
    if suffix is None:  # C has no literals of that type
        return say.cast(type=tables["type"][str(dtype)], a=value), False
    if value == dtype.min_value and dtype.kind == "int":
        return tables["least"][str(dtype)], True
    return f"{value}{suffix}", value >= 0


def _digits(value: float) -> str:
    decimal = repr(value)
    is_short = len(decimal) <= _MAX_DIGITS and "e" not in decimal
    if is_short and Decimal(decimal) == Decimal(value):
        return decimal
    mantissa, _, exponent = value.hex().partition("p")
    return f"{mantissa.rstrip('0').removesuffix('.')}p{exponent}"
