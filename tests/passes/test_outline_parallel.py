import numpy as np
import pytest

from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.stmt import PARALLEL, For, LetStmt, Origin, ParallelRegion
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import outline_parallel as module
from refcomp.passes.outline_parallel import outline_parallel
from tests.passes.docstring_examples import assert_docstring_holds


def _outlined(text):
    func = outline_parallel(parse_func(text))
    verify(func, "flat")
    return func


def _regions(func):
    return [node for node in walk(func.body) if isinstance(node, ParallelRegion)]


def test_docstring():
    assert_docstring_holds(module, outline_parallel)


@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("extent", [0, 1, 5, 14])
def test_tasks_take_iterations_in_turns(extent, tasks):
    func = _outlined("""
    func f(A: i64[n], B: i64[n] out) {
      pragma parallel_stride_pattern 1 {
        for i in range(1, extent=n - 1) parallel {
          pragma parallel_stride_pattern 1 {
            for j in range(2) parallel { B@[i] = B@[i] + A@[i] + j }
          }
        }
      }
    }
    """)
    text = print_func(func)
    assert "for turn in range((i.extent - task + tasks - 1) // tasks) {" in text
    assert "let i: i64 = 1 + (task + turn * tasks) {" in text
    assert "pragma" not in text
    a, b = np.arange(extent), np.zeros(extent, np.int64)
    interpret(func, [a, b], num_tasks=tasks)
    assert b.tolist() == [0, *(2 * i + 1 for i in range(1, extent))][:extent]


def test_a_pragma_whose_loop_is_gone():
    func = _outlined("func f(A: i64[1] out) { pragma parallel_stride_pattern 1 { A@[0] = 1 } }")
    assert "pragma" not in print_func(func)


@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("extent", [0, 1, 5, 14])
def test_tasks_share_all_iterations_once(extent, tasks):
    func = _outlined("""
    func f(A: i64[n], B: i64[n] out) {
      for i in range(n) parallel { B@[i] = B@[i] + A@[i] + 1 }
    }
    """)
    a, b = np.arange(extent), np.zeros(extent, np.int64)
    interpret(func, [a, b], num_tasks=tasks)
    assert b.tolist() == list(range(1, extent + 1))


def test_tasks_are_balanced():
    func = _outlined("""
    func f(A: i64[t] out, m: i64) {
      for i in range(m) parallel { A@[i * 0] = A@[i * 0] + 1 }
    }
    """)
    loop = next(node for node in walk(func.body) if isinstance(node, For))
    text = print_func(func)
    assert loop.kind == "serial"
    assert "let begin: i64 = m * task // tasks" in text
    assert "let end: i64 = m * (task + 1) // tasks" in text


def test_a_minimum_and_a_narrow_variable():
    func = _outlined("""
    func f(A: i32[9] out, m: i32) {
      for i: i32 in range(m, extent=5i32) parallel { A@[i] = i * i }
    }
    """)
    a = np.zeros(9, np.int32)
    interpret(func, [a, 3], num_tasks=4)
    assert a.tolist() == [0, 0, 0, 9, 16, 25, 36, 49, 0]


def test_bounds_are_evaluated_once_outside():
    func = _outlined("""
    func f(A: i64[n] out) {
      for i in range(A@[0], extent=A@[1]) parallel { A@[i] = 7 }
    }
    """)
    a = np.array([0, 4, 9, 9, 9])
    interpret(func, [a], num_tasks=2)
    assert a.tolist() == [7, 7, 7, 7, 9]
    assert [type(func.body), type(func.body.body)] == [LetStmt, LetStmt]


def test_nested_parallel_loops_become_serial():
    func = _outlined("""
    func f(A: i64[12] out) {
      for i in range(3) parallel { for j in range(4) parallel { A@[i * 4 + j] = i - j } }
    }
    """)
    assert len(_regions(func)) == 1
    assert not [node for node in walk(func.body) if isinstance(node, For) and node.kind == PARALLEL]
    a = np.zeros(12, np.int64)
    interpret(func, [a])
    assert a.tolist() == [i - j for i in range(3) for j in range(4)]


def test_each_region_has_its_own_name_and_captures():
    func = _outlined("""
    func f(A: f32[n], B: f32[n] out, x: f32) {
      alloc T: f32[n] {
        for i in range(n) parallel { T@[i] = A@[i] * x }
        for i in range(n) parallel { B@[i] = T@[i] }
      }
    }
    """)
    first, second = _regions(func)
    assert (first.name, second.name) == ("f.parallel0", "f.parallel1")
    assert {item.name for item in first.captures} == {"n", "T", "A", "x"}
    assert {item.name for item in second.captures} == {"n", "T", "B"}


def test_the_shape_of_an_inner_allocation_is_captured():
    func = _outlined("""
    func f(A: i64[n] out, m: i64) {
      for i in range(n) parallel { alloc T: i64[m] { T@[0] = i  A@[i] = T@[0] } }
    }
    """)
    assert "m" in {item.name for item in _regions(func)[0].captures}
    a = np.zeros(4, np.int64)
    interpret(func, [a, 2])
    assert a.tolist() == [0, 1, 2, 3]


def test_what_is_only_asked_for_is_captured():
    func = _outlined(
        "func f(A: f32[9], B: f32[9] out) {"
        " for i in range(9) parallel { prefetch A[i] B@[i] = 0.0f32 } }"
    )
    assert "A" in {item.name for item in _regions(func)[0].captures}


def test_what_is_not_parallel_stays():
    func = parse_func("func f(A: i64[n] out) { for i in range(n) { A@[i] = i } }")
    assert outline_parallel(func) is func


def test_origins_are_kept():
    func = parse_func("func f(A: i64[n] out) { for i in range(n) parallel { A@[i] = i } }")
    origin = Origin("A", "i", "parallel", "model.py:3")
    func = func.with_body(with_fields(func.body, origin=origin))
    region = outline_parallel(func).body
    assert region.origin is origin
    assert region.body.origin is origin


@pytest.mark.parametrize(
    "call", ["packed f(i)", "B@[i] = packed i64 f(i)", "B@[i] = trace i64 f(i)"]
)
def test_loops_that_call_python_run_in_order(call):
    inner = "for j in range(4) parallel { B@[j] = j }"
    func = _outlined(f"func g(B: i64[4] out) {{ for i in range(4) parallel {{ {call} {inner} }} }}")
    (region,) = _regions(func)  # of the loop inside, which calls nothing
    loops = [node for node in walk(func.body) if isinstance(node, For)]
    assert loops[0].var.name == "i" and all(loop.kind != PARALLEL for loop in loops)
    assert any(node is region for node in walk(loops[0].body))
