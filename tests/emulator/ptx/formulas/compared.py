"""Comparisons and choices by the formulas of the ISA, one thread at a time."""

from __future__ import annotations

import operator
from typing import Any

from refcomp.emulator.ptx.instructions.types import bits_of
from tests.emulator.ptx.formulas.floats import flushed
from tests.emulator.ptx.formulas.spelled import Formula, Spelled, number
from tests.emulator.ptx.instructions.exact_floats import FORMATS

_ORDERED = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
FLOAT_NAMES = (*_ORDERED, *(f"{name}u" for name in _ORDERED), "num", "nan")
INTEGER_NAMES = (*_ORDERED, *_UNSIGNED)
OPCODES = ("setp", "set", "selp", "slct")


def comparison_formula(form: Spelled) -> Formula:
    """The formula of setp, set, selp or slct."""
    if form.opcode == "selp":
        return lambda a, b, c: (a if c else b,)
    if form.opcode == "slct":
        return _by_sign(form)
    return _set_predicates(form) if form.opcode == "setp" else _set(form)


def _holds(form: Spelled, kind: str, a: int, b: int) -> bool:
    shape = FORMATS.get(kind)
    if shape is None:
        name = form.word(*INTEGER_NAMES)
        compare = _ORDERED[_UNSIGNED.get(name, name)]
        return bool(compare(number(a, kind), number(b, kind)))
    name = form.word(*FLOAT_NAMES)
    if "ftz" in form.words:
        a, b = flushed(a, shape), flushed(b, shape)
    is_unordered = shape.is_nan(a) or shape.is_nan(b)
    if name in ("num", "nan"):
        return is_unordered == (name == "nan")
    if is_unordered:
        return name.endswith("u") and name not in _ORDERED
    return bool(_ORDERED[name.removesuffix("u")](_place(a, kind), _place(b, kind)))


def _place(bits: int, kind: str) -> int:
    """The order of numbers, in which both zeros are the same."""
    sign = FORMATS[kind].sign
    size = bits & sign - 1
    return -size if bits & sign else size


def _each(form: Spelled, a: int, b: int) -> list[bool]:
    """The comparison, for both halves of packed values."""
    kind = form.type.removesuffix("x2")
    if kind == form.type:
        return [_holds(form, kind, a, b)]
    return [_holds(form, kind, x, y) for x, y in ((a & 0xFFFF, b & 0xFFFF), (a >> 16, b >> 16))]


def _combined(form: Spelled, holds: bool, more: tuple[int, ...]) -> bool:
    name = form.word("and", "or", "xor")
    if not name:
        return holds
    return bool(
        {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[name](holds, more[0])
    )


def _set_predicates(form: Spelled) -> Formula:
    def compute(a: int, b: int, *more: int) -> tuple[int, ...]:
        found = _each(form, a, b)
        both = found if len(found) == 2 else [found[0], not found[0]]
        return tuple(int(_combined(form, one, more)) for one in both)

    return compute


def _set(form: Spelled) -> Formula:
    result = form.types[0]
    ones = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C00, "bf16x2": 0x3F80}
    width = 16 if form.type.endswith("x2") else bits_of(result)
    true = ones.get(result, (1 << width) - 1)

    def compute(a: int, b: int, *more: int) -> tuple[Any]:
        found = [_combined(form, one, more) for one in _each(form, a, b)]
        return (sum(true << 16 * place for place, one in enumerate(found) if one),)

    return compute


def _by_sign(form: Spelled) -> Formula:
    def compute(a: int, b: int, c: int) -> tuple[int]:
        if form.type == "s32":
            return (a if number(c, "s32") >= 0 else b,)
        shape = FORMATS["f32"]
        c = flushed(c, shape) if "ftz" in form.words else c
        return (b if shape.is_nan(c) or (c & shape.sign and c != shape.sign) else a,)

    return compute
