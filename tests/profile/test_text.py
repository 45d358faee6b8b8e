"""A profile as tables: what stands in them, and that names do no harm."""

import re
from dataclasses import replace

import pytest

from refcomp.driver.amd_resources import AmdResources
from refcomp.driver.nvidia_resources import NvidiaResources
from refcomp.emulator.observers.counting import InstructionCounts, KernelCounts
from refcomp.emulator.ptx.observers.opcodes import PTX
from refcomp.profile.report import report_of
from refcomp.profile.text import printable, report_to_text, reports_to_text
from tests.emulator.snippets import instruction
from tests.profile.programs import product, report, transposed


@pytest.mark.rocm
def test_tables_of_a_product():
    text = report_to_text(report(*product(64, 64, 32)))
    assert text.startswith(
        "kernel program_kernel0 on gfx942: 1 launch, 16 groups, 64 waves of 64; "
    )
    assert re.search(r"VALU FMA +2048 +\d+\.\d%", text)
    assert re.search(r"the inner loop if there is one: \d+\sVALU\sFMA", text)
    assert re.search(r"\d+% of its vector instructions multiply and add", text)
    assert re.search(r"\d+ +\d+ +\d+\.\d% +C@\[.*fma\(", text)
    assert "estimate for one launch on MI300X, not a time that was measured" in text
    assert "what to change in the schedule:" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.rocm
def test_tables_of_memories():
    text = report_to_text(report(*transposed(is_naive=False)), width=120)
    assert re.search(r"global_load_dword .* 64 +16384 +128 +2\.0 +128 +100%", text)
    assert re.search(r"ds_read_b32 .* 64 +16384 +4096 +3968", text)
    assert "32 banks of 4 bytes" in text


def test_lines_of_another_compilers_source_are_named():
    counts = KernelCounts("k", "gfx942", 64, 128, groups=1, launches=1)
    for number, source in enumerate(("a.cl:7", "a.cl:7", "")):
        one = replace(instruction("s_nop 0"), number=number, source=source)
        counts.by_number[number] = InstructionCounts(one, 3, 192)
    text = report_to_text(report_of(counts))
    assert re.search(r"6 +66\.7% +a\.cl:7", text) and re.search(r"3 +33\.3% +\(not known\)", text)


def test_one_of_a_thing_is_told_as_one():
    taken = NvidiaResources(
        *("k", "sm_90", 255, 0, 0, 0, 1, 0, 0, 1, 32), blocks=1, warps=1, limit="shared memory",
        advice="",
    )  # fmt: skip
    counts = KernelCounts("k", "sm_90", 32, 32, groups=1, waves=1, launches=1, isa=PTX)
    text = " ".join(report_to_text(replace(report_of(counts), resources=taken)).split())
    assert "kernel k on sm_90: 1 launch, 1 block, 1 warp of 32; 0 multiply-adds; " in text
    assert "1 byte of shared memory; " in text
    assert "holds at a time: 1 block, 1 warp, limited by shared memory" in text


def test_registers_and_waves():
    taken = AmdResources("k", 256, 128, 32, 3, 7, 0, 4096, 256, 2, "vector registers")
    text = " ".join(report_to_text(replace(_counted("k", 1), resources=taken)).split())
    assert "registers: 256 of a lane (128 of them accumulators), 3 spilled to memory, " in text
    assert "32 of a wave, 7 spilled to lanes; 4096 bytes of LDS" in text
    assert "estimate: waves of a SIMD at a time: 2, limited by vector registers" in text


def test_kernels_of_a_run_are_told_one_after_the_other_and_side_by_side():
    few, many = (_counted(name, number) for name, number in (("few", 1), ("many", 3)))
    text = reports_to_text([few, many])
    assert text.index("kernel few on") < text.index("kernel many on") < text.index("kernels, all")
    assert re.search(r"many +1 +3 .*\n +few +1 +1 .*\n +all +2 +4 ", text)
    assert reports_to_text([few]) == report_to_text(few)


def test_names_of_kernels_are_cut_in_their_middle():
    names = [f"kernel7_{'add_' * 40}kernel{n}" for n in range(2)]
    text = reports_to_text([_counted(name, 1) for name in names])
    table = text[text.index("kernels, all") :]
    assert re.search(r"kernel7\S*\.\.\.\S*kernel0 +1 ", table)
    assert re.search(r"kernel7\S*\.\.\.\S*kernel1 +1 ", table)
    assert max(map(len, text.splitlines())) <= 100


def test_tables_are_not_without_end():
    text = report_to_text(_counted("k", 20))
    assert "and 8 more, which the page has" in text and "a.cl:19" not in text


def _counted(name, number):
    """A kernel of so many instructions, each of another line."""
    counts = KernelCounts(name, "gfx000", 64, 128, groups=1, launches=1)
    for n in range(number):
        one = replace(instruction("s_nop 0"), number=n, source=f"a.cl:{n}")
        counts.by_number[n] = InstructionCounts(one, 1, 64)
    return report_of(counts)


def test_a_kernel_of_which_nothing_is_known():
    text = report_to_text(report_of(KernelCounts("k", "gfx000", 64, 128)))
    assert "nothing to advise" in text and "estimate" not in text


def test_without_kernels_the_text_says_so():
    assert reports_to_text([]) == "no kernel ran\n"


def test_names_are_neither_markup_nor_commands():
    text = report_to_text(report_of(KernelCounts("[red]k[/red]\x1b[2J", "gfx000", 64, 128)))
    assert "[red]k[/red]?[2J" in text
    assert printable("a\x1b\n\u202eb") == "a???b"
