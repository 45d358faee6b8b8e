"""Repetition to a wanted shape: special shapes and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.broadcast import repetition
from tests.strategies.operands import assert_same, run_te, tensors

NAN = np.nan


def both(name, *arrays, **attributes):
    """Return the result of the compute, which must be its meaning."""
    found = run_te(getattr(repetition, name), *arrays, is_symbolic=False, **attributes)
    with np.errstate(all="ignore"):
        assert_same(getattr(repetition, f"{name}_numpy")(*arrays, **attributes), found, 1e-6)
    return found


@pytest.mark.parametrize(
    ("given", "wanted"),
    [((), ()), ((), (2,)), ((1,), (0,)), ((3,), (2, 3)), ((2, 1), (2, 3)), ((1, 1), (4, 2, 3))],
)
def test_shapes(given, wanted):
    data = np.arange(int(np.prod(given)), dtype=np.int32).reshape(given)
    expected = np.broadcast_to(data, wanted)
    np.testing.assert_array_equal(both("broadcast_to", data, shape=wanted), expected)
    like = np.full(wanted, NAN, np.float32)
    found = repetition.broadcast_like_numpy(data, like)
    np.testing.assert_array_equal(found, expected)


def test_symbolic_extents_are_followed():
    n = var("n")
    data, like = tensors((1, 3), (n, 3))
    assert str(repetition.broadcast_like(data, like).shape[0]) == "n"


def test_ill_formed_calls_are_refused():
    (data,) = tensors((2, 3))
    with pytest.raises(UserError, match="broadcast_to cannot make the shape \\(-1, 3\\)"):
        repetition.broadcast_to(data, shape=(-1, 3))
    with pytest.raises(UserError, match="broadcast_to cannot make 1 dimensions of 2"):
        repetition.broadcast_to(data, shape=(3,))
    with pytest.raises(UserError, match="broadcast_to: extent 0 of the tensor is 2 instead of 4"):
        repetition.broadcast_to(data, shape=(4, 3))
    with pytest.raises(UserError, match="broadcast_to is applied to a int, not to a tensor"):
        repetition.broadcast_to(3, shape=(4, 3))
    with pytest.raises(UserError, match="broadcast_like is applied to a int, not to a tensor"):
        repetition.broadcast_like(data, 3)
    with pytest.raises(UserError, match="broadcast_like: extent 1 of the tensor is 3 instead of 4"):
        repetition.broadcast_like(data, *tensors((2, 4)))
