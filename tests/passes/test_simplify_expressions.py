import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.ir.expr import IntImm
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.stmt import For, Origin
from refcomp.ir.verify import verify
from refcomp.passes import simplify_expressions as module
from refcomp.passes.simplify_expressions import simplify_expressions
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def test_docstring():
    assert_docstring_holds(module, simplify_expressions)


def _lines(text, level="nested"):
    func = simplify_expressions(parse_func(text))
    verify(func, level)
    return [line.strip() for line in print_func(func).splitlines()[1:-1]]


def test_a_tail_keeps_its_guard_and_a_full_tile_loses_it():
    tile = (
        "for i in range({}) {{ for j in range(4) {{ if (i * 4 + j < n) {{ A[i * 4 + j] = i }} }} }}"
    )
    text = "func f(A: i64[n] out) {{ {} }}"
    guarded = _lines(text.format(tile.format("(n + 3) // 4")))
    assert "if (i * 4 + j < n) {" in guarded
    assert not any("if" in line for line in _lines(text.format(tile.format("n // 4"))))


def test_padding_is_decided_where_it_can_be():
    text = """
    func f(A: f32[8], B: f32[10] out) {
      for i in range(10) {
        if (1 <= i and i < 9) {
          B[i] = if_then_else(i - 1 >= 0 and i - 1 < 8, A[i - 1], 0.0f32)
        } else {
          B[i] = if_then_else(i >= 1 and i <= 8, A[i - 1], 0.0f32)
        }
      }
    }
    """
    assert [line for line in _lines(text) if "B[" in line] == ["B[i] = A[i - 1]", "B[i] = 0.0f32"]


def test_branches_that_are_decided():
    text = """
    func f(A: i64[n] out) {
      for i in range(n) {
        if (n <= i) { A[i] = 1 } else { A[i] = 2 }
        if (n < i) { A[i] = 3 }
        if (i < 5) { if (i < 7) { A[i] = 4 } } else { if (i < 5) { A[i] = 5 } }
      }
    }
    """
    lines = _lines(text)
    assert [line for line in lines if "A[" in line] == ["A[i] = 2", "A[i] = 4"]
    assert sum("if" in line for line in lines) == 1


def test_loops_of_one_iteration_become_their_body():
    text = """
    func f(A: i64[n] out, m: i64) {
      for i in range(m + m, extent=1) parallel { for j in range(i, extent=1) { A[j] = i - m } }
    }
    """
    assert _lines(text) == ["A[m * 2] = m"]


def test_a_minimum_read_from_memory_is_not_copied():
    text = """
    func f(A: i64[n] out, B: i64[n] out) {
      for i in range(A[0], extent=1) { A[0] = i + 1 B[0] = i }
    }
    """
    assert _lines(text)[0] == "for i in range(A[0], extent=1) {"


def test_empty_loops_and_false_predicates_leave_nothing():
    assert _lines("func f(A: i64[4] out) { for i in range(3 - 4) { A[i] = i } }") == []
    text = "func f(A: i64[4] out) { A@[ramp(0, 1, 4)] = broadcast(0, 4) if broadcast(1 < 0, 4) }"
    assert _lines(text, "flat") == []


def test_masks_that_are_always_true_go():
    text = """
    func f(A: i64[16] out) {
      for i in range(4) {
        A@[ramp(i * 4, 1, 4)] = broadcast(i, 4) if ramp(i * 4, 1, 4) < broadcast(16, 4)
      }
    }
    """
    assert _lines(text, "flat")[1] == "A@[ramp(i * 4, 1, 4)] = broadcast(i, 4)"


def test_lets_of_names_and_numbers_are_written_in_place():
    text = """
    func f(A: i64[n] out) {
      let t: i64 = n * 2 - n {
        let u: i64 = 3 { let v: i64 = n + u { A[u] = t + v + v } }
      }
    }
    """
    assert _lines(text) == ["let v: i64 = n + 3 {", "A[3] = v * 2 + n", "}"]


def test_allocations_follow_what_is_written_in_place():
    text = """
    func f(A: i64[n] out) {
      for i in range(2, extent=1) {
        alloc T: i64[i + 2] local { T[i] = n A[0] = T[i] }
      }
    }
    """
    assert _lines(text) == ["alloc T: i64[4] local {", "T[2] = n", "A[0] = T[2]", "}"]


def test_captures_follow_too():
    text = """
    func f(A: i64[n] out) {
      let t: i64 = 4 { let u: i64 = n {
        region f.parallel0 (A, t, u, n) task p of q { if (p < q) { A@[p] = t + u } }
      } }
    }
    """
    lines = _lines(text, "flat")
    assert lines[0] == "region f.parallel0 (A, n) task p of q {" and lines[1] == "A@[p] = n + 4"


