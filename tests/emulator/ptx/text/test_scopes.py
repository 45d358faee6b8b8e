"""Names of blocks within blocks."""

import pytest

from refcomp.emulator.ptx.text.module import Immediate, Register, SymbolAddress, Variable, Vector
from refcomp.emulator.ptx.text.scopes import Renamed, Scopes
from refcomp.emulator.ptx.text.tokens import DamagedPtx, Tokens


@pytest.fixture
def scopes():
    return Scopes(Tokens("here"), {"outside"})


def test_registers_of_a_range_are_listed_when_named(scopes):
    scopes.declare_registers("%r", "b32", 1, 12)
    assert scopes.registers == {}
    assert scopes.find("%r11") == Register("%r11")
    assert scopes.registers == {"%r11": "b32"}
    for name in ("%r12", "%r", "%r01", "%r1.x", "%q1"):
        assert scopes.find(name) is None


def test_the_name_of_a_range_may_end_in_digits(scopes):
    scopes.declare_registers("t1", "b32", 1, 3)
    scopes.declare_registers("t", "b64", 1, 3)
    found = {name: scopes.find(name) for name in ("t12", "t2", "t13")}
    assert found == {"t12": Register("t12"), "t2": Register("t2"), "t13": None}
    assert scopes.registers == {"t12": "b32", "t2": "b64"}


def test_inner_names_hide_outer_ones_and_are_unique(scopes):
    scopes.declare_registers("a", "b32", 1, None)
    scopes.open()
    scopes.declare_registers("a", "pred", 1, None)
    assert scopes.find("a") == Register("a#1")
    scopes.close()
    scopes.open()
    assert scopes.find("a") == Register("a")
    scopes.declare_registers("a", "f32", 1, None)
    assert scopes.find("a") == Register("a#2")
    assert scopes.registers == {"a": "b32", "a#1": "pred", "a#2": "f32"}


def test_a_local_name_differs_from_one_outside(scopes):
    scopes.declare_variable(Variable("outside", "local", "b8", 4, 1))
    assert scopes.find("outside") == SymbolAddress("outside#1")


def test_parameters_of_calls_of_the_same_size_share_a_place(scopes):
    for size in (4, 8, 4):
        scopes.open()
        scopes.declare_variable(Variable("param0", "param", "b8", size, 4))
        scopes.close()
    assert [(v.name, v.bytes) for v in scopes.variables.values()] == [
        ("param0", 4),
        ("param0#1", 8),
    ]


def test_vectors_have_parts(scopes):
    scopes.declare_registers("v", "f32", 4, None)
    assert scopes.find("v") == Vector(tuple(Register(f"v.{part}") for part in "xyzw"))
    assert scopes.find("v.y") == scopes.find("v.g") == Register("v.y")
    scopes.declare_registers("%w", "f32", 2, 5)
    assert scopes.find("%w3.g") == Register("%w3.y")
    assert scopes.find("%w3.z") is None


def test_special_registers_and_constants_are_known(scopes):
    for name in ("%tid.x", "%laneid", "%clock64", "%envreg31", "%lanemask_lt"):
        assert scopes.find(name) == Register(name)
    assert scopes.find("WARP_SZ") == Immediate("int", 32)
    assert scopes.find("%tid.w") is None
    assert scopes.find("%envreg32") is None


def test_labels_of_two_blocks_are_told_apart(scopes):
    for user in (0, 1):
        scopes.open()
        scopes.use_label(user, "L")
        assert scopes.declare_label("L") == ("L#1" if user else "L")
        scopes.close()
    scopes.close()
    assert scopes.renamed == [Renamed(1, "L", "L#1")]


def test_a_label_may_lie_further_out_but_not_further_in(scopes):
    scopes.open()
    scopes.use_label(0, "L")
    scopes.close()
    scopes.declare_label("L")
    scopes.open()
    scopes.declare_label("inner")
    scopes.close()
    scopes.use_label(1, "inner")
    with pytest.raises(DamagedPtx, match="the label inner is missing"):
        scopes.close()


def test_second_declarations_and_deep_blocks_are_damage(scopes):
    scopes.declare_registers("a", "b32", 1, None)
    with pytest.raises(DamagedPtx, match="a is declared twice in a block"):
        scopes.declare_registers("a", "b32", 1, None)
    scopes.declare_registers("a", "b32", 1, 5)
    with pytest.raises(DamagedPtx, match="a is declared twice in a block"):
        scopes.declare_registers("a", "b32", 1, 5)
    with pytest.raises(DamagedPtx, match="nested more than 256 deep"):
        for _ in range(300):
            scopes.open()
