"""pack_matrices: constant matrices are transposed once."""

from importlib import import_module

import pytest

from refcomp.graph.passes.fold_constants import fold_constants
from refcomp.graph.passes.pack_matrices import pack_matrices
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds
from tests.strategies.graphs import assert_equivalent, digits_graph, make_graph, operators_of
from tests.strategies.operands import floats


@pytest.mark.search
def test_a_transposed_constant_is_packed() -> None:
    graph = digits_graph()
    packed = pack_matrices(graph)
    verify_graph(packed)
    assert operators_of(packed).count("transpose") == 1
    assert_equivalent(graph, packed)
    (gemm,) = [node for node in fold_constants(packed).nodes if node.operator == "gemm"]
    assert gemm.inputs[1].shape == (32, 10)
    assert "trans_b" not in gemm.attributes


def test_other_products_stay() -> None:
    by_rows = floats(0, 4, 3)
    plain = make_graph(lambda b, x: b.node("gemm", [x, b.constant("w", by_rows)]), ("N", 4))
    assert pack_matrices(plain) is plain

    def build(builder, x):
        return builder.node("gemm", [x, builder.input("w", "f32", (3, 4))], {"trans_b": True})

    computed = make_graph(build, ("N", 4))
    assert pack_matrices(computed) is computed


def test_the_docstring_holds() -> None:
    passing = import_module("refcomp.graph.passes.pack_matrices")
    assert_docstring_holds(passing, pack_matrices)
