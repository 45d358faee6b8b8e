"""Products with sparse matrices: special values, parts that are out of range, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.contraction.csr import csrmm, csrmm_numpy, sparse_dense, sparse_dense_numpy
from tests.strategies.operands import tensors

_DATA = np.array([5, 6, 7], np.float32)
_COLUMNS = np.array([1, 0, 1], np.int32)
_ROWS = np.array([0, 1, 3], np.int32)
_DENSE = np.array([[0, 5], [6, 7]], np.float32)
_B = np.array([[1, 2, 3], [10, 20, 30]], np.float32)


def evaluate(operator, *arrays, **attributes):
    given = [rc.placeholder(a.shape, a.dtype, name=f"p{k}") for k, a in enumerate(arrays)]
    made = operator(*given, **attributes)
    (found,) = rc.oracle.evaluate([made], dict(zip(given, arrays, strict=True)))
    return found


def test_products_are_those_of_the_dense_matrix():
    c = np.array([100, 200, 300], np.float32)
    for found in (
        evaluate(csrmm, _DATA, _COLUMNS, _ROWS, _B, c),
        csrmm_numpy(_DATA, _COLUMNS, _ROWS, _B, c),
    ):
        assert found.tolist() == (_DENSE @ _B + c).tolist()
    transposed = evaluate(csrmm, _DATA, _COLUMNS, _ROWS, _B.T.copy(), trans_b=True)
    assert transposed.tolist() == (_DENSE @ _B).tolist()
    given = (_B.T.copy(), _DATA, _COLUMNS, _ROWS, np.array([1, 2], np.float32))
    for found in (evaluate(sparse_dense, *given), sparse_dense_numpy(*given)):
        assert found.tolist() == (_B.T @ _DENSE.T + [1, 2]).tolist()


def test_an_element_that_is_not_stored_is_not_multiplied():
    b = np.array([[np.nan], [2]], np.float32)
    assert evaluate(csrmm, _DATA, _COLUMNS, _ROWS, b)[0].tolist() == [10.0]
    assert np.isnan(evaluate(csrmm, _DATA, _COLUMNS, _ROWS, b)[1])


@pytest.mark.parametrize(
    ("columns", "rows", "expected"),
    [
        ([1, 2, 1], [0, 1, 3], [[50], [70]]),
        ([-1, 0, 2**31 - 1], [0, 1, 3], [[0], [6]]),
        ([1, 0, 1], [-5, 1, 99], [[50], [76]]),
        ([1, 0, 1], [0, 3, 1], [[126], [0]]),
        ([1, 1, 1], [0, 3, 3], [[180], [0]]),
    ],
)
def test_what_is_out_of_range_is_left_out(columns, rows, expected):
    b = np.array([[1], [10]], np.float32)
    given = (_DATA, np.array(columns, np.int32), np.array(rows, np.int32), b)
    assert evaluate(csrmm, *given).tolist() == expected
    assert csrmm_numpy(*given).tolist() == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [([0, 1, 2**64 - 1], [[50], [76]]), ([2**63 + 1, 3, 2**63], [[0], [0]])],
)
def test_large_unsigned_beginnings_lie_behind_the_stored_elements(rows, expected):
    b = np.array([[1], [10]], np.float32)
    columns = np.array([1, 0, 1], np.uint64)
    given = (_DATA, columns, np.array(rows, np.uint64), b)
    assert evaluate(csrmm, *given).tolist() == expected
    assert csrmm_numpy(*given).tolist() == expected


def test_elements_of_a_row_are_added_in_order_and_in_f32():
    data = np.array([2048, 1, 1], np.float16)
    given = (data, np.zeros(3, np.int32), np.array([0, 3], np.int32), np.ones((1, 1), np.float16))
    assert evaluate(csrmm, *given).tolist() == [[2050]]


def test_integers_wrap():
    data = np.array([100, 100], np.int8)
    given = (data, np.zeros(2, np.int32), np.array([0, 2], np.int32), np.ones((1, 1), np.int8))
    assert evaluate(csrmm, *given).tolist() == [[-56]] == csrmm_numpy(*given).tolist()


def test_symbolic_extents_of_all_parts():
    m, k, n, z = (rc.var(name) for name in "mknz")
    data = rc.placeholder((z,), name="data")
    indices = rc.placeholder((z,), "int32", name="indices")
    indptr = rc.placeholder((m + 1,), "int32", name="indptr")
    b = rc.placeholder((k, n), name="b")
    product = csrmm(data, indices, indptr, b)
    assert str(product.shape) == "(m, n)"
    s = rc.create_schedule(product)
    f = rc.build(s, [data, indices, indptr, b, product], "interp")
    c = rc.array(np.zeros((2, 3), np.float32))
    f(*map(rc.array, (_DATA, _COLUMNS, _ROWS, _B)), c)
    assert c.asnumpy().tolist() == (_DENSE @ _B).tolist()


def test_ill_formed_calls_are_refused():
    data, b, wide, bias = tensors((3,), (2, 4), (2, 5), (5,))
    columns, rows, none = tensors((3,), (3,), (0,), dtype="int32")
    (few,) = tensors((2,), dtype="int32")
    (doubles,) = tensors((2, 4), dtype="float64")
    (mask,) = tensors((3,), dtype="bool")
    for call, message in (
        (lambda: csrmm(b, columns, rows, b), "csrmm: the tensor of stored elements has 2 dim"),
        (lambda: csrmm(mask, columns, rows, b), "csrmm takes numbers, not bool"),
        (lambda: csrmm(data, data, rows, b), "csrmm takes integer tensors, not f32"),
        (lambda: csrmm(data, columns, data, b), "csrmm takes integer tensors, not f32"),
        (lambda: csrmm(data, few, rows, b), "csrmm: the number of columns is 2 instead of 3"),
        (lambda: csrmm(data, columns, none, b), "beginnings of rows has no elements"),
        (lambda: csrmm(data, columns, rows, data), "csrmm: b has 1 dimensions instead of 2"),
        (lambda: csrmm(data, columns, rows, doubles), "csrmm cannot combine f32 with f64"),
        (lambda: csrmm(data, columns, rows, b, bias), "csrmm: the bias is 5 instead of 4"),
        (lambda: csrmm(data, columns, rows, b, wide), "csrmm: the bias is 5 instead of 4"),
        (lambda: sparse_dense(data, data, columns, rows), "sparse_dense: data has 1 dimensions"),
        (lambda: sparse_dense(b, data, columns, rows, bias), "sparse_dense: the bias is 5 inst"),
    ):
        with pytest.raises(UserError, match=message):
            call()


@pytest.mark.parametrize(
    "target",
    [
        "interp",
        pytest.param("llvm", marks=pytest.mark.llvm),
        pytest.param("opencl", marks=pytest.mark.pocl),
    ],
)
def test_products_in_an_optimized_graph(target):
    builder = rc.graph.GraphBuilder("net")
    data = builder.input("data", "float32", (4,))
    indices, starts = (
        builder.input("indices", "int32", (4,)),
        builder.input("starts", "int32", (4,)),
    )
    dense = builder.input("dense", "float32", (5, 2))
    product = builder.nodes("csrmm", [data, indices, starts, dense, None], {})
    rows = builder.nodes("transpose", [dense], {"axes": (1, 0)})
    transposed = builder.nodes("sparse_dense", [*rows, data, indices, starts], {})
    graph = builder.finish([*builder.nodes("relu", product, {}), *transposed])
    stored = {(0, 0): 1, (0, 4): -2, (2, 1): 4, (2, 2): 3}
    matrix = np.zeros((3, 5), "float32")
    for place, value in stored.items():
        matrix[place] = value
    feeds = {
        "data": np.array([*stored.values()], "float32"),
        "indices": np.array([column for _, column in stored], "int32"),
        "starts": np.array([0, 2, 2, 4], "int32"),
        "dense": np.arange(10, dtype="float32").reshape(5, 2),
    }
    wanted = [np.maximum(matrix @ feeds["dense"], 0), (matrix @ feeds["dense"]).T]
    executor = rc.graph.GraphExecutor(rc.graph.compile_graph(rc.graph.optimize(graph), target))
    for found, right in zip(executor.run(feeds), wanted, strict=True):
        np.testing.assert_array_equal(found.asnumpy(), right)
