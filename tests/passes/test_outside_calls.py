"""What each pass makes of calls of functions outside the loop IR."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings

import refcomp
from refcomp.driver.pipeline import passes_for
from refcomp.driver.steps import run_pass
from refcomp.foundation.registry import register_func, remove_global_func
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.verify import find_fault
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes.flatten_storage import flatten_storage
from refcomp.passes.introduce_lets import introduce_lets
from refcomp.passes.lower_bfloat16 import lower_bfloat16
from refcomp.passes.outline_parallel import outline_parallel
from refcomp.passes.remove_no_ops import remove_no_ops
from refcomp.passes.simplify_expressions import simplify_expressions
from refcomp.passes.unroll_loops import unroll_loops
from refcomp.passes.vectorize_loops import vectorize_loops
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import assert_same_values, make_arguments, runnable_funcs

HEAD = "func f(A: f32[n, 4], B: f32[n, 4] out, H: bf16[n] out, k: i64) "


def after(run, text):
    return print_func(run(parse_func(HEAD + "{" + text + "}")))


def test_addresses_become_offsets():
    text = after(flatten_storage, "extern i32 f(read(A[k, 1]), write(B))")
    assert "extern i32 f(read(A[k * 4 + 1]), write(B))" in text


def test_arguments_are_simplified():
    text = after(
        simplify_expressions, "packed f(read(A), k + 1 - 1) extern i32 f(write(B[0, 3 - 1]))"
    )
    assert "packed f(read(A), k)" in text and "extern i32 f(write(B[0, 2]))" in text
    unchanged = parse_func(HEAD + "{ packed f(read(A), k) }")
    assert simplify_expressions(unchanged) is unchanged


def test_calls_stay_and_what_they_read_stays():
    text = "alloc T: f32[4] { alloc U: f32[4] { T[0] = 1.0f32 U[0] = 1.0f32 packed f(read(T)) } }"
    cleared = after(remove_no_ops, text)
    assert "T[0]" in cleared and "packed f(read(T))" in cleared and "U" not in cleared


def test_loops_of_calls_stay_serial_where_they_were_to_be_vectors():
    text = "for i in range(4) vectorized { packed f(i) }"
    assert "for i in range(4) {" in after(vectorize_loops, text)
    pure = "for i in range(4) vectorized { B@[i] = extern f32 g(A@[i]) }"
    assert "for i in range(4) {" in after(vectorize_loops, pure)
    same = "for i in range(4) vectorized { B@[i] = extern f32 g(A@[0]) * 2.0f32 }"
    assert "broadcast(extern f32 g(A@[0])" in after(vectorize_loops, same)


def test_unrolled_copies_have_buffers_of_their_own():
    text = "for i in range(2) unrolled { alloc T: f32[4] { packed f(update(T), i) } }"
    unrolled = parse_func(HEAD + "{" + text + "}")
    result = unroll_loops(unrolled)
    assert find_fault(result, "flat") is None
    printed = print_func(result)
    assert "packed f(update(T), 0)" in printed and "packed f(update(T), 1)" in printed


def test_a_region_captures_the_buffer_and_its_shape():
    text = after(outline_parallel, "for i in range(4) parallel { extern i32 f(read(A), i) }")
    assert "region f.parallel0 (n, A)" in text or "region f.parallel0 (A, n)" in text
    assert (
        "n" in after(remove_no_ops, text[text.index("region") : text.rindex("}")]).split("task")[0]
    )


def test_bfloat16_is_seen_as_ever():
    text = after(lower_bfloat16, "packed f(update(H), 1.5bf16)")
    assert "packed f(update(H as bf16), 1.5f32)" in text


def test_addresses_are_not_named_but_their_offsets_are():
    text = "extern i32 f(read(A[k * 7]), write(B[k * 7])) extern i32 f(read(A[k * 7]))"
    shared = after(introduce_lets, text)
    assert shared.count("k * 7") == 1 and "read(A[t])" in shared


@pytest.fixture
def functions():
    def sums(a, b, factor):
        b[...] = np.sum(a) * factor

    def halves(h):
        assert h.numpy().dtype == ml_dtypes.bfloat16
        h[...] = h.numpy().astype(np.float32) / 2

    register_func("tests.sums", sums)
    register_func("tests.halves", halves)
    yield
    remove_global_func("tests.sums")
    remove_global_func("tests.halves")


def test_the_meaning_is_kept_through_all_passes(functions):
    text = """
    for i in range(n) parallel {
      alloc T: f32[n, 4] {
        for j in range(4) vectorized {
          for l in range(n) { T[l, j] = A[l, j] + f32(i) }
        }
        if (i == k - 1 + 1) { packed tests.sums(read(T), write(B), f32(i) * 2.0f32) }
      }
    }
    for j in range(2) unrolled {
      packed tests.halves(update(H))
      extern i32 memcpy(write(B[j, 1 + j]), read(A[j, 0]), 4)
    }
    B[2, 3] = extern f32 hypotf(A[0, 3], extern f32 fabsf(-4.0f32))
    """
    func, wanted = parse_func(HEAD + "{" + text + "}"), None
    for step in (None, *passes_for("llvm")):
        func = func if step is None else run_pass(step, func)
        a = np.arange(12, dtype=np.float32).reshape(3, 4)
        b = np.zeros_like(a)
        h = np.array([1, 2, 3], ml_dtypes.bfloat16)
        interpret(func, [a, b, h if step is None else h.view(_memory_of(func)), 1])
        wanted = (b, h) if wanted is None else wanted
        assert (b == wanted[0]).all() and (h == wanted[1]).all(), print_func(func)
    assert b[1, 1] == 156 and b[0, 1] == 0 and b[1, 2] == 4 and b[2, 3] == 5 and h[2] == 0.75


def _memory_of(func):
    return ml_dtypes.bfloat16 if func.buffers[2].dtype.kind == "bfloat" else np.uint16


@pytest.mark.search
@settings(max_examples=80, deadline=None)
@given(runnable_funcs("nested", rare=True))
def test_random_functions_keep_their_meaning_through_all_passes(drawn):
    func, symbols = drawn
    before = func
    for step in passes_for("llvm"):
        after = run_pass(step, before)
        if after is not before:
            _assert_same(func, after, symbols, step.name)
        before = after


@pytest.mark.search
@pytest.mark.parametrize("function", [remove_no_ops, simplify_expressions, unroll_loops])
def test_each_pass_sees_into_all_statements(function):
    @settings(max_examples=40, deadline=None)
    @given(runnable_funcs("flat", rare=True))
    def check(drawn):
        assert_meaning_is_kept(function, *drawn, "flat")

    check()


def test_stores_within_a_pragma_go_with_what_they_fill():
    text = "alloc T: f32[4] { pragma unroll_explicit 1i32 { T[0] = 1.0f32 } } B[0, 0] = 1.0f32"
    cleared = after(remove_no_ops, text)
    assert "T" not in cleared and "pragma" not in cleared


@pytest.mark.llvm
@settings(max_examples=30, deadline=None)
@given(runnable_funcs("nested", rare=True))
def test_random_functions_as_machine_code(drawn):
    func, symbols = drawn
    wanted, got = make_arguments(func, symbols), make_arguments(func, symbols)
    interpret(func, wanted)
    refcomp.build(func)(*got)
    assert_same_values(wanted, got, print_func(func))


def _assert_same(func, after, symbols, where):
    wanted, got = make_arguments(func, symbols), make_arguments(func, symbols)
    interpret(func, wanted)
    pairs = zip(got, after.params, strict=True)
    interpret(after, [_as_stored(argument, param) for argument, param in pairs])
    message = f"after {where}\n{print_func(func)}\nbecame\n{print_func(after)}"
    assert_same_values(wanted, got, message)


def _as_stored(argument, param):
    """bf16 as the bits that late passes see it as."""
    is_bits = argument.dtype == ml_dtypes.bfloat16 and param.dtype.kind == "uint"
    return argument.view(np.uint16) if is_bits else argument
