"""What the property tests (tests/properties/test_lockstep.py) hardly draw."""

import numpy as np
import pytest

from refcomp.ir import stmt as st
from refcomp.ir.parser import parse_func
from refcomp.oracle.interpreter import statements as plain
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.lockstep.elements import Elements
from refcomp.oracle.lockstep.groups import BailOut
from refcomp.oracle.lockstep.statements import STATEMENTS, run
from tests.oracle.lockstep.batches import batch_of, everyone

_LEFT_TO_THE_PLAIN = {st.ParallelRegion, st.LaunchKernel, st.CallPacked, st.CallExtern}


def test_which_statements_are_left_to_the_plain_interpreter():
    assert {*plain._STATEMENTS, st.Barrier} - set(STATEMENTS) == _LEFT_TO_THE_PLAIN


def _run(body, count=3, is_kernel=True):
    """What `count` threads, who know their number t, make of A, a row for each."""
    func = parse_func(f"func f(A: i64[{count}, 4] out, t: i64) {{ {body} }}")
    (a, t), batch = func.params, batch_of(1, count, is_kernel)
    array = np.zeros((count, 4), np.int64)
    batch.memory[a] = Elements.of_memory(Memory(a, array.shape, array), batch, None)
    threads, _ = everyone(batch)
    threads.bind(t, np.arange(count)[:, None])
    run(threads, func.body)
    assert list(threads.values) == [t] and list(batch.memory) == [a]
    return array.tolist()


def test_threads_leave_a_loop_when_they_are_through():
    assert _run("for k in range(t, extent=t) { A[t, k] = k }") == [
        [0, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 2, 3],
    ]


def test_a_parallel_loop_has_the_order_of_the_plain_interpreter():
    body = "for k in range(4) parallel { A[t, 0] = A[t, 0] * 10 + k }"
    array = np.zeros(1, np.int64)
    func = parse_func(
        f"func f(A: i64[1] out) {{ let t: i64 = 0 {{ {body} }} }}".replace("t, 0", "0")
    )
    plain.run_to_end(_frame(func, array), func.body)
    assert [row[0] for row in _run(body)] == [array[0]] * 3


def _frame(func, array):
    frame = plain.Frame()
    frame.memory[func.params[0]] = Memory(func.params[0], array.shape, array)
    return frame


def test_a_parallel_loop_has_no_order_where_lengths_differ():
    with pytest.raises(BailOut):
        _run("for k in range(t) parallel { A[t, k] = k }")


def test_branches_are_run_by_those_who_take_them():
    body = "if (t < 1) { A[t, 0] = 1 } else { if (t == 1) { A[t, 1] = 2 } A[t, 3] = 3 }"
    assert _run(body) == [[1, 0, 0, 0], [0, 2, 0, 3], [0, 0, 0, 3]]
    assert _run("if (t < 0) { A[9, 9] = 1 }") == [[0] * 4] * 3


def test_allocated_memory_follows_its_shape():
    body = "for k in range(3) { alloc T: i64[k + 1] local { T[k] = k A[t, k] = T[k] } }"
    assert _run(body) == [[0, 1, 2, 0]] * 3


@pytest.mark.parametrize(
    ("body", "is_kernel"),
    [
        ("alloc T: i64[t + 1] local { A[t, 0] = 1 }", True),
        ("alloc T: i64[2] { A[t, 0] = 1 }", True),
        ("alloc T: i64[2] shared { A[t, 0] = 1 }", False),
        ("for k in range(2) { alloc T: i64[k + 1] shared { A[t, 0] = 1 } }", True),
        ("if (t < 2) { barrier }", True),
        ("let x: i64 = t { A[t, 4] = x }", True),
    ],
)
def test_what_the_plain_interpreter_must_decide(body, is_kernel):
    with pytest.raises(BailOut):
        _run(body, is_kernel=is_kernel)


def test_iterations_have_memory_of_their_own():
    body = "alloc T: i64[2] { T[0] = t A[t, 0] = T[0] }"
    assert _run(body, is_kernel=False) == [[0] * 4, [1, 0, 0, 0], [2, 0, 0, 0]]
