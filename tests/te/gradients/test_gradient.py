"""Gradients of graphs of computes: values worked by hand, loops that stay short, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import Unsupported, UserError


def _evaluated(tensors, feeds):
    return rc.oracle.evaluate(tensors, feeds)


def _rows(extent=3):
    x = rc.placeholder((extent,), "float64", name="X")
    return x, rc.reduce_axis(extent, name="k")


def test_the_default_head_gives_the_jacobian() -> None:
    x, _ = _rows()
    y = rc.compute((3,), lambda i: x[i] * x[i], name="Y")
    (jacobian,) = rc.te.gradient(y, x)
    (found,) = _evaluated([jacobian], {x: np.array([1.0, 2.0, 3.0])})
    np.testing.assert_array_equal(found, np.diag([2.0, 4.0, 6.0]))


def test_a_head_with_further_axes_keeps_them() -> None:
    x, _ = _rows()
    y = rc.compute((3,), lambda i: x[i] * 2.0, name="Y")
    head = rc.placeholder((2, 3), "float64", name="H")
    (grad,) = rc.te.gradient(y, x, head)
    weights = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
    (found,) = _evaluated([grad], {head: weights})
    np.testing.assert_array_equal(found, weights * 2)


def test_a_tensor_that_is_read_twice_sums_what_both_contribute() -> None:
    x, k = _rows()
    total = rc.compute((), lambda: rc.sum(x[k], axis=k), name="total")
    y = rc.compute((3,), lambda i: x[i] * total, name="Y")
    head = rc.placeholder((3,), "float64", name="H")
    (grad,) = rc.te.gradient(y, x, head)
    values, weights = np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.0, 3.0])
    (found,) = _evaluated([grad], {x: values, head: weights})
    np.testing.assert_array_equal(found, weights * 7 + weights @ values)


def test_places_of_a_maximum_share_its_adjoint() -> None:
    x, k = _rows(4)
    y = rc.compute((), lambda: rc.max(x[k], axis=k), name="Y")
    (grad,) = rc.te.gradient(y, x)
    (found,) = _evaluated([grad], {x: np.array([5.0, 1.0, 5.0, 2.0])})
    np.testing.assert_array_equal(found, [0.5, 0.0, 0.5, 0.0])


def test_a_product_with_a_zero_has_a_gradient() -> None:
    x, k = _rows()
    y = rc.compute((), lambda: rc.te.prod(x[k], axis=k), name="Y")
    (grad,) = rc.te.gradient(y, x)
    (found,) = _evaluated([grad], {x: np.array([2.0, 0.0, 5.0])})
    np.testing.assert_array_equal(found, [0.0, 10.0, 0.0])


def test_only_iterations_under_the_condition_count() -> None:
    x, k = _rows()
    y = rc.compute((), lambda: rc.sum(x[k], axis=k, where=k > 0), name="Y")
    (grad,) = rc.te.gradient(y, x)
    np.testing.assert_array_equal(_evaluated([grad], {})[0], [0.0, 1.0, 1.0])


def test_indices_from_a_tensor_gather_and_the_gradient_scatters() -> None:
    x, _ = _rows()
    index = rc.placeholder((4,), "int32", name="index")
    y = rc.compute((4,), lambda i: x[index[i]], name="Y")
    head = rc.placeholder((4,), "float64", name="H")
    (grad,) = rc.te.gradient(y, x, head)
    feeds = {index: np.array([2, 0, 2, 2], "int32"), head: np.array([1.0, 10.0, 100.0, 1000.0])}
    np.testing.assert_array_equal(_evaluated([grad], feeds)[0], [10.0, 0.0, 1101.0])


def test_an_index_is_read_only_where_it_exists() -> None:
    # Fewer rows of indices than of elements: the index of the third row does not exist.
    x = rc.placeholder((3, 2), "float64", name="X")
    places = rc.placeholder((2, 2), "int32", name="P")
    y = rc.compute((2, 2), lambda i, j: x[i, places[i, j]], name="Y")
    head = rc.placeholder((2, 2), "float64", name="H")
    (grad,) = rc.te.gradient(y, x, head)
    feeds = {places: np.array([[1, 1], [0, 1]], "int32"), head: np.array([[1.0, 2], [3, 4]])}
    (found,) = _evaluated([grad], feeds)
    np.testing.assert_array_equal(found, [[0, 3], [3, 4], [0, 0]])


def test_an_input_without_influence_has_a_gradient_of_zeros() -> None:
    x, _ = _rows()
    y = rc.compute((3,), lambda i: rc.floor(x[i]), name="Y")
    (grad,) = rc.te.gradient(y, x, rc.placeholder((3,), "float64", name="H"))
    np.testing.assert_array_equal(_evaluated([grad], {})[0], np.zeros(3))


def test_symbolic_extents_are_kept() -> None:
    n = rc.var("n")
    x = rc.placeholder((n, 2), name="X")
    k = rc.reduce_axis(2, name="k")
    y = rc.compute((n,), lambda i: rc.sum(x[i, k], axis=k), name="Y")
    head = rc.placeholder((n,), name="H")
    (grad,) = rc.te.gradient(y, x, head)
    assert "X_grad[i0, i1] = H[i0]" in str(rc.lower(rc.create_schedule(grad.op), [head, grad]))


def test_a_convolution_by_a_stride_reads_its_window_only() -> None:
    x = rc.placeholder((9,), name="X")
    w = rc.placeholder((3,), name="W")
    k = rc.reduce_axis(3, name="k")
    y = rc.compute((4,), lambda i: rc.sum(x[i * 2 + k] * w[k], axis=k), name="Y")
    head = rc.placeholder((4,), name="H")
    (grad,) = rc.te.gradient(y, x, head)
    assert [axis.extent.value for axis in grad.op.reduce_axis] == [3]


def test_a_compiled_gradient() -> None:
    x, k = _rows()
    y = rc.compute((), lambda: rc.sum(rc.exp(x[k]), axis=k), name="Y")
    (grad,) = rc.te.gradient(y, x)
    out = np.zeros(3)
    rc.build(rc.create_schedule(grad.op), [x, grad], target="interp")(np.arange(3.0), out)
    np.testing.assert_allclose(out, np.exp(np.arange(3.0)), rtol=1e-15)


def _scanned():
    x = rc.placeholder((4, 2), name="X")
    state = rc.placeholder((4, 2), name="state")
    init = rc.compute((1, 2), lambda _, i: x[0, i], name="init")
    update = rc.compute((4, 2), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    return x, rc.scan(init, update, state, inputs=[x], name="S")


def _own_reduction():
    x, k = _rows()
    own = rc.comm_reducer(lambda a, b: a + b + a * b, lambda t: rc.const(0, t), name="own")
    return x, rc.compute((), lambda: own(x[k], axis=k), name="Y")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_scanned, "gradient through a scan: S"),
        (_own_reduction, "gradient through the reduction own of Y"),
    ],
)
def test_what_is_not_differentiated_is_refused(make, message):
    x, y = make()
    with pytest.raises(Unsupported, match=message) as info:
        rc.te.gradient(y, x, rc.placeholder(y.shape, y.dtype, name="H"))
    assert "by hand" in info.value.remedy


def test_wrong_arguments_are_refused() -> None:
    x, _ = _rows()
    y = rc.compute((3,), lambda i: x[i] * 2.0, name="Y")
    z = rc.placeholder((3,), "float64", name="Z")
    whole = rc.placeholder((3,), "int32", name="I")
    with pytest.raises(UserError, match="gradient is applied to a int, not to a tensor"):
        rc.te.gradient(y, [3])
    with pytest.raises(UserError, match="I has no gradient, since it holds i32"):
        rc.te.gradient(y, whole)
    with pytest.raises(UserError, match="Y does not depend on Z"):
        rc.te.gradient(y, z)
    for head in (rc.placeholder((4,), "float64", name="H"), rc.placeholder((3,), name="H")):
        with pytest.raises(UserError, match="the head H does not fit the output Y"):
            rc.te.gradient(y, x, head)


def test_vectors_have_no_gradient() -> None:
    x = rc.placeholder((3,), "float32x4", name="X")
    y = rc.compute((3,), lambda i: x[i] * x[i], name="Y")
    with pytest.raises(UserError, match="X has no gradient, since it holds vectors of f32x4"):
        rc.te.gradient(y, [x])
