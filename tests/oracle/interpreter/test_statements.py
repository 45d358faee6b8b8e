import numpy as np
import pytest

from refcomp.foundation.dtype import I64
from refcomp.ir import expr as ir
from refcomp.ir import stmt
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Broadcast, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.stmt import (
    THREAD_TAGS,
    Block,
    BufferStore,
    For,
    IfThenElse,
    LoopKind,
    ParallelRegion,
    Store,
)
from refcomp.oracle.interpreter import statements as module
from refcomp.oracle.interpreter.interpret import InterpretError, interpret
from refcomp.oracle.interpreter.statements import scrambled
from tests.oracle.programs import LANES, MASK, flat_func, integer, run_text, zeros


@pytest.mark.parametrize("kind", LoopKind)
def test_every_kind_of_loop_runs_each_iteration_once(kind):
    a, i = Buffer("A", I64, (Var("n", I64),)), Var("i", I64)
    body = BufferStore(a, (i,), BufferLoad(a, (i,)) + i)
    begin = int(kind not in THREAD_TAGS)
    func = PrimFunc("f", (a,), For(i, integer(begin), a.shape[0] - begin, kind, body), ("A",))
    data = np.full(6, 10, np.int64)
    interpret(func, [data])
    assert data.tolist() == [10, 11, 12, 13, 14, 15]


def test_a_negative_extent_runs_nothing():
    for kind in LoopKind:
        i = Var("i", I64)
        interpret(PrimFunc("f", (), For(i, integer(0), integer(-3), kind, Block(()))), [])


def test_an_order_that_a_parallel_loop_must_not_have():
    text = """
    func f(A: i64[n] out) {
      for i in range(n - 1) parallel { A[i + 1] = A[i] + 1 }
    }
    """
    a = zeros(6, dtype=np.int64)
    run_text(text, a)
    assert a.tolist() != list(range(6))


def test_scrambled_is_a_permutation_in_no_plain_order():
    for count in range(20):
        assert sorted(scrambled(count)) == list(range(count))
    assert scrambled(3) == [1, 0, 2]
    assert scrambled(-2) == []


def _region(captures, body_of):
    a = Buffer("A", I64, (Var("n", I64),))
    task, count = Var("t", I64), Var("p", I64)
    region = ParallelRegion("f.parallel0", captures(a), task, count, body_of(a, task, count))
    return PrimFunc("f", (a,), region, ("A",))


@pytest.mark.parametrize("num_tasks", [1, 2, 3, 5])
def test_a_region_runs_every_task(num_tasks):
    def body(a, task, count):
        i = Var("i", I64)
        begin = task * a.shape[0] // count
        end = (task + 1) * a.shape[0] // count
        return For(i, begin, end - begin, "serial", BufferStore(a, (i,), i * 10))

    data = zeros(7, dtype=np.int64)
    interpret(_region(lambda a: (a, a.shape[0]), body), [data], num_tasks=num_tasks)
    assert data.tolist() == [0, 10, 20, 30, 40, 50, 60]


def test_a_result_that_depends_on_the_tasks_shows():
    def body(a, task, count):
        return BufferStore(a, (integer(0),), BufferLoad(a, (integer(0),)) * count + task)

    results = []
    for num_tasks in (1, 3):
        data = zeros(1, dtype=np.int64)
        interpret(_region(lambda a: (a,), body), [data], num_tasks=num_tasks)
        results.append(data[0])
    assert results[0] != results[1]


def test_a_region_sees_only_what_it_captures():
    def body(a, task, count):
        return BufferStore(a, (integer(0),), a.shape[0])

    with pytest.raises(InterpretError, match="variable n is used where it is not bound"):
        interpret(_region(lambda a: (a,), body), [zeros(1, dtype=np.int64)])


def test_a_masked_lane_reads_and_writes_nothing():
    func = flat_func(lambda a, b: Store(b, LANES, Load(a, LANES, MASK) + 1.0, MASK), length=2)
    a, b = np.array([1, 2], np.float32), np.full(4, 9, np.float32)
    interpret(func, [a, b])
    assert b.tolist() == [2, 3, 9, 9]


def test_lanes_are_written_in_ascending_order():
    func = flat_func(lambda a, b: Store(b, Broadcast(integer(1), 4), Load(a, LANES)))
    b = zeros(4)
    interpret(func, [np.array([1, 2, 3, 4], np.float32), b])
    assert b.tolist() == [0, 4, 0, 0]


def test_else_branches_and_empty_else():
    a, n = Buffer("A", I64, (integer(1),)), Var("n", I64)
    one, two = (BufferStore(a, (integer(0),), integer(v)) for v in (1, 2))
    for otherwise, expected in ((two, 2), (None, 0)):
        data = zeros(1, dtype=np.int64)
        interpret(
            PrimFunc("f", (a, n), IfThenElse(ir.GT(n, integer(0)), one, otherwise)), [data, 0]
        )
        assert data[0] == expected


def test_every_node_class_has_its_case():
    classes = {c for c in vars(stmt).values() if isinstance(c, type)}
    assert {c for c in classes if issubclass(c, stmt.Stmt)} - {stmt.Stmt, stmt.Barrier} == set(
        module._STATEMENTS
    )
