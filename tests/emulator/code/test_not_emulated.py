"""The error for machine code that the emulator cannot run."""

from refcomp.emulator.code.not_emulated import not_emulated
from tests.emulator.snippets import instruction


def test_error_names_the_form_its_place_and_two_ways_out() -> None:
    error = not_emulated("DPP of comparisons", instruction("v_mov_b32_e32 v0, v1"))
    assert error.what == "the emulator does not support DPP of comparisons"
    assert "v_mov_b32_e32 v0, v1" in str(error.where)
    assert error.remedy == "run the kernel on a GPU, or add the form to refcomp/emulator"
