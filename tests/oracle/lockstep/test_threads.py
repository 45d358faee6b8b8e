import numpy as np
import pytest

from refcomp.foundation.dtype import BOOL, F32, I64
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Var
from refcomp.oracle.lockstep.groups import BailOut
from refcomp.oracle.lockstep.threads import as_value
from tests.oracle.lockstep.batches import batch_of, everyone


def test_the_chosen_threads_see_their_own_rows():
    threads, names = everyone(batch_of(2, 3), x=[5, 6, 7, 8, 9, 10])
    one = as_value(Var("one", I64), 1)
    some = threads.select(np.array([0, 1, 0, 1, 1, 0], bool))
    fewer = some.select(np.array([0, 1, 1], bool))
    assert some.value_of(names["x"]).tolist() == [[6], [8], [9]]
    assert fewer.value_of(names["x"]).tolist() == [[8], [9]]
    assert fewer.ids.tolist() == [3, 4]
    assert fewer.rows(one) is one
    assert threads.rows(one) is one


def test_what_is_bound_inside_stays_inside():
    threads, names = everyone(batch_of(1, 2), x=[5, 6])
    some, y = threads.select(np.array([True, False])), Var("y", I64)
    some.bind(y, np.array([[1]]))
    with pytest.raises(BailOut):
        threads.value_of(y)
    with pytest.raises(BailOut):
        some.bind(names["x"], np.array([[1]]))
    with pytest.raises(BailOut):
        threads.memory_of(Buffer("A", I64, ()))


def test_a_thread_s_variables_are_told_as_the_plain_interpreter_has_them():
    threads, names = everyone(batch_of(1, 3), x=[5, 6, 7])
    some = threads.select(np.array([False, True, True]))
    some.bind(Var("b", BOOL), np.array([[True], [False]]))
    some.bind(Var("v", F32.with_lanes(2)), np.array([[1, 2]], np.float32))
    some.value_of(names["x"])
    told = {var.name: value for var, value in some.bindings(1).items()}
    assert list(told.items()) == [("x", 7), ("b", False), ("v", (1.0, 2.0))]
    assert [type(value) for value in told.values()] == [int, bool, tuple]


def test_a_plain_value_is_one_row():
    assert as_value(Var("v", I64.with_lanes(2)), (3, 4)).tolist() == [[3, 4]]
    assert as_value(Var("x", F32), np.float32(2)).dtype == np.float32
