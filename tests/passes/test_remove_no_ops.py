import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Block
from refcomp.ir.verify import verify
from refcomp.passes import remove_no_ops as module
from refcomp.passes.remove_no_ops import remove_no_ops
from refcomp.passes.simplify_expressions import simplify_expressions
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def test_docstring():
    assert_docstring_holds(module, remove_no_ops)


def _lines(text, level="nested"):
    func = remove_no_ops(parse_func(text))
    verify(func, level)
    return [line.strip() for line in print_func(func).splitlines()[1:-1]]


def test_all_that_is_left_of_nothing_is_an_empty_block():
    func = remove_no_ops(
        parse_func(
            """
            func f(A: i64[n] out) {
              for i in range(n) { if (i < 4) { for j in range(0) { A[j] = 1 } } else { } }
              alloc T: i64[4] { let t: i64 = n { T[0] = t } }
            }
            """
        )
    )
    assert isinstance(func.body, Block) and func.body.stmts == ()


def test_allocations_that_feed_each_other_go_together():
    text = """
    func f(A: i64[4] out) {
      alloc T: i64[4] {
        alloc U: i64[4] {
          for i in range(4) { T[i] = U[i] U[i] = T[i] + 1 A[i] = i }
        }
      }
    }
    """
    assert _lines(text) == ["for i in range(4) {", "A[i] = i", "}"]


def test_allocations_that_feed_an_output_or_a_condition_stay():
    text = """
    func f(A: i64[4] out) {
      alloc T: i64[4] {
        alloc U: i64[4] { U[0] = 1 T[0] = U[0] A[0] = T[0] }
      }
      alloc C: i64[1] { C[0] = 4 if (C[0] < 5) { A[1] = 2 } }
    }
    """
    assert sum("alloc" in line for line in _lines(text)) == 3


def test_a_let_that_goes_takes_what_only_it_read():
    text = """
    func f(A: i64[4] out) {
      alloc T: i64[1] { T[0] = 3 let t: i64 = T[0] { let u: i64 = t + 1 { A[0] = 1 } } }
    }
    """
    assert _lines(text) == ["A[0] = 1"]


def test_a_let_used_by_a_shape_or_an_index_stays():
    text = """
    func f(A: i64[4] out, n: i64) {
      let t: i64 = n * 2 { alloc T: i64[t] { T[0] = 1 A[0] = T[0] } }
      let u: i64 = n * 2 { A[u] = 1 }
    }
    """
    assert sum("let" in line for line in _lines(text)) == 2


def test_an_empty_branch_turns_the_condition_round():
    text = "func f(A: i64[4] out, x: f32) {{ if ({}) {{ }} else {{ A[0] = 1 }} }}"
    assert _lines(text.format("x < 1.0f32"))[0] == "if (not x < 1.0f32) {"
    assert _lines(text.format("x == 1.0f32"))[0] == "if (x != 1.0f32) {"


def test_an_empty_else_goes():
    text = (
        "func f(A: i64[4] out, n: i64) { if (n < 4) { A[0] = 1 } else { for i in range(n) { } } }"
    )
    assert _lines(text) == ["if (n < 4) {", "A[0] = 1", "}"]


def test_regions_capture_what_is_left():
    text = """
    func f(A: i64[4] out, n: i64, m: i64) {
      alloc T: i64[4] {
        region f.parallel0 (A, T, n, m) task p of q { T@[p] = m A@[p] = n }
        region f.parallel1 (T, m) task p1 of q1 { T@[p1] = m }
      }
    }
    """
    assert _lines(text, "flat") == ["region f.parallel0 (A, n) task p of q {", "A@[p] = n", "}"]


def test_what_does_something_comes_back_as_the_same_object():
    text = """
    func f(A: i64[n] out, m: i64) {
      alloc T: i64[4] local {
        for i in range(n) { let t: i64 = i * m { T[0] = t A[i] = T[0] } A[i] = 2 }
        if (m < 3) { A[0] = 1 } else { A[1] = 2 }
      }
    }
    """
    func = parse_func(text)
    assert remove_no_ops(func) is func


@pytest.mark.search
@pytest.mark.parametrize("level", ["nested", "flat", "host"])
@given(st.data())
def test_the_meaning_is_kept(level, data):
    func, symbols = data.draw(runnable_funcs(level))
    assert_meaning_is_kept(remove_no_ops, func, symbols, level)
    after = remove_no_ops(simplify_expressions(func))
    assert_meaning_is_kept(lambda _: after, func, symbols, level)
    inner = [item for item in walk(after.body) if item is not after.body]
    assert not any(isinstance(item, Block) and len(item.stmts) < 2 for item in inner)


def test_what_a_gpu_does_stays():
    text = """
    func f(A: i64[8], B: i64[8] out) {
      for tx in range(8) threadIdx.x {
        alloc S: i64[8] shared { alloc U: i64[8] shared { alloc V: i64[8] shared {
          barrier
          atomic add S[0] with A@[tx]
          atomic add V[0] with U@[tx]
          for i in range(3) { barrier }
          B@[tx] = S@[0]
        } } }
      }
    }
    """
    func = remove_no_ops(parse_func(text))
    verify(func, "flat")
    after = print_func(func)
    assert after.count("barrier") == 2 and "atomic add S[0]" in after
    assert "alloc U" not in after and "V" not in after  # nobody reads V, nor so U


def test_a_launch_uses_its_arguments():
    func = parse_func("""
    func f(A: i64[n] out) {
      alloc T: i64[n] { let m: i64 = n * 2 { launch g (A, T, m) grid (n, 1, 1) block (1, 1, 1) } }
    }
    """)
    assert remove_no_ops(func) is func
    verify(func, "launch")


def test_a_prefetch_of_what_nobody_reads_goes_with_it():
    func = parse_func(
        "func f(A: f32[4] out) { alloc T: f32[4] { prefetch T[0] T[1] = 1f32 } A[0] = 1f32 }"
    )
    text = print_func(remove_no_ops(func))
    assert "T" not in text
    assert "A[0] = 1.0f32" in text


def test_expressions_are_looked_at_only_where_a_let_or_an_allocation_may_go(monkeypatch):
    visited = []
    monkeypatch.setattr(module, "buffers_in", lambda expr: visited.append(expr) or ())
    monkeypatch.setattr(module, "variables_in", lambda expr: visited.append(expr) or ())
    plain = "for i in range(n) { A[i] = B[i] + 1.0f32 }"
    header = "func f(B: f32[n], A: f32[n] out)"
    assert _lines(f"{header} {{ {plain} }}") and not visited
    remove_no_ops(parse_func(f"{header} {{ alloc T: f32[4] local {{ {plain} }} }}"))
    assert visited
