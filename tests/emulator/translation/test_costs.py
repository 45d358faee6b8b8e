"""Estimates of what the interpreter and the compiler cost."""

from refcomp.emulator.translation.costs import (
    DIVISION_NS,
    STARTUP_NS,
    compile_ns,
    interpret_ns,
    weight_of,
)
from tests.emulator.translation.translated import only_unit


def test_an_access_weighs_as_much_as_ten_steps():
    plain = only_unit("v_add_f32 v1, v2, v3", "v_mul_f32 v4, v1, v1").steps
    assert weight_of(plain) == 2
    assert weight_of(only_unit("v_mov_b32 v1, v2", "ds_read_b32 v3, v1").steps) == 11


def test_compiling_takes_longer_than_to_interpret_once():
    assert compile_ns(1) > 20 * interpret_ns(1, 64)
    assert compile_ns(100) < 100 * compile_ns(1)  # a function has a cost of its own
    assert interpret_ns(1, 64) < DIVISION_NS
    assert compile_ns(50) < STARTUP_NS


def test_many_lanes_take_the_interpreter_longer():
    assert interpret_ns(10, 1 << 20) > compile_ns(10)
    assert interpret_ns(20, 64) == 2 * interpret_ns(10, 64)
