"""What runs in step, and that nothing is changed by what does not."""

import numpy as np
import pytest

from refcomp.ir.parser import parse_func, parse_program
from refcomp.oracle.interpreter.expressions import Frame
from refcomp.oracle.interpreter.interpret import InterpretError, bind_arguments
from refcomp.oracle.lockstep import launch as module
from refcomp.oracle.lockstep.interpret import interpret_program
from refcomp.oracle.lockstep.launch import LockstepShortcut

KERNEL = """
func f(A: i64[n] out) {
  for g in range(n // 2) blockIdx.x { for t in range(2) threadIdx.x { A[g * 2 + t] = g * 10 + t } }
}
"""
LOOPS = "func f(A: i64[n, 3] out) { for i in range(n) { for j in range(3) { A[i, j] = i + j } } }"


def _has_run(text, array, least):
    return LockstepShortcut(least)(*_frame(text, array))


def _frame(text, array):
    func, frame = parse_func(text), Frame()
    bind_arguments(frame, func, [array])
    return frame, func.body


@pytest.mark.parametrize("most", [1, 3, 1 << 14])
def test_a_kernel_runs_batch_by_batch(most, monkeypatch):
    monkeypatch.setattr(module, "_MAX_THREADS", most)
    array = np.zeros(6, np.int64)
    assert _has_run(KERNEL, array, 6)
    assert array.tolist() == [0, 1, 10, 11, 20, 21]


def test_few_threads_do_not():
    array = np.zeros(6, np.int64)
    assert not _has_run(KERNEL, array, 7)
    assert not _has_run(LOOPS, array.reshape(2, 3), 7)
    assert not array.any()


def test_no_threads_do_not():
    assert not _has_run(KERNEL, np.zeros(0, np.int64), 0)
    assert not _has_run(LOOPS, np.zeros((0, 3), np.int64), 0)


def test_loops_run_iteration_for_iteration():
    array = np.zeros((2, 3), np.int64)
    assert _has_run(LOOPS, array, 6)
    assert array.tolist() == [[0, 1, 2], [1, 2, 3]]


def test_loops_whose_memory_would_take_long_to_save(monkeypatch):
    monkeypatch.setattr(module, "_MAX_SAVED_PER_THREAD", 0.5)
    assert not _has_run(LOOPS, np.zeros((2, 3), np.int64), 1)


def test_after_a_doubt_all_is_as_before_and_it_is_not_tried_again(monkeypatch):
    text = "func f(A: i64[n] out) { for i in range(n) { A[i] = 5 A[i * i % 4] = 7 } }"
    array = np.arange(6)
    frame, loop = _frame(text, array)
    shortcut = LockstepShortcut(1)
    assert not shortcut(frame, loop)
    assert array.tolist() == [0, 1, 2, 3, 4, 5]
    monkeypatch.setattr(module, "run", lambda *_: pytest.fail("it is tried again"))
    assert not shortcut(frame, loop)


@pytest.mark.parametrize("most", [1, 1 << 14])
def test_batches_race_with_each_other(most, monkeypatch):
    monkeypatch.setattr(module, "_MAX_THREADS", most)
    text = KERNEL.replace("A[g * 2 + t] =", "A[g + t] =")
    array = np.zeros(6, np.int64)
    assert not _has_run(text, array, 1)
    assert not array.any()


def test_a_kernel_does_not_see_the_host_s_local_memory():
    text = KERNEL.replace("{\n  for g", "{ alloc R: i64[1] local { R[0] = 1\n  for g")
    text = text.replace("= g * 10 + t", "= R[0]").replace("} }\n}", "} } }\n}")
    frame, body = _frame(text, np.zeros(6, np.int64))
    frame.memory[body.buffer] = frame.memory[next(iter(frame.memory))]
    assert not LockstepShortcut(1)(frame, body.body.stmts[1])


def test_one_memory_under_two_names_is_one():
    text = """
    func host(A: i64[4] out) { launch k (A, A) grid (4, 1, 1) block (1, 1, 1) }
    func k(A: i64[4], B: i64[4] out) {
      for g in range(4) blockIdx.x { B[3 - g] = A[g] }
    }
    """
    with pytest.raises(InterpretError, match="a race on element"):
        interpret_program(parse_program(text), [np.arange(4)], in_step=1)
    interpret_program(parse_program(text.replace("3 - g", "g")), [np.arange(4)], in_step=1)
