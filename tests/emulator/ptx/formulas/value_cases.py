"""Cases of all instructions on values, and of those that move values between registers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refcomp.emulator.ptx.instructions.types import CARRY
from refcomp.emulator.ptx.text.module import Pair
from tests.emulator.ptx.formulas.cases import Case, Rows
from tests.emulator.ptx.formulas.every_form import every_form, formula_of
from tests.emulator.ptx.formulas.floats import APPROXIMATE
from tests.emulator.ptx.formulas.spelled import Formula
from tests.emulator.ptx.instructions.worded import instruction, rule

# The table of a lop3 is a number in the text.
_TABLES = {"lop3.b32": 0xCA, "lop3.or.b32": 0x96, "lop3.and.b32": 0xE8}


def value_cases() -> Iterator[Case]:
    """All forms of instructions on values, each by its formula."""
    yield from map(_case, every_form())
    yield from _packing()


def _case(text: str) -> Case:
    form = text.split()[0]
    described = rule(text)
    names = [f"%x{n}" for n, kind in enumerate(described.sources) if kind != CARRY]
    results = [f"%y{n}" for n, kind in enumerate(described.results) if kind != CARRY]
    table = _TABLES.get(form)
    if table is not None:
        names[3] = hex(table)

    def draw(row: list[int]) -> None:
        if table is not None:
            row[3] = table

    is_pair = isinstance(instruction(text).operands[0], Pair)
    target = "|".join(results) if is_pair else results[0]
    return Case(
        form + (".pair" if is_pair and form.startswith("setp") else ""),
        f"{form} {', '.join([target, *names])};",
        described.sources,
        described.results,
        _by_thread(formula_of(text)),
        draw,
        is_bounded=_is_bounded(form),
    )


def _is_bounded(form: str) -> bool:
    opcode, *modifiers = form.split(".")
    return opcode in APPROXIMATE and not {"approx", "full"}.isdisjoint(modifiers)


def _by_thread(formula: Formula) -> Any:
    def expected(rows: Rows) -> list[tuple[Any, ...]]:
        return [formula(*row) for row in rows]

    return expected


def _packing() -> Iterator[Case]:
    """Vectors of registers as one register, and back. The first part has the lowest bits."""
    for width, count in ((32, 2), (64, 2), (64, 4), (32, 4)):
        part = width // count
        parts, ones = (f"b{part}",) * count, (1 << part) - 1

        def packed(row: list[int], part: int = part) -> list[int]:
            return [sum(one << part * n for n, one in enumerate(row))]

        def unpacked(row: list[int], part: int = part, n: int = count, m: int = ones) -> list[int]:
            return [row[0] >> part * place & m for place in range(n)]

        sources = ", ".join(f"%x{n}" for n in range(count))
        results = ", ".join(f"%y{n}" for n in range(count))
        whole = (f"b{width}",)
        form = f"mov.b{width}"
        if part > 8:
            text = f"{form} %y0, {{{sources}}};"
            yield Case(f"{form}.pack{count}", text, parts, whole, _each_row(packed))
            text = f"{form} {{{results}}}, %x0;"
            yield Case(f"{form}.unpack{count}", text, whole, parts, _each_row(unpacked))


def _each_row(function: Any) -> Any:
    return lambda rows: [function(row) for row in rows]
