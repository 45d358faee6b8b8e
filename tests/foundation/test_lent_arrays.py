import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.foundation.lent_arrays import LentArray


def _lent(count=3):
    memory = np.arange(count, dtype="float32")
    return memory, memory.view(LentArray)


def test_a_copy_outlives_the_memory_and_a_view_shares_it():
    memory, lent = _lent()
    copied = lent.asnumpy()
    shared = lent.numpy()
    memory[0] = 9
    assert copied.tolist() == [0, 1, 2] and shared.tolist() == [9, 1, 2]
    assert type(copied) is np.ndarray and type(shared) is np.ndarray


def test_elements_are_copied_both_ways():
    memory, lent = _lent()
    assert lent.copyfrom([4, 5, 6]) is lent and memory.tolist() == [4, 5, 6]
    array = rc.nd.array(np.zeros(3, "float32"))
    assert lent.copyto(array) is array and array.asnumpy().tolist() == [4, 5, 6]
    _, other = _lent()
    assert lent.copyto(other) is other and other.tolist() == [4, 5, 6]
    assert rc.nd.array(np.ones(3, "float32")).copyto(lent) is lent and memory.tolist() == [1] * 3


def test_what_cannot_be_copied_is_refused():
    memory, lent = _lent()
    with pytest.raises(UserError, match=r"shape \(2,\) cannot be copied to an array of shape \(3"):
        lent.copyfrom([1, 2])
    with pytest.raises(UserError, match=r"copyto cannot write a list(.|\n)*a\.asnumpy\(\)"):
        lent.copyto([0, 0, 0])
    with pytest.raises(UserError, match="copyto cannot convert int32 to float32"):
        rc.nd.array(np.ones(3, "int32")).copyto(lent)
    lent.flags.writeable = False
    with pytest.raises(UserError, match=r"the array is read-only(.|\n)*write to an output"):
        lent.copyfrom([1, 2, 3])
    assert memory.tolist() == [0, 1, 2]


@pytest.mark.parametrize("target", ["interp", pytest.param("llvm", marks=pytest.mark.llvm)])
def test_the_callback_of_the_classic_tutorial_runs(target):
    def add_one(x, y):
        rc.nd.array(x.asnumpy() + 1).copyto(y)

    rc.register_func("tests.add_one", add_one, override=True)
    a = rc.placeholder((4,), name="A")
    call = lambda ins, outs: rc.call_packed("tests.add_one", ins[0], outs[0])  # noqa: E731
    b = rc.extern((4,), [a], call, name="B")
    found = rc.nd.array(np.zeros(4, "float32"))
    rc.build(rc.create_schedule(b), [a, b], target=target)(np.arange(4, dtype="float32"), found)
    assert found.asnumpy().tolist() == [1, 2, 3, 4]
