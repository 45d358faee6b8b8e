import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import F32, I64
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.expr import Add, IfThenElseExpr, IntImm, Mul, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import with_fields
from refcomp.ir.stmt import Block, For, LetStmt, Origin, Store
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import introduce_lets as module
from refcomp.passes.analysis.sharing import MAX_LETS
from refcomp.passes.introduce_lets import introduce_lets
from tests.passes.docstring_examples import assert_docstring_holds
from tests.strategies.funcs import assert_same_values, make_arguments, runnable_funcs


def _lines(text):
    func = introduce_lets(parse_func(text))
    verify(func, "flat")
    return [line.strip() for line in print_func(func).splitlines()]


def test_docstring():
    assert_docstring_holds(module, introduce_lets)


@pytest.mark.search
@given(st.data(), st.sampled_from(["flat", "host"]))
def test_results_stay(data, level):
    func, symbols = data.draw(runnable_funcs(level))
    changed = introduce_lets(func)
    verify(changed, level)
    before = make_arguments(func, symbols)
    after = copy.deepcopy(before)
    interpret(func, before)
    interpret(changed, after)
    assert_same_values(before, after)


def test_a_read_stays_behind_the_write_before_it():
    lines = _lines("""
    func f(A: i64[4] out) {
      A@[0] = A@[1] + A@[1]
      A@[1] = A@[1] + A@[1]
      A@[2] = A@[1] + A@[1]
    }
    """)
    assert lines.count("let t: i64 = A@[1] {") == 3


def test_a_read_in_a_loop_is_not_moved_out_of_it():
    lines = _lines("""
    func f(A: i64[4] out) {
      for i in range(3) { A@[0] = A@[0] * A@[0] + 2 }
    }
    """)
    assert lines[1:3] == ["for i in range(3) {", "let t: i64 = A@[0] {"]


def test_a_branch_that_may_not_be_evaluated_keeps_its_reads():
    lines = _lines("""
    func f(A: f32[n], B: f32[n] out, k: i64) {
      B@[k] = if_then_else(k < n, A@[k] * A@[k], if_then_else(k > 1, A@[k] + 1.0f32, 2.0f32))
    }
    """)
    text = " ".join(lines)
    assert "if_then_else(k < n, (let t: f32 = A@[k] in t * t), if_then_else" in text
    assert "A@[k] + 1.0f32" in text


def test_what_is_evaluated_anyway_is_shared_with_branches():
    lines = _lines("""
    func f(A: f32[n], B: f32[n] out, k: i64) {
      B@[k] = A@[k] + if_then_else(k < 2, A@[k], 0.0f32)
    }
    """)
    assert "let t: f32 = A@[k] {" in lines
    assert "B@[k] = t + if_then_else(k < 2, t, 0.0f32)" in lines


def test_arithmetic_is_shared_by_statements_and_by_branches():
    lines = _lines("""
    func f(A: f32[n], B: f32[n] out, k: i64) {
      if (k * 8 + 1 < n) { B@[k * 8 + 1] = 0.0f32 } else { B@[k * 8] = A@[0] }
      B@[k * 8 + 2] = A@[k * 8 + 2]
    }
    """)
    assert "let t: i64 = k * 8 {" in lines
    assert "let t_1: i64 = t + 1 {" in lines
    assert "B@[t] = A@[0]" in lines


def test_ramps_stay_in_their_accesses():
    lines = _lines("""
    func f(A: f32[64], B: f32[64] out, k: i64) {
      B@[ramp(k * 4 + 1, 1, 4)] = A@[ramp(k * 4 + 1, 1, 4)]
    }
    """)
    assert "let t: i64 = k * 4 + 1 {" in lines
    assert "B@[ramp(t, 1, 4)] = A@[ramp(t, 1, 4)]" in lines


def test_constants_variables_and_what_occurs_once_stay():
    func = parse_func("func f(A: i64[n] out) { for i in range(n) { A@[i] = i + 7 * (n - 7) } }")
    assert introduce_lets(func) is func


def test_a_region_shares_nothing_with_its_surroundings():
    lines = _lines("""
    func f(A: i64[n] out, k: i64) {
      A@[k * 2] = k * 2
      region f.r (A, k) task t of p { A@[k * 2 + t] = k * 2 + t  A@[k * 2 + p] = 5 }
    }
    """)
    region = lines.index("region f.r (A, k) task t of p {")
    assert any(line.endswith("= k * 2 {") for line in lines[:region])
    assert any(line.endswith("= k * 2 {") for line in lines[region:])


def test_a_name_from_outside_is_not_used_in_a_region():
    text = """
    func f(A: i64[n] out, k: i64) {
      A@[k * 2] = k * 2
      region f.r (A, k) task t of p { if (t == 0) { A@[k * 2 + 1] = 5 } }
      A@[k * 2] = 0
    }
    """
    func = introduce_lets(parse_func(text))
    verify(func, "host")
    assert "A@[k * 2 + 1] = 5" in print_func(func)


