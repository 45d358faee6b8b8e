"""Calls of functions outside the module: what they are printed as, and what they reach."""

from pathlib import Path

import numpy as np
import pytest

import refcomp
from refcomp import toolchain
from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import UserError
from refcomp.ir.parser import parse_func
from tests.codegen.host_kernels import Kernels, print_generic

HEAD = "func f(A: f32[4], B: i64[8] out, k: i64, b: bool) "


def text_of(body: str, name: str = "f") -> str:
    head = HEAD.replace("func f", f"func {name}")
    return print_generic([parse_func(head + "{" + body + "}")]).text


def lines_with(text: str, word: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if word in line]


def test_a_call_of_a_registered_function_tells_its_arguments():
    text = text_of("packed my.f(read(A), k, b, 2.0f32) packed my.f(read(A), k, b, 2.0f32)")
    described = 'private constant [33 x i8] c"my.f|read f32 1|i64|bool|f64\\00"'
    assert lines_with(text, "constant") == [f"@packed.0 = {described.replace('33', '29')}"]
    assert lines_with(text, "@refcomp.callback =") == [
        "@refcomp.callback = weak_odr global ptr null, align 8"
    ]
    assert text.count("= alloca [5 x i64]") == 2


def test_narrow_numbers_are_extended_as_c_has_it():
    text = text_of("extern u8 g(1i8, 2u16, b, 3i32, update(B[2])) extern bool h()")
    arguments = "i8 signext, i16 zeroext, i1 zeroext, i32, ptr"
    assert f"declare zeroext i8 @g({arguments})" in text
    assert "declare zeroext i1 @h()" in text
    assert "getelementptr i64, ptr %B, i64 2" in text


@pytest.mark.parametrize("name", ["free", "aligned_alloc", "pthread_create", "syscall"])
def test_what_compiled_code_calls_itself_is_refused(name):
    message = f"the C function {name} cannot be called\n(.|\n)*own purposes"
    with pytest.raises(UserError, match=message):
        text_of(f"extern i32 {name}(k)")


def test_a_function_of_the_module_is_no_c_function():
    with pytest.raises(UserError, match="the C function g cannot(.|\n)*of this module has that na"):
        text_of("extern i32 g(k)", name="g")


@pytest.mark.llvm
def test_c_functions_are_called(tmp_path: Path):
    func = parse_func("""
    func f(A: i64[4], B: i64[4] out, k: i64) {
      extern i64 memcpy(write(B[k]), read(A), 16)
      B@[0] = extern i64 labs(extern i64 labs(k - 9))
      B@[3] = i64(extern f64 fmax(f64(k), 0.5f64))
    }""")
    a, b = np.arange(4) + 1, np.zeros(4, np.int64)
    assert Kernels([func], tmp_path).call(func, [a, b, 1]) == 0
    assert b.tolist() == [8, 1, 2, 1]


MINE = """
define void @mine(ptr %out, float %x, i8 signext %n) {
  %wide = sext i8 %n to i32
  %number = sitofp i32 %wide to float
  %sum = fadd float %x, %number
  store float %sum, ptr %out
  ret void
}
define float @plus100(float %x) {
  %y = fadd float %x, 100.0
  ret float %y
}
define float @index(float %x) {
  ret float %x
}
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    triple, layout = toolchain.host_triple_and_layout()
    head = f'target datalayout = "{layout}"\ntarget triple = "{triple}"\n'
    path = tmp_path / "mine.so"
    path.write_bytes(toolchain.compile_source(Source(head + MINE, "llvm"), {}, "so").data)
    return path


@pytest.mark.llvm
@pytest.mark.parametrize("kind", ["interp", "llvm"])
def test_a_shared_object_of_the_users(library: Path, kind: str, monkeypatch: pytest.MonkeyPatch):
    func = parse_func("""
    func f(B: f32[4] out) {
      extern i32 mine(write(B[1]), 0.5f32, -3i8)
      B[2] = extern f32 plus100(1.0f32)
    }""")
    with pytest.raises(UserError, match=r"unknown C function 'mine'\n.*libm.so.6, libc.so.6"):
        refcomp.build(func, target=kind)
    taken = parse_func("func f(B: f32[1] out) { B[0] = extern f32 index(1.0f32) }")
    both = r"both .* and the C library define the function 'index'(.|\n)*give yours another"
    with pytest.raises(UserError, match=both):
        refcomp.build(taken, target=f"{kind} -libs={library}")
    monkeypatch.chdir(library.parent)
    for path in (library, "mine.so"):
        b = np.zeros(4, np.float32)
        refcomp.build(func, target=f"{kind} -libs={path}")(b)
        assert b.tolist() == [0, -2.5, 101, 0]
