from types import SimpleNamespace

import pytest

from refcomp.codegen.llvm.function import LlvmFunction, LlvmModule
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.dtype import F32, F64, I64, as_dtype
from refcomp.foundation.errors import CompilerBug
from refcomp.ir.expr import Var


@pytest.fixture
def module():
    return LlvmModule(load_spelling("llvm"), "x86_64-linux-gnu", 512)


@pytest.mark.parametrize(
    ("dtype", "value", "memory", "suffix"),
    [
        ("u8", "i8", "i8", "i8"),
        ("f16x4", "<4 x half>", "<4 x half>", "v4f16"),
        ("f32", "float", "float", "f32"),
        ("boolx8", "<8 x i1>", "<8 x i8>", "v8i1"),
        ("bool", "i1", "i8", "i1"),
    ],
)
def test_types(module, dtype, value, memory, suffix):
    dtype = as_dtype(dtype)
    assert module.type_of(dtype) == value
    assert module.memory_type_of(dtype) == memory
    assert module.suffix_of(dtype) == suffix


def test_the_type_of_addresses_is_spelled_once_for_each_space(module):
    spelled = []
    module.say = SimpleNamespace(pointer=lambda space: spelled.append(space) or f"ptr {space}")
    assert [module.pointer_to(space) for space in (0, 3, 0, 3)] == ["ptr 0", "ptr 3"] * 2
    assert spelled == [0, 3]


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (True, "bool", "true"),
        (-7, "i8", "-7"),
        (2**64 - 1, "u64", "18446744073709551615"),
        (1.0, "f16", "0xH3C00"),
        (0.1, "f64", "0x3FB999999999999A"),
        (1.5, "f32", "0x3FF8000000000000"),
        (float("-inf"), "f32", "0xFFF0000000000000"),
        (2, "i32x2", "<i32 2, i32 2>"),
        (0, "i32x2", "zeroinitializer"),
        (0.0, "f32x2", "zeroinitializer"),
        (-0.0, "f32x2", "<float 0x8000000000000000, float 0x8000000000000000>"),
        (1, "boolx2", "<i1 true, i1 true>"),
    ],
)
def test_constants(module, value, dtype, text):
    assert module.constant(value, as_dtype(dtype)) == text


def test_zeros_of_both_signs_are_not_confused(module):
    pair = F64.with_lanes(4)
    texts = {module.constant(value, pair) for value in (0.0, -0.0, 0.0, -0.0)}
    assert len(texts) == 2


def test_bfloat16_is_refused(module):
    with pytest.raises(CompilerBug, match="a value of dtype bf16 reaches the LLVM printer"):
        module.type_of(as_dtype("bf16"))


def test_symbols_are_taken_once(module):
    assert [module.take_symbol("f") for _ in range(3)] == ["f", "f.1", "f.2"]


def test_names_are_unique_and_meet_no_name_of_the_printer(module):
    out = LlvmFunction(module, {}, {})
    wishes = ["i", "i", "i.outer", "i_outer", "num_threads", "status", "entry", "1x"]
    names = [out.name(Var(wish, I64)) for wish in wishes]
    assert names[:4] == ["%i", "%i.1", "%i_outer", "%i_outer.1"]
    assert names[4:7] == ["%num_threads.1", "%status.1", "%entry.1"]
    assert len(set(names)) == len(names)
    assert not names[7][1].isdigit()
    assert [out.fresh(), out.fresh()] == ["%.1", "%.2"]


def test_a_name_that_is_not_bound_is_a_bug(module):
    with pytest.raises(CompilerBug, match="x is used where it is not bound"):
        LlvmFunction(module, {}, {}).name_of(Var("x", F32))
