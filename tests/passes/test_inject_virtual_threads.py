"""Virtual threads: statement by statement, with buffers of their own."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate, BufferStore, For
from refcomp.ir.verify import find_fault
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import inject_virtual_threads as module
from refcomp.passes.inject_virtual_threads import inject_virtual_threads
from tests.passes.docstring_examples import assert_docstring_holds

HEAD = "func f(A: f32[8], B: f32[8] out, n: i64) "


def injected(body: str) -> str:
    func = inject_virtual_threads(parse_func(HEAD + "{" + body + "}"))
    assert not any(isinstance(i, For) and i.kind == "vthread" for i in walk(func.body))
    return print_func(func)


def test_the_docstring_holds():
    assert_docstring_holds(module, inject_virtual_threads)


def test_nothing_changes_without_virtual_threads():
    func = parse_func(HEAD + "{ for i in range(8) { B[i] = A[i] } }")
    assert inject_virtual_threads(func) is func


def test_shared_memory_is_one_for_all_and_filled_once():
    text = injected(
        "for t in range(4) threadIdx.x { for v in range(2) vthread { alloc T: f32[4] shared {"
        " T[t] = A[t] B[v * 4 + t] = T[3 - t] } } }"
    )
    assert "alloc T: f32[4] shared" in text
    assert text.count("T[t] = A[t]") == 1
    assert text.index("T[t] = A[t]") < text.index("for v in range(2) unrolled")


def test_shared_memory_in_which_they_would_collide_gets_copies():
    text = injected(
        "for t in range(4) threadIdx.x { for v in range(2) vthread { alloc T: f32[4] shared {"
        " T[t] = A[v * 4 + t] B[v * 4 + t] = T[3 - t] } } }"
    )
    assert "alloc T: f32[2, 4] shared" in text
    assert "T[v, t] = A[v * 4 + t]" in text


def test_what_each_fills_in_part_is_filled_by_all_before_any_reads():
    text = injected(
        "for t in range(4) threadIdx.x { for v in range(2) vthread { alloc T: f32[8] shared {"
        " T[v * 4 + t] = A[v * 4 + t] B[v * 4 + t] = T[7 - v * 4 - t] } } }"
    )
    assert text.count("for v in range(2) unrolled") == 2
    assert "alloc T: f32[8] shared" in text
    assert text.index("T[v * 4 + t] = ") < text.index("B[v * 4 + t] = ")


def test_an_accumulator_gets_copies_with_its_initialisation():
    text = injected(
        "for v in range(2) vthread { alloc S: f32[1] local { S[0] = 0f32 "
        "for k in range(4) { S[0] = S[0] + A[v * 4 + k] } B[v] = S[0] } }"
    )
    assert "alloc S: f32[2, 1] local" in text
    assert text.count("S[v, 0]") == 4
    assert "for k in range(4) {\n      for v in range(2) unrolled" in text


def test_two_loops_of_virtual_threads_nest():
    text = injected(
        "for v in range(2) vthread { for w in range(2) vthread { alloc S: f32[1] local {"
        " S[0] = A[v * 2 + w] B[v * 2 + w] = S[0] } } }"
    )
    assert "alloc S: f32[2, 2, 1] local" in text
    assert text.count("unrolled") == 4


def test_a_branch_on_the_virtual_thread_stays_whole():
    text = injected("for v in range(2) vthread { if (v < n) { B[v] = A[v] B[v + 2] = A[v] } }")
    assert "for v in range(2) unrolled {\n    if (v < n)" in text
    text = injected("for v in range(2) vthread { if (0 < n) { B[v] = A[v] B[v + 2] = A[v] } }")
    assert "if (0 < n) {\n    for v in range(2) unrolled" in text


def test_loops_with_bounds_of_their_own_and_lets_are_kept_right():
    text = injected(
        "for v in range(2) vthread { let w: i64 = v * 2 { for i in range(w) { B[w + i] = A[w] } } }"
    )
    assert "for v in range(2) unrolled {\n    for i in range(v * 2)" in text


def test_every_copy_of_a_loop_binds_a_variable_of_its_own():
    func = inject_virtual_threads(
        parse_func(HEAD + "{ for v in range(2) vthread { B[v] = A[v] B[v + 2] = A[v] } }")
    )
    loops = [item.var for item in walk(func.body) if isinstance(item, For)]
    assert len(set(map(id, loops))) == len(loops) == 2
    assert len([item for item in walk(func.body) if isinstance(item, BufferStore)]) == 2
    assert not any(isinstance(item, Allocate) for item in walk(func.body))


def test_a_barrier_that_virtual_threads_meet_apart_is_refused():
    with pytest.raises(UserError, match="virtual threads v meet a barrier in different") as caught:
        injected(
            "for t in range(4) threadIdx.x { for v in range(2) vthread { if (v < 1) { barrier } } }"
        )
    assert "real thread axis" in caught.value.remedy


def test_an_extent_that_is_no_constant_is_refused():
    with pytest.raises(UserError, match="constant"):
        injected("for v in range(n) vthread { B[v] = A[v] }")


def test_pragmas_stay_around_what_is_put_in_order():
    text = injected(
        "for t in range(4) threadIdx.x { for v in range(2) vthread { pragma double_buffer 1 {"
        " alloc T: f32[4] shared { T[t] = A[t] B[v * 4 + t] = T[3 - t] } } } }"
    )
    assert text.count("T[t] = A[t]") == 1
    assert text.index("pragma double_buffer") < text.index("unrolled")


def test_a_prefetch_is_done_by_each_where_it_differs_between_them():
    for hint, wanted in (
        ("prefetch A[v + 1]", "for v in range(2) unrolled {\n      prefetch A[v + 1]"),
        ("prefetch S[0]", "for v in range(2) unrolled {\n      prefetch S[v, 0]"),
        ("prefetch A[7]", "}\n    prefetch A[7]"),
    ):
        body = f"alloc S: f32[1] local {{ S[0] = A[v] {hint} B[v] = S[0] }}"
        func = parse_func(HEAD + "{ for v in range(2) vthread {" + body + "} }")
        result = inject_virtual_threads(func)
        assert find_fault(result, "nested") is None
        assert wanted in print_func(result)


def test_values_read_before_they_are_overwritten_stay_so():
    text = """
    func f(A: i32[2] out, B: i32[2] out) {
      for v in range(2) vthread {
        A[v] = 1i32
        B[v] = 2i32
        let a: i32 = A[v] - B[v] { let b: i32 = A[v] + B[v] { A[v] = a  B[v] = b } }
      }
    }
    """
    arrays = [np.zeros(2, np.int32) for _ in range(2)]
    interpret(inject_virtual_threads(parse_func(text)), arrays)
    assert [array.tolist() for array in arrays] == [[-1, -1], [3, 3]]
