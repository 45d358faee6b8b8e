"""The syntax that printer and parser of the loop IR's text share: operators, words, constants.

Binary operators have the precedence of Python's, from `or` (lowest) to `* / // %`. All are
left-associative except the comparisons, which do not chain.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from refcomp.foundation.dtype import I64, DType, find_dtype
from refcomp.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    BitAnd,
    BitOr,
    BitXor,
    Callee,
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

# Precedence. The operands of a comparison must have a higher precedence than the comparison.
LOOSEST, OR, AND, NOT, COMPARISON, PRODUCT, TIGHTEST = 0, 1, 2, 3, 4, 10, 11

# text -> node class, precedence
OPERATORS: Final[dict[str, tuple[type[BinaryExpr], int]]] = {
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

# Binary nodes that are written as a call. Div of floats is `/`; Mod is always a call.
BINARY_FUNCTIONS: Final[dict[str, type[BinaryExpr]]] = {
    "truncdiv": Div,
    "truncmod": Mod,
    "min": Min,
    "max": Max,
}

# Reserved words. Others (range, out, parallel, ...) have a meaning in one place only, so a variable
# may have their name.
WORDS: Final = frozenset(
    {"func", "for", "if", "else", "let", "alloc", "region", "block"}
    | {"barrier", "atomic", "launch", "with", "packed", "extern", "pragma", "prefetch"}
    | {"trace"}
    | {"in", "and", "or", "not", "true", "false"}
)
# The word before a call whose value is used.
CALL_WORDS: Final = {
    Callee.C_FUNCTION: "extern",
    Callee.REGISTERED: "packed",
    Callee.TRACE: "trace",
}
FLOAT_WORDS: Final = frozenset(
    f"{dtype}.{value}"
    for dtype in ("f16", "f32", "f64", "bf16")
    for value in ("inf", "nan")
)


def word_to_dtype(word: str) -> DType | None:
    """Return the dtype that a word of the text names; None if it names none."""
    return find_dtype(word)


def is_reserved(name: str) -> bool:
    """Return True if `name` cannot be the name of a variable or a buffer."""
    return name in WORDS or name in FLOAT_WORDS or word_to_dtype(name) is not None


def int_to_text(value: int, dtype: DType) -> str:
    """Return the text of an integer or bool constant: `7` for i64, `7u8`, `true`."""
    if dtype.is_bool:
        return "true" if value else "false"
    return str(value) if dtype == I64 else f"{value}{dtype}"


def float_to_text(value: float, dtype: DType) -> str:
    """Return a float constant with the fewest digits that read back to the same bits: `0.1f32`."""
    if math.isnan(value):
        return f"{dtype}.nan"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}{dtype}.inf"
    if dtype.bits == 64 or (value.is_integer() and abs(value) < 1e9):
        return f"{value!r}{dtype}"
    # 17 significant digits are enough for f64, so the loop always returns.
    for digits in range(17):
        shortened = float(np.format_float_scientific(value, digits))
        if round_to_dtype(shortened, dtype) == value:
            return f"{shortened!r}{dtype}"
    raise AssertionError(value)
