"""Numbers and constant expressions, by the rules of the ISA."""

import pytest

from refcomp.emulator.ptx.text.constants import read_constant, read_number, read_whole
from refcomp.emulator.ptx.text.module import Immediate
from refcomp.emulator.ptx.text.tokens import DamagedPtx, Tokens
from refcomp.foundation.errors import Unsupported


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("077", 0o77),
        ("0x1F", 31),
        ("0b101U", 5),
        ("18446744073709551615", -1),
        ("-9223372036854775808", -(1 << 63)),
        ("-5", -5),
        ("~0x0F", -16),
        ("!3", 0),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 - 2 - 1", 4),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("-8 >> 1", -4),
        ("0xFFFFFFFFFFFFFFF8 >> 60", 15),
        ("1 << 64", 0),
        ("-1 < 0U", 0),
        ("-1 < 0", 1),
        ("(.u64) -1 > 5", 1),
        ("3 > 2 ? 10 : 20", 10),
        ("1 == 2 || 3 & 1 && 4", 1),
        ("6 ^ 3 | 8", 13),
    ],
)
def test_whole_numbers(text, value):
    assert read_constant(Tokens(text)) == Immediate("int", value & (1 << 64) - 1)


@pytest.mark.parametrize(
    ("text", "type_", "bits"),
    [
        ("0f3F800000", "f32", 0x3F800000),
        ("0F7fffffff", "f32", 0x7FFFFFFF),
        ("-0f3F800000", "f32", 0xBF800000),
        ("0d3FF0000000000000", "f64", 0x3FF0 << 48),
        ("1.5", "f64", 0x3FF8 << 48),
        ("-1e0", "f64", 0xBFF0 << 48),
    ],
)
def test_floats_keep_their_bits(text, type_, bits):
    assert read_constant(Tokens(text)) == Immediate(type_, bits)


@pytest.mark.parametrize(
    "text",
    ["089", "12ab", "0f3F8", "0xg", "18446744073709551616", "9" * 1000, "(1", "1 / 0", "1 +",
     "~0f3F800000", "(" * 1000, "-" * 1000, "1?" * 1000, ";", "1 ? 2"],
)  # fmt: skip
def test_damaged_numbers_are_refused(text):
    with pytest.raises(DamagedPtx):
        read_constant(Tokens(text))


def test_expressions_of_floats_are_refused():
    with pytest.raises(Unsupported, match="expressions of floats"):
        read_constant(Tokens("1.5 + 2"))


def test_limits_of_sizes_are_kept():
    assert read_whole(Tokens("4 * 2"), "an extent", 8) == 8
    assert read_number(Tokens("8 > 2"), "a count", 8) == 8
    with pytest.raises(DamagedPtx, match="an extent must be from 0 to 8, not -1"):
        read_whole(Tokens("-1"), "an extent", 8)
    with pytest.raises(DamagedPtx, match="an extent must be a whole number, not 0f"):
        read_whole(Tokens("0f00000000"), "an extent", 8)
