"""Operands of instructions, and calls."""

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
    Variable,
    Vector,
)
from refcomp.emulator.ptx.text.operands import OperandReader
from refcomp.emulator.ptx.text.scopes import Scopes
from refcomp.emulator.ptx.text.tokens import DamagedPtx, Tokens
from refcomp.foundation.errors import Unsupported

R1 = Register("%r1")
P1 = Register("%p1")


def _read(text, opcode="add"):
    """Return the operands, the names that are not of the function, and the labels."""
    tokens = Tokens(text + ";")
    scopes = Scopes(tokens, ())
    scopes.declare_registers("%r", "b32", 1, 10)
    scopes.declare_registers("%p", "pred", 1, 10)
    scopes.declare_registers("%v", "f32", 2, 10)
    scopes.declare_variable(Variable("a", "local", "b8", 4, 1))
    used = []
    reader = OperandReader(tokens, scopes, used.append)
    operands = reader.read_all(opcode, 7)
    assert tokens.text == ";"
    return operands, used


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%r1", R1),
        ("%tid.x", Register("%tid.x")),
        ("WARP_SZ", Immediate("int", 32)),
        ("_", Sink()),
        ("-1", Immediate("int", (1 << 64) - 1)),
        ("0f3F800000", Immediate("f32", 0x3F800000)),
        ("!%p1", Negated(P1)),
        ("%r1|%p1", Pair(R1, P1)),
        ("%p1|_", Pair(P1, Sink())),
        ("{%r1, _, 5}", Vector((R1, Sink(), Immediate("int", 5)))),
        ("%v1", Vector((Register("%v1.x"), Register("%v1.y")))),
        ("%v1.y", Register("%v1.y")),
        ("a", SymbolAddress("a")),
        ("a+8", SymbolAddress("a", 8)),
        ("[%r1]", Address(R1)),
        ("[%r1+-8]", Address(R1, -8)),
        ("[%r1-8]", Address(R1, -8)),
        ("[%r1 + 4 * 2]", Address(R1, 8)),
        ("[a+4]", Address(SymbolAddress("a"), 4)),
        ("[16]", Address(None, 16)),
        ("[0x10+8]", Address(None, 24)),
        ("[-8]", Address(None, -8)),
    ],
)
def test_operands(text, expected):
    assert _read(text) == ((expected,), [])
    assert _read(f"%r2, {text}") == ((Register("%r2"), expected), [])


def test_no_operands():
    assert _read("", "ret") == ((), [])


def test_names_from_outside_are_reported():
    assert _read("f, [g]") == ((SymbolAddress("f"), Address(SymbolAddress("g"))), ["f", "g"])


def test_branches_name_labels():
    assert _read("$L1", "bra") == ((LabelName("$L1"),), [])
    assert _read("%r1, $list", "brx") == ((R1, LabelName("$list")), [])


ARGUMENT = SymbolAddress("a")


@pytest.mark.parametrize(
    ("text", "expected", "used"),
    [
        ("f", (None, SymbolAddress("f"), None, None), ["f"]),
        ("f, ()", (None, SymbolAddress("f"), Vector(()), None), ["f"]),
        ("f, (a)", (None, SymbolAddress("f"), Vector((ARGUMENT,)), None), ["f"]),
        ("(a), f, (%r1, 5)", (Vector((ARGUMENT,)), SymbolAddress("f"),
                              Vector((R1, Immediate("int", 5))), None), ["f"]),
        ("(a), f", (Vector((ARGUMENT,)), SymbolAddress("f"), None, None), ["f"]),
        ("(a), %r1, (a), proto", (Vector((ARGUMENT,)), R1, Vector((ARGUMENT,)), LabelName("proto")),
         []),
        ("%r1, proto", (None, R1, None, LabelName("proto")), []),
    ],
)  # fmt: skip
def test_calls_have_four_places(text, expected, used):
    assert _read(text, "call") == (expected, used)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("%r10", "the register %r10 is not declared"),
        ("%r1,", "expected an operand, not ';'"),
        ("{%r1", "expected } behind the parts of a vector, not ';'"),
        ("{{%r1}}", "a vector lies within a vector"),
        ("[%r1", "expected ] behind an address, not ';'"),
        ("[]", "expected an address, not ']'"),
        ("[_]", "an address begins with a register or a variable"),
        ("[%r1+0f00000000]", "an offset must be a whole number, not 0f00000000"),
        ("%r1|5", "expected the name of a second result, not '5'"),
        ("a|%r1", "only registers can stand on the sides of |"),
        ("!%r1", "'%r1' is used as a predicate and is not declared as one"),
        ("!a", "'a' is used as a predicate and is not a register"),
    ],
)
def test_damaged_operands(text, what):
    with pytest.raises(DamagedPtx) as caught:
        _read(text)
    assert caught.value.what == f"the PTX is damaged: {what}"


def test_damaged_calls():
    with pytest.raises(DamagedPtx, match="expected the name of a function, not '5'"):
        _read("5", "call")
    with pytest.raises(DamagedPtx, match=r"expected \) behind the parameters of a call"):
        _read("f, (a", "call")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("%r1.b0", "parts of registers"),
        ("a[4]", "elements of arrays"),
    ],
)
def test_operands_that_are_not_read(text, what):
    with pytest.raises(Unsupported, match=what):
        _read(text)
