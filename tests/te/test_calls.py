import os
import subprocess
import sys

import numpy as np
import pytest

import refcomp
from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.registry import register_func, remove_global_func
from refcomp.ir.expr import PureExtern
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
        ((b"text",), "f is given the text b'text'\n(.|\n)*partial"),
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


def test_a_packed_call_without_buffers_is_an_expression():
    n = refcomp.var("n")
    call = refcomp.call_packed("my.f", 'a "b"\n', n, 2.5)
    assert isinstance(call, PureExtern) and call.dtype == "int32"
    assert str(call + 1) == 'packed i32 my.f("a \\"b\\"\\n", n, 2.5f32) + 1i32'
    assert str(refcomp.call_packed("f", n, dtype="float16")) == "packed f16 f(n)"
    half = refcomp.var("x", "bfloat16")
    as_bf16 = refcomp.call_packed("f", half, dtype="bfloat16")
    assert str(as_bf16) == "bf16(packed f32 f(f32(x)))"


def test_a_packed_call_with_buffers_has_no_value():
    with pytest.raises(UserError, match=r"value of f is used as int32(.|\n)*leave out dtype"):
        refcomp.call_packed("f", A, dtype="int32")
    with pytest.raises(UserError, match="CallPacked (.|\n)*cannot be used as an expression"):
        refcomp.convert(1) + refcomp.call_packed("f", A)


def test_texts_that_no_program_can_pass():
    with pytest.raises(UserError, match="f is given a text that is not Unicode"):
        refcomp.call_packed("f", "\ud800")
    with pytest.raises(UserError, match="g is given the text 'x'(.|\n)*by call_packed"):
        refcomp.call_extern("int32", "g", "x")
    with pytest.raises(UserError, match="has dtype f32x4, which cannot be passed"):
        refcomp.call_packed("f", refcomp.const(1.0, "float32x4"))


def test_an_expression_becomes_a_statement_where_one_is_expected():
    a = refcomp.placeholder((1,), name="A")
    b = refcomp.extern((1,), [a], lambda _ins, _outs: refcomp.call_packed("f", 1), name="B")
    assert str(b.op.body) == "packed f(1i32)"
    ib = refcomp.ir_builder.create()
    ib.emit(refcomp.call_packed("f", "x"))
    assert str(ib.get()) == 'packed f("x")'
    with pytest.raises(UserError, match="is not a statement"):
        ib.emit(refcomp.trace([1]))


def test_a_trace():
    n = refcomp.var("n")
    assert str(refcomp.trace(["n", n])) == 'trace i64 tvm.default_trace_action("n", n)'.replace(
        "i64", str(n.dtype)
    )
    assert str(refcomp.trace([n, 1.5], "my.f")) == "trace f32 my.f(n, 1.5f32)"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], r"trace is given \[\](.|\n)*pass a list such as"),
        (refcomp.var("n"), "trace is given n(.|\n)*pass a list such as"),
        ([1, "x"], r"trace is given \[1, 'x'\]"),
        ([A], "trace is given the buffer (.|\n)*pass elements of it"),
        ([refcomp.placeholder((4,), name="T")], "is given the tensor T"),
    ],
)
def test_what_cannot_be_traced(args, message):
    with pytest.raises(UserError, match=message):
        refcomp.trace(args)


TARGETS = ["interp", pytest.param("llvm", marks=pytest.mark.llvm)]


@pytest.fixture
def registered():
    names = []

    def register(name, f):
        names.append(name)
        register_func(name, f, override=True)

    yield register
    for name in names:
        remove_global_func(name)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "dtype",
    ["int8", "int64", "uint8", "uint64", "float16", "float32", "float64", "bfloat16", "bool"],
)
def test_values_of_all_dtypes_arrive(registered, target, dtype):
    given = {
        "bool": [True, False, True],
        "int8": [-128, 127, 0],
        "int64": [-(2**63), 2**63 - 1, 0],
        "uint8": [255, 0, 1],
        "uint64": [2**64 - 1, 2**63, 0],
    }.get(dtype, [1.5, -0.0, float("inf")])
    seen = []
    registered("tests.same", lambda label, x: (seen.append((label, x)), x)[1])
    a = refcomp.placeholder((3,), dtype, name="A")
    call = lambda i: refcomp.call_packed("tests.same", "x|y %", a[i], dtype=dtype)  # noqa: E731
    b = refcomp.compute((3,), call, name="B")
    array = np.array(given, to_numpy(as_dtype(dtype)))
    found = np.zeros_like(array)
    refcomp.build(refcomp.create_schedule(b), [a, b], target=target)(array, found)
    assert found.tobytes() == array.tobytes()
    assert seen == [("x|y %", x) for x in given]
    (oracle,) = refcomp.oracle.evaluate([b], {a: array})
    assert oracle.tobytes() == array.tobytes() and seen[3:] == seen[:3]