def test_a_variable_that_two_loops_bind_is_not_shared_between_them():
    i, buffer = Var("i", I64), Buffer("A", I64, (IntImm(8, I64),))
    store = Store(buffer, Mul(i, IntImm(2, I64)), Mul(i, IntImm(2, I64)))
    loops = [For(i, IntImm(0, I64), IntImm(4, I64), "serial", store) for _ in range(2)]
    func = introduce_lets(PrimFunc("f", (buffer,), Block(tuple(loops)), ("A",)))
    verify(func, "host")
    a = np.zeros(8, np.int64)
    interpret(func, [a])
    assert a.tolist() == [0, 0, 2, 0, 4, 0, 6, 0]


def test_shared_subtrees_do_not_explode():
    buffer = Buffer("A", F32, (IntImm(1, I64),))
    value = Load(buffer, IntImm(0, I64))
    for _ in range(60):
        value = Add(value, value)
    func = introduce_lets(PrimFunc("f", (buffer,), Store(buffer, IntImm(0, I64), value), ("A",)))
    assert print_func(func).count("let ") == 60


def test_subtrees_shared_by_branches_do_not_explode():
    buffer = Buffer("A", F32, (IntImm(1, I64),))
    value = Load(buffer, IntImm(0, I64))
    c = Var("c", I64)
    for k in range(40):
        value = IfThenElseExpr(c < k, Add(value, value), value)
    func = PrimFunc("f", (buffer, c), Store(buffer, IntImm(0, I64), value), ("A",))
    changed = introduce_lets(func)
    assert len(print_func(changed)) < 20_000
    for chosen in (-1, 20, 38, 50):
        before, after = np.full(1, 3.0, np.float32), np.full(1, 3.0, np.float32)
        interpret(func, [before, chosen])
        interpret(changed, [after, chosen])
        assert before == after


def test_chains_of_lets_are_bounded():
    stores = [f"A@[k * {3 + j}] = k * {3 + j}" for j in range(3 * MAX_LETS)]
    stores += [f"A@[k * {3 + j} + 1] = 1" for j in range(3 * MAX_LETS)]
    func = parse_func(f"func f(A: i64[n] out, k: i64) {{ {' '.join(stores)} }}")
    chain, stmt = 0, introduce_lets(func).body
    while isinstance(stmt, LetStmt):
        chain, stmt = chain + 1, stmt.body
    assert chain == MAX_LETS


@pytest.mark.parametrize("level", ["flat"])
def test_lets_carry_the_origin_of_their_statement(level):
    func = parse_func("func f(A: i64[4] out, k: i64) { A@[k * 2] = k * 2 }")
    origin = Origin("A", "i")
    func = func.with_body(with_fields(func.body, origin=origin))
    verify(func, level)
    let = introduce_lets(func).body
    assert isinstance(let, LetStmt) and let.origin is origin and let.body.origin is origin


def test_kernels_keep_their_form():
    func = parse_func("""
    func f(A: i64[n] out, n_1: i64) {
      for y in range((n_1 + 3) // 4) blockIdx.y { for x in range((n_1 + 3) // 4 * 2) blockIdx.x {
        for t in range((n_1 + 3) // 4) threadIdx.x {
          if (x * 4 + t < (n_1 + 3) // 4) { A@[x * 4 + t] = A@[x * 4 + t] + (n_1 + 3) // 4 }
          barrier
          A@[x * 4 + t + 1] = y * x
        }
      } }
    }
    """)
    verify(func, "flat")
    after = introduce_lets(func)
    verify(after, "flat")  # the bound loops are still directly nested
    lines = [line.strip() for line in print_func(after).splitlines()]
    assert lines[3] == "for t in range((n_1 + 3) // 4) threadIdx.x {"
    assert lines[4].startswith("let t_1: i64 = ") and "let" in lines[5]


def test_no_read_moves_past_a_barrier():
    func = parse_func("""
    func f(A: i64[8] out) {
      for t in range(8) threadIdx.x { alloc S: i64[8] shared {
        S@[t] = t
        barrier
        A@[t] = S@[7 - t] * S@[7 - t]
        barrier
        S@[t] = S@[t] + t
        atomic add A[t * t] with S@[t] * S@[t]
      } }
    }
    """)
    lines = [line.strip() for line in print_func(introduce_lets(func)).splitlines()]
    first, second = [k for k, line in enumerate(lines) if line == "barrier"]
    loads = [k for k, line in enumerate(lines) if line.startswith("let") and "S@" in line]
    assert len(loads) == 2 and first < loads[0] < second < loads[1]
