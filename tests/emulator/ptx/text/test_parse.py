"""Whole files of PTX: of our own, of LLVM and nvcc, and damaged ones."""

import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refcomp.codegen.cuda.module import print_cuda
from refcomp.emulator.ptx.text.module import Location
from refcomp.emulator.ptx.text.parse import read_ptx
from refcomp.emulator.ptx.text.tokens import DamagedPtx
from refcomp.foundation.errors import Unsupported
from tests.codegen.device_kernels import TEXTS, device_kernel
from tests.codegen.nvptx.kernels import ARCHS, LLVMS, compile_ptx, use_llvm

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
WHOLE = (
    HEAD
    + """
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.extern .shared .align 16 .b8 dyn[];
.global .align 1 .b8 $str[4] = {97, 10};
.visible .global .u64 table[2] = {f, generic($str)};
.visible .func (.param .b32 r) f(.param .b32 a);
.weak .func (.param .b32 r) f(.param .b32 a)
{
  .reg .b32 %r<3>;  // two
  ld.param.b32 %r1, [a];
  st.param.b32 [r+0], %r1;
  ret;
}
.alias g, f;
.visible .entry k(.param .u64 .ptr .global .align 4 p)
.maxntid 64
{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<3>;
  .loc 1 7 3
  ld.param.u64 %rd1, [p];
  mov.u64 %rd2, table;
$L__BB0_1:
  setp.eq.s32 %p1, %r1, -5;
  @!%p1 bra $L__BB0_1;
  ld.global.v2.u32 {%r2, _}, [%rd1+-8];
  ret;
}
.section .debug_info { .b8 1 "}" .b64 $L__BB0_1 }
.file 1 "a.cu", 123, 456
"""
)


def test_a_whole_file():
    module = read_ptx(WHOLE)
    assert (module.version, module.target) == ((8, 0), "sm_90")
    assert [v.name for v in module.variables] == ["dyn", "$str", "table"]
    assert list(module.functions) == ["vprintf", "f", "k", "g"]
    assert module.functions["vprintf"].is_declaration
    assert not module.functions["f"].is_declaration
    assert module.functions["g"] is module.functions["f"]
    kernel = module.functions["k"]
    assert kernel.line == 18
    assert kernel.labels == {"$L__BB0_1": 2}
    assert kernel.instructions[0].location == Location("a.cu", 7)
    assert str(kernel.instructions[4]) == "ld.global.v2.u32 {%r2, _}, [%rd1+-8]"


def test_a_definition_replaces_a_declaration():
    module = read_ptx(HEAD + ".extern .global .u32 x; .visible .global .u32 x = 1;")
    assert [(v.initial, v.is_extern) for v in module.variables] == [(b"\1\0\0\0", False)]
    module = read_ptx(HEAD + ".visible .global .u32 x = 1; .extern .global .u32 x;")
    assert [(v.initial, v.is_extern) for v in module.variables] == [(b"\1\0\0\0", False)]


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("", "expected .version at the beginning, not the end of the file", "line 1"),
        ("\x7fELF", r"'\\x7f' does not begin anything in PTX", "line 1"),
        (".version 8", "expected a version, such as 8.0, not '8'", "line 1"),
        (".version 8.0\n.target x", "expected a target, such as sm_90, not 'x'", "line 2"),
        (HEAD + "ret;", "expected a directive, not 'ret'", "line 4: ret;"),
        (HEAD + ".func f() { bar; } .func f() { }", "f is defined twice", "line 4"),
        (HEAD + ".global .u8 f; .func f();", "f is defined twice", "line 4"),
        (HEAD + ".func f(); .global .u8 f;", "f is defined twice", "line 4"),
        (HEAD + ".global .u8 f; .global .u8 f;", "f is defined twice", "line 4"),
        (HEAD + "\n.entry k() { mov %laneid, x; }", "x is not declared", "line 5"),
        (HEAD + ".global .u64 x = y;", "y is not declared", "line 4"),
        (HEAD + ".alias a, b;", "b is not declared", "line 4"),
        (HEAD + ".visible .file", "expected a function or a variable, not '.file'", "line 4"),
        (HEAD + ".maxnreg 5", ".maxnreg does not belong outside of functions", "line 4"),
        (HEAD + ".section .x { 5", "a section is not closed", "line 4"),
        (HEAD + ".local .u8 x;", "a variable in .local is declared outside", "line 4"),
    ],
)  # fmt: skip
def test_damage_is_told_with_its_line(text, what, where):
    with pytest.raises(DamagedPtx, match=what) as caught:
        read_ptx(text)
    assert caught.value.where.startswith(where)
    assert caught.value.remedy


