"""Barriers: where they are needed, and nowhere else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.errors import Unsupported
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import map_children, walk, with_fields
from refcomp.ir.stmt import Barrier, Block, BufferStore, Origin
from refcomp.ir.verify import verify
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import insert_barriers as module
from refcomp.passes.insert_barriers import insert_barriers
from tests.passes.docstring_examples import assert_docstring_holds


def test_docstring():
    assert_docstring_holds(module, insert_barriers)


def _kernel(stmts, threads=8):
    return parse_func(f"""
    func f(A: i64[64], B: i64[64] out, m: i64) {{
      for bx in range(2) blockIdx.x {{ for tx in range({threads}) threadIdx.x {{
        alloc S: i64[64] shared {{ alloc L: i64[4] local {{ {stmts} }} }}
      }} }}
    }}
    """)


def _placed(stmts):
    """The program of a thread with its barriers, a word for each statement."""
    func = insert_barriers(_kernel(stmts))
    verify(func, "nested")
    lines = (line.strip() for line in print_func(func).splitlines()[5:])
    return [line for line in lines if line != "}"]


def _count(func):
    return sum(isinstance(node, Barrier) for node in walk(func.body))


@pytest.mark.parametrize(
    ("stmts", "expected"),
    [
        # Straight lines: as late as possible, so that one serves several.
        ("S[tx] = 1 B[tx] = S[7 - tx]", 1),
        ("S[tx] = 1 B[tx] = S[tx]", 0),
        ("S[tx] = 1 S[tx + 8] = 2 B[tx] = S[7 - tx] B[tx] = S[15 - tx]", 1),
        ("S[tx] = 1 B[tx] = S[7 - tx] S[tx] = 2 B[tx] = S[7 - tx]", 3),
        ("S[tx] = A[7 - tx] B[tx] = A[tx]", 0),  # inputs are not written
        ("L[0] = tx B[tx] = L[0]", 0),
        ("B[bx * 8 + tx] = 1 B[bx * 8 + 7 - tx] = 2", 1),  # global memory, within a group
        # Loops: around the back edge, too.
        ("for k in range(4) { S[tx] = k B[tx] = S[7 - tx] }", 2),
        ("for k in range(4) { B[tx] = S[tx] }", 0),
        ("for k in range(4) { S[k * 8 + tx] = k B[tx] = S[k * 8 + 7 - tx] }", 1),
        ("for k in range(4) { S[k % 2 * 8 + tx] = k B[tx] = S[k % 2 * 8 + 7 - tx] }", 1),
        ("S[tx] = 0 for k in range(4) { S[tx] = S[7 - tx] + 1 }", 2),
        ("S[tx] = 0 for k in range(4) { L[0] = S[7 - tx] S[tx] = L[0] }", 2),
        ("S[tx] = 0 for k in range(4) { B[tx] = B[tx] + S[k] }", 1),
        ("for k in range(4) { S[k * 8 + tx] = k } B[tx] = S[tx + 1]", 1),
        # The barrier that the second read needs separates the first one from the write, too.
        (
            "for k in range(1, extent=4) {"
            " L[0] = S[k * 8 + 7 - tx] L[1] = S[k * 8 - 1 - tx] S[k * 8 + tx] = k }",
            1,
        ),
        # Of a loop with a barrier in each iteration only the first and the last one show.
        ("S[8 + tx] = 1 for k in range(4) { L[0] = S[k * 8 + 7 - tx] barrier }", 1),
        ("S[tx] = 1 for k in range(4) { L[0] = S[k * 8 + 7 - tx] barrier }", 2),
        ("for k in range(4) { barrier S[k * 8 + tx] = k } B[tx] = S[7 - tx]", 1),
        ("for k in range(4) { barrier S[k * 8 + tx] = k } B[tx] = S[31 - tx]", 2),
        # The last write of one nest and the first read of the next.
        ("for k in range(4) { for i in range(2) { S[i * 8 + tx] = k } B[tx] = S[7 - tx] }", 2),
        ("for k in range(m) { S[tx] = k B[tx] = S[7 - tx] } B[tx] = S[tx]", 2),
        # Updates by one operator may come in any order.
        ("atomic add S[0] with 1 atomic add S[0] with 2", 0),
        ("S[tx] = 0 atomic add S[0] with 1 B[tx] = S[0]", 2),
        # Pragmas and hints say nothing.
        ("pragma unroll 4 { S[tx] = 1 B[tx] = S[7 - tx] }", 1),
        ("S[tx] = 1 pragma unroll 4 { B[tx] = S[7 - tx] }", 1),
        ("S[tx] = 1 prefetch S[7 - tx]", 0),
        # Conditions.
        ("if (tx == 0) { S[0] = 1 } B[tx] = S[0]", 1),
        ("if (tx == 0) { S[0] = 1 S[0] = S[0] + 1 }", 0),
        ("if (tx < 4) { S[tx] = 1 } if (4 <= tx) { S[tx] = 2 }", 0),
        ("if (bx == 0) { S[tx] = 1 B[tx] = S[7 - tx] }", 1),
    ],
)
def test_how_many_barriers(stmts, expected):
    func = insert_barriers(_kernel(stmts))
    verify(func, "nested")
    assert _count(func) == expected
    assert insert_barriers(func) is func


def test_a_tiled_product_has_two_for_each_tile():
    func = parse_func("""
    func gemm(A: f32[n, p], B: f32[p, m], C: f32[n, m] out) {
      for by in range((n + 31) // 32) blockIdx.y { for bx in range((m + 31) // 32) blockIdx.x {
        for ty in range(8) threadIdx.y { for tx in range(8) threadIdx.x {
          alloc U: f32[8, 32] shared { alloc V: f32[8, 32] shared { alloc T: f32[4, 4] local {
            for i in range(4) { for j in range(4) { T[i, j] = 0f32 } }
            for k in range((p + 7) // 8) {
              for l in range(4) { if (by * 32 + (l * 64 + ty * 8 + tx) % 32 < n) {
                U[(l * 64 + ty * 8 + tx) // 32, (l * 64 + ty * 8 + tx) % 32]
                  = A[by * 32 + (l * 64 + ty * 8 + tx) % 32, k * 8 + (l * 64 + ty * 8 + tx) // 32]
              } }
              for l in range(4) {
                V[ty, l * 8 + tx] = B[k * 8 + ty, bx * 32 + l * 8 + tx]
              }
              for q in range(8) { if (k * 8 + q < p) { for i in range(4) { for j in range(4) {
                T[i, j] = T[i, j] + U[q, ty * 4 + i] * V[q, tx * 4 + j]
              } } } }
            }
            for i in range(4) { for j in range(4) {
              C[by * 32 + ty * 4 + i, bx * 32 + tx * 4 + j] = T[i, j]
            } }
          } } }
        } }
      } }
    }
    """)
    after = insert_barriers(func)
    verify(after, "nested")
    text = print_func(after)
    assert text.count("barrier\n") == 2
    # Both in the loop over tiles: before the copies, and before what reads them.
    stems = [line.strip() for line in text.splitlines()]
    first, second = [k for k, line in enumerate(stems) if line == "barrier"]
    assert stems[first - 1].startswith("for k in") and stems[second + 1].startswith("for q in")


def test_a_barrier_stands_before_the_loop_that_needs_one_at_its_first_iteration_only():
    placed = _placed("S[tx] = 1 for k in range(4) { B[tx] = S[k] }")
    assert placed[:3] == ["S[tx] = 1", "barrier", "for k in range(4) {"]


def test_one_in_the_loop_serves_for_what_stands_before_it():
    placed = _placed("S[tx] = 0 for k in range(4) { L[0] = S[7 - tx] S[tx] = L[0] }")
    assert placed[:3] == ["S[tx] = 0", "for k in range(4) {", "barrier"]


def test_a_condition_with_a_barrier_inside_moves_to_the_statements():
    for condition in ("tx < 4", "bx < 1", "A[tx] < 3"):
        text = f"for k in range(2) {{ if ({condition}) {{ S[tx] = k B[tx] = S[3 - tx] }} }}"
        func = insert_barriers(_kernel(text))
        verify(func, "nested")
        assert _count(func) == 2
        outside = [n for n in walk(func.body) if isinstance(n, Block) and len(n.stmts) > 1]
        assert any(isinstance(item, Barrier) for block in outside for item in block.stmts)


def test_a_condition_that_the_branch_changes_is_read_before_a_barrier():
    placed = _placed("S[tx] = tx % 2 barrier if (S[7 - tx] < 1) { S[tx] = 3 } else { S[tx] = 4 }")
    assert placed[2:5] == ["let condition: bool = S[7 - tx] < 1 {", "barrier", "if (condition) {"]


def test_a_statement_that_reads_what_others_write_by_it_is_taken_apart():
    placed = _placed("S[tx] = tx barrier S[tx] = S[7 - tx] + 1")
    assert placed[2:] == ["let S.read: i64 = S[7 - tx] + 1 {", "barrier", "S[tx] = S.read"]
    # Under a condition, too, with what it reads guarded as before.
    placed = _placed("S[tx] = 0 barrier if (tx < 4) { S[tx] = S[3 - tx] + 1 }")
    assert placed[2] == "let S.read: i64 = if_then_else(tx < 4, S[3 - tx] + 1, 0) {"
    assert placed[3:] == ["barrier", "if (tx < 4) {", "S[tx] = S.read"]


def test_a_let_that_reads_memory():
    placed = _placed("for k in range(3) { let t: i64 = S[tx + 1] { S[tx] = t + k } }")
    assert placed == [
        "for k in range(3) {",
        "barrier",
        "let t: i64 = S[tx + 1] {",
        "barrier",
        "S[tx] = t + k",
    ]
    # One that reads no memory is looked through.
    assert _count(insert_barriers(_kernel("let t: i64 = 7 - tx { S[t] = 1 B[tx] = S[tx] }"))) == 1


def test_the_range_of_a_loop_that_reads_memory():
    placed = _placed("if (tx == 0) { S[0] = 3 } for k in range(S[0]) { B[tx] = k }")
    assert placed[2:4] == ["barrier", "for k in range(S[0]) {"]


def test_a_loop_that_threads_run_unequally_often_is_refused():
    func = _kernel("for k in range(tx) { S[tx] = k B[tx] = S[7 - tx] }")
    loop = next(node for node in walk(func.body) if getattr(node, "kind", "") == "serial")
    origin = Origin("C", "k", "split", "model.py:7")
    func = func.with_body(_replaced(func.body, loop, with_fields(loop, origin=origin)))
    with pytest.raises(Unsupported, match="the loop k needs a barrier, but threads run") as caught:
        insert_barriers(func)
    assert "\n  --> model.py:7 (split here)\n" in str(caught.value)
    assert "the same range in all threads" in caught.value.remedy
    with pytest.raises(Unsupported, match="the loop k"):  # by way of a name
        insert_barriers(
            _kernel("let t: i64 = tx { for k in range(t) { S[tx] = k B[tx] = S[7 - tx] } }")
        )
    inner = "for r in range(2) { S[tx] = k B[tx] = S[7 - tx] }"
    with pytest.raises(Unsupported, match="the loop k"):  # for a barrier of a loop inside
        insert_barriers(_kernel(f"for k in range(tx) {{ {inner} }}"))
    # It may stand between barriers.
    assert _count(insert_barriers(_kernel("for k in range(tx) { S[tx] = k } B[tx] = S[1]"))) == 1


def test_what_needs_none_stays_the_same():
    for stmts in ("B[tx] = A[tx]", "S[tx] = A[tx] B[tx] = S[tx]"):
        func = _kernel(stmts)
        assert insert_barriers(func) is func
    host = parse_func("func f(A: i64[n] out) { for i in range(n) { A[i] = A[0] } }")
    assert insert_barriers(host) is host


def test_groups_of_one_thread_need_none():
    func = parse_func("""
    func f(A: i64[64] out) {
      for bx in range(4) blockIdx.x { alloc S: i64[8] shared {
        for i in range(8) { S[i] = i } for i in range(8) { A[bx * 8 + i] = S[7 - i] }
      } }
    }
    """)
    assert insert_barriers(func) is func


def test_each_kernel_by_itself():
    func = parse_func("""
    func f(A: i64[8] out, B: i64[8] out) {
      for h in range(3) {
        for tx in range(8) threadIdx.x { A[tx] = h }
        for ty in range(8) threadIdx.x { B[ty] = A[7 - ty] }
      }
    }
    """)
    assert insert_barriers(func) is func  # a kernel has ended before the next one begins


def test_a_barrier_has_the_origin_of_the_statement_behind_it():
    func = _kernel("S[tx] = 1 B[tx] = S[7 - tx]")
    store = [n for n in walk(func.body) if isinstance(n, BufferStore)][1]
    origin = Origin("B", "i", line="model.py:3")
    func = func.with_body(_replaced(func.body, store, with_fields(store, origin=origin)))
    barriers = [n for n in walk(insert_barriers(func).body) if isinstance(n, Barrier)]
    assert [barrier.origin for barrier in barriers] == [origin]


def _replaced(root, old, fresh):
    return fresh if root is old else map_children(root, lambda child: _replaced(child, old, fresh))


# Random kernels.

_PLACES = ("tx", "3 - tx", "(tx + 1) % 4", "(tx + 3) % 4")  # each thread another one
_ROWS = ("0", "1", "k % 2", "(k + 1) % 2", "k")  # of S, which has 3


def _place(draw, depth):
    row = draw(st.sampled_from(_ROWS if depth else _ROWS[:2]))
    return f"{row}, {draw(st.sampled_from(_PLACES))}"


def _stmt(draw, depth):
    choice = draw(st.integers(0, 7))
    if choice == 0 and not depth:
        return f"for k in range({draw(st.integers(2, 3))}) {{ {_stmts(draw, 1)} }}"
    if choice == 1:
        thread = draw(st.integers(0, 3))
        return f"if (tx == {thread}) {{ S[{_place(draw, depth)}] = 5 }}"
    if choice == 2 and depth:
        return f"if (k == {draw(st.integers(0, 1))}) {{ S[{_place(draw, 1)}] = 6 }}"
    if choice <= 4:
        return f"B[tx] = B[tx] * 3 + S[{_place(draw, depth)}]"
    return f"S[{_place(draw, depth)}] = tx + {draw(st.integers(1, 9))}"


def _stmts(draw, depth):
    return " ".join(_stmt(draw, depth) for _ in range(draw(st.integers(1, 4))))


@st.composite
def _random_kernels(draw):
    return parse_func(f"""
    func f(B: i64[4] out) {{
      for tx in range(4) threadIdx.x {{ alloc S: i64[3, 4] shared {{
        for i in range(3) {{ S[i, tx] = tx + i }}
        barrier
        {_stmts(draw, 0)}
      }} }}
    }}
    """)


def _result(func):
    data = np.ones(4, np.int64)
    interpret(func, [data])
    return data.tolist()


def _has_race(func):
    try:
        _result(func)
    except InterpretError as error:
        return "a race on element" in str(error)
    return False


@pytest.mark.search
@given(_random_kernels())
def test_random_kernels_have_no_race_and_no_needless_barrier(func):
    after = insert_barriers(func)
    verify(after, "nested")
    _result(after)  # raises where there is a race
    given = set(walk(func.body))
    for barrier in [n for n in walk(after.body) if isinstance(n, Barrier) and n not in given]:
        without = after.with_body(_replaced(after.body, barrier, Block(())))
        assert _has_race(without), f"{print_func(after)}\nneeds less:\n{print_func(without)}"
