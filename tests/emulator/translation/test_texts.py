"""Texts of instructions: types and constants by width, comparisons."""

import pytest

from refcomp.emulator.generations.generation import VECTOR
from refcomp.emulator.instructions.tables.scalar import SCALAR
from refcomp.emulator.translation.texts import load_texts


def test_types_and_constants_follow_the_width():
    wide, single = load_texts(4), load_texts(1)
    assert wide.expand("$I $[i32 5]") == "<4 x i32> <i32 5, i32 5, i32 5, i32 5>"
    assert single.expand("$I $[i32 5]") == "i32 5"
    assert wide.type_of("f64") == "<4 x double>"
    assert wide.expand("@f.$vf32 $w") == "@f.v4f32 4"


def test_comparisons_are_made_of_predicates():
    texts = load_texts(2)
    assert texts.instruction("v_cmp_nlt_f32") == "{r} = fcmp uge <2 x float> {a}, {b}"
    assert texts.instruction("v_cmp_gt_u64") == "{r} = icmp ugt <2 x i64> {a}, {b}"
    assert load_texts(1).instruction("s_cmp_lg_u64") == "{r} = icmp ne i64 {a}, {b}"


@pytest.mark.parametrize("name", ["v_exp_f32", "v_cmp_class_f32", "v_cmp_xx_f32", "s_barrier"])
def test_other_instructions_have_no_text(name):
    assert load_texts(2).instruction(name) is None


@pytest.mark.parametrize(("width", "table"), [(2, VECTOR), (1, SCALAR)])
def test_each_text_is_that_of_an_instruction_of_the_tables(width, table):
    known = {*table, "v_xor3_b32"}  # RDNA3's own
    assert load_texts(width).instructions.keys() <= known
