import numpy as np
import pytest

import refcomp
from refcomp.errors import UserError
from refcomp.ir.stmt import CallExtern, CallPacked

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
    with pytest.raises(UserError, match="'a.b' is no name of a C function"):
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
