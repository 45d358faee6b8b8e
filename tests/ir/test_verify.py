"""The rules of the levels: random functions keep them, and each rule can be broken."""

from dataclasses import fields

import pytest
from hypothesis import given

from refcomp.foundation.dtype import F32, I64
from refcomp.foundation.errors import CompilerBug, UserError
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.expr import Add, FloatImm, IntImm, Let, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import CHILD_FIELDS, child_fields
from refcomp.ir.parser import parse_func
from refcomp.ir.stmt import (
    Allocate,
    Block,
    BufferStore,
    For,
    LaunchKernel,
    ParallelRegion,
    Stmt,
)
from refcomp.ir.verify import Level, find_fault, verify
from tests.strategies.funcs import runnable_funcs

HEAD = "func f(A: f32[n, 4], B: f32[n] out) "


def fault(text: str, level: str) -> str:
    found = find_fault(parse_func(HEAD + "{" + text + "}"), level)
    return "" if found is None else found.what


@pytest.mark.search
@given(runnable_funcs("nested", exact=False))
def test_random_nested_functions_are_legal(drawn):
    verify(drawn[0], "nested")


@pytest.mark.search
@given(runnable_funcs("flat", exact=False))
def test_random_flat_functions_are_legal(drawn):
    verify(drawn[0], "flat")


@pytest.mark.search
@given(runnable_funcs("host", exact=False))
def test_random_host_functions_are_legal(drawn):
    verify(drawn[0], "host")


@pytest.mark.parametrize(
    ("text", "nested", "flat", "host"),
    [
        ("B[0] = A[0, 1]", "", "BufferStore is not allowed", "BufferStore is not allowed"),
        ("B@[0] = 1f32", "Store is not allowed", "", ""),
        ("B@[0] = A@[0]", "Store is not allowed", "", ""),
        ("B[0] = A@[0]", "Load is not allowed", "BufferStore is", "BufferStore is"),
        ("B@[0] = A[0, 1]", "Store is", "BufferLoad is not allowed", "BufferLoad is not allowed"),
        ("for i in range(n) parallel { }", "", "", "a loop that is parallel is not allowed"),
        ("for i in range(4) unrolled { }", "", "", "a loop that is unrolled is not allowed"),
        ("region r (B) task t of p { }", "ParallelRegion is not allowed", "", ""),
        (
            "region r () task t of p { region s () task u of q { } }",
            "ParallelRegion is",
            "a ParallelRegion lies in another",
            "a ParallelRegion lies in another",
        ),
        ("let v: i64x4 = ramp(0, 1, 4) { }", "Ramp is not allowed", "", ""),
        ("let h: bf16 = 1bf16 { }", "", "", "FloatImm has dtype bf16"),
        ("alloc T: bf16[4] { }", "", "", "T holds bf16"),
        ("alloc T: f32[n] local { }", "", "T is local, but its shape", "T is local, but its"),
        ("alloc T: f32[n] { }", "", "", ""),
    ],
)
def test_what_is_legal_where(text, nested, flat, host):
    for level, expected in zip(list(Level)[:3], (nested, flat, host), strict=True):
        assert fault(text, level).startswith(expected)
        assert bool(fault(text, level)) == bool(expected)


def test_only_outputs_and_allocations_are_written():
    assert fault("A@[0] = 1f32", "flat") == "A is written, but is not an output"
    assert fault("alloc T: f32[4] { T@[0] = 1f32 }", "flat") == ""


def test_a_region_uses_its_captures_only():
    text = "region r ({}) task t of p {{ B@[t] = f32(n) }}"
    assert fault(text.format("B, n"), "flat") == ""
    assert fault(text.format("B"), "flat") == "the variable n is not bound here"
    assert fault(text.format("n"), "flat") == "the buffer B is not bound here"
    alloc = "let k: i64 = n { region r () task t of p { alloc T: f32[k] { } } }"
    assert fault(alloc, "flat") == "the variable k is not bound here"
    # What was checked outside is checked again inside.
    shared = "let k: i64 = n {{ B@[k] = 1f32 region r ({}) task t of p {{ B@[k] = 1f32 }} }}"
    assert fault(shared.format("B, k"), "flat") == ""
    assert fault(shared.format("B"), "flat") == "the variable k is not bound here"


