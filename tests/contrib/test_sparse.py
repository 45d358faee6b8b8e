"""Classic programs with sparse matrices, and the refusals of matrices that are none."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.contrib import sparse
from refcomp.foundation.errors import UserError
from refcomp.runtime.device import Device
from tests.runtime.fake_device import FakeDriver

RANDOM = np.random.default_rng(5)


def sparse_values(rows: int, columns: int, dtype: str = "float32") -> np.ndarray:
    return np.maximum(RANDOM.uniform(size=(rows, columns)) - 0.6, 0).astype(dtype)


def run(out: rc.te.Tensor, tensors: list, arrays: list, target: str) -> np.ndarray:
    device = rc.cpu() if target == "interp" else rc.context(target)
    schedule = rc.topi.schedule_gpu if target == "opencl" else rc.create_schedule
    module = rc.build(schedule([out]), [*tensors, out], target)
    given = [a if isinstance(a, rc.NDArray) else rc.array(a, device) for a in arrays]
    made = rc.array(np.zeros([int(str(n)) for n in out.shape], np.float32), device)
    module(*given, made)
    return made.asnumpy()


TARGETS = [
    "interp",
    pytest.param("llvm", marks=pytest.mark.llvm),
    pytest.param("opencl", marks=pytest.mark.pocl),
]


@pytest.mark.parametrize("target", TARGETS)
def test_products_agree_with_dense_ones(target):
    device = rc.cpu() if target == "interp" else rc.context(target)
    values = sparse_values(5, 7)
    a = sparse.array(values, device)
    A = sparse.placeholder((5, 7), name="A")
    parts = [A.data, A.indices, A.indptr]
    given = [a.data, a.indices, a.indptr]
    b, x, y = (RANDOM.uniform(size=n).astype("float32") for n in ((7, 3), (7, 1), (5,)))
    B, X, Y = (rc.placeholder(n.shape, name=name) for n, name in ((b, "B"), (x, "X"), (y, "Y")))
    V = rc.placeholder((7,), name="V")
    cases = [
        (sparse.csrmm(A, B), [B], [b], values @ b),
        (sparse.csrmv(A, X), [X], [x], values @ x),
        (sparse.csrmv(A, X, Y), [X, Y], [x, y], values @ x + y[:, None]),
        (sparse.csrmv(A, V, Y), [V, Y], [x[:, 0], y], values @ x[:, 0] + y),
    ]
    for out, tensors, arrays, expected in cases:
        found = run(out, [*parts, *tensors], [*given, *arrays], target)
        rc.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_dense_layers_with_a_sparse_matrix(target):
    device = rc.cpu() if target == "interp" else rc.context(target)
    data, weight = sparse_values(4, 6), sparse_values(3, 6)
    bias = RANDOM.uniform(size=3).astype("float32")
    Bias = rc.placeholder((3,), name="bias")
    expected = data @ weight.T + bias
    S, D = sparse.placeholder((4, 6), name="S"), rc.placeholder((3, 6), name="D")
    s = sparse.array(data, device)
    found = run(
        sparse.dense(S, D, Bias),
        [S.data, S.indices, S.indptr, D, Bias],
        [s.data, s.indices, s.indptr, weight, bias],
        target,
    )
    rc.testing.assert_allclose(found, expected, rtol=1e-5)
    W, X = sparse.placeholder((3, 6), name="W"), rc.placeholder((4, 6), name="X")
    w = sparse.array(weight, device)
    found = run(
        sparse.dense(X, W, Bias),
        [X, W.data, W.indices, W.indptr, Bias],
        [data, w.data, w.indices, w.indptr, bias],
        target,
    )
    rc.testing.assert_allclose(found, expected, rtol=1e-5)


def test_elementwise_program_of_the_classic_tests():
    values = sparse_values(3, 3)
    a = sparse.array(values)
    A = sparse.placeholder((rc.var("m"), rc.var("n")), name="A")
    C = rc.compute(A.data.shape, lambda i: A.data[i] * 2.0, tag="cs_scatter")
    f = rc.build(rc.create_schedule(C.op), [A.data, C], "interp")
    doubled = rc.empty(a.data.shape, "float32")
    f(a.data, doubled)
    c = sparse.array((doubled, a.indices, a.indptr), shape=a.shape)
    assert (c.asnumpy() == 2 * values).all()


def test_array_stores_what_is_not_zero():
    matrix = np.array([[0.0, np.nan, -0.0], [0, 0, 0], [np.inf, 0, 1]])
    a = sparse.array(matrix)
    assert (a.shape, a.dtype, a.stype) == ((3, 3), "float64", "csr")
    assert a.indptr.asnumpy().tolist() == [0, 1, 1, 3]
    assert a.indices.asnumpy().tolist() == [1, 0, 2]
    assert np.array_equal(a.asnumpy(), np.abs(matrix), equal_nan=True)
    assert (a.indices.dtype, a.indptr.dtype) == ("int32", "int32")
    assert repr(a) == "CSRNDArray(shape=(3, 3), dtype=float64, stored=3, device=cpu:0)"


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 2)])
def test_matrices_without_elements(shape):
    a = sparse.array(np.zeros(shape, np.float32))
    assert a.asnumpy().shape == shape and a.data.shape == (0,)
    empty = sparse.array(([], [], np.zeros(shape[0] + 1, int)), shape=shape, dtype="float32")
    assert empty.asnumpy().tolist() == a.asnumpy().tolist()


def test_array_of_an_array_is_a_copy_of_the_dtype_and_device():
    a = sparse.array([[0, 1], [2, 0]], dtype="float32")
    device = Device("far", 0, FakeDriver())
    b = sparse.array(a, device, dtype="float16")
    assert (b.dtype, b.device, b.ctx) == ("float16", device, device)
    assert b.asnumpy().tolist() == a.asnumpy().tolist()
    a.data[:] = 9
    assert b.asnumpy().tolist() == [[0, 1], [2, 0]]


def test_stored_elements_at_one_place_add_up():
    a = sparse.array(([1.0, 2.0], [1, 1], [0, 2]), shape=(1, 2))
    assert a.asnumpy().tolist() == [[0, 3]]


@pytest.mark.parametrize(
    ("source", "shape", "message"),
    [
        ([1.0, 2.0], None, "a sparse matrix cannot be made of 1 dimensions"),
        (np.ones((2, 2)), (2, 3), r"shape \(2, 2\) is given with shape=\(2, 3\)"),
        (np.ones((2, 2)), (4,), r"\(4,\) is not the shape of a sparse matrix"),
        (np.ones((2, 2)), (2, -1), r"\(2, -1\) is not the shape"),
        (([1.0], [0]), (1, 1), "this tuple does not describe a sparse matrix"),
        (([1.0], [0], [0, 1]), None, r"does not describe a sparse(.|\n)*shape=\(rows, columns\)"),
        (([1.0], [0, 1], [0, 1]), (1, 2), r"their shapes are \(1,\), \(2,\), \(2,\)"),
        (([1.0], [0.5], [0, 1]), (1, 1), "indices are of float64, and indptr of int64"),
        (([1.0], [0], [0, 1]), (2, 1), "indptr has 2 elements, and there are 2 rows\n.*pass 3"),
        (([1.0], [0], [1, 1]), (1, 1), r"indptr is \[1, 1\], and 1 elements are"),
        (([1.0], [0], [0, 2]), (1, 1), r"indptr is \[0, 2\], and"),
        (([1.0], [0], [0, 2, 1]), (2, 1), r"indptr is \[0, 2, 1\], and"),
        (
            ([1.0], [1], [0, 1]),
            (1, 1),
            "an element is in column 1, and there are 1 columns\n.*from 0 to 0",
        ),
        (([1.0], [-1], [0, 1]), (1, 1), "an element is in column -1"),
        (([1.0], [0], [0, 1]), (1, 0), "in column 0, and there are 0 columns\n.*pass no"),
    ],
)
def test_what_is_not_a_sparse_matrix_is_refused(source, shape, message):
    with pytest.raises(UserError, match=message):
        sparse.array(source, shape=shape)


def test_placeholder_has_a_number_of_elements_of_its_own():
    A, B = (sparse.placeholder((4, 3), None, "float64", name) for name in "AB")
    assert str(A.data.shape) == "(A_nonzeros,)" and str(B.data.shape) == "(B_nonzeros,)"
    assert str(A.indptr.shape) == "(5,)" and str(A.dtype) == "f64"
    assert str(sparse.placeholder((4, 3), nonzeros=7).data.shape) == "(7,)"


def test_mistakes_are_refused():
    A = sparse.placeholder((4, 3), name="A")
    B, X, Y = (
        rc.placeholder(n, name=name) for n, name in (((4, 2), "B"), ((3, 2), "X"), ((), "Y"))
    )
    for call, message in (
        (lambda: sparse.placeholder((4,)), "is declared with 1 dimensions"),
        (lambda: sparse.placeholder((4, 3), stype="csc"), "cannot be stored as 'csc'"),
        (lambda: sparse.csrmm(B, X), "csrmm is applied to a Tensor, not to a sparse matrix"),
        (lambda: sparse.csrmm(A, B), "csrmm: extent 0 of B is 4 instead of 3"),
        (lambda: sparse.csrmv(A, X), "csrmv: the columns of x is 2 instead of 1"),
        (lambda: sparse.csrmv(A, B), "csrmv: extent 0 of B is 4 instead of 3"),
        (lambda: sparse.csrmv(A, Y), "csrmv: x has 0 dimensions instead of 2"),
        (lambda: sparse.csrmv(A, rc.placeholder((3,)), X), "csrmv: y has 2 dimensions inst"),
        (lambda: sparse.dense(A, A), "dense is applied to two sparse matrices"),
        (lambda: sparse.dense(B, X), "not applied to a sparse matrix(.|\n)*topi.dense"),
        (lambda: sparse.dense(A, X), "dense: extent 1 of X is 2 instead of 3"),
        (lambda: sparse.dense(X, A), "dense: extent 1 of X is 2 instead of 3"),
    ):
        with pytest.raises(UserError, match=message):
            call()
