import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refcomp
from refcomp.driver.pipeline import passes_for
from refcomp.driver.steps import run_pass
from refcomp.ir.expr import IfThenElseExpr
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.stmt import Allocate, For, IfThenElse, LetStmt, Origin, Store
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import partition_loops as module
from refcomp.passes.partition_loops import MAX_COPIES, MAX_NODES, partition_loops
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def test_docstring():
    assert_docstring_holds(module, partition_loops)


def _parted(text):
    """The function after the pass, and its text without the first and the last line."""
    func = partition_loops(parse_func(text))
    verify(func, "nested")
    again = partition_loops(func)
    assert print_func(again) == print_func(func), "what was divided is divided again"
    return func, "\n".join(print_func(func).splitlines()[1:-1])


def _count(node, *classes):
    return sum(isinstance(item, classes) for item in walk(node))


def _main_loop(func):
    """The first loop of the function, outermost."""
    return next(item for item in walk(func.body) if isinstance(item, For))


TILED = """
func f(A: f32[n, m], B: f32[n, m] out) {
  for io in range((n + 7) // 8) %s {
    for jo in range((m + 31) // 32) {
      for i in range(8) unrolled {
        if (io * 8 + i < n) {
          for j in range(32) vectorized {
            if (jo * 32 + j < m) { B[io * 8 + i, jo * 32 + j] = A[io * 8 + i, jo * 32 + j] }
          }
        }
      }
    }
  }
}
"""


def test_the_nest_of_a_whole_tile_has_no_guard():
    func, text = _parted(TILED % "")
    whole_rows, other_rows = func.body.stmts
    whole, rest = whole_rows.body.stmts
    assert [_count(part, IfThenElse) for part in (whole, rest)] == [0, 1]
    assert _count(other_rows, IfThenElse) == 1 + 2
    assert "for io in range(n // 8) {\n    for jo in range(m // 32) {" in text


def test_of_a_parallel_loop_a_branch_chooses_and_its_iterations_stay_one_loop():
    func, text = _parted(TILED % "parallel")
    assert func.body.kind == "parallel"
    branch = func.body.body
    assert "if (io < n // 8) {" in text
    assert _count(branch.then_case, IfThenElse) == 1
    assert _count(branch.then_case.stmts[0], IfThenElse) == 0


def test_a_rest_of_one_iteration_of_a_parallel_loop_has_a_constant_index():
    text = (TILED % "parallel").replace("n, m", "9, 64").replace("+ 7", "+ 7")
    text = text.replace("(n + 7) // 8", "2").replace("(m + 31) // 32", "2")
    _, text = _parted(text.replace("< n", "< 9").replace("< m", "< 64"))
    assert "if (1 * 8 + i < 9) {" in text


@pytest.mark.parametrize(
    ("loop", "guard", "expected"),
    [
        ("i in range(n)", "i < m", "i in range(min(n, m))"),
        ("i in range(n)", "i <= 4 and i < m", "i in range(min(min(n, 5), m))"),
        ("i in range(10)", "i * 3 < 20", "i in range(7)"),
        ("i in range(10)", "i >= 2", "i in range(2, extent=8)"),
        ("i in range(10)", "2 <= i and i < 7", "i in range(2, extent=5)"),
        ("i in range(2, extent=4)", "i < 5 and 1 < 6 - i * 1", "i in range(2, extent=3)"),
        ("i in range(12)", "k * 12 + i < m", "i in range(max(min(m - k * 12, 12), 0))"),
    ],
)
def test_a_loop_that_is_only_guarded_becomes_shorter(loop, guard, expected):
    _, text = _parted(
        f"""
        func f(A: i64[n, m] out) {{
          for k in range(3) {{ for {loop} {{ if ({guard}) {{ A[i, k] = i }} }} }}
        }}
        """
    )
    assert f"for {expected} {{" in text
    assert "if" not in text