@pytest.mark.parametrize("target", TARGETS)
def test_a_trace_calls_once_for_each_element_that_is_computed(registered, target):
    seen = []
    registered("tests.seen", lambda *args: seen.append(args))
    registered("tests.replace", lambda _i, x: 10 * x)
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), "int32", name="A")

    def body(i):
        kept = refcomp.trace(["A", i, a[i]], "tests.seen")
        return refcomp.if_then_else(i >= 2, refcomp.trace([i, kept], "tests.replace"), 0) + kept

    b = refcomp.compute((n,), body, name="B")
    s = refcomp.create_schedule(b)
    outer, inner = s[b].split(b.op.axis[0], factor=4)
    s[b].parallel(outer)
    s[b].vectorize(inner)
    found = np.zeros(6, "int32")
    refcomp.build(s, [a, b], target=target)(np.arange(6, dtype="int32"), found)
    assert found.tolist() == [0, 1, 22, 33, 44, 55]
    # In the order of a serial program, though the loop is parallel.
    assert list(dict.fromkeys(seen)) == [("A", i, i) for i in range(6)]


@pytest.mark.parametrize("target", TARGETS)
def test_errors_of_a_function_whose_value_is_used_reach_the_caller(registered, target):
    calls = []

    def fail(x):
        calls.append(x)
        if x == 2:
            raise KeyError("two")
        return x

    registered("tests.fail", fail)
    a = refcomp.placeholder((4,), "int32", name="A")
    b = refcomp.compute((4,), lambda i: refcomp.call_packed("tests.fail", a[i]), name="B")
    module = refcomp.build(refcomp.create_schedule(b), [a, b], target=target)
    with pytest.raises(KeyError, match="two") as caught:
        module(np.arange(4, dtype="int32"), np.zeros(4, "int32"))
    assert "fail" in [entry.name for entry in caught.traceback]
    assert calls == [0, 1, 2]
    registered("tests.fail", lambda _x: None)
    with pytest.raises(UserError, match=r"tests\.fail returned None(.|\n)*its value as i32"):
        module(np.arange(4, dtype="int32"), np.zeros(4, "int32"))


@pytest.mark.parametrize("target", ["opencl", "rocm -mcpu=gfx942", "cuda"])
def test_a_kernel_cannot_call_python(target):
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: refcomp.trace([a[i]]), name="B")
    s = refcomp.create_schedule(b)
    s[b].bind(b.op.axis[0], refcomp.thread_axis("threadIdx.x"))
    message = r"registered Python function tvm\.default_trace_action cannot (.|\n)*for the host"
    with pytest.raises(Unsupported, match=message):
        refcomp.build(s, [a, b], target=target)


def test_a_schedule_with_calls_is_certified(registered):
    registered("tests.twice", lambda _how, x: 2 * x)
    a = refcomp.placeholder((8,), name="A")
    call = lambda i: refcomp.call_packed("tests.twice", "how", a[i], dtype="float32")  # noqa: E731
    b = refcomp.compute((8,), call, name="B")
    s = refcomp.create_schedule(b)
    s[b].split(b.op.axis[0], factor=3)
    assert refcomp.certify(s, [a, b]).holds


@pytest.mark.llvm
def test_a_saved_module_traces_in_another_process(tmp_path):
    a = refcomp.placeholder((2,), name="A")
    b = refcomp.compute((2,), lambda i: refcomp.trace(["é|", i, a[i]]), name="B")
    path = tmp_path / "trace.refcomp"
    refcomp.build(refcomp.create_schedule(b), [a, b], target="llvm").save(path)
    program = (
        "import sys, numpy as np, refcomp\n"
        "module = refcomp.load_module(sys.argv[1])\n"
        "module(np.ones(2, 'float32'), np.zeros(2, 'float32'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        check=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert done.stdout == "['é|', 0, 1.0]\n['é|', 1, 1.0]\n"


def test_llvm_intrinsics_of_vectors():
    vector = refcomp.placeholder((4,), "float32x4", name="V")[0]
    fused = refcomp.call_llvm_intrin("float32x4", "llvm.fma.v4f32", vector, vector, 1.0)
    assert (fused.name, fused.dtype) == ("fma", vector.dtype)
    for dtype, args in (("int32x4", (vector,)), ("float32", (vector, 1.0))):
        with pytest.raises(
            Unsupported, match=r"llvm.x.v4 is called with vectors\n(.|\n)*loops over"
        ):
            refcomp.call_llvm_intrin(dtype, "llvm.x.v4", *args)
    with pytest.raises(UserError, match="argument 0 of f has dtype f32x4, which cannot be passed"):
        refcomp.call_pure_extern("float32", "f", vector)
