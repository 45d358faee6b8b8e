import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.parser import parse_func
from refcomp.ir.stmt import CallExtern, CallPacked
from refcomp.ir.structure import structurally_equal

A = refcomp.decl_buffer((4,), name="A")


def test_a_packed_call():
    call = refcomp.call_packed("my.f", A, A.access_ptr("r"), 3, 2.5, True, refcomp.var("n"))
    assert isinstance(call, CallPacked)
    assert str(call) == "packed my.f(update(A), read(A), 3i32, 2.5f32, true, n)"


def test_an_extern_call():
    call = refcomp.call_extern("int32", "memcpy", A.access_ptr("w", 1), A.access_ptr("r"), 4)
    assert isinstance(call, CallExtern)
    assert str(call) == "extern i32 memcpy(write(A[1i64]), read(A), 4i32)".replace("1i64", "1")


def test_pure_calls():
    x = refcomp.var("x", "float32")
    assert str(refcomp.call_pure_extern("float32", "expf", x)) == "extern f32 expf(x)"
    assert str(refcomp.call_pure_intrin("float32", "exp", refcomp.var("n"))) == "exp(f32(n))"
    assert str(refcomp.call_pure_intrin("bool", "isnan", x)) == "isnan(x)"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((refcomp.placeholder((4,), name="T"),), "f is given the tensor T\n(.|\n)*extern"),
        (("text",), "f is given the text 'text'\n(.|\n)*partial"),
        ((None,), "NoneType None cannot be used as an expression"),
        ((A.access_ptr("r", 2),), "f cannot be called: f is given a part of A"),
    ],
)
def test_what_cannot_be_passed(args, message):
    with pytest.raises(UserError, match=message):
        refcomp.call_packed("f", *args)


def test_what_c_cannot_take():
    with pytest.raises(UserError, match="f cannot be called: argument 0 of f has dtype f16"):
        refcomp.call_extern("int32", "f", refcomp.const(1, "float16"))
    with pytest.raises(UserError, match="'a.b' is not the name of a C function"):
        refcomp.call_pure_extern("float32", "a.b", 1.0)
    with pytest.raises(UserError, match="is given the address of A, but called as pure"):
        refcomp.call_pure_extern("float32", "f", A)


@pytest.mark.llvm
def test_a_c_function_in_a_compute():
    x = refcomp.placeholder((8,), "float64", "X")
    y = refcomp.compute(
        (8,), lambda i: refcomp.call_pure_extern("float64", "cbrt", x[i]) + 1.0, name="Y"
    )
    s = refcomp.create_schedule(y)
    s[y].vectorize(y.op.axis[0])
    given, results = np.arange(8.0) ** 3, []
    for target in ("interp", "llvm"):
        results.append(np.zeros(8))
        refcomp.build(s, [x, y], target=target)(given, results[-1])
    assert np.allclose(results, np.arange(8) + 1)


def rotated(name="llvm.fshl.i32", *more):
    a = refcomp.placeholder((8,), "int32", name="A")
    b = refcomp.compute(
        (8,), lambda i: refcomp.call_llvm_intrin("int32", name, a[i], a[i], 5, *more), name="B"
    )
    return refcomp.create_schedule(b), [a, b]


@pytest.mark.llvm
def test_an_intrinsic_of_llvm_is_called_on_the_host():
    x, y = (np.arange(8) * 0x1234567).astype(np.int32), np.zeros(8, np.int32)
    module = refcomp.build(*rotated())
    module(x, y)
    wide = x.view(np.uint32).astype(np.uint64)
    expected = ((wide << np.uint64(5)) | (wide >> np.uint64(27))).astype(np.uint32)
    np.testing.assert_array_equal(y.view(np.uint32), expected)
    assert "declare i32 @llvm.fshl.i32(i32, i32, i32)" in module.get_source("llvm")


@pytest.mark.parametrize("target", ["interp", "opencl"])
def test_other_targets_do_not_know_it(target):
    with pytest.raises(UserError, match=r"llvm.fshl.i32 is an intrinsic of LLVM(.|\n)*\"llvm\""):
        refcomp.build(*rotated(), target)


def test_intrinsics_that_refcomp_has_are_its_own_on_every_target():
    def text(dtype, name, *args):
        return str(refcomp.call_llvm_intrin(dtype, name, *args))

    x, n = refcomp.var("x", "float32"), refcomp.var("n", "uint32")
    assert text("uint32", "llvm.ctpop.i32", n) == "popcount(n)"
    assert text("float32", "llvm.fma.f32", x, 2, x) == "fma(x, 2.0f32, x)"
    assert text("float32", "llvm.roundeven.f32", x) == "round(x)"
    assert text("float32", "llvm.sqrt.f64", x) == "extern f32 llvm.sqrt.f64(x)"
    assert text("float32", "llvm.round.f32", x) == "extern f32 llvm.round.f32(x)"


def test_the_text_of_an_intrinsic_is_read_back():
    s, args = rotated()
    func = refcomp.lower(s, args)
    assert "extern i32 llvm.fshl.i32(A[i], A[i], 5i32)" in refcomp.print_func(func)
    assert structurally_equal(parse_func(refcomp.print_func(func)), func)


def test_names_without_llvm_are_refused():
    with pytest.raises(
        UserError, match=r"'ctpop' is not an intrinsic of LLVM(.|\n)*call_pure_intrin"
    ):
        refcomp.call_llvm_intrin("int32", "ctpop", refcomp.var("n"))
    with pytest.raises(UserError, match="address of A"):
        refcomp.call_llvm_intrin("int32", "llvm.x.i32", A)
