"""Each instruction tells its line of the loop IR, in the text and in the machine code."""

import json
from dataclasses import replace

import pytest

from refcomp.codegen.debug_locations import add_debug_locations, link_lines
from refcomp.ir.parser import parse_funcs
from refcomp.ir.stmt import Origin
from refcomp.toolchain import compile_source, device_layout, disassemble
from tests.codegen.amdgpu.kernels import TOOLS_AND_GPUS, print_kernels, use_llvm
from tests.codegen.device_kernels import TEXTS, device_kernel

KERNELS = parse_funcs("""
func first(A: i64[8], B: i64[8] out) {
  for t in range(8) threadIdx.x {
    B@[t] = A@[t] * 3
  }
}
func second(A: i64[8] out) {
  for t in range(8) threadIdx.x {
    A@[t] = t
  }
}
""")


def test_each_instruction_tells_the_line_of_its_statement():
    source = print_kernels(KERNELS)
    located, loop_ir = add_debug_locations(source, KERNELS)
    assert loop_ir.splitlines()[2] == "    B@[t] = A@[t] * 3"
    assert loop_ir.splitlines()[8] == "    A@[t] = t"
    lines = located.text.splitlines()
    told = {line.split(", !dbg !")[0].strip(): _line_of(line, lines) for line in lines}
    assert told["%.2 = mul i64 %.1, 3"] == 3
    assert told["store i64 %t, ptr addrspace(1) %.1.at, align 8"] == 9
    assert told["ret void"] == 7  # the last one, of `second`
    plain = [line.split(", !dbg !")[0] for line in lines]
    kept = source.text.splitlines()
    assert [a for a, b in zip(plain, kept, strict=False) if a != b and "define" not in a] == []


def test_the_lines_of_a_part_begin_behind_those_of_the_parts_before():
    source = print_kernels(KERNELS)
    located, loop_ir = add_debug_locations(source, KERNELS, lines_before=100)
    assert loop_ir == add_debug_locations(source, KERNELS)[1]
    lines = located.text.splitlines()
    told = {line.split(", !dbg !")[0].strip(): _line_of(line, lines) for line in lines}
    assert told["%.2 = mul i64 %.1, 3"] == 103


def _line_of(text, lines):
    number = text.rpartition("!dbg !")[2]
    nodes = [line for line in lines if line.startswith(f"!{number} = !DILocation(line: ")]
    return int(nodes[0].partition("line: ")[2].partition(",")[0]) if nodes else None


def test_lines_of_the_llvm_ir_are_linked_with_those_of_the_loop_ir():
    """The same ones as the locations tell; origins by line, of all kernels together."""
    origin = Origin("B", "i", "split", "user.py:3")
    first = replace(KERNELS[0], body=replace(KERNELS[0].body, origin=origin))
    kernels = [KERNELS[1], first]
    source = print_kernels(kernels)
    located, loop_ir = add_debug_locations(source, kernels)
    links = json.loads(link_lines(source, kernels))
    assert links["kernels"] == {"second": 1, "first": 7}
    assert links["origins"] == {"8": ["B", "i", "split", "user.py:3"]}
    assert "for t in range(8)" in loop_ir.splitlines()[7]
    lines = located.text.splitlines()
    assert len(links["text"]) == source.text.count("\n")
    told = [_line_of(line, lines) for line in lines[: len(links["text"])]]
    assert [(a, b) for a, b in zip(told, links["text"], strict=True) if a and b and a != b] == []
    assert 9 in links["text"]


def test_no_label_and_no_line_outside_kernels_has_a_location():
    kernels = [device_kernel("control"), device_kernel("vectors")]
    source = print_kernels(kernels)
    located, _ = add_debug_locations(source, kernels)
    for before, after in zip(source.text.splitlines(), located.text.splitlines(), strict=False):
        is_instruction = before.startswith("  ")
        assert (", !dbg !" in after) == is_instruction
        if not is_instruction and not before.startswith("define"):
            assert before == after
    assert len(located.line_map) == source.text.count("\n")


def test_names_of_users_do_not_enter_the_metadata():
    (kernel,) = parse_funcs("func exp(A: f32[1] out) { A@[0] = 1.0f32 }")
    located, _ = add_debug_locations(print_kernels([kernel]), [kernel])
    assert 'DISubprogram(name: "exp_"' in located.text


@pytest.mark.rocm
@pytest.mark.parametrize(("llvm", "gpu"), TOOLS_AND_GPUS)
def test_the_disassembly_tells_them(llvm, gpu, monkeypatch):
    use_llvm(llvm, monkeypatch)
    kernels = [device_kernel(name) for name in TEXTS]
    located, loop_ir = add_debug_locations(
        print_kernels(kernels, gpu, device_layout("rocm")), kernels
    )
    code = compile_source(located, {"mcpu": gpu}, "hsaco", description="rocm")
    line = None
    seen = set()
    for text in disassemble(code).splitlines():
        if text.startswith("; kernels.ir:"):
            line = loop_ir.splitlines()[int(text.rpartition(":")[2]) - 1].strip()
        elif "s_barrier" in text:
            seen.add(line)
    assert seen == {"barrier"}
