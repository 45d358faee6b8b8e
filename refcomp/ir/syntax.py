"""What the printer and the parser of the loop IR's text agree on: operators, words, constants.

Binary operators bind as in Python, from `or` (loosest) to `* / // %`; all are left-associative
but the comparisons, which do not chain.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import numpy as np

from refcomp.foundation.dtype import DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BitAnd,
    BitOr,
    BitXor,
    Div,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    Mul,
    Or,
    ShiftLeft,
    ShiftRight,
    Sub,
    round_to_dtype,
)

# How tightly an operator binds; a comparison's operands bind more tightly than itself.
LOOSEST, OR, AND, NOT, COMPARISON, PRODUCT, TIGHTEST = 0, 1, 2, 3, 4, 10, 11

OPERATORS: Final[dict[str, tuple[type[Any], int]]] = {
    "or": (Or, OR),
    "and": (And, AND),
    "==": (EQ, COMPARISON),
    "!=": (NE, COMPARISON),
    "<": (LT, COMPARISON),
    "<=": (LE, COMPARISON),
    ">": (GT, COMPARISON),
    ">=": (GE, COMPARISON),
    "|": (BitOr, 5),
    "^": (BitXor, 6),
    "&": (BitAnd, 7),
    "<<": (ShiftLeft, 8),
    ">>": (ShiftRight, 8),
    "+": (Add, 9),
    "-": (Sub, 9),
    "*": (Mul, PRODUCT),
    "/": (Div, PRODUCT),
    "//": (FloorDiv, PRODUCT),
    "%": (FloorMod, PRODUCT),
}

# Binary nodes written as a call. Div is `/` on floats, Mod is a call on floats too.
BINARY_FUNCTIONS: Final[dict[str, type[Any]]] = {
    "truncdiv": Div,
    "truncmod": Mod,
    "min": Min,
    "max": Max,
}

# Other words of the text (range, out, parallel, ...) have a meaning in one place only.
WORDS: Final = frozenset(
    {"func", "for", "if", "else", "let", "alloc", "region", "block"}
    | {"barrier", "atomic", "launch", "with", "packed", "extern", "pragma", "prefetch"}
    | {"in", "and", "or", "not", "true", "false"}
)
FLOAT_WORD: Final = re.compile(r"(f16|f32|f64|bf16)\.(inf|nan)")


def word_to_dtype(word: str) -> DType | None:
    """The dtype that a word of the text names, None where it names none."""
    try:
        return as_dtype(word)
    except UserError:
        return None


def is_reserved(name: str) -> bool:
    """Whether `name` means something else than a variable or a buffer."""
    return (
        name in WORDS
        or FLOAT_WORD.fullmatch(name) is not None
        or word_to_dtype(name) is not None
    )


def int_to_text(value: int, dtype: DType) -> str:
    """An integer or bool constant: `7` for i64, `7u8`, `true`."""
    if dtype.is_bool:
        return "true" if value else "false"
    return str(value) if dtype == DType("int", 64) else f"{value}{dtype}"


def float_to_text(value: float, dtype: DType) -> str:
    """A float constant in the fewest digits that read back to the same bits: `0.1f32`."""
    if math.isnan(value):
        return f"{dtype}.nan"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}{dtype}.inf"
    return f"{_digits(value, dtype)}{dtype}"


def _digits(value: float, dtype: DType) -> str:
    if dtype.bits == 64 or (value.is_integer() and abs(value) < 1e9):
        return repr(value)
    roundings = (
        float(np.format_float_scientific(value, digits)) for digits in range(17)
    )
    return repr(
        next(near for near in roundings if round_to_dtype(near, dtype) == value)
    )