def test_both_ends_are_divided_off():
    func, _ = _parted(
        """
        func f(A: f32[8, 8], B: f32[10, 10] out) {
          for h in range(10) {
            for w in range(10) {
              B[h, w] = if_then_else(1 <= h and h < 9 and 1 <= w and w < 9, A[h - 1, w - 1], 0f32)
            }
          }
        }
        """
    )
    before, main, behind = func.body.stmts
    assert [_count(part, IfThenElseExpr) for part in main.body.stmts] == [1, 0, 1]
    assert _count(before, IfThenElseExpr) > 0
    assert _count(behind, IfThenElseExpr) > 0
    bounds = [(part.minimum.value, part.extent.value) for part in func.body.stmts]
    assert bounds == [(0, 1), (1, 8), (9, 1)]
    data, result = np.arange(64, dtype=np.float32).reshape(8, 8), np.full((10, 10), 7, np.float32)
    interpret(func, [data, result])
    np.testing.assert_array_equal(result, np.pad(data, 1))


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(9) vectorized { for j in range(4) { if (i * 4 + j < n) { A[i] = j } } }",
        "for i in range(9) unrolled { if (i < n) { A[i] = 0 } }",
        "for i in range(9) { if (A[i] < 4) { A[i] = 0 } }",
        "for i in range(A[0]) { if (i < n) { A[i] = 0 } }",
        "for i in range(9) { if (i == 4) { A[i] = 0 } }",
        "for i in range(9) { if (i < n or i > 4) { A[i] = 0 } }",
        "for i in range(9) { if (i % 2 < 1) { A[i] = 0 } }",
        "for i in range(9) { if (i + s < 9) { A[i] = 0 } }",  # s is any number: the sum may wrap
        "for i in range(9) { if (i < 4) { A[i] = 0 } else { A[i] = 1 } }",  # less than half
        "for i: i32 in range(9i32) { if (i < 4i32) { A[i64(i)] = 0 } }",
        "for i in range(9) parallel { if (i < n) { A[i] = 0 } }",
        "for i in range(9) { if (n < 4) { A[i] = 0 } }",
    ],
)
def test_left_alone(body):
    func = parse_func(f"func f(A: i64[n + 9] out, s: i64) {{ {body} }}")
    assert partition_loops(func) is func


def test_nothing_in_a_kernel_or_around_one_is_divided():
    func = parse_func(
        """
        func f(A: f32[n] out) {
          for k in range((n + 63) // 64) {
            for b in range(4) blockIdx.x {
              for t in range(16) threadIdx.x {
                for j in range(4) {
                  if (k * 64 + b * 16 + t + j < n) { A[k * 64 + b * 16 + t + j] = 0f32 }
                }
              }
            }
          }
        }
        """
    )
    assert partition_loops(func) is func


def test_a_guard_that_stands_in_two_loops_must_hold_in_both():
    func = parse_func(
        """
        func f(A: i64[64] out) {
          for i in range(4) {
            for j in range(8) { A[i] = A[i] + if_then_else(i * 8 + j < 30, 1, 0) }
            for k in range(16) { A[i] = A[i] + 1 }
          }
        }
        """
    )
    first, second = func.body.body.stmts
    value = next(item for item in walk(first) if isinstance(item, IfThenElseExpr))
    store = with_fields(second.body, value=value)  # the same node where j runs on to 16
    second = with_fields(second, var=first.var, body=store)
    func = func.with_body(
        with_fields(func.body, body=with_fields(func.body.body, stmts=(first, second)))
    )
    assert_meaning_is_kept(partition_loops, func, {}, "nested")


def test_copies_bind_names_of_their_own_and_origins_are_kept():
    func = parse_func(
        """
        func f(A: i64[n] out) {
          for i in range((n + 3) // 4) {
            for j in range(4) {
              alloc T: i64[4] {
                let t: i64 = i * 4 + j { if (t < n) { T[j] = t A[i * 4 + j] = T[j] } }
              }
            }
          }
        }
        """
    )
    origin = Origin("A", "i")
    func = func.with_body(with_fields(func.body, origin=origin))
    after = partition_loops(func)
    assert [loop.origin for loop in after.body.stmts] == [origin, origin]
    for binders, of in ((For, "var"), (LetStmt, "var"), (Allocate, "buffer")):
        bound = [id(getattr(n, of)) for n in walk(after.body) if isinstance(n, binders)]
        assert len(set(bound)) == len(bound)


def _deep(levels, statements=1, kind=""):
    """Loops around each other, every two of which are the tiles of an axis."""
    index = ", ".join(f"o{d} * 8 + i{d}" for d in range(levels))
    text = f"A[{index}] = 0.0f32 " * statements
    for d in range(levels):
        text = f"for i{d} in range(8) {kind} {{ if (o{d} * 8 + i{d} < n{d}) {{ {text} }} }}"
    for d in range(levels):
        text = f"for o{d} in range((n{d} + 7) // 8) {{ {text} }}"
    shape = ", ".join(f"n{d}" for d in range(levels))
    return f"func f(A: f32[{shape}] out) {{ {text} }}"


