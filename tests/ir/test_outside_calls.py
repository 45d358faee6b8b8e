"""Calls of functions outside the loop IR: their text, their operands, and where they are legal."""

import pytest

from refcomp.foundation.dtype import BOOL, F32, F64, I64, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import AddressOf, Buffer
from refcomp.ir.expr import (
    REGISTERED,
    TRACE,
    Broadcast,
    Cast,
    IntImm,
    Let,
    PureExtern,
    Select,
    TextImm,
    Var,
)
from refcomp.ir.outside_calls import as_statement, calls_python
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import buffers_in, replace_buffers
from refcomp.ir.stmt import CallExtern, CallPacked, LetStmt
from refcomp.ir.structure import structurally_equal
from refcomp.ir.type_rules import type_fault
from refcomp.ir.verify import find_fault

HEAD = "func f(A: f32[n, 4], B: f32[n, 4] out, H: bf16[n] out, x: f16, k: i64) "
i, p = Var("i", I64), Var("p", BOOL)
A = Buffer("A", F32, (IntImm(4, I64), IntImm(8, I64)))
WHOLE, PART = AddressOf(A, (), "read", F32), AddressOf(A, (i, i), "write", F32)


def parsed(text):
    return parse_func(HEAD + "{" + text + "}")


@pytest.mark.parametrize(
    "text",
    [
        "packed my.function_2(read(A), write(B), k + 1, x, true)",
        "packed f()",
        "packed f(update(H as u16))",
        "extern i32 memcpy(write(B[1, 0]), read(A), 16)",
        "extern f64 f(update(B[k]), extern f32 expf(f32(k)))",
        "B[0, 0] = extern f32 hypotf(A[0, 0], 1.0f32) * 2.0f32",
        r'packed f("a \"b\"\n", k, "\u00e9")',
        'B[0, 0] = packed f32 my.f("x", k, A[0, 0]) * trace f32 g(k, A[0, 0])',
    ],
)
def test_text_and_back(text):
    func = parsed(text)
    printed = print_func(func)
    assert structurally_equal(parse_func(printed), func)
    assert text in printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("packed 3(k)", "expected the name of a function, found `3`"),
        ("extern memcpy(k)", "unknown dtype `memcpy`"),
        ("packed f(read(k))", "`k` is a variable, not a buffer"),
        ("packed f(read(A[0, 0]))", "f is given a part of A, not the whole buffer"),
        ("extern i32 a.b(k)", "'a.b' is not the name of a C function"),
        ("extern i32 f(x)", "argument 0 of f has dtype f16, which cannot be passed"),
        ("extern f16 f(k)", "the result of f has dtype f16, which cannot be passed"),
        ("packed f(update(A as f64))", "elements of A, f32, cannot be accessed as f64"),
        ("B[0, 0] = extern f32 f(read(A))", "f is given the address of A, but called as pure"),
        ("B[read(A), 0] = 1.0f32", "an index of B has dtype handle"),
    ],
)
def test_mistakes(text, message):
    with pytest.raises(UserError) as caught:
        parsed(text)
    assert message in caught.value.what


@pytest.mark.parametrize(
    ("node", "fault"),
    [
        (AddressOf(A, (), "steal", F32), "has read, write, update access to A, not steal"),
        (AddressOf(A, (i, i, i), "read", F32), "A has rank 2, but 3 indices"),
        (AddressOf(A, (p, i), "read", F32), "an index of A has dtype bool"),
        (CallPacked("a b", ()), "'a b' is not the name of a function"),
        (CallPacked("f", (Broadcast(i, 4),)), "argument 0 of f has dtype i64x4"),
        (CallPacked("f", (Select(p, WHOLE, WHOLE),)), "argument 0 of f has dtype handle"),
        (CallExtern("f", F32, (i, Var("h", as_dtype("bf16")))), "argument 1 of f has dtype bf16"),
        (PureExtern("f", (), F64.with_lanes(2)), "the result of f has dtype f64x2"),
        (Cast(I64, WHOLE), "a value of dtype handle cannot be converted"),
        (LetStmt(Var("h", WHOLE.dtype), WHOLE, CallPacked("f", ())), "a variable is not defined"),
        (Let(Var("h", WHOLE.dtype), WHOLE, i), "a variable is not defined on dtype handle"),
    ],
    ids=str,
)
def test_operands(node, fault):
    assert fault in (type_fault(node) or "")


def test_right_operands():
    for node in (WHOLE, PART, CallPacked("a.b", (WHOLE, p)), CallExtern("f", F32, (PART, i))):
        assert type_fault(node) is None


