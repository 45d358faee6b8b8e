"""Declarations: sizes, alignments, and what initializers write."""

import struct

import pytest

from refcomp.emulator.ptx.text.declarations import read_head, read_parameter, read_variables
from refcomp.emulator.ptx.text.module import SymbolRelocation, Variable
from refcomp.emulator.ptx.text.tokens import DamagedPtx, Tokens
from refcomp.foundation.errors import Unsupported


def _variables(text, *, is_extern=False):
    tokens = Tokens(text)
    used = []
    found = read_variables(tokens, read_head(tokens), is_extern=is_extern, use=used.append)
    assert tokens.kind == "end"
    return found, used


def _one(text):
    (variable,), _ = _variables(text)
    return variable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".global .b32 x;", Variable("x", "global", "b32", 4, 4)),
        (".const .align 16 .b8 x[24];", Variable("x", "const", "b8", 24, 16)),
        (".shared .v4 .f32 x[2][3];", Variable("x", "shared", "f32", 96, 16)),
        (".local .f16 x [ 2 * 4 ];", Variable("x", "local", "f16", 16, 2)),
        (".global .attribute(.managed) .align 4 .u32 x = 7;",
         Variable("x", "global", "u32", 4, 4, b"\7\0\0\0")),
        (".global .attribute(.unified(19,95)) .u8 x = -1;",
         Variable("x", "global", "u8", 1, 1, b"\xff")),
        (".global .u8 x[2][3] = {{1}, {2, 3}};",
         Variable("x", "global", "u8", 6, 1, b"\1\0\0\2\3\0")),
        (".global .u16 x[] = {1, 2};", Variable("x", "global", "u16", 4, 2, b"\1\0\2\0")),
        (".global .u8 x[][2] = {{1}, {2}};", Variable("x", "global", "u8", 4, 1, b"\1\0\2\0")),
        (".global .f32 x[2] = {0f3F800000, 2.0};",
         Variable("x", "global", "f32", 8, 4, struct.pack("<2f", 1, 2))),
        (".global .f64 x = -1;", Variable("x", "global", "f64", 8, 8, struct.pack("<d", -1))),
        (".global .f16 x = 1.5;", Variable("x", "global", "f16", 2, 2, b"\0>")),
        (".global .b32 x = 0f3F800000;", Variable("x", "global", "b32", 4, 4, b"\0\0\x80?")),
        (".global .u64 x = 0xFFFFFFFFFFFFFFFF;", Variable("x", "global", "u64", 8, 8, b"\xff" * 8)),
        (".global .v2 .u8 x[2] = {{1, 2}, {3, 4}};",
         Variable("x", "global", "u8", 4, 2, b"\1\2\3\4")),
    ],
)  # fmt: skip
def test_variables(text, expected):
    assert _one(text) == expected


def test_several_variables_and_open_arrays():
    found, _ = _variables(".global .b32 a, b = 1;")
    assert [(v.name, v.initial) for v in found] == [("a", b""), ("b", b"\1\0\0\0")]
    (dynamic,), _ = _variables(".shared .align 16 .b8 x[];", is_extern=True)
    assert dynamic == Variable("x", "shared", "b8", 0, 16, is_extern=True)


def test_addresses_are_kept_for_the_loader():
    found, used = _variables(".global .u64 x[4] = {f, generic(s)+8, 5, s-4};")
    assert found[0].addresses == (
        SymbolRelocation(0, "f", 0, 8),
        SymbolRelocation(8, "s", 8, 8, is_generic=True),
        SymbolRelocation(24, "s", -4, 8),
    )
    assert found[0].initial == bytes(16) + b"\5" + bytes(15)
    assert used == ["f", "s", "s"]


def test_bytes_of_an_address_are_joined():
    masks = ", ".join(f"{0xFF << 8 * n:#X}(generic(s)+4)".replace("0X", "0x") for n in range(8))
    found, _ = _variables(f".global .u8 x[10] = {{1, {masks}, 5}};")
    assert found[0].addresses == (SymbolRelocation(1, "s", 4, 8, is_generic=True),)
    assert found[0].initial == b"\1" + bytes(8) + b"\5"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".param .u32 a", Variable("a", "param", "u32", 4, 4)),
        (".param .align 8 .b8 a[24]", Variable("a", "param", "b8", 24, 8)),
        (
            ".param .u64 .ptr .global .align 64 a",
            Variable("a", "param", "u64", 8, 8, is_pointer=True),
        ),
        (
            ".param .align 4 .b32 .ptr .shared a",
            Variable("a", "param", "b32", 4, 4, is_pointer=True),
        ),
        (".param .b8 a[]", Variable("a", "param", "b8", 0, 1)),
    ],
)
def test_parameters(text, expected):
    assert read_parameter(Tokens(text)) == expected


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (".global .u8 x = 256;", "256 does not fit into u8"),
        (".global .u8 x = -129;", "-129 does not fit into u8"),
        (".global .u8 x[2] = {1, 2, 3};", "too many elements"),
        (".global .u8 x[2] = {{1}};", "more braces than dimensions"),
        (".global .u8 x[2][2] = {{1, 2, 3}};", "too many elements"),
        (".global .align 3 .u8 x;", "the alignment 3 is not a power of 2"),
        (".global .align 0 .u8 x;", "the alignment 0 is not a power of 2"),
        (".global .u8 x[1099511627777];", "an extent of x must be from 0 to"),
        (".global .u8 x[1099511627776][2];", "x has 2199023255552 bytes"),
        (".shared .u8 x = 1;", "a variable in .shared has an initializer"),
        (".global x;", "lacks its space or its type"),
        (".global .pred x;", "a predicate is declared that is not a register"),
        (".global .visible .u8 x;", ".visible does not belong into a declaration"),
        (".global .u8 x", "expected ; behind a declaration of variables"),
        (".global .f16 x = 1e6;", "is too large for f16"),
        (".global .attribute(.managed .u8 x;", "a parenthesis is not closed"),
    ],
)
def test_damaged_declarations(text, what):
    with pytest.raises(DamagedPtx, match=what.replace("(", r"\(")):
        _variables(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (".global .texref x;", "textures, samplers and surfaces"),
        (".global .u8 x<4>;", "ranges of variables"),
        (".global .u32 x = f;", "an address in u32"),
        (".global .b16 x = 0d3FF0000000000000;", "a float as the first content of b16"),
        (".global .u8 x[8] = {0xFF00(f)};", "bytes of an address out of their order"),
        (".global .u8 x[8] = {0x0F(f)};", "this mask of an address"),
        (".global .u8 x[2][549755813888] = {{1}, {2}};", "initial contents of 549755813888 bytes"),
    ],
)
def test_declarations_that_are_not_read(text, what):
    with pytest.raises(Unsupported, match=what):
        _variables(text)


def test_parameters_in_registers_are_not_read():
    with pytest.raises(Unsupported, match="parameters in registers"):
        read_parameter(Tokens(".reg .b32 a"))
