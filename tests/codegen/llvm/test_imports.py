"""LLVM IR of the user's own in a module: micro kernels that C calls name, and what is refused."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.codegen.llvm.imports import functions_in, import_chunks
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.structure import structurally_equal
from tests.codegen.host_kernels import print_generic

FMA = """
; c[0:4] += a[0] * b[0:4]
source_filename = "micro.c"
@calls = dso_local global i32 0, align 4
declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>) #1
define dso_local void @my_fma(ptr noundef %c, ptr nocapture %a, ptr %b) local_unnamed_addr #0 {
  %x = load float, ptr %a, align 4, !tbaa !0
  %v = insertelement <4 x float> poison, float %x, i64 0
  %s = shufflevector <4 x float> %v, <4 x float> poison, <4 x i32> zeroinitializer
  %y = load <4 x float>, ptr %b, align 4
  %z = load <4 x float>, ptr %c, align 4
  %r = call <4 x float> @llvm.fma.v4f32(<4 x float> %s, <4 x float> %y, <4 x float> %z)
  store <4 x float> %r, ptr %c, align 4
  ret void
}
attributes #0 = { nounwind "frame-pointer"="all" }
attributes #1 = { nounwind }
!0 = !{!1, !1, i64 0}
!1 = !{!"float", !2}
!2 = !{!"root"}
"""
ZEROS = """
define void @my_zeros(ptr %c) {
  store <4 x float> zeroinitializer, ptr %c, align 4
  ret void
}
"""
HALF = """define float @my_half(float noundef %x) {
  %y = fmul float %x, 5.000000e-01
  ret float %y
}
"""


def halved(text=HALF, name="my_half", key="import_llvm"):
    a = rc.placeholder((8,), name="A")
    b = rc.compute((8,), lambda i: rc.call_pure_extern("float32", name, a[i]), name="B")
    s = rc.create_schedule(b)
    s[b].pragma(b.op.axis[0], key, text)
    return s, [a, b]


def of_text(body, *texts, name="f"):
    head = f"func {name}(A: f32[4], B: f32[4] out, k: i8, u: u8)"
    func = parse_func(f"{head} {{ {body} }}")
    return print_generic([PrimFunc(func.name, func.params, func.body, ("B",), texts)])


def fma_intrin():
    """Four products with one number, added to what is there."""
    a, b, q = rc.placeholder((1,), name="a"), rc.placeholder((1, 4), name="b"), rc.reduce_axis(1)
    c = rc.compute((4,), lambda j: rc.sum(a[q] * b[q, j], axis=q), name="c")

    def calls(ins, outs):
        reset = rc.call_extern("int32", "my_zeros", outs[0].access_ptr("w"))
        pointers = [outs[0].access_ptr("rw"), ins[0].access_ptr("r"), ins[1].access_ptr("r")]
        return None, reset, rc.call_extern("int32", "my_fma", *pointers)

    return rc.decl_tensor_intrin(c.op, calls)


@pytest.mark.llvm
def test_a_micro_kernel_does_the_work_of_a_tensor_intrinsic():
    x, y = rc.placeholder((8, 8), name="X"), rc.placeholder((8, 8), name="Y")
    k = rc.reduce_axis((0, 8), "k")
    z = rc.compute((8, 8), lambda i, j: rc.sum(x[i, k] * y[k, j], axis=k), name="Z")
    s = rc.create_schedule(z)
    i, j = z.op.axis
    (jo, ji), (ko, ki) = s[z].split(j, factor=4), s[z].split(k, factor=1)
    s[z].reorder(i, jo, ko, ji, ki)
    s[z].tensorize(ji, fma_intrin())
    s[z].pragma(i, "import_llvm", FMA + ZEROS)
    module = rc.build(s, [x, y, z])
    p, q = (np.arange(64, dtype=np.float32).reshape(8, 8) % m for m in (7, 5))
    r = np.full((8, 8), 77, np.float32)
    module(p, q, r)
    np.testing.assert_array_equal(r, p @ q)
    assert "@my_fma(ptr" in module.get_source("llvm")


@pytest.mark.llvm
def test_a_function_of_the_users_own_is_called_and_stays_inside():
    s, args = halved()
    module = rc.build(s, args)
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    module(x, y)
    np.testing.assert_array_equal(y, x / 2)
    text = module.get_source("llvm")
    assert "define internal float @my_half(float noundef %x) {" in text
    assert "declare float @my_half" not in text.replace("; declare", "")


@pytest.mark.llvm
def test_a_statement_calls_a_micro_kernel_that_returns_nothing():
    a = rc.placeholder((4,), name="A")
    c = rc.extern(
        (4,),
        [a],
        lambda ins, outs: rc.call_extern("int32", "my_fma", outs[0], ins[0], ins[0]),
        name="C",
    )
    b = rc.compute((4,), lambda i: c[i] + 1.0, name="B")
    s = rc.create_schedule(b)
    s[b].pragma(b.op.axis[0], "import_llvm", FMA)
    module = rc.build(s, [a, c, b])
    y, z = np.ones(4, np.float32), np.zeros(4, np.float32)
    module(np.arange(2, 6, dtype=np.float32), y, z)
    assert "call void @my_fma(" in module.get_source("llvm")
    np.testing.assert_array_equal(z - 1, y)


def test_numbers_of_attributes_and_metadata_are_the_texts_own():
    lines = [c.text for c in import_chunks((FMA, HALF), {"llvm.fma.v4f32"}, "t", "l")]
    text = "".join(lines)
    assert "local_unnamed_addr #1000000 {" in text
    assert "attributes #1000001 = { nounwind }" in text
    assert '!1000001 = !{!"float", !1000002}' in text
    assert "; declare <4 x float> @llvm.fma" in text
    assert '; source_filename = "micro.c"' in text
    assert "@calls = internal global i32 0, align 4" in text


def test_the_text_survives_printing_and_parsing():
    s, args = halved()
    func = rc.lower(s, args)
    again = parse_func(rc.print_func(func))
    assert again.imports == (HALF,)
    assert structurally_equal(func, again)
    without = PrimFunc(func.name, func.params, func.body, func.outputs)
    assert not structurally_equal(func, without)


@pytest.mark.parametrize("target", ["interp", "opencl"])
def test_other_targets_cannot_take_it_in(target):
    s, args = halved()
    with pytest.raises(UserError, match=r"cannot take in LLVM IR(.|\n)*my_half(.|\n)*\"llvm\""):
        rc.build(s, args, target)


@pytest.mark.llvm
def test_a_fault_in_the_text_is_shown_with_its_line():
    s, args = halved(HALF.replace("fmul float %x", "fmul flaot %x"))
    with pytest.raises(ToolchainError, match="line 2 of the imported LLVM IR: %y = fmul flaot"):
        rc.build(s, args)


@pytest.mark.parametrize(
    ("name", "why"),
    [("f", "a function of this module"), ("expf", "C library"), ("free", "compiled with it")],
)
def test_names_that_are_taken_are_refused(name, why):
    with pytest.raises(UserError, match=f"may not define {name}\n(.|\n)*{why}"):
        of_text("", HALF.replace("my_half", name))


def test_two_texts_may_not_define_one_function():
    with pytest.raises(UserError, match="may not define my_half"):
        of_text("", HALF, HALF + "\n")


@pytest.mark.parametrize(
    "call",
    [
        "B@[0] = f32(extern f64 my_half(A@[0]))",
        "extern f32 my_half(f64(A@[0]))",
        "extern f32 my_half(A@[0], A@[1])",
    ],
)
def test_calls_must_fit_the_definition(call):
    with pytest.raises(UserError, match=r"the call of my_half does not fit(.|\n)*define float @my"):
        of_text(call, HALF)


def test_narrow_numbers_must_be_extended_as_the_definition_takes_them():
    narrow = "define void @narrow(i8 signext %x) {\n  ret void\n}\n"
    assert "call void @narrow(i8 signext" in of_text("extern i32 narrow(k)", narrow).text
    with pytest.raises(UserError, match="it is called as i32 .i8 zeroext"):
        of_text("extern i32 narrow(u)", narrow)
    with pytest.raises(UserError, match="define fastcc void @narrow"):
        of_text("extern i32 narrow(k)", narrow.replace("void @", "fastcc void @"))


def test_attributes_with_brackets_are_no_parameters():
    line = "define i32 @g(ptr align(4) %a, <4 x float> %b) memory(none) { ret i32 0 }"
    assert functions_in(line)["g"].params == ("ptr", "<4 x float>")


def test_code_for_another_machine_is_refused():
    other = 'target triple = "riscv64-unknown-linux-gnu"\n' + HALF
    with pytest.raises(UserError, match="for another machine: its triple is riscv64"):
        of_text("", other)


def test_a_definition_that_cannot_be_read_is_refused():
    with pytest.raises(UserError, match=r"cannot be read\n(.|\n)*line 1: define float"):
        functions_in("define float\n@f(float %x) {\n}\n")


def test_a_text_that_defines_nothing_is_refused():
    with pytest.raises(
        UserError, match="import_llvm is 'micro.ll', which does not define a function"
    ):
        halved("micro.ll")


def test_a_text_with_quotes_and_escapes_is_read_back():
    text = HALF + '; "quoted" \\n not a line, \\\\ two, \t a tab, \u00e4\n'
    func = rc.lower(*halved(text), "f")
    again = parse_func(rc.print_func(func))
    assert structurally_equal(func, again)
    assert again.imports == (text,)
