"""Names, operands and what a device does not offer."""

import re
from pathlib import Path

import pytest

from refcomp.codegen import c_family
from refcomp.codegen.c_family.function import CExpr, CFunction, CModule, wrapping_dtype
from refcomp.codegen.opencl.module import print_opencl
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.dtype import F32, I64, as_dtype
from refcomp.foundation.errors import CompilerBug, Unsupported
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.stmt import Store
from tests.codegen.opencl.kernels import print_body


def _module(*extensions: str) -> CModule:
    return CModule(load_spelling("c_family", "opencl"), extensions)


def test_types_in_memory_and_as_values():
    module = _module("cl_khr_fp64")
    for dtype, value, memory in [
        ("bool", "bool", "uchar"),
        ("boolx4", "char4", "uchar4"),
        ("f16x8", "float8", "ushort8"),
        ("f64x2", "double2", "double2"),
        ("u64", "ulong", "ulong"),
    ]:
        assert (module.type_of(as_dtype(dtype)), module.memory_type_of(as_dtype(dtype))) == (
            value,
            memory,
        )
    assert _module("cl_khr_fp16").type_of(as_dtype("f16")) == "half"


def test_what_is_in_use_is_remembered_and_what_is_missing_refused():
    module = _module("cl_khr_fp64")
    module.use("f64", "nothing")
    assert list(module.enabled_extensions) == ["cl_khr_fp64"]
    with pytest.raises(Unsupported, match="nothing on this device") as caught:
        _module().use("f64", "nothing")
    assert "cl_khr_fp64" in caught.value.why


def test_other_vectors_and_dtypes_are_refused():
    with pytest.raises(CompilerBug, match="a vector of 3 lanes reaches the printer of C"):
        _module().type_of(as_dtype("f32x3"))
    with pytest.raises(CompilerBug, match="a value of dtype bf16 reaches the printer of C"):
        _module().type_of(as_dtype("bf16"))


def test_a_variable_that_is_not_bound_is_refused():
    buffer, stray = Buffer("A", I64, (IntImm(1, I64),)), Var("stray", I64)
    func = PrimFunc("f", (buffer,), Store(buffer, IntImm(0, I64), stray), ("A",))
    with pytest.raises(CompilerBug, match="stray is used where it is not bound"):
        print_opencl([func], extensions=())


def test_names_end_with_their_block():
    text = print_body("for i in range(2) { B@[i] = 0.0f32 } for i in range(3) { B@[i] = 1.0f32 }")
    assert "long i = 0l; i < 2l" in text and "long i = 0l; i < 3l" in text


def test_dots_become_underscores_and_other_names_stay_apart():
    text = print_body("let i.o: i64 = k { let i_o: i64 = k + 1 { B@[i.o] = A@[i_o] } }")
    assert "const long i_o = k;" in text and "const long i_o_1 = (long)(k + 1ul);" in text
    assert "B[i_o] = A[i_o_1];" in text


def test_operands_get_parentheses_by_how_tightly_they_bind():
    out = CFunction(_module(), {})
    one, two = out.named("one"), out.named("two")
    sum_ = out.infix("Add", one, two)
    assert out.infix("Mul", sum_, two).text == "(one + two) * two"
    assert out.infix("Add", sum_, two).text == "one + two + two"
    assert out.infix("Add", two, sum_).text == "two + (one + two)"
    assert out.cast(sum_, I64).text == "(long)(one + two)"


def test_a_value_is_bound_once_however_often_it_is_written():
    out = CFunction(_module(), {})
    product = out.infix("Mul", out.named("a"), out.named("b"))
    bound = out.atom(product, F32)
    assert out.chunks[0].text == "const float t = a * b;\n"
    assert bound.text == "t" and out.atom(bound, F32) is bound
    wrapping = out.bind(CExpr("a + b", 9, 1, is_wrapping=True), as_dtype("i32"))
    assert out.chunks[1].text == "const uint t_1 = a + b;\n" and wrapping.is_wrapping


def test_the_unsigned_type_of_small_integers_is_an_int():
    assert [str(wrapping_dtype(as_dtype(d))) for d in ("i8", "u16", "i32", "i64", "i8x4")] == [
        "u32", "u32", "u32", "u64", "u8x4",
    ]  # fmt: skip


def test_package_lists_each_macro_and_table_that_a_dialect_must_have():
    paths = sorted(Path(c_family.__file__).parent.glob("[!_]*.py"))
    sources = "".join(path.read_text(encoding="utf-8") for path in paths)
    shared, opencl = load_spelling("c_family"), load_spelling("c_family", "opencl")
    macros = set(re.findall(r"\bsay\.(\w+)", sources))
    needed = {name for name in macros if not hasattr(shared.macros, name)}
    assert all(hasattr(opencl.macros, name) for name in needed)
    tables = set(re.findall(r'tables\["(\w+)"\]', sources)) - shared.tables.keys()
    assert tables <= opencl.tables.keys()
    assert set(re.findall(r"`(\w+)`", c_family.__doc__)) == needed | tables
