"""Grey dilation: known values, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.image.morphology import dilation2d
from refcomp.topi.pooling.pool2d import max_pool2d_numpy
from tests.strategies.operands import assert_same, floats, run_te, tensors


def test_a_flat_weight_makes_a_maximum():
    data = floats(0, 2, 3, 5, 4)
    how = {"strides": (2, 1), "padding": (1, 0, 0, 1)}
    made = run_te(dilation2d, data, np.zeros((3, 2, 2), np.float32), is_symbolic=False, **how)
    assert_same(made, max_pool2d_numpy(data, kernel=(2, 2), **how))


def test_dilation_by_hand():
    data = np.array([1, 5, 2], np.float32).reshape(1, 1, 3, 1)
    weight = np.array([0, 1], np.float32).reshape(1, 2, 1)
    how = {"layout": "NHWC", "dilations": (1, 2), "padding": (0, 0, 0, 0)}
    made = run_te(dilation2d, data, weight, is_symbolic=False, **how)
    assert made.ravel().tolist() == [3]


def test_a_window_outside_is_minus_infinity():
    data = np.ones((1, 1, 1, 1), np.float32)
    weight = np.full((1, 1, 1), np.inf, np.float32)
    made = run_te(dilation2d, data, weight, is_symbolic=False, padding=(0, 1, 0, 0))
    assert made.ravel().tolist() == [-np.inf, np.inf]


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((1, 4, 4), (1, 2, 2)), {}, "dilation2d: the data has 3 dimensions"),
        (((1, 1, 4, 4), (2, 2)), {}, "dilation2d: the weight has 2 dimensions"),
        (((1, 1, 4, 4), (2, 2, 2)), {}, "the number of channels of the weight is 2 instead of 1"),
        (((1, 1, 4, 4), (1, 0, 2)), {}, r"cannot have the kernel \(0, 2\)"),
        (((1, 1, 4, 4), (1, 5, 2)), {}, "a window of 5 does not fit in 4 elements"),
        (((1, 1, 4, var("w")), (1, 2, 2)), {}, "a spatial extent must be a constant"),
        (((1, 1, 4, 4), (1, 2, 2)), {"strides": (0, 1)}, r"the strides \(0, 1\)"),
        (((1, 1, 4, 4), (1, 2, 2)), {"dilations": (0, 1)}, r"the dilations \(0, 1\)"),
        (((1, 1, 4, 4), (1, 2, 2)), {"padding": (1,)}, r"cannot use the padding \(1,\)"),
        (((1, 1, 4, 4), (1, 2, 2)), {"layout": "CHW"}, "does not know the layout 'CHW'"),
    ],
)
def test_ill_formed_dilations_are_refused(shapes, options, message):
    with pytest.raises(UserError, match=message):
        dilation2d(*tensors(*shapes), **options)


def test_integers_are_refused():
    with pytest.raises(UserError, match="dilation2d takes float tensors, not u8"):
        dilation2d(*tensors((1, 1, 4, 4), (1, 2, 2), dtype="uint8"))
