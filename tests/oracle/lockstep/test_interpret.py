"""The shortcut of the interpreter, and runs that have none."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.ir.parser import parse_func, parse_program
from refcomp.oracle.interpreter import interpret as definition
from refcomp.oracle.lockstep import launch
from refcomp.oracle.lockstep.interpret import interpret, interpret_program, shortcut_for

LOOP = "func f(A: i64[n] out, B: i64[n]) { for i in range(n) { A[i] = B[i] + 1 } }"
LAUNCH = """
func host(A: i64[4] out) { launch k (A) grid (4, 1, 1) block (1, 1, 1) }
func k(A: i64[4] out) { for g in range(4) blockIdx.x { A[g] = g } }
"""


@pytest.fixture
def runs(monkeypatch):
    """How often something ran in step."""
    runs = []
    run = launch.run

    def counted(threads, body):
        runs.append(body)
        run(threads, body)

    monkeypatch.setattr(launch, "run", counted)
    return runs


def test_loops_run_in_step_from_so_many_iterations_on(runs):
    found = np.zeros(4, np.int64)
    interpret(parse_func(LOOP), [found, np.arange(4)])
    assert found.tolist() == [1, 2, 3, 4] and len(runs) == 1
    interpret(parse_func(LOOP), [found, np.arange(4)], in_step=5)
    interpret(parse_func(LOOP), [found, np.arange(4)], in_step=None)
    assert len(runs) == 1


def test_the_definition_runs_each_statement_by_itself(runs):
    found = np.zeros(4, np.int64)
    definition.interpret(parse_func(LOOP), [found, np.arange(4)])
    assert found.tolist() == [1, 2, 3, 4] and not runs


def test_arrays_that_overlap_have_no_shortcut(runs):
    memory = np.zeros(5, np.int64)
    interpret(parse_func(LOOP), [memory[1:], memory[:4]])
    assert memory.tolist() == [0, 1, 2, 3, 4] and not runs
    assert shortcut_for([memory[1:], memory[:4]], 1) is None
    assert shortcut_for([memory[:2], memory[2:]], 1) is not None


def test_arguments_that_are_no_list_are_refused_as_by_the_definition():
    with pytest.raises(UserError, match="is interpreted on a dict"):
        interpret(parse_func(LOOP), {})


def test_kernels_that_are_launched_run_in_step(runs):
    found = np.zeros(4, np.int64)
    interpret_program(parse_program(LAUNCH), [found])
    assert found.tolist() == [0, 1, 2, 3] and len(runs) == 1
    definition.interpret_program(parse_program(LAUNCH), [found])
    assert len(runs) == 1