@pytest.mark.parametrize("size", ["", ".address_size 32"])
def test_addresses_of_32_bits_are_refused(size):
    with pytest.raises(Unsupported, match="addresses of 32 bits"):
        read_ptx(f".version 8.0 .target sm_90 {size}")


@pytest.mark.llvm
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("llvm", LLVMS)
def test_what_llvm_prints_is_read(llvm, arch, monkeypatch):
    use_llvm(llvm, monkeypatch)
    arch = "sm_80" if (llvm, arch) == ("15", "sm_90") else arch
    text = compile_ptx([device_kernel(name) for name in TEXTS], arch)
    _check_against_lines(text)


NVCC_OPTIONS = [("-O3",), ("-O0",), ("-G",), ("-lineinfo",)]


@pytest.mark.nvcc
@pytest.mark.parametrize("options", NVCC_OPTIONS)
def test_what_nvcc_prints_is_read(options, tmp_path):
    source = tmp_path / "k.cu"
    source.write_text(print_cuda([device_kernel(name) for name in TEXTS]).text)
    target = tmp_path / "k.ptx"
    subprocess.run(
        ["nvcc", "-ptx", "-arch=sm_90", *options, str(source), "-o", str(target)], check=True
    )
    module = _check_against_lines(target.read_text())
    has_places = any(one.location for f in module.functions.values() for one in f.instructions)
    assert has_places == (options[0] in ("-G", "-lineinfo"))


def _check_against_lines(text):
    """Compare with what a search for lines finds: kernels, `ret`, and stores to global memory."""
    module = read_ptx(text)
    kernels = [f for f in module.functions.values() if f.is_entry]
    assert {kernel.name for kernel in kernels} == {device_kernel(name).name for name in TEXTS}
    lines = text.splitlines()
    for function in module.functions.values():
        for one in function.instructions:
            assert one.text.split()[0] in lines[one.line - 1]
    read = [one.text for f in module.functions.values() for one in f.instructions]
    for name in ("ret", "st.global", "bar.sync", "fma.rn"):
        expected = len(re.findall(rf"^[^/\n]*\b{re.escape(name)}\b", text, re.MULTILINE))
        assert (
            sum(re.search(rf"\b{re.escape(name)}\b", one) is not None for one in read) == expected
        )
    return module


_PIECES = ["{", "}", "(", ")", ";", ",", "[", "]", "@", "%r<", "0x", "/*", '"', ".reg", "_", ":",
           "-", "\0", "é", ".param", "9" * 30, "<", "|", "!", ".loc", "call "]  # fmt: skip


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(WHOLE)),
            st.integers(0, 12),
            st.one_of(st.sampled_from(_PIECES), st.text(max_size=4)),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_damaged_texts_end_in_an_error_that_says_so(changes):
    text = WHOLE
    for place, length, piece in changes:
        text = text[:place] + piece + text[place + length :]
    try:
        read_ptx(text)
    except (DamagedPtx, Unsupported) as error:
        assert error.what and error.remedy


@pytest.mark.parametrize(
    "text",
    ["{" * 10**6, "mov %laneid, " + "(" * 10**6, "mov %laneid, " + "-" * 10**6,
     "mov %laneid, {" * 10**5, ".reg .b32 %r<1000000000000>;", ".reg .b32 %r<" + "9" * 10**6,
     "a." * 10**6, "/*" * 10**6, "@" * 10**6, "@!" * 10**6, "call (" * 10**5, "\0" * 10**6,
     "mov %laneid, " + "1?" * 10**6, "a: .callprototype (" * 10**5],
)  # fmt: skip
def test_hostile_texts_end_in_an_error(text):
    with pytest.raises((DamagedPtx, Unsupported)):
        read_ptx(HEAD + ".entry k() {" + text)
