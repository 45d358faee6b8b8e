"""Values of registers and operands in the text of a thread."""

import pytest

from refcomp.emulator.ptx.text.module import (
    Immediate,
    PtxInstruction,
    Register,
    Sink,
    SymbolAddress,
    Vector,
)
from refcomp.emulator.ptx.translation.emitter import (
    PlacedNames,
    ThreadText,
    constant,
    mangled,
    type_of,
    width_of,
)
from refcomp.emulator.ptx.translation.refusal import NotTranslated

_ONE = PtxInstruction(0, 7, "add", ("u32",), (), "add.u32 d, a, b")
_TYPES = {"%r1": "i32", "%f1": "float", "%p1": "i1", "%rd1": "i64"}


def _text(**options):
    given = {"is_watched": True, "lazy": (), "unsure": ()} | options
    names = PlacedNames({"s": "shared"}, {"s": 16}, {"l": 4}, 64, {})
    return ThreadText(_TYPES, names, **given)


def test_types_of_llvm():
    kinds = ("pred", "f16", "f32", "f64", "s32", "b64", "u8")
    assert [type_of(kind) for kind in kinds] == [
        "i1",
        "half",
        "float",
        "double",
        "i32",
        "i64",
        "i8",
    ]
    assert (mangled("double"), mangled("i16"), width_of("half")) == ("f64", "i16", 16)


def test_numbers_are_constants_of_their_type():
    assert constant(Immediate("int", 255), "s8") == "-1"
    assert constant(Immediate("int", 1), "pred") == "true"
    assert constant(Immediate("f32", 0x3F800000), "f32") == "bitcast (i32 1065353216 to float)"
    assert constant(Immediate("f64", 0x3FF0000000000000), "b32") == "1065353216"
    assert constant(Immediate("f32", 0x3F800000), "b64") == str(0x3FF0000000000000)


def test_a_value_is_known_until_its_block_ends():
    text = _text()
    text.set_value("%r1", "5")
    assert text.value_of("%r1") == "5"
    text.flush()
    assert text.lines == ["  store i32 5, ptr %r0"]
    text.forget()
    assert text.value_of("%r1") != "5"


def test_what_a_condition_writes_is_not_known_behind_it():
    text = _text()
    text.set_value("%r1", "5")
    with text.only_if("%c"):
        text.set_value("%r1", "6")
    assert "%r1" not in text.values
    assert [line for line in text.lines if "store" in line] == [
        "  store i32 5, ptr %r0",
        "  store i32 6, ptr %r0",
    ]


def test_operands_take_the_width_that_is_asked_for():
    text = _text(lazy=("%f1",))
    for name, value in (("%r1", "%a"), ("%f1", "%f")):
        text.set_value(name, value)
    text.operand(_ONE, Register("%r1"), "u16")
    text.operand(_ONE, Register("%f1"), "b32")
    assert [line.partition("= ")[2] for line in text.lines] == [
        "trunc i32 %a to i16",
        "call float @plain.f32(float %f)",
        "bitcast float %v2 to i32",
    ]
    assert text.operand(_ONE, Register("%f1"), "f32", raw=True) == "%f"


def test_a_register_that_may_be_unwritten_is_checked():
    text = _text(unsure=("%r1",))
    text.value_of("%r1")
    assert "load i1, ptr %w0" in text.lines[0]
    assert any("label %trouble" in line for line in text.lines)
    assert not any("trouble" in line for line in _checked_unwatched())


def _checked_unwatched():
    text = _text(unsure=("%r1",), is_watched=False)
    text.value_of("%r1")
    return text.lines


def test_addresses_of_variables():
    text = _text()
    assert text.symbol_address("s", 4, "shared") == "20"
    assert text.symbol_address("s", 0, "") == str(16 + 0x2000_0000_0000)
    assert text.symbol_address("l", 1, "local") == "5"
    assert text.operand(_ONE, SymbolAddress("g"), "u64") == "%symbol0"
    assert text.symbols == {"g": 0}


def test_results_may_be_dropped_and_must_be_registers():
    text = _text()
    text.result(_ONE, Sink(), "u32", "1")
    assert not text.values
    text.result(_ONE, Register("%rd1"), "s32", "%a")
    assert "sext i32 %a to i64" in text.lines[-1]
    with pytest.raises(NotTranslated):
        text.result(_ONE, Immediate("int", 1), "u32", "1")
    with pytest.raises(NotTranslated, match="operand"):
        text.operand(_ONE, Vector(()), "u32")
    with pytest.raises(NotTranslated, match="%clock"):
        text.operand(_ONE, Register("%clock"), "u32")
