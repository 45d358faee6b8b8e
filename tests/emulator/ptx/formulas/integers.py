"""Integer instructions by the formulas of the ISA, one thread at a time."""

from __future__ import annotations

from typing import Any

from refcomp.emulator.ptx.instructions.types import bits_of
from tests.emulator.ptx.formulas.spelled import (
    ANY,
    Formula,
    Spelled,
    by_halves,
    clamp,
    mask,
    number,
)

OPCODES = "add sub mul mad div rem abs neg min max sad mul24 mad24 dp4a dp2a addc subc madc"


def integer_formula(form: Spelled) -> Formula:
    """The formula of an instruction whose last type is one of integers."""
    if form.opcode in ("addc", "subc", "madc") or "cc" in form.words:
        return _carrying(form)
    if form.type.endswith("x2"):
        half = form.type.removesuffix("x2")
        inner = _plain(Spelled(form.opcode, (half,), form.words))
        both = by_halves(lambda *words: int(inner(*words)[0]))
        return lambda *words: (both(*words),)
    return _plain(form)


def _plain(form: Spelled) -> Formula:
    kind = form.type
    compute = {
        "add": _sum,
        "sub": _sum,
        "mul": _product,
        "mad": _product,
        "div": _quotient,
        "rem": _quotient,
        "min": _extreme,
        "max": _extreme,
        "sad": _distance,
        "mul24": _short_product,
        "mad24": _short_product,
        "dp4a": _dot,
        "dp2a": _dot,
    }.get(form.opcode)
    if compute is not None:
        return compute(form)
    sign = {"abs": abs, "neg": lambda x: -x}[form.opcode]
    return lambda a: (sign(number(a, kind)) & mask(kind),)


def _sum(form: Spelled) -> Formula:
    kind, sign = form.type, -1 if form.opcode == "sub" else 1

    def compute(a: int, b: int) -> tuple[int]:
        total = number(a, kind) + sign * number(b, kind)
        return ((clamp(total, kind) if "sat" in form.words else total) & mask(kind),)

    return compute


def _part(form: Spelled, product: int) -> int:
    """The part of a product that .lo, .hi or .wide names."""
    return product >> bits_of(form.type) if "hi" in form.words else product


def _product(form: Spelled) -> Formula:
    kind = form.type
    result = f"{kind[0]}{2 * bits_of(kind)}" if "wide" in form.words else kind

    def compute(a: int, b: int, *c: int) -> tuple[int]:
        total = _part(form, number(a, kind) * number(b, kind))
        if c:
            total = number(total, result) + number(c[0], result)
        return ((clamp(total, result) if "sat" in form.words else total) & mask(result),)

    return compute


def _quotient(form: Spelled) -> Formula:
    kind = form.type

    def compute(a: int, b: int) -> tuple[Any]:
        x, y = number(a, kind), number(b, kind)
        if y == 0:
            return (ANY,)
        whole = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return ((whole if form.opcode == "div" else x - y * whole) & mask(kind),)

    return compute


def _extreme(form: Spelled) -> Formula:
    kind, choose = form.type, min if form.opcode == "min" else max

    def compute(a: int, b: int) -> tuple[int]:
        chosen = choose(number(a, kind), number(b, kind))
        return ((max(chosen, 0) if "relu" in form.words else chosen) & mask(kind),)

    return compute


def _distance(form: Spelled) -> Formula:
    kind = form.type

    def compute(a: int, b: int, c: int) -> tuple[int]:
        return ((number(c, kind) + abs(number(a, kind) - number(b, kind))) & mask(kind),)

    return compute


def _short_product(form: Spelled) -> Formula:
    kind = form.type

    def short(bits: int) -> int:
        low = bits & 0xFFFFFF
        return low - (low >> 23 << 24) if kind[0] == "s" else low

    def compute(a: int, b: int, *c: int) -> tuple[int]:
        product = short(a) * short(b)
        part = number(product >> 16 if "hi" in form.words else product, kind)
        total = part + (number(c[0], kind) if c else 0)
        return ((clamp(total, kind) if "sat" in form.words else total) & mask(kind),)

    return compute


def _dot(form: Spelled) -> Formula:
    first, second = form.types
    signed = "s32" in form.types

    def part(word: int, place: int, width: int, kind: str) -> int:
        return number(word >> width * place, f"{kind[0]}{width}")

    def compute(a: int, b: int, c: int) -> tuple[int]:
        total = number(c, "s32" if signed else "u32")
        if form.opcode == "dp4a":
            for place in range(4):
                total += part(a, place, 8, first) * part(b, place, 8, second)
        else:
            start = 2 if "hi" in form.words else 0
            for place in range(2):
                total += part(a, place, 16, first) * part(b, start + place, 8, second)
        return (total & 0xFFFFFFFF,)

    return compute


def _carrying(form: Spelled) -> Formula:
    """add.cc, addc, sub.cc, subc, mad.cc and madc. The carry is the last source and result."""
    kind, ones = form.type, mask(form.type)
    takes, gives = form.opcode[-1] == "c", "cc" in form.words

    def compute(*values: int) -> tuple[int, ...]:
        carry = values[-1] if takes else 0
        given = values[:-1] if takes else values
        if form.opcode.startswith("sub"):
            total = given[0] - given[1] - carry
            carried = int(total < 0)
        else:
            first = given[0]
            if form.opcode.startswith("mad"):
                first = _part(form, number(first, kind) * number(given[1], kind)) & ones
            total = first + given[-1] + carry
            carried = total >> bits_of(kind)
        return (total & ones, carried) if gives else (total & ones,)

    return compute