N, X = Var("n", I64), Var("x", I64)
A, B = Buffer("A", F32, (N,)), Buffer("B", F32, (N,))
ZERO = IntImm(0, I64)


def func(body: Stmt) -> PrimFunc:
    return PrimFunc("f", (A, B), body, ("B",))


def store(index: object) -> Stmt:
    return BufferStore(B, (index,), BufferLoad(A, (ZERO,)))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (store(X), "the variable x is not bound here"),
        (Block((For(X, ZERO, N, "serial", store(X)), store(X))), "the variable x is not bound"),
        (For(X, ZERO, X, "serial", store(X)), "the variable x is not bound here"),
        (store(Let(X, X, X)), "the variable x is not bound here"),
        (For(N, ZERO, N, "serial", store(N)), "n is bound twice on one path"),
        (For(X, ZERO, N, "serial", store(Let(X, N, X))), "x is bound twice on one path"),
        (Allocate(A, store(ZERO)), "A is bound twice on one path"),
        (BufferStore(Buffer("B", F32, ()), (), FloatImm(0.0, F32)), "the buffer B is not bound"),
        (store(Add(N, IntImm(0, F32))), "the operands of Add have dtypes i64 and f32"),
        (
            ParallelRegion("r", (X,), Var("t", I64), Var("p", I64), Block(())),
            "ParallelRegion is not allowed",
        ),
    ],
    ids=str,
)
def test_names_are_bound_before_use_and_once_on_each_path(body, what):
    found = find_fault(func(body), "nested")
    assert found is not None and found.what.startswith(what)


def test_a_capture_must_be_bound():
    region = ParallelRegion("r", (X,), Var("t", I64), Var("p", I64), Block(()))
    assert find_fault(func(region), "host").what == "x is captured, but not bound here"


def test_one_variable_may_be_bound_in_loops_side_by_side():
    loop = For(X, ZERO, N, "serial", store(X))
    assert find_fault(func(Block((loop, loop))), "nested") is None


def test_a_shared_subtree_is_checked_in_each_scope():
    shared = Add(X, X)
    body = Block((For(X, ZERO, N, "serial", store(shared)), store(shared)))
    assert find_fault(func(body), "nested").what == "the variable x is not bound here"


def test_the_error_holds_the_function_and_marks_the_line():
    with pytest.raises(CompilerBug) as caught:
        verify(func(Block((store(ZERO), store(X)))), "nested")
    assert caught.value.what == (
        "the loop IR of f is not legal at level nested: the variable x is not bound here"
    )
    assert caught.value.where.splitlines() == [
        "line 3 of",
        "  func f(A: f32[n], B: f32[n] out) {",
        "    B[0] = A[0]",
        ">   B[x] = A[0]",
        "  }",
    ]
    assert "please report" in caught.value.remedy


def test_a_fault_in_the_header_has_no_statement():
    broken = PrimFunc("f", (A,), Block(()), ("C",))
    assert find_fault(broken, "nested").stmt is None
    with pytest.raises(CompilerBug, match="the output C is not a parameter"):
        verify(broken, "nested")


def test_a_level_must_be_known():
    with pytest.raises(UserError, match="'deep' is not a level") as caught:
        find_fault(func(Block(())), "deep")
    assert caught.value.remedy.startswith("did you mean device? use one of nested, ")


@pytest.mark.search
def test_deep_and_shared_trees_are_checked_without_recursion():
    deep, shared = N, N
    for _ in range(20_000):
        deep = Add(deep, N)
    for _ in range(200):
        shared = Add(shared, shared)
    assert find_fault(func(Block((store(deep), store(shared)))), "nested") is None


