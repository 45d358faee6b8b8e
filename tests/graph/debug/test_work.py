"""Operations and bytes of nodes, against counts by hand."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.compile import compile_graph
from refcomp.graph.debug.work import Flops, count_bytes, count_flops, value_bytes
from refcomp.graph.optimize import optimize
from refcomp.topi import operator as operators
from refcomp.topi.operator import Operator
from tests.strategies.operands import floats


def flops_of(operator: str, shapes: list[tuple], symbols=None, **attributes) -> Flops | None:
    builder = GraphBuilder("net")
    values = [builder.input(f"x{k}", "float32", shape) for k, shape in enumerate(shapes)]
    made = builder.nodes(operator, values, attributes)
    (node,) = builder.finish(made[:1]).nodes
    return count_flops(node, symbols or {})


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "expected"),
    [
        ("matmul", [(3, 4), (4, 5)], {}, Flops(3 * 4 * 5, 0)),
        ("conv2d", [(2, 3, 8, 8), (4, 3, 3, 3)], {}, Flops(2 * 4 * 36 * 27, 0)),
        ("conv2d", [(1, 4, 8, 8), (4, 1, 3, 3)], {"groups": 4}, Flops(4 * 36 * 9, 0)),
        ("add", [(3, 4), (3, 4)], {}, Flops(0, 12)),
        ("relu", [(3, 4)], {}, Flops(0, 0)),
        ("exp", [(3, 4)], {}, Flops(0, 12)),
        ("transpose", [(3, 4)], {"axes": (1, 0)}, Flops(0, 0)),
        ("sum", [(3, 4)], {"axis": (1,)}, Flops(0, 12)),
        ("max_pool2d", [(1, 1, 4, 4)], {"kernel": (2, 2)}, Flops(0, 0)),
    ],
)
def test_operations_are_those_of_the_definition(operator, shapes, attributes, expected) -> None:
    assert flops_of(operator, shapes, **attributes) == expected


def test_a_bias_is_one_operation_for_each_result() -> None:
    assert flops_of("conv2d", [(1, 3, 8, 8), (4, 3, 3, 3), (4,)]) == Flops(4 * 36 * 27, 4 * 36)


def test_symbols_have_their_sizes() -> None:
    assert flops_of("matmul", [("N", 4), (4, 5)], {"N": 7}) == Flops(7 * 20, 0)


def test_a_multiply_add_is_two_operations() -> None:
    assert Flops(10, 3).total == 23
    assert Flops(1, 2) + Flops(3, 4) == Flops(4, 6)


def test_a_fused_node_has_the_work_of_its_nodes() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", "float32", ("N", 4))
    w, b = builder.constant("w", floats(1, 4, 5)), builder.constant("b", floats(2, 5))
    total = builder.node("add", [builder.node("matmul", [x, w]), b])
    graph = builder.finish([builder.node("tanh", [total])])
    (node,) = optimize(graph).nodes
    assert count_flops(node, {"N": 3}) == Flops(3 * 20, 2 * 15)
    (kernel,) = compile_graph(graph, "interp").kernels
    # x, w, b and the result, each once.
    assert count_bytes(kernel, {"N": 3}) == 4 * (12 + 20 + 5 + 15)
    assert value_bytes(kernel.outputs[0], {"N": 3}) == 60


def test_a_value_that_is_read_twice_counts_once() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", "float32", (8,))
    (kernel,) = compile_graph(builder.finish([builder.node("add", [x, x])]), "interp").kernels
    assert count_bytes(kernel, {}) == 64


def test_what_is_not_a_compute_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(data):
        def copy(ins, outs):
            return rc.call_extern("int32", "memcpy", outs[0].access_ptr("w"))

        return rc.extern(data.shape, [data], copy, name="copied")

    copied = Operator("copied", ("data",), compute=compute, numpy=np.copy)
    monkeypatch.setitem(operators._OPERATORS, "copied", copied)
    assert flops_of("copied", [(3, 4)]) is None
