"""Gradients of poolings: values by hand, te.gradient of the pooling, and what is refused."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.pooling import gradients, pool2d
from tests.strategies.operands import assert_same, run_te, tensors


def line(*values: float) -> np.ndarray:
    return np.array(values, np.float32).reshape(1, 1, 1, -1)


def test_first_maximum_gets_the_gradient() -> None:
    operands = (line(1, 10), line(5, 5, 2))
    assert_same(
        run_te(gradients.max_pool2d_grad, *operands, kernel=(1, 2), is_symbolic=False),
        line(1, 10, 0),
    )
    assert_same(gradients.max_pool2d_grad_numpy(*operands, kernel=(1, 2)), line(1, 10, 0))


@pytest.mark.parametrize(("counted", "expected"), [(False, [4, 0]), (True, [2, 0])])
def test_padding_gets_no_gradient(counted, expected):
    how = {"kernel": (1, 2), "strides": (1, 2), "padding": (0, 1, 0, 0)}
    how["count_include_pad"] = counted
    operands = (line(4), line(0, 0))
    result = run_te(gradients.avg_pool2d_grad, *operands, **how, is_symbolic=False)
    assert_same(result, line(*expected))
    assert_same(gradients.avg_pool2d_grad_numpy(*operands, **how), line(*expected))


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_it_is_the_gradient_of_the_pooling(kind):
    how = {"kernel": (2, 3), "strides": (2, 1), "padding": (1, 0, 0, 2)}
    random = np.random.default_rng(0)
    data = rc.placeholder((2, 1, 3, 4), name="X")
    pooled = getattr(pool2d, f"{kind}_pool2d")(data, **how)
    head = rc.placeholder(pooled.shape, name="head")
    (derived,) = rc.te.gradient(pooled, [data], head)
    own = getattr(gradients, f"{kind}_pool2d_grad")(head, data, **how)
    feeds = {
        data: random.permutation(24).reshape(2, 1, 3, 4).astype(np.float32),
        head: random.standard_normal((2, 1, 2, 4)).astype(np.float32),
    }
    needed = feeds if kind == "max" else {head: feeds[head]}
    (wanted,) = rc.oracle.evaluate([derived], needed)
    (found,) = rc.oracle.evaluate([own], needed)
    assert_same(found, wanted, 1e-6)


def test_windows_of_padding_alone_add_nothing():
    """Their average is NaN where padding does not count; the gradient stays finite."""
    how = {"kernel": (2, 2), "strides": (2, 1), "padding": (3, 4, 3, 0), "count_include_pad": False}
    data = rc.placeholder((1, 1, 3, 2), name="X")
    pooled = pool2d.avg_pool2d(data, **how)
    head = rc.placeholder(pooled.shape, name="head")
    (derived,) = rc.te.gradient(pooled, [data], head)
    own = gradients.avg_pool2d_grad(head, data, **how)
    values = np.random.default_rng(0).standard_normal((1, 1, 4, 5)).astype(np.float32)
    wanted = np.zeros((1, 1, 3, 2), np.float32)
    for row, column in np.ndindex(4, 5):
        rows, columns = (
            [k for k in (at, at + 1) if 0 <= k < end]
            for at, end in ((2 * row - 3, 3), (column - 4, 2))
        )
        for y, x in ((y, x) for y in rows for x in columns):
            wanted[0, 0, y, x] += values[0, 0, row, column] / (len(rows) * len(columns))
    for result in (derived, own):
        (found,) = rc.oracle.evaluate([result], {head: values})
        assert_same(found, wanted, 1e-5)


def test_ill_formed_calls_are_refused() -> None:
    grad, data = tensors((1, 1, 1, 3), (1, 1, 1, 3))
    with pytest.raises(UserError, match="max_pool2d_grad: grad is 3 instead of 2"):
        gradients.max_pool2d_grad(grad, data, kernel=(1, 2))
    with pytest.raises(UserError, match=r"avg_pool2d_grad cannot have the kernel \(2,\)"):
        gradients.avg_pool2d_grad(grad, data, kernel=(2,))
    (flat,) = tensors((1, 1, 3))
    with pytest.raises(UserError, match="avg_pool2d_grad: grad has 3 dimensions instead of 4"):
        gradients.avg_pool2d_grad(flat, data, kernel=(1, 1))
    (half,) = tensors((1, 1, 1, 3), dtype="float16")
    with pytest.raises(UserError, match="max_pool2d_grad cannot combine f32 with f16"):
        gradients.max_pool2d_grad(half, data, kernel=(1, 1))
    (whole,) = tensors((1, 1, 1, 3), dtype="int32")
    with pytest.raises(UserError, match="max_pool2d_grad takes float tensors"):
        gradients.max_pool2d_grad(grad, whole, kernel=(1, 1))
