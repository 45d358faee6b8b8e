"""Rules of products with sparse matrices: differences, dense products, second derivatives."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import RefcompError
from refcomp.graph.gradients.rules.sparse import RULES
from tests.graph.gradients.family_checks import check_differences, check_types, slopes_of

DENSE = np.array([[0, 2, 0], [1, 0, 3], [0, 0, 0], [4, 5, 6]], "float32")
PARTS = {
    "data": DENSE[DENSE != 0],
    "indices": np.nonzero(DENSE)[1].astype("int32"),
    "indptr": np.concatenate([[0], np.cumsum((DENSE != 0).sum(axis=1))]).astype("int32"),
}


@pytest.mark.parametrize("name", sorted(RULES))
def test_gradients_agree_with_differences(name):
    check_differences(name)


@pytest.mark.parametrize("name", sorted(RULES))
def test_gradients_have_the_types_of_inputs(name):
    check_types(name)


def _integers(*shape):
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype("float32")


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("bias", [(2,), (4, 2)])
def test_csrmm_has_the_gradients_of_the_dense_product(trans_b, bias):
    b = _integers(2, 3) if trans_b else _integers(3, 2)
    head = _integers(4, 2)
    feeds = {**PARTS, "b": b, "c": _integers(*bias)}
    _, found = slopes_of("csrmm", feeds, {"trans_b": trans_b}, head)
    factor = b.T if trans_b else b
    by_b = DENSE.T @ head
    expected = {
        "data": (head @ factor.T)[DENSE != 0],
        "b": by_b.T if trans_b else by_b,
        "c": head.sum(axis=0) if bias == (2,) else head,
    }
    for array, wanted in zip(found, expected.values(), strict=True):
        np.testing.assert_array_equal(array, wanted)


def test_sparse_dense_has_the_gradients_of_the_dense_product():
    x = _integers(5, 3)
    head = _integers(5, 4)
    weight = {f"weight_{name}": part for name, part in PARTS.items()}
    feeds = {"x": x, **weight, "bias": _integers(4)}
    _, found = slopes_of("sparse_dense", feeds, None, head)
    expected = [head @ DENSE, (head.T @ x)[DENSE != 0], head.sum(axis=0)]
    for array, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)


def _net():
    """A graph of sum(square(csrmm(data, indices, indptr, b)))."""
    builder = rc.graph.GraphBuilder("net")
    values = [builder.input(name, str(part.dtype), part.shape) for name, part in PARTS.items()]
    b = builder.input("b", "float32", (3, 2))
    product = builder.node("csrmm", [*values, b])
    squares = builder.node("square", [product])
    return builder.finish([builder.node("sum", [squares], name="loss")])


@pytest.mark.parametrize("target", ["interp", pytest.param("llvm", marks=pytest.mark.llvm)])
def test_a_graph_with_a_sparse_product_is_trained(target):
    slopes = rc.graph.gradient(_net(), ["data", "b"])
    feeds = {**PARTS, "b": _integers(3, 2)}
    executor = rc.GraphExecutor(rc.compile_graph(slopes, target=target))
    loss, by_data, by_b = executor.run(**feeds)
    product = DENSE @ feeds["b"]
    assert loss.asnumpy() == (product**2).sum()
    wanted = (2 * product @ feeds["b"].T)[DENSE != 0]
    np.testing.assert_array_equal(by_data.asnumpy(), wanted)
    np.testing.assert_array_equal(by_b.asnumpy(), DENSE.T @ (2 * product))


def test_second_derivatives():
    builder = rc.graph.GraphBuilder("net")
    values = [builder.input(name, str(part.dtype), part.shape) for name, part in PARTS.items()]
    b = builder.input("b", "float32", (3, 2))
    product = builder.node("csrmm", [*values, b])
    cubes = builder.node("multiply", [builder.node("square", [product]), product])
    first = rc.graph.gradient(builder.finish([builder.node("sum", [cubes], name="loss")]), "b")
    name = first.outputs[1].name
    second = rc.graph.gradient(first, "b", head=name)
    feeds = {**PARTS, "b": _integers(3, 2), f"{name}_head": _integers(3, 2)}
    found = rc.graph.evaluate_graph(second, feeds)[-1]
    product = DENSE @ feeds["b"]
    along = DENSE @ feeds[f"{name}_head"]
    np.testing.assert_allclose(found, DENSE.T @ (6 * product * along), rtol=1e-5)


def test_an_unknown_number_of_columns_is_refused():
    builder = rc.graph.GraphBuilder("net")
    values = [builder.input(name, str(part.dtype), part.shape) for name, part in PARTS.items()]
    b = builder.input("b", "float32", ("k", 2))
    product = builder.node("csrmm", [*values, b], name="y")
    with pytest.raises(RefcompError, match=r"extern operation: csr_product\n(.|\n)*of node y"):
        rc.graph.gradient(builder.finish([product]), "b", head="y")
