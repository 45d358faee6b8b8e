"""Padding behind functions is left out; all that may run stays."""

import pytest

from refcomp.cli.padding import without_padding
from refcomp.foundation.artifacts import Binary
from refcomp.toolchain import disassemble
from tests.emulator.kernels import compiled_code


def _text(*lines):
    """Lines as llvm-objdump prints them: instructions but for comments, symbols and blanks."""
    text = ""
    for line in lines:
        if line[:1] in ("", ";", "<", "."):
            text += f"{0:016x} {line}\n" if line.startswith("<") else f"{line}\n"
        else:
            text += f"\t{line:58} // {0:012X}: BF800000\n"
    return text


def test_padding_behind_each_function_is_left_out():
    first = ("<a>:", "; k.ir:1", "s_nop 0", "v_mov_b32_e32 v0, 0", "s_endpgm")
    second = ("", "<b>:", "s_setpc_b64 s[30:31]")
    third = ("", "<c>:", "s_endpgm")
    padded = _text(*first, "s_nop 0", "s_nop 0", *second, "s_code_end", *third, "s_code_end")
    assert without_padding(padded) == _text(*first, *second, *third)


def test_what_a_branch_may_lead_to_stays():
    text = _text(
        *("<a>:", "s_cbranch_scc0 2", "s_branch 5", "s_nop 1", "; k.ir:4", "s_nop 0"),
        *("v_mov_b32_e32 v0, 0", "s_endpgm"),
    )
    assert without_padding(text) == text


def test_zeros_are_padding_and_other_text_is_not():
    text = _text("<a>:", "s_endpgm")
    assert without_padding(text + "\t\t...\n\t.long 0x00000000\n") == text
    other = "f:\n\tret\n\tnop\n"
    assert without_padding(other) == other


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx90a", "gfx1100"])
def test_compiled_kernels_end_with_their_last_instructions(gpu):
    text = disassemble(Binary(compiled_code("vector_add", "matmul", gpu=gpu), "hsaco"))
    plain = without_padding(text)
    assert text.count("s_code_end") + text.count("s_nop") > 60
    assert plain.rstrip().splitlines()[-1].startswith("\ts_endpgm")
    assert "s_code_end" not in plain and plain.count("s_endpgm") == text.count("s_endpgm")
    functions = [part for part in plain.split("\n\n") if "s_endpgm" in part]
    assert len(functions) == 2
    assert all(part.rstrip().splitlines()[-1].startswith("\ts_endpgm") for part in functions)
