"""Which loops run in step, and which statements keep them from it."""

import pytest

from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import For
from refcomp.oracle.lockstep.plans import plan_of


def _plan(body):
    func = parse_func(f"func f(A: i64[9, 9] out, B: i64[9], n: i64) {{ {body} }}")
    return plan_of(next(node for node in walk(func.body) if isinstance(node, For)))


def _loops(body):
    return [loop.var.name for loop in _plan(body).loops]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("A[i, j] = B[k]", ["i", "j"]),
        ("A[i, k] = A[i, k] + j", ["i"]),  # all of j write one element
        ("A[j, k] = 1", []),
        ("let x: i64 = j * 2 { A[i, x] = B[k] }", ["i", "j"]),
        ("A[i, j] = B[k] A[0, j] = 2", []),
        ("A[i, j] = B[k] A[0, i] = 2", ["i"]),
        ("alloc T: i64[2] { T[0] = 1 A[i, j] = T[0] }", ["i", "j"]),
        ("prefetch A[0, 0]", ["i", "j", "k"]),
    ],
)
def test_loops_on_which_the_place_of_each_write_depends(body, names):
    loops = "for i in range(3) { for j in range(n) parallel { for k in range(3) {"
    assert _loops(f"{loops} {body} }} }} }}") == names


@pytest.mark.parametrize("word", ["packed", "trace"])
def test_python_functions_are_called_by_the_plain_interpreter(word):
    # Lockstep may give up, and calls would be repeated.
    assert _loops(f"for i in range(3) {{ A[i, 0] = {word} i64 f(i) }}") == []


def test_bounds_do_not_depend_on_loops_around():
    assert _loops("for i in range(3) { for j in range(i) { A[i, j] = 1 } }") == ["i"]
    assert _loops("for i in range(3) { for j in range(i, extent=2) { A[i, j] = 1 } }") == ["i"]


def test_a_place_may_depend_by_a_loop_that_begins_there():
    assert _loops("for i in range(3) { for j in range(i * 2, extent=2) { A[0, j] = 1 } }") == ["i"]


def test_what_a_kernel_uses_and_writes():
    plan = _plan(
        "for g in range(3) blockIdx.x { for t in range(3) threadIdx.x {"
        " alloc T: i64[1] local { T[0] = B[t] A[g, t] = T[0] } } }"
    )
    assert [loop.var.name for loop in plan.loops] == ["g", "t"]
    assert [buffer.name for buffer in plan.used] == ["B", "A"] or {
        buffer.name for buffer in plan.used
    } == {"A", "B"}
    assert [buffer.name for buffer in plan.written] == ["A"]


@pytest.mark.parametrize(
    "body",
    [
        "packed f(read(B))",
        "for t in range(2) threadIdx.x { A[i, t] = 1 }",
    ],
)
def test_what_never_runs_in_step(body):
    assert _loops(f"for i in range(3) {{ A[i, 0] = 1 {body} }}") == []
