"""Operands as text."""

import pytest

from refcomp.emulator.ptx.text.module import (
    Address,
    Immediate,
    LabelName,
    Negated,
    Pair,
    Register,
    Sink,
    SymbolAddress,
    Vector,
    registers_in,
)

_R1, _P1 = Register("%r1"), Register("%p1")


@pytest.mark.parametrize(
    ("operand", "text"),
    [
        (_R1, "%r1"),
        (Negated(_P1), "!%p1"),
        (Immediate("int", (1 << 64) - 5), "-5"),
        (Immediate("f32", 0x3F800000), "0f3F800000"),
        (Immediate("f64", 1), "0d0000000000000001"),
        (SymbolAddress("table"), "table"),
        (SymbolAddress("table", 8), "table+8"),
        (Address(_R1), "[%r1]"),
        (Address(_R1, -4), "[%r1+-4]"),
        (Address(SymbolAddress("table"), 4), "[table+4]"),
        (Address(None, 16), "[16]"),
        (Vector((_R1, Sink())), "{%r1, _}"),
        (Pair(_R1, _P1), "%r1|%p1"),
        (LabelName("$end"), "$end"),
    ],
)
def test_operands_are_printed_as_in_ptx(operand, text):
    assert str(operand) == text


@pytest.mark.parametrize(
    ("operand", "names"),
    [
        (None, []),
        (Sink(), []),
        (Negated(_P1), ["%p1"]),
        (Address(_R1, 4), ["%r1"]),
        (Address(SymbolAddress("table")), []),
        (Vector((_R1, Sink(), Pair(_R1, _P1))), ["%r1", "%r1", "%p1"]),
    ],
)
def test_registers_of_operands(operand, names):
    assert [*registers_in(operand)] == names
