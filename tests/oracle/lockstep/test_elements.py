import numpy as np
import pytest

from refcomp.foundation.dtype import F32, I64
from refcomp.ir.buffer import Buffer
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.scalars import ATOMIC
from refcomp.oracle.lockstep import elements as module
from refcomp.oracle.lockstep.elements import Elements
from refcomp.oracle.lockstep.groups import BailOut
from refcomp.oracle.lockstep.shadow_memory import ShadowMemory
from refcomp.oracle.tensors import arrays
from tests.oracle.lockstep.batches import batch_of, everyone


def _column(*values):
    return np.array(values)[:, None]


def _allocated(scope, groups=2, size=2):
    batch = batch_of(groups, size)
    found = Elements.allocated(Buffer("T", I64, (), scope), (2,), batch)
    threads, _ = everyone(batch)
    found.begin_lifetime(threads.ids)
    return found, threads


def _global(array, groups=1, size=3, is_written=True, dtype=I64):
    batch, memory = batch_of(groups, size), Memory(Buffer("A", dtype, ()), array.shape, array)
    shadow = ShadowMemory(memory.size) if is_written else None
    return Elements.of_memory(memory, batch, shadow), everyone(batch)[0]


def test_local_memory_is_a_thread_s_own():
    local, threads = _allocated("local")
    local.write(_column(0), _column(1, 2, 3, 4), threads.column, threads)
    assert local.read(_column(0), threads.column).tolist() == [[1], [2], [3], [4]]
    with pytest.raises(BailOut):
        local.read(_column(0, 0, 0, 1), threads.column)  # never written


def test_shared_memory_is_a_group_s_own():
    shared, threads = _allocated("shared")
    shared.write(_column(0, 1, 0, 1), _column(1, 2, 3, 4), threads.column, threads)
    with pytest.raises(BailOut):
        shared.read(_column(1, 0, 1, 0), threads.column)
    threads.batch.pass_barrier(threads.ids)
    assert shared.read(_column(1, 0, 1, 0), threads.column).tolist() == [[2], [1], [4], [3]]


def test_another_life_has_nothing_of_the_one_before():
    local, threads = _allocated("local")
    local.write(_column(0), _column(1), threads.column, threads)
    local.begin_lifetime(threads.ids[:1])
    assert local.read(_column(0), threads.column[1:]).tolist() == [[1], [1], [1]]
    with pytest.raises(BailOut):
        local.read(_column(0), threads.column)


@pytest.mark.parametrize("index", [-1, 4])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_an_index_out_of_range(index, dtype):
    found, _ = _global(np.arange(4))
    for by_dimension in (True, False):
        for column in (_column(0, index, 1), _column(index)):
            with pytest.raises(BailOut):
                found.offset([column.astype(dtype)], by_dimension)


def test_each_dimension_is_checked():
    found, _ = _global(np.zeros((2, 3), np.int64))
    assert found.offset([_column(0, 1), _column(2)]).tolist() == [[2], [5]]
    assert found.offset([_column(5, 3)], by_dimension=False).tolist() == [[5], [3]]
    for indices in ([_column(0), _column(3)], [_column(2), _column(0)], [_column(0)]):
        with pytest.raises(BailOut):
            found.offset(indices)


def test_without_a_writer_nobody_is_watched():
    found, threads = _global(np.arange(4), is_written=False)
    assert found.read(_column(1), threads.column).tolist() == [[1]]


def test_groups_do_not_wait_for_each_other():
    found, threads = _global(np.arange(4), groups=2, size=1)
    found.read(_column(1, 2), threads.column)
    threads.batch.pass_barrier(threads.ids)
    with pytest.raises(BailOut):
        found.write(_column(0, 1), _column(5), threads.column, threads)


def test_views_are_written_in_place():
    whole = np.zeros((4, 2), np.int64)
    found, threads = _global(whole[::2, 1])
    found.write(_column(1), _column(7), threads.column[:1], threads)
    assert whole.tolist() == [[0, 0], [0, 0], [0, 7], [0, 0]]


def _update(found, threads, operator, *values):
    meaning = arrays.OPERATORS[ATOMIC[operator]]
    found.update(operator, meaning, _column(2), _column(*values), threads)


@pytest.mark.parametrize(("operator", "result"), [("add", 8), ("max", 4), ("xor", 0), ("and", 0)])
def test_all_threads_update_one_element(operator, result):
    found, threads = _global(np.array([0, 0, 2]))
    _update(found, threads, operator, 1, 1 if operator == "add" else 3, 4)
    expected = {"add": 8, "max": 4, "xor": 2 ^ 1 ^ 3 ^ 4, "and": 2 & 1 & 3 & 4}[operator]
    assert found.data.tolist() == [0, 0, expected]


def test_the_order_of_float_updates_shows():
    found, threads = _global(np.zeros(3, np.float32), dtype=F32)
    with pytest.raises(BailOut):
        _update(found, threads, "add", 1, 2, 3)


def test_two_operators_on_one_element():
    found, threads = _global(np.zeros(3, np.int64))
    _update(found, threads, "add", 1, 2, 3)
    with pytest.raises(BailOut):
        _update(found, threads, "max", 1, 2, 3)


def test_too_much_memory(monkeypatch):
    monkeypatch.setattr(module, "_MAX_ELEMENTS", 7)
    with pytest.raises(BailOut):
        _allocated("local")
    assert _allocated("shared")[0].data.size == 4
