"""Numbers of PTX, and constant expressions of them.

Source: "Parallel Thread Execution ISA", sections "Constants" and "Integer Constant Expression
Evaluation". Whole numbers have 64 bits, and are signed or unsigned. If an operand is unsigned, so
is the result. Division by zero and operators between floats are refused.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from refcomp.emulator.ptx.text.module import Immediate
from refcomp.emulator.ptx.text.tokens import Tokens

_MASK = (1 << 64) - 1
_MAX_DEPTH = 32
_WHOLE = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)(U?)")
_FLOAT_BITS = re.compile(r"0([fF])([0-9a-fA-F]{8})|0([dD])([0-9a-fA-F]{16})")
_FLOAT = re.compile(r"\d+(\.\d*([eE][+-]?\d+)?|[eE][+-]?\d+)")
_MAX_DIGITS = 66  # 64 binary digits and the prefix

# Operators by precedence, the lowest precedence first.
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_LEVEL_OF = {sign: level for level, signs in enumerate(_LEVELS) for sign in signs}
OPERATORS = frozenset(_LEVEL_OF) | {"?"}


@dataclass(frozen=True, slots=True)
class _Whole:
    """A whole number of 64 bits."""

    value: int  # within the limits of its type
    is_unsigned: bool = False


def _wrapped(value: int, is_unsigned: bool) -> _Whole:
    bits = value & _MASK
    return _Whole(bits if is_unsigned else bits - (bits >> 63 << 64), is_unsigned)


def _quotient(a: int, b: int) -> int:
    """Divide, and round towards zero, as C does."""
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b),
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def read_constant(tokens: Tokens) -> Immediate:
    """Read a number or a constant expression."""
    value = _expression(tokens, 0, 0)
    if isinstance(value, Immediate):
        return value
    return Immediate("int", value.value & _MASK)


def read_whole(tokens: Tokens, of: str, maximum: int = 2**31 - 1) -> int:
    """Read a whole number from 0 to `maximum`. Messages call it `of`, such as "an alignment"."""
    return _limited(tokens, _expression(tokens, 0, 0), of, maximum)


def read_number(tokens: Tokens, of: str, maximum: int = 2**31 - 1) -> int:
    """Read a whole number as `read_whole` does, but without operators."""
    return _limited(tokens, _unary(tokens, 0), of, maximum)


def _limited(tokens: Tokens, found: _Whole | Immediate, of: str, maximum: int) -> int:
    if isinstance(found, Immediate):
        tokens.fail(f"{of} must be a whole number, not {found}")
    if not 0 <= found.value <= maximum:
        tokens.fail(f"{of} must be from 0 to {maximum}, not {found.value}")
    return found.value


@lru_cache(maxsize=4096)
def _literal(text: str) -> _Whole | Immediate | None:
    if match := _FLOAT_BITS.fullmatch(text):
        if match[1]:
            return Immediate("f32", int(match[2], 16))
        return Immediate("f64", int(match[4], 16))
    if match := _WHOLE.fullmatch(text):
        return _whole_literal(match[1], bool(match[2]))
    if _FLOAT.fullmatch(text):
        bits = struct.unpack("<Q", struct.pack("<d", float(text)))[0]
        return Immediate("f64", bits)
    return None


def _whole_literal(digits: str, is_unsigned: bool) -> _Whole | None:
    if digits[:2] in ("0x", "0X"):
        value = int(digits[2:], 16)
    elif digits[:2] in ("0b", "0B"):
        value = int(digits[2:], 2)
    elif digits[0] == "0":
        value = int(digits, 8)
    else:
        value = int(digits)
    if value > _MASK:
        return None
    return _Whole(value, is_unsigned or value >> 63 == 1)


def _expression(tokens: Tokens, level: int, depth: int) -> _Whole | Immediate:
    """Read an expression whose operators have at least the precedence `level`."""
    left = _unary(tokens, depth)
    while tokens.kind == "mark":
        found = _LEVEL_OF.get(tokens.text)
        if found is None or found < level:
            break
        sign = tokens.advance()
        right = _expression(tokens, found + 1, depth)
        left = _combined(tokens, sign, left, right)
    if level == 0 and tokens.accept("?"):
        if depth >= _MAX_DEPTH:
            _fail_depth(tokens)
        chosen = _expression(tokens, 0, depth + 1)
        tokens.expect(":", "in a constant expression with ?")
        other = _expression(tokens, 0, depth + 1)
        return chosen if _whole(tokens, left).value else other
    return left


def _unary(tokens: Tokens, depth: int) -> _Whole | Immediate:
    if depth >= _MAX_DEPTH:
        _fail_depth(tokens)
    if tokens.kind == "number":
        return _number(tokens)
    if tokens.accept("("):
        if tokens.kind == "directive" and tokens.text in (".s64", ".u64"):
            is_unsigned = tokens.advance() == ".u64"
            tokens.expect(")", "behind the type of a cast")
            inner = _whole(tokens, _unary(tokens, depth + 1))
            return _wrapped(inner.value, is_unsigned)
        found = _expression(tokens, 0, depth + 1)
        tokens.expect(")", "in a constant expression")
        return found
    if tokens.text not in ("-", "+", "~", "!"):
        tokens.fail(f"expected a number, not {tokens.shown}")
    sign = tokens.advance()
    operand = _unary(tokens, depth + 1)
    if isinstance(operand, Immediate):
        return _signed_float(tokens, sign, operand)
    if sign == "!":
        return _Whole(int(not operand.value))
    value = {"-": -operand.value, "+": operand.value, "~": ~operand.value}[sign]
    # -9223372036854775808 is the smallest number with a sign.
    return _wrapped(value, operand.is_unsigned and value != -(1 << 63))


def _number(tokens: Tokens) -> _Whole | Immediate:
    text = tokens.text
    is_short = len(text) <= _MAX_DIGITS
    found = _literal(text) if is_short else None
    if found is None:
        tokens.fail(
            f"{tokens.shown} is not a number of PTX",
            why="whole numbers have 64 bits; floats are 0f with 8 digits, 0d with 16, or decimal",
        )
    tokens.advance()
    return found


def _signed_float(tokens: Tokens, sign: str, operand: Immediate) -> Immediate:
    if sign == "+":
        return operand
    if sign != "-":
        tokens.fail(f"{sign} does not go with a float")
    top = 31 if operand.type == "f32" else 63
    return Immediate(operand.type, operand.bits ^ 1 << top)


def _combined(
    tokens: Tokens, sign: str, left: _Whole | Immediate, right: _Whole | Immediate
) -> _Whole:
    first = _whole(tokens, left)
    second = _whole(tokens, right)
    if sign in ("<<", ">>"):
        places = min(second.value & _MASK, 64)
        value = first.value << places if sign == "<<" else first.value >> places
        return _wrapped(value, first.is_unsigned)
    if sign == "&&":
        return _Whole(int(bool(first.value and second.value)))
    if sign == "||":
        return _Whole(int(bool(first.value or second.value)))
    is_unsigned = first.is_unsigned or second.is_unsigned
    a = _wrapped(first.value, is_unsigned).value
    b = _wrapped(second.value, is_unsigned).value
    if sign in _COMPARISONS:
        return _Whole(int(_COMPARISONS[sign](a, b)))
    if sign in ("/", "%") and b == 0:
        tokens.fail("a constant expression divides by zero")
    return _wrapped(_ARITHMETIC[sign](a, b), is_unsigned)


def _whole(tokens: Tokens, value: _Whole | Immediate) -> _Whole:
    if isinstance(value, Immediate):
        tokens.refuse("expressions of floats", remedy="write the result as 0f or 0d")
    return value


def _fail_depth(tokens: Tokens) -> None:
    tokens.fail(f"a constant expression is nested more than {_MAX_DEPTH} deep")
