"""Which lines belong together: by the texts of a module, and by small texts of our own."""

import json

import pytest

from refcomp.emulator.observers.counting import KernelCounts
from refcomp.emulator.ptx.observers.opcodes import PTX
from refcomp.profile.listing import CUDA, LLVM_IR, LOOP_IR, SCHEDULE, list_kernel
from tests.profile.programs import product, run

LOOPS = """func first() {
  A@[0] = 1
}

func second() {
  for i in range(8) {
    for j in range(4) {
      B@[i * 4 + j] = 2
    }
  }
}
"""
LINKS = {
    "kernels": {"first": 1, "second": 5},
    "text": [0, 2, 8, 7],
    "origins": {
        "6": ["B", "i", "split", "/home/me/p.py:3"],
        "8": ["B", "", "", ""],
        "2": ["A", "", "", ""],
    },
}
SOURCES = {
    "kernels": LOOPS,
    "llvm": "; top\nl2\nl8\nl7\n!0 = metadata\n",
    "lines": json.dumps(LINKS),
}


def _list(name, sources=SOURCES):
    return list_kernel(KernelCounts(name, "gfx942", 64, 128), sources)


def test_a_kernel_has_its_own_lines_with_their_numbers():
    listing = _list("second")
    assert [line.links for line in listing.texts[LOOP_IR]] == [(n,) for n in range(5, 12)]
    assert listing.texts[LOOP_IR][0].text == "func second() {"
    assert listing.texts[LOOP_IR][-1].text == "}"
    assert listing.loop_ir(8) == "B@[i * 4 + j] = 2" and listing.loop_ir(99) == ""
    assert _list("first").texts[LOOP_IR][-1].text == "}" and len(_list("first").texts[LOOP_IR]) == 3
    assert list(listing.origins) == [6, 8]


def _cuda_text(name):
    return (
        f'extern "C" __global__ void __launch_bounds__(64)\n{name}(float *B) {{\n  {name}\n}}\n\n'
    )


def test_other_kernels_are_left_out_of_cuda_text():
    """The name of one is the end of another's."""
    text = "#include <x>\n\nstatic int helper() {\n}\n\n" + _cuda_text("a") + _cuda_text("aa")
    linked = {"text": [*range(text.count("\n"))]}
    counts = KernelCounts("a", "sm_90", 32, 32, isa=PTX)
    listing = list_kernel(counts, {"cuda": text, "lines": json.dumps(linked)})
    assert [*listing.texts] == [SCHEDULE, LOOP_IR, CUDA, "PTX"]
    shown = [line.text for line in listing.texts[CUDA]]
    assert "a(float *B) {" in shown and "aa(float *B) {" not in shown
    assert shown[:4] == ["#include <x>", "", "static int helper() {", "}"]
    assert [line.links for line in listing.texts[CUDA] if line.text == "  a"] == [(7,)]


def test_loops_around_a_line_stand_from_the_innermost():
    assert _list("second").around(8) == [7, 6, 5]
    assert _list("second").around(5) == []


def test_llvm_lines_are_linked_and_metadata_is_not():
    linked = [(line.text, line.links) for line in _list("second").texts[LLVM_IR]]
    assert linked == [
        ("; top", ()),
        ("l2", (2,)),
        ("l8", (8,)),
        ("l7", (7,)),
        ("!0 = metadata", ()),
    ]


def test_other_kernels_are_left_out_of_the_llvm_ir():
    kernels = [f"define amdgpu_kernel void @{name}() {{\nentry:\n\n  ret\n}}\n" for name in "ab"]
    text = "\n".join(
        ["; top", "", kernels[0], "define void @called() {", "}", "", kernels[1], "!0"]
    )
    linked = {"text": [*range(text.count("\n"))]}
    listing = _list("b", {"llvm": text, "lines": json.dumps(linked)})
    lines = listing.texts[LLVM_IR]
    assert [line.text for line in lines] == [
        *("; top", "", "define void @called() {", "}", ""),
        *("define amdgpu_kernel void @b() {", "entry:", "", "  ret", "}", "", "!0"),
    ]
    assert [line.links for line in lines if line.text == "  ret"] == [(14,)]
    whole = _list("c", {"llvm": text, "lines": json.dumps(linked)}).texts[LLVM_IR]
    assert [line.text for line in whole] == text.splitlines()


def test_a_line_without_a_primitive_belongs_to_the_one_of_the_loop_around():
    (line,) = _list("second").texts[SCHEDULE]
    assert line.text == "s[B].split(i)  # p.py:3"
    assert line.links == (6, 7, 8, 9)


def test_without_sources_there_is_only_machine_code():
    listing = _list("second", {})
    assert all(not listing.texts[name] for name in (SCHEDULE, LOOP_IR, LLVM_IR, "ISA"))
    assert listing.around(3) == []


@pytest.mark.rocm
def test_the_texts_of_a_module_are_linked_with_the_steps_of_its_schedule():
    schedule, args = product()
    module, counts = run(schedule, args)
    sources = {
        name: module.imported_modules[0].get_source(name) for name in ("kernels", "llvm", "lines")
    }
    listing = list_kernel(counts, sources, schedule.steps)
    steps = listing.texts[SCHEDULE]
    assert [line.text.partition("  #")[0] for line in steps] == [str(s) for s in schedule.steps]
    (sum_line,) = [n for n in range(1, 30) if "fma(" in listing.loop_ir(n)]
    bind = next(line for line in steps if "bind(j.inner, threadIdx.x)" in line.text)
    assert sum_line in bind.links
    others = [line for line in steps if "bind" in line.text and line is not bind]
    assert len(others) == 3 and all(sum_line not in line.links for line in others)
    machine = [line for line in listing.texts["ISA"] if line.links == (sum_line,)]
    assert any("v_fmac_f32" in line.text or "v_fma_f32" in line.text for line in machine)
    assert any("fma" in line.text for line in listing.texts[LLVM_IR] if line.links == (sum_line,))
    loop = listing.texts[LOOP_IR][sum_line - listing.first]
    assert loop.waves == sum(line.waves for line in machine)
