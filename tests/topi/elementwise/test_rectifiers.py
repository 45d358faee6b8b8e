"""Rectifiers: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.te.gradients.gradient import gradient
from refcomp.topi.elementwise import rectifiers
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf
# name, attributes, operands, results
KNOWN = [
    ("leaky_relu", {}, [-100, 2, -0.0, -INF, INF, NAN], [-1, 2, 0, -INF, INF, NAN]),
    ("leaky_relu", {"alpha": -2.0}, [-3, 3], [6, 3]),
    ("elu", {}, [-1, 2, 0, -INF, 1000, NAN], [np.expm1(-1), 2, 0, -1, 1000, NAN]),
    ("elu", {"alpha": 3.0}, [-INF, -1, 1], [-3, 3 * np.expm1(-1), 1]),
    ("selu", {}, [1, 0, -INF, INF, NAN], [1.05070102, 0, -1.75809934, INF, NAN]),
    ("selu", {"alpha": 1.0, "gamma": 2.0}, [-1, 1], [2 * np.expm1(-1), 2]),
    ("celu", {"alpha": 2.0}, [-2, 3, -INF, INF, NAN], [2 * np.expm1(-1), 3, -2, INF, NAN]),
    ("thresholded_relu", {}, [1, 1.5, -INF, INF, NAN], [0, 1.5, 0, INF, NAN]),
    ("thresholded_relu", {"alpha": -1.0}, [-1, -0.5, 2], [0, -0.5, 2]),
    ("shrink", {}, [-0.5, 0.5, -2, 2, -INF, NAN], [0, 0, -2, 2, -INF, NAN]),
    ("shrink", {"lambd": 1.0, "bias": 1.0}, [-3, -1, 0, 1, 3], [-2, 0, 0, 0, 2]),
]
NAMES = sorted({name for name, *_ in KNOWN})


@pytest.mark.parametrize(("name", "attributes", "given", "expected"), KNOWN)
def test_special_values(name, attributes, given, expected):
    data, wanted = np.float32(given), np.float32(expected)
    assert_same(run_te(getattr(rectifiers, name), data, **attributes), wanted, 1e-6)
    assert_same(getattr(rectifiers, f"{name}_numpy")(data, **attributes), wanted, 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_rank_zero_and_no_elements(name):
    for data in (np.float32(0.5), np.zeros((0, 3), np.float32)):
        assert run_te(getattr(rectifiers, name), data).shape == data.shape


@pytest.mark.parametrize("name", NAMES)
def test_other_operands_are_refused(name):
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        getattr(rectifiers, name)(*tensors((3,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name} is applied to a ndarray, not to a tensor"):
        getattr(rectifiers, name)(np.zeros(2))


def test_slopes_broadcast():
    data = np.float32([[-1, 1], [-2, NAN]])
    slope = np.float32([[0.5], [3]])
    expected = np.float32([[-0.5, 1], [-6, NAN]])
    assert_same(run_te(rectifiers.prelu, data, slope, is_symbolic=False), expected)
    assert_same(rectifiers.prelu_numpy(data, slope), expected)


def test_ill_formed_slopes_are_refused():
    (data,) = tensors((2, 3))
    with pytest.raises(UserError, match="prelu takes float tensors, not i32"):
        rectifiers.prelu(*tensors((2,), (2,), dtype="int32"))
    with pytest.raises(UserError, match="prelu cannot combine f32 with f64"):
        rectifiers.prelu(data, *tensors((3,), dtype="float64"))
    with pytest.raises(UserError, match="prelu: the slopes have 3 dimensions, and the data 2"):
        rectifiers.prelu(data, *tensors((1, 2, 3)))
    with pytest.raises(UserError, match="prelu: extent 0 of the data is 1 instead of 2"):
        rectifiers.prelu(*tensors((1, 3), (2, 3)))
    with pytest.raises(UserError, match="prelu: an extent of the second operand is 2"):
        rectifiers.prelu(data, *tensors((2,)))


@pytest.mark.parametrize("alpha", [0.0, -1.0, NAN])
def test_celu_of_no_depth_is_refused(alpha):
    with pytest.raises(UserError, match="celu cannot have the alpha"):
        rectifiers.celu(*tensors((2,)), alpha=alpha)


@pytest.mark.parametrize("lambd", [-1.0, NAN])
def test_a_negative_threshold_is_refused(lambd):
    with pytest.raises(UserError, match="shrink cannot have the lambd"):
        rectifiers.shrink(*tensors((2,)), lambd=lambd)


@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_slope_of_large_elements_is_finite(name):
    (data, head) = tensors((2,), (2,))
    (slopes,) = gradient(getattr(rectifiers, name)(data), [data], head)
    found = evaluate([slopes], {data: np.float32([1000, 1]), head: np.ones(2, np.float32)})
    assert np.isfinite(found[0]).all()


def test_relu6_of_floats_and_integers():
    for data in (np.float32([-1, 3, 9, NAN, -INF, INF]), np.int8([-128, 6, 7, 0])):
        expected = np.clip(data, 0, 6)
        assert_same(run_te(rectifiers.relu6, data), expected)
        assert_same(rectifiers.relu6_numpy(data), expected)
    with pytest.raises(UserError, match="relu6 takes numbers, not bool"):
        rectifiers.relu6(*tensors((2,), dtype="bool"))
