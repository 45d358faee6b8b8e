"""Locations of PTX become lines of the loop IR; all else stays."""

import re

from refcomp.codegen.cuda.module import print_cuda
from refcomp.codegen.cuda.ptx_locations import locate_in_loop_ir
from refcomp.ir.parser import parse_funcs

KERNELS = parse_funcs("""
func scaled(A: i64[8], B: i64[8] out) {
  for t in range(8) threadIdx.x {
    B@[t] = A@[t] * 3
  }
}
""")
SOURCE = print_cuda(KERNELS)
# The lines of the C++ that store, and that begin the kernel.
(_STORE,) = (k for k, text in enumerate(SOURCE.text.split("\n"), 1) if "* 3" in text)
(_FIRST,) = (k for k, text in enumerate(SOURCE.text.split("\n"), 1) if "__global__" in text)


def _located(*locations, behind='.file\t1 "/tmp/x/kernel.cu"\n.file\t2 "/include/fp.hpp", 7, 8\n'):
    ptx = "".join(f"\t.loc\t{one}\n\tret;\n" for one in locations)
    found = locate_in_loop_ir(f".entry k() {{\n{ptx}}}\n{behind}", SOURCE, KERNELS)
    assert re.sub(r"\t\.loc.*\n", "", found) == (
        ".entry k() {\n" + "\tret;\n" * len(locations) + '}\n\n.file 1 "kernels.ir"\n'
    )
    return re.findall(r"\.loc (.*)", found)


def test_lines_of_the_text_become_those_of_the_loop_ir():
    assert _located(f"1 {_STORE} 5", f"1 {_FIRST} 1") == ["1 3 0", "1 1 0"]


def test_inlined_functions_have_the_line_of_their_call():
    """The second call is inlined into the first."""
    first = f"2 40 3, function_name $L__info_string0, inlined_at 1 {_STORE} 5"
    second = "2 50 1, function_name $L__info_string1+8, inlined_at 2 40 3"
    assert _located(first, second) == ["1 3 0", "1 3 0"]


def test_a_place_without_a_statement_is_not_known():
    assert _located("2 40 3", "1 99999 1", "1 0 0", "7 3 1") == ["1 0 0"] * 4
    circle = "2 40 3, function_name f, inlined_at 2 40 3"
    assert _located(circle) == ["1 0 0"]
