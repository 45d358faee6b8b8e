"""squeeze, expand_dims, stack, swap_axes and moveaxis: shapes, symbols, refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.extents import extents
from refcomp.te.tensor import var
from refcomp.topi.movement import axes
from tests.strategies.operands import assert_same, integers, run_te, tensors


def test_symbolic_extents_are_kept():
    n = var("n")
    (data,) = tensors((n, 1, 3))
    assert extents(axes.squeeze(data)) == (n, 3)
    assert extents(axes.expand_dims(data, axis=(0, -1))) == (1, n, 1, 3, 1)
    assert extents(axes.stack(data, data, axis=1)) == (n, 2, 1, 3)
    assert extents(axes.swap_axes(data, axis1=0, axis2=2)) == (3, 1, n)
    assert extents(axes.moveaxis(data, source=(0, 1), destination=(-1, 0))) == (1, 3, n)


def test_elements_keep_their_bits():
    data = integers(3, 2, 1, 3)
    data[0, 0] = [np.nan, -0.0, np.inf]
    assert_same(run_te(axes.squeeze, data, axis=[1]), data[:, 0])
    assert_same(run_te(axes.moveaxis, data, source=[0, 2], destination=[2, 0]), data.T)
    assert_same(run_te(axes.swap_axes, data, axis1=-1, axis2=0), data.T)
    joined = run_te(axes.stack, data, data + 1, is_symbolic=False, axis=-1)
    assert_same(joined, np.stack([data, data + 1], -1))


def test_ill_formed_calls_are_refused():
    data, other = tensors((2, 3), (2, 4))
    with pytest.raises(UserError, match="the extent of axis 1 is 3 instead of 1"):
        axes.squeeze(data, axis=1)
    with pytest.raises(UserError, match="squeeze: axis 2 is out of range"):
        axes.squeeze(data, axis=2)
    with pytest.raises(UserError, match="expand_dims names an axis twice"):
        axes.expand_dims(data, axis=(0, -4))
    with pytest.raises(UserError, match="expand_dims: axis 3 is out of range for 3 dim"):
        axes.expand_dims(data, axis=3)
    with pytest.raises(UserError, match="stack has no tensors"):
        axes.stack()
    with pytest.raises(UserError, match="extent 1 of operand 1 is 4 instead of 3"):
        axes.stack(data, other)
    with pytest.raises(UserError, match="operand 1 has 1 dimensions instead of 2"):
        axes.stack(data, *tensors((2,)))
    with pytest.raises(UserError, match="stack cannot combine f32 with i32"):
        axes.stack(data, *tensors((2, 3), dtype="int32"))
    with pytest.raises(UserError, match="swap_axes: axis -3 is out of range"):
        axes.swap_axes(data, axis1=0, axis2=-3)
    with pytest.raises(UserError, match="moveaxis cannot move 2 axes to 1 positions"):
        axes.moveaxis(data, source=(0, 1), destination=0)
    with pytest.raises(UserError, match="moveaxis names an axis twice"):
        axes.moveaxis(data, source=(0, 0), destination=(0, 1))
    calls = {"expand_dims": {"axis": 0}, "moveaxis": {"source": 0, "destination": 0}}
    calls |= {"squeeze": {}, "stack": {}, "swap_axes": {"axis1": 0, "axis2": 0}}
    for name, attributes in calls.items():
        with pytest.raises(UserError, match=f"{name} is applied to a ndarray"):
            getattr(axes, name)(np.zeros((2, 3)), **attributes)