@pytest.mark.search
def test_code_grows_no_more_than_it_may():
    for levels in range(1, 6):
        func = partition_loops(parse_func(_deep(levels)))
        stores = sum(type(item).__name__ == "BufferStore" for item in walk(func.body))
        assert stores == min(2**levels, MAX_COPIES)


@pytest.mark.search
def test_a_body_that_is_too_large_is_not_copied():
    small, large = (parse_func(_deep(1, n, "unrolled")) for n in (10, MAX_NODES // 8 // 6))
    assert partition_loops(small) is not small
    assert partition_loops(large) is large


@pytest.mark.parametrize("size", [(509, 521), (512, 512)])
def test_the_main_nest_of_a_scheduled_product_is_free_of_guards_after_all_passes(size):
    rows, columns = size
    a = refcomp.placeholder((rows, 16), name="A")
    b = refcomp.placeholder((16, columns), name="B")
    k = refcomp.reduce_axis((0, 16), name="k")
    c = refcomp.compute(size, lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")
    schedule = refcomp.create_schedule(c)
    stage = schedule[c]
    outer_i, outer_j, i, j = stage.tile(*c.op.axis, 4, 16)
    stage.reorder(outer_i, outer_j, k, i, j)
    stage.unroll(i)
    stage.vectorize(j)
    func = refcomp.lower(schedule, [a, b, c])
    names = [step.name for step in passes_for("llvm")]
    for step in passes_for("llvm")[: names.index("outline_parallel")]:
        func = run_pass(step, func)
    main = _main_loop(func)
    inner = next(item for item in walk(main) if isinstance(item, For) and item is not main)
    predicates = [s.predicate for s in walk(inner) if isinstance(s, Store)]
    assert _count(inner, IfThenElse) == 0
    assert predicates == [None] * len(predicates)


@pytest.mark.search
@given(runnable_funcs("nested"))
def test_functions_of_all_kinds(drawn):
    assert_meaning_is_kept(partition_loops, *drawn, "nested")


_ENDS = ("0", "1", "3", "4", "8", "n", "m", "n + 1", "n // 2", "(n + 3) // 4", "n - m", "m - 3")
_FACTORS = ("1", "2", "3", "4", "m", "(0 - 1)", "(0 - 2)")


@st.composite
def guarded_nests(draw):
    """Loops around each other, with guards linear in their variables, some with an else; each
    statement adds to a number what cannot be undone or exchanged."""
    depth = draw(st.integers(1, 3))
    variables = [f"i{d}" for d in range(depth)]

    def guard(scope):
        terms = draw(st.lists(st.sampled_from(scope), min_size=1, max_size=2, unique=True))
        total = " + ".join(f"{v} * {draw(st.sampled_from(_FACTORS))}" for v in terms)
        sign = draw(st.sampled_from(("<", "<=", ">", ">=")))
        return f"{total} {sign} {draw(st.sampled_from(_ENDS))}"

    def act(scope):
        return f"H[0] = H[0] * 3 + {' + '.join(f'{v} * {k + 2}' for k, v in enumerate(scope))}"

    text = act(variables)
    for d in reversed(range(depth)):
        scope = variables[: d + 1]
        text = f"{act(scope)} {text}" if draw(st.booleans()) else text
        for _ in range(draw(st.integers(0, 2))):
            condition = " and ".join(guard(scope) for _ in range(draw(st.integers(1, 2))))
            other = f" else {{ {act(scope)} }}" if draw(st.booleans()) else ""
            text = f"if ({condition}) {{ {text} }}{other}"
        ends = _ENDS + tuple(variables[:d])
        low, extent = draw(st.sampled_from(ends)), draw(st.sampled_from(ends))
        text = f"for i{d} in range({low}, extent={extent}) {{ {text} }}"
    return parse_func(f"func f(H: i64[1] out, N: i64[n], M: i64[m]) {{ {text} }}")


@pytest.mark.search
@given(guarded_nests(), st.integers(0, 9), st.integers(0, 9))
def test_guards_of_all_kinds(func, n, m):
    symbols = dict(zip(func.symbols, (n, m), strict=True))
    assert_meaning_is_kept(partition_loops, func, symbols, "nested")
