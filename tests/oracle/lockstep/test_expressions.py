import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refcomp.foundation.dtype import I64, SCALAR_DTYPES, to_numpy
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Broadcast, Ramp, Var
from refcomp.oracle.interpreter import expressions as plain
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.lockstep.elements import Elements
from refcomp.oracle.lockstep.expressions import EXPRESSIONS, evaluate
from refcomp.oracle.lockstep.groups import BailOut
from refcomp.oracle.tensors import arrays
from tests.oracle.lockstep.batches import batch_of, everyone, same_bits
from tests.oracle.programs import integer
from tests.strategies.exprs import dtypes, exprs


def _threads(*values):
    threads, names = everyone(batch_of(1, len(values)), x=values)
    a = Buffer("A", I64, (integer(4),))
    memory = Memory(a, (4,), np.array([10, 11, 12, 13]))
    threads.batch.memory[a] = Elements.of_memory(memory, threads.batch, None)
    return threads, names["x"], a


def test_every_class_that_the_plain_interpreter_knows():
    assert set(EXPRESSIONS) == set(plain._EXPRESSIONS)


_LEAVES = tuple(Var(str(dtype), dtype) for dtype in SCALAR_DTYPES)
_ROWS = 5


def _plain(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.search
@settings(max_examples=300)
@given(dtypes().flatmap(lambda dtype: exprs(dtype, _LEAVES)), st.integers(0, 2**32))
def test_each_thread_has_the_plain_interpreter_s_value(expr, seed):
    threads, rng = everyone(batch_of(1, _ROWS))[0], np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        for var in _LEAVES:
            drawn = rng.standard_normal((_ROWS, 1)) * 10.0 ** rng.integers(-2, 6)
            threads.bind(var, arrays.convert(drawn, var.dtype))
        found = evaluate(threads, expr)
    found = np.broadcast_to(found, (_ROWS, expr.dtype.lanes))
    for row in range(_ROWS):
        expected = _plain(evaluate_expr(expr, threads.bindings(row)))
        expected = np.array([expected], to_numpy(expr.dtype.element))
        assert same_bits(found[row : row + 1], expected), (row, found[row], expected)


def test_a_lazy_choice_reads_only_where_it_is_chosen():
    threads, x, a = _threads(1, 5, 3)
    lazy = ir.IfThenElseExpr(x < 4, BufferLoad(a, (x,)), x * 100)
    assert evaluate(threads, lazy).tolist() == [[11], [500], [13]]
    with pytest.raises(BailOut):
        evaluate(threads, ir.Select(lazy.condition, lazy.true_value, lazy.false_value))


def test_a_choice_that_is_the_same_for_all():
    threads, x, _ = _threads(7, 5)
    for condition, expected in ((x < 4, [[70], [50]]), (x >= 4, [[7], [5]])):
        assert evaluate(threads, ir.IfThenElseExpr(condition, x, x * 10)).tolist() == expected


def test_vectors_have_a_column_for_each_lane():
    threads, x, a = _threads(0, 1)
    ramp = Ramp(x, integer(2), 2)
    assert evaluate(threads, Load(a, ramp)).tolist() == [[10, 12], [11, 13]]
    mask = ir.LT(ramp, Broadcast(integer(2), 2))
    assert evaluate(threads, Load(a, ramp * 2, mask)).tolist() == [[10, 0], [12, 0]]
    assert evaluate(threads, Broadcast(x, 3)).tolist() == [[0, 0, 0], [1, 1, 1]]


def test_what_all_threads_agree_on_is_one_row():
    threads, _, a = _threads(0, 1, 2)
    assert evaluate(threads, BufferLoad(a, (integer(1) + 1,))).tolist() == [[12]]


def test_a_shared_subtree_is_evaluated_once():
    threads, x, _ = _threads(1, 3)
    expr = x
    for _ in range(60):
        expr = expr + expr
    assert evaluate(threads, expr).tolist() == [[2**60], [3 * 2**60]]


def test_a_let_does_not_leak_into_what_is_shared_with_it():
    threads, x, _ = _threads(2, 3)
    y = Var("y", I64)
    shared = y + 1
    lets = ir.Let(y, x, shared) + ir.Let(y, x * 10, shared)
    assert evaluate(threads, lets).tolist() == [[24], [35]]
    with pytest.raises(BailOut):
        evaluate(threads, ir.Let(y, x, shared) + shared)
