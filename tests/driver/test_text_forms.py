"""Code made of LLVM IR obeys the options of its target."""

import pytest

from refcomp.driver.text_forms import make_code

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