@pytest.mark.parametrize(
    ("text", "level", "what"),
    [
        ("for b in range(4) blockIdx.x { B@[b] = 0f32 }", "flat", ""),
        (
            "for b in range(4) blockIdx.x { B@[b] = 0f32 }",
            "host",
            "that is blockIdx.x is not allow",
        ),
        (
            "for b in range(4) blockIdx.x { B@[b] = 0f32 }",
            "device",
            "a kernel has no symbols, but n",
        ),
        ("for b in range(4) { barrier }", "flat", "a Barrier lies outside a kernel"),
        ("barrier", "host", "Barrier is not allowed"),
        ("B@[0] = subgroup_reduce_add(B@[0], 8i32)", "flat", "subgroup_reduce_add is not allowed"),
        ("atomic add B[0] with 1f32", "nested", ""),
        ("atomic add B[0] with 1f32", "flat", ""),
        ("atomic add B[0] with 1f32", "host", "AtomicUpdate is not allowed"),
        ("atomic add A[0, 1] with 1f32", "nested", "A is written, but is not an output"),
        ("alloc T: i32[2, 2] { atomic and T[0, 1] with 1i32 }", "nested", ""),
        ("alloc T: i32[2, 2] { atomic and T[0] with 1i32 }", "nested", "1 indices, where 2 belong"),
        (
            "alloc T: i32[2, 2] { atomic and T[0, 1] with 1i32 }",
            "flat",
            "2 indices, where 1 belong",
        ),
        ("launch k (A, B, n) grid (n, 1, 1) block (64, 1, 1)", "launch", ""),
        ("launch k (A, B, n) grid (n, 1, 1) block (64, 1, 1)", "host", "LaunchKernel is not allow"),
        ("alloc T: f32[n] { launch k (T) grid (n, 1, 1) block (1, 1, 1) }", "launch", ""),
        ("alloc T: f32[4] local { }", "launch", "T is local, not global"),
        ("for i in range(n) parallel { }", "launch", "a loop that is parallel is not allowed"),
        ("B@[0] = 0f32", "launch", "Store is not allowed"),
        ("pragma unroll 4 { B@[0] = 0f32 }", "flat", ""),
        ("pragma unroll 4 { B@[0] = 0f32 }", "host", "Pragma is not allowed"),
        ("prefetch A[0, 1]", "nested", ""),
        ("prefetch A[0]", "nested", "a prefetch of A has 1 indices, where 2 belong"),
        ("prefetch A[5]", "host", ""),
        ("prefetch A[5]", "launch", "Prefetch is not allowed"),
        ("for v in range(2) vthread { B@[v] = 0f32 }", "flat", ""),
        ("for v in range(2) unrollable { B@[v] = 0f32 }", "host", ""),
        ("for v in range(2) vthread { B@[v] = 0f32 }", "host", "a loop that is vthread is not all"),
    ],
)
def test_what_programs_for_devices_may_hold(text, level, what):
    assert what in fault(text, level)
    assert bool(fault(text, level)) == bool(what)


def test_a_launch_takes_what_is_bound():
    other, one = Buffer("T", F32, (IntImm(4, I64),)), IntImm(1, I64)
    launch = LaunchKernel("k", (other,), (one,) * 3, (one,) * 3)
    found = find_fault(PrimFunc("f", (), launch), "launch")
    assert found is not None
    assert found.what == "T is an argument, but not bound here"


def test_a_kernel_with_parameters_for_all_it_uses_is_legal():
    text = """
    func k(A: f32[n], B: f32[n] out, n: i64) {
      for b in range(n) blockIdx.x { for t in range(64) threadIdx.x {
        alloc T: f32[n] shared { T@[t] = A@[t] barrier B@[t] = T@[t] }
      } }
    }"""
    assert find_fault(parse_func(text), "device") is None
    broken = find_fault(
        parse_func(text.replace("alloc", "alloc U: bf16[n] shared { } alloc")), "device"
    )
    assert broken is not None
    assert broken.what == "U holds bf16"


def test_expressions_come_before_statements_in_each_statement():
    # The verifier takes the last visited statement for the one around an expression.
    classes = [cls for cls in CHILD_FIELDS if issubclass(cls, Stmt)]
    assert For in classes
    for cls in classes:
        names = child_fields(cls)
        if cls.binds:
            names = sorted(names, key=lambda name, cls=cls: name in cls.binds_in)
        annotations = {field.name: field.type for field in fields(cls)}
        kinds = ["Stmt" in annotations[name] for name in names]
        assert kinds == sorted(kinds)
