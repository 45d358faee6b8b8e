"""take, index_select, embedding, gather, gather_elements: indices out of range, refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.movement import gather as operators
from tests.strategies.operands import run_te, tensors

DATA = np.array([5, 6, 7], np.int32)
FAR = np.array([-(2**63), -4, -3, -1, 0, 2, 3, 2**63 - 1])


def test_indices_out_of_range_are_brought_into_range():
    clipped = run_te(operators.take, DATA, FAR, axis=0)
    assert clipped.tolist() == [5, 5, 5, 5, 5, 7, 7, 7]
    wrapped = run_te(operators.take, DATA, FAR, axis=0, mode="wrap")
    assert wrapped.tolist() == [DATA[int(i) % 3] for i in FAR]
    from_end = [5, 5, 5, 7, 5, 7, 7, 7]
    assert run_te(operators.index_select, DATA, FAR).tolist() == from_end
    assert run_te(operators.gather, DATA, FAR, axis=-1).tolist() == from_end
    assert run_te(operators.gather_elements, DATA, FAR).tolist() == from_end
    rows = run_te(operators.embedding, FAR, DATA.reshape(3, 1))
    assert rows[:, 0].tolist() == clipped.tolist()


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_large_unsigned_indices_do_not_become_negative(mode):
    far = np.array([2**64 - 1, 2**63, 1], np.uint64)
    meant = [7, 7, 6] if mode == "clip" else [DATA[(2**64 - 1) % 3], DATA[2**63 % 3], 6]
    assert run_te(operators.take, DATA, far, axis=0, mode=mode).tolist() == meant
    assert run_te(operators.gather, DATA, far, axis=0).tolist() == [7, 7, 6]


@pytest.mark.parametrize("is_symbolic", [True, False])
def test_an_axis_without_elements_gives_zeros(is_symbolic):
    empty = np.zeros((0, 2), np.float32)
    indices = np.array([1, -1], np.int32)
    for mode in ("clip", "wrap"):
        found = run_te(operators.take, empty, indices, is_symbolic=is_symbolic, axis=0, mode=mode)
        assert found.tolist() == [[0, 0], [0, 0]]
    found = run_te(operators.index_select, empty, indices, is_symbolic=is_symbolic)
    assert found.tolist() == [[0, 0], [0, 0]]


def test_shapes_of_results():
    data = np.arange(6, dtype=np.int32).reshape(2, 3)
    indices = np.array([[0, 2], [1, 1]])
    assert run_te(operators.take, data, indices, axis=-1).tolist() == data[:, indices].tolist()
    assert run_te(operators.take, data, indices).tolist() == [[0, 2], [1, 1]]
    assert run_te(operators.take, data, np.array(4)).tolist() == 4
    found = run_te(operators.gather, data, indices, axis=1, is_symbolic=False)
    assert found.tolist() == [[0, 2], [4, 4]]
    few = run_te(operators.gather, data, indices[:, :1], axis=0, is_symbolic=False)
    assert few.tolist() == [[0], [3]]


def test_ill_formed_calls_are_refused():
    (data,) = tensors((2, 3))
    indices, long = tensors((2,), (2, 4), dtype="int32")
    with pytest.raises(UserError, match="take does not know the mode 'fast'"):
        operators.take(data, indices, mode="fast")
    with pytest.raises(UserError, match="take: axis 2 is out of range"):
        operators.take(data, indices, axis=2)
    with pytest.raises(UserError, match="index_select: indices has 2 dimensions instead of 1"):
        operators.index_select(data, long)
    with pytest.raises(UserError, match="index_select: axis -3 is out of range"):
        operators.index_select(data, indices, axis=-3)
    with pytest.raises(UserError, match="embedding: weight has 1 dimensions instead of 2"):
        operators.embedding(indices, indices)
    with pytest.raises(UserError, match="gather: indices has 1 dimensions instead of 2"):
        operators.gather(data, indices, axis=0)
    with pytest.raises(UserError, match="gather_elements: extent 1 of indices is 4 instead of 3"):
        operators.gather_elements(data, long)
    with pytest.raises(UserError, match="gather: axis 2 is out of range"):
        operators.gather(data, long, axis=2)
    with pytest.raises(UserError, match="embedding takes integer tensors, not f32"):
        operators.embedding(data, data)
    for name in ("take", "index_select", "gather", "gather_elements"):
        with pytest.raises(UserError, match=f"{name} takes integer tensors, not f32"):
            getattr(operators, name)(data, data, axis=0)
        with pytest.raises(UserError, match=f"{name} is applied to a int"):
            getattr(operators, name)(3, indices, axis=0)