def test_a_capture_beside_a_buffer_goes():
    text = """
    func f(A: i64[n] out, B: i64[n] out) {
      let t: i64 = 4 { region f.parallel0 (A, t, B) task p of q { A@[p] = t B@[p] = t } }
    }
    """
    assert _lines(text, "flat")[0] == "region f.parallel0 (A, B) task p of q {"


def test_data_wraps_and_indices_do_not():
    text = """
    func f(A: i64[n] out, x: i64) {
      for i in range(n) { A[i] = if_then_else(i < i + 1, if_then_else(x < x + 1, 1, 2), 3) }
    }
    """
    assert _lines(text)[1] == "A[i] = if_then_else(x < x + 1, 1, 2)"


def test_parameters_in_shapes_are_not_negative():
    text = "func f(n: i32, A: i64[i64(n)] out) { if (0i32 <= n) { A[0] = 1 } }"
    assert _lines(text) == ["A[0] = 1"]


def test_what_is_simple_comes_back_as_the_same_object():
    text = """
    func f(A: f32[n], B: f32[n] out, m: i64) {
      alloc T: f32[16] local {
        for i.outer in range((n + 3) // 4) parallel {
          for i.inner in range(4) {
            if (i.outer * 4 + i.inner < n) {
              let t: f32 = A[i.outer * 4 + i.inner] { T[i.inner] = t B[m] = T[i.inner] * 2.0f32 }
            } else { B[0] = 0.0f32 }
          }
        }
      }
    }
    """
    func = parse_func(text)
    assert simplify_expressions(func) is func
    again = simplify_expressions(parse_func(text.replace("* 4 +", "* 4 + 0 +")))
    assert print_func(again) == print_func(func)


def test_origins_are_kept():
    func = parse_func("func f(A: i64[4] out) { for i in range(2 + 2) { A[i] = i + 0 } }")
    origin = Origin("A", "i")
    func = func.with_body(with_fields(func.body, origin=origin))
    (loop,) = (item for item in walk(simplify_expressions(func).body) if isinstance(item, For))
    assert loop.origin is origin and isinstance(loop.extent, IntImm)


@pytest.mark.search
@pytest.mark.parametrize("level", ["nested", "flat", "host"])
@given(st.data())
def test_the_meaning_is_kept(level, data):
    func, symbols = data.draw(runnable_funcs(level))
    assert_meaning_is_kept(simplify_expressions, func, symbols, level)


def _after(text, level="flat"):
    func = simplify_expressions(parse_func(text))
    verify(func, level)
    return print_func(func)


def test_a_bound_loop_of_one_thread_stays():
    text = _after("""
    func f(A: i64[n] out) {
      for bx in range(1) blockIdx.x { for tx in range(64) threadIdx.x {
        if (tx < 64) { A@[bx * 64 + tx] = bx }
      } }
    }
    """)
    assert "for bx in range(1) blockIdx.x {" in text and "A@[tx] = 0" in text and "if" not in text


def test_updates_and_barriers():
    text = _after("""
    func f(A: i64[n] out) {
      for tx in range(8) threadIdx.x {
        for k in range(1) { barrier }
        atomic add A[tx * 0 + 1] with tx + 1 - 1
      }
    }
    """)
    assert "barrier" in text and "for k" not in text and "atomic add A[1] with tx" in text


def test_launches_name_what_has_become_a_value():
    text = _after(
        """
        func f(A: i64[n] out) {
          for k in range(1) { let m: i64 = n { let c: i64 = 3 + 4 {
            launch g (A, k, m, c) grid (n * 1, 1, 1) block (c, 1, 1) shared_bytes (4 * c)
          } } }
        }
        """,
        "launch",
    )
    assert "launch g (A, k, n, c) grid (n, 1, 1) block (7, 1, 1) shared_bytes (28)" in text
    assert "let k: i64 = 0 {" in text and "let c: i64 = 7 {" in text and "for" not in text


def test_a_mask_of_all_lanes_or_of_none_is_written_in_its_place():
    text = """
    func f(A: f32[8], B: f32[8] out) {
      let mask: boolx4 = ramp(0, 1, 4) < broadcast(%d, 4) {
        B@[ramp(0, 1, 4)] = A@[ramp(4, 1, 4) if mask] if mask
      }
    }
    """
    whole, none = (print_func(simplify_expressions(parse_func(text % n))) for n in (4, 0))
    assert "  B@[ramp(0, 1, 4)] = A@[ramp(4, 1, 4)]\n" in whole
    assert "B@" not in none
