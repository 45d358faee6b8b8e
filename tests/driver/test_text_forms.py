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