@pytest.mark.parametrize("level", ["nested", "flat", "host"])
def test_a_host_may_call(level):
    calls = "{ packed f(read(A), write(B), k) extern i32 g(read(A)) }"
    func = parse_func(HEAD.replace("bf16", "u16") + calls)
    assert find_fault(func, level) is None


@pytest.mark.parametrize(
    ("text", "level", "what"),
    [
        ("packed f(update(A))", "nested", "A is written, but is not an output"),
        ("extern i32 f(write(A))", "nested", "A is written, but is not an output"),
        ("extern i32 f(read(A[k]))", "nested", "an address in A has 1 indices, where 2 belong"),
        ("extern i32 f(read(A[k, k]))", "flat", "an address in A has 2 indices, where 1 belong"),
        ("packed f(k)", "launch", "CallPacked is not allowed"),
        ("extern i32 f(k)", "launch", "CallExtern is not allowed"),
        (
            "for b in range(n) blockIdx.x { packed f(k) }",
            "nested",
            "the host's function f is called within a kernel",
        ),
        (
            "region r (k) task t of u { packed f(read(A)) }",
            "flat",
            "the buffer A is not bound here",
        ),
    ],
)
def test_levels(text, level, what):
    found = find_fault(parsed(text), level)
    assert found is not None and what in found.what


def test_buffers_of_calls_are_known_and_replaced():
    other = Buffer("C", F32, A.shape)
    call = CallExtern("f", F32, (WHOLE, PART))
    assert buffers_in(call) == (A,)
    assert buffers_in(replace_buffers(call, {A: other})) == (other,)


def test_what_is_seen_differs_by_access_dtype_and_name():
    calls = [
        CallPacked("f", (WHOLE,)),
        CallPacked("g", (WHOLE,)),
        CallPacked("f", (AddressOf(A, (), "update", F32),)),
        CallPacked("f", (AddressOf(A, (), "read", as_dtype("i32")),)),
        CallExtern("f", I64, (WHOLE,)),
        CallExtern("f", F32, (WHOLE,)),
    ]
    for a in calls:
        assert [structurally_equal(a, b) for b in calls].count(True) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('B[0, 0] = "x"', "B holds f32, not handle|handle"),
        ('B[0, 0] = f32("x")', "handle"),
        ('B["x", 0] = 1.0f32', "handle"),
        ('let t: i64 = "x" { B[0, 0] = 1.0f32 }', "handle"),
        ('if ("x") { B[0, 0] = 1.0f32 }', "handle"),
        ('extern i32 f("x")', "argument 0 of f has dtype handle, which cannot be passed"),
        ('B[0, 0] = extern f32 f("x")', "argument 0 of f has dtype handle"),
        ("B[0, 0] = packed f32 f(read(A))", "address of A, but called as pure"),
        ("B[0, 0] = packed f32x4 f(k)", "the result of f has dtype f32x4"),
        ("B[0, 0] = f32(packed bf16 f(k))", "the result of f has dtype bf16"),
        ("B[0, 0] = trace f32 f(k)", "trace by f has the dtype f32, not that of its last"),
        ("B[0, 0] = trace f32 f()", "trace by f has the dtype f32"),
        ('packed f("\\q")', "is not a text as in JSON"),
        ('packed f("\\ud800")', "a text that is not Unicode"),
        ("B[0, 0] = packed f32 llvm.amdgcn.sdot4(k)", "instruction of a GPU, not a registered"),
    ],
)
def test_calls_whose_value_is_used_are_checked(text, message):
    with pytest.raises(UserError, match=message):
        parsed(text)


def test_no_kernel_calls_python():
    func = parsed("B[0, 0] = packed f32 f(k)")
    assert find_fault(func, "nested") is None
    kernel = parse_func("func f(B: f32[4] out) { B@[0] = packed f32 f(1) }")
    fault = find_fault(kernel, "device")
    assert fault is not None and "call of the host's function f is not allowed" in fault.what


def test_a_call_is_a_statement_where_its_value_is_dropped():
    k = Var("k", I64)
    call = PureExtern("f", (TextImm("x"), k), I64, REGISTERED)
    assert str(as_statement(call)) == 'packed f("x", k)'
    for other in (k, PureExtern("f", (k,), I64), PureExtern("f", (k,), I64, TRACE)):
        assert as_statement(other) is other


def test_python_is_called_by_registered_functions_only():
    for text in ("packed f(k)", "B[0, 0] = 1.0f32 + trace f32 f(x32)"):
        head = HEAD.replace("k: i64", "k: i64, x32: f32")
        assert calls_python(parse_func(head + "{" + text + "}").body)
    for text in ("extern i32 f(k)", "B[0, 0] = extern f32 f(k)"):
        assert not calls_python(parsed(text).body)
