"""Code made of LLVM IR obeys the options of its target."""

import platform

import pytest

from refcomp.driver.text_forms import describe, make_code
from refcomp.foundation.elf import needed_libraries
from refcomp.toolchain import host_triple_and_layout

TEXT = """define <8 x float> @f(<8 x float> %a) {
  %b = fadd <8 x float> %a, %a
  ret <8 x float> %b
}
"""


@pytest.mark.llvm
def test_options_of_the_target_reach_the_tools() -> None:
    head = 'target triple = "x86_64-pc-linux-gnu"\n'
    narrow, wide = (
        make_code(head + TEXT, f"llvm -mcpu={mcpu}", ".s") for mcpu in ("x86-64", "haswell")
    )
    assert b"ymm" in wide and b"ymm" not in narrow


@pytest.mark.llvm
def test_code_of_another_machine_has_the_features_of_its_systems() -> None:
    head = 'target triple = "riscv64-linux-gnu"\n'
    text = "define double @f(double %a) {\n  %b = fadd double %a, %a\n  ret double %b\n}\n"
    assert b"fadd.d" in make_code(head + text, "llvm -mtriple=riscv64-linux-gnu", ".s")


@pytest.mark.llvm
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names a function of x86-64")
def test_a_shared_object_is_linked_with_the_libraries_that_it_calls() -> None:
    text = (
        f'target triple = "{host_triple_and_layout()[0]}"\n'
        "declare <4 x float> @_ZGVbN4v_expf(<4 x float>)\n"
        "define <4 x float> @f(<4 x float> %a) {\n"
        "  %b = call <4 x float> @_ZGVbN4v_expf(<4 x float> %a)\n  ret <4 x float> %b\n}\n"
    )
    assert "libmvec.so.1" in needed_libraries(make_code(text, "llvm -system-lib=1", ".so"))


def test_a_description_is_a_part_of_the_text() -> None:
    assert 'c"refcomp\\00", [4 x i8] c"\\74\\65\\78\\74"' in describe(TEXT, b"text")
