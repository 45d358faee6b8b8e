"""Instructions on bits by the formulas of the ISA, one thread at a time."""

from __future__ import annotations

from typing import Any

from refcomp.emulator.ptx.instructions.types import bits_of
from tests.emulator.ptx.formulas.spelled import ANY, Formula, Spelled, mask, number

OPCODES = "and or xor not cnot lop3 shl shr shf bfe bfi bmsk szext brev popc clz bfind fns prmt mov"
_NOTHING = 0xFFFFFFFF


def logic_formula(form: Spelled) -> Formula:
    """The formula of an instruction on bits."""
    return globals()[f"_{form.opcode}"](form)  # type: ignore[no-any-return]


def _and(form: Spelled) -> Formula:
    return lambda a, b: (a & b,)


def _or(form: Spelled) -> Formula:
    return lambda a, b: (a | b,)


def _xor(form: Spelled) -> Formula:
    return lambda a, b: (a ^ b,)


def _not(form: Spelled) -> Formula:
    ones = 1 if form.type == "pred" else mask(form.type)
    return lambda a: (a ^ ones,)


def _cnot(form: Spelled) -> Formula:
    return lambda a: (int(a == 0),)


def _mov(form: Spelled) -> Formula:
    return lambda a: (a,)


def _lop3(form: Spelled) -> Formula:
    def compute(a: int, b: int, c: int, table: int, *q: int) -> tuple[int, ...]:
        result = 0
        for place in range(32):
            row = (a >> place & 1) * 4 + (b >> place & 1) * 2 + (c >> place & 1)
            result |= (table >> row & 1) << place
        if not q:
            return (result,)
        isset = int(result != 0)
        return result, isset | q[0] if "or" in form.words else isset & q[0]

    return compute


def _shl(form: Spelled) -> Formula:
    return lambda a, n: (a << min(n, 64) & mask(form.type),)


def _shr(form: Spelled) -> Formula:
    return lambda a, n: (number(a, form.type) >> min(n, 64) & mask(form.type),)


def _amount(form: Spelled, value: int) -> int:
    return value & 31 if "wrap" in form.words else min(value, 32)


def _shf(form: Spelled) -> Formula:
    def compute(a: int, b: int, c: int) -> tuple[int]:
        n = _amount(form, c)
        if "l" in form.words:
            return ((b << n | a >> 32 - n) & 0xFFFFFFFF,)
        return ((b << 32 - n | a >> n) & 0xFFFFFFFF,)

    return compute


def _bfe(form: Spelled) -> Formula:
    top = bits_of(form.type) - 1

    def compute(a: int, b: int, c: int) -> tuple[int]:
        position, length = b & 0xFF, c & 0xFF
        sign = 0
        if form.type[0] == "s" and length:
            sign = a >> min(position + length - 1, top) & 1
        result = 0
        for i in range(top + 1):
            inside = i < length and position + i <= top
            result |= (a >> position + i & 1 if inside else sign) << i
        return (result,)

    return compute


def _bfi(form: Spelled) -> Formula:
    def compute(a: int, b: int, c: int, d: int) -> tuple[int]:
        position, length = c & 0xFF, d & 0xFF
        result = b
        for i in range(length):
            if position + i < bits_of(form.type):
                result = result & ~(1 << position + i) | (a >> i & 1) << position + i
        return (result,)

    return compute


def _bmsk(form: Spelled) -> Formula:
    def compute(a: int, b: int) -> tuple[int]:
        return (((1 << _amount(form, b)) - 1) << _amount(form, a) & 0xFFFFFFFF,)

    return compute


def _szext(form: Spelled) -> Formula:
    def compute(a: int, b: int) -> tuple[int]:
        n = _amount(form, b)
        low = a & (1 << n) - 1
        is_negative = form.type == "s32" and n > 0 and low >> n - 1
        return ((low - (1 << n) if is_negative else low) & 0xFFFFFFFF,)

    return compute


def _brev(form: Spelled) -> Formula:
    return lambda a: (int(f"{a:0{bits_of(form.type)}b}"[::-1], 2),)


def _popc(form: Spelled) -> Formula:
    return lambda a: (f"{a:b}".count("1"),)


def _clz(form: Spelled) -> Formula:
    width = bits_of(form.type)
    return lambda a: (len(f"{a:0{width}b}") - len(f"{a:0{width}b}".lstrip("0")),)


def _bfind(form: Spelled) -> Formula:
    top = bits_of(form.type) - 1

    def compute(a: int) -> tuple[int]:
        value = ~a & mask(form.type) if number(a, form.type) < 0 else a
        for place in range(top, -1, -1):
            if value >> place & 1:
                return (top - place if "shiftamt" in form.words else place,)
        return (_NOTHING,)

    return compute


def _fns(form: Spelled) -> Formula:
    def compute(bits: int, base: int, offset: int) -> tuple[Any]:
        wanted = number(offset, "s32")
        if base > 31:
            return (ANY,)
        if wanted == 0:
            return (base if bits >> base & 1 else _NOTHING,)
        step, place = (1, base) if wanted > 0 else (-1, base)
        while 0 <= place < 32:
            if bits >> place & 1:
                wanted -= step
                if wanted == 0:
                    return (place,)
            place += step
        return (_NOTHING,)

    return compute


def _prmt(form: Spelled) -> Formula:
    mode = form.word("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")

    def choices(c: int) -> list[int]:
        n = c & 3
        return {
            "": [c >> 4 * i & 15 for i in range(4)],
            "f4e": [n, n + 1, n + 2, n + 3],
            "b4e": [n, n - 1 & 7, n - 2 & 7, n - 3 & 7],
            "rc8": [n, n, n, n],
            "ecl": [max(n, i) for i in range(4)],
            "ecr": [min(n, i) for i in range(4)],
            "rc16": [2 * (n & 1), 2 * (n & 1) + 1] * 2,
        }[mode]

    def compute(a: int, b: int, c: int) -> tuple[int]:
        octets = [a >> 8 * i & 255 for i in range(4)] + [b >> 8 * i & 255 for i in range(4)]
        result = 0
        for place, choice in enumerate(choices(c)):
            octet = octets[choice & 7]
            if choice & 8:
                octet = 255 if octet & 128 else 0
            result |= octet << 8 * place
        return (result,)

    return compute
