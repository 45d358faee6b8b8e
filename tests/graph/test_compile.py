"""Compiling graphs: kernels, their names and arguments, and that one run of the tools makes all."""

import pytest

import refcomp.graph.compile as compiling
from refcomp.graph.compile import compile_graph, lower_node
from refcomp.ir.verify import verify
from tests.strategies.graphs import digits_graph, make_graph
from tests.strategies.operands import floats


@pytest.mark.search
def test_digit_network_is_seven_kernels(monkeypatch) -> None:
    built = []

    def build_once(funcs, target):
        built.append([func.name for func in funcs])

    monkeypatch.setattr(compiling, "build_functions", build_once)
    module = compile_graph(digits_graph(), "interp")
    assert built == [[kernel.name for kernel in module.kernels]]
    assert built[0] == [
        "kernel0_transpose_conv2d_nhwc_relu",
        "kernel1_conv2d_nhwc_relu",
        "kernel2_max_pool2d",
        "kernel3_conv2d_nhwc_relu",
        "kernel4_global_avg_pool2d_transpose_flatten",
        "kernel5_gemm",
        "kernel6_softmax",
    ]
    assert module.target.kind == "interp"


def test_arguments_are_inputs_outputs_and_workspaces() -> None:
    graph = make_graph(lambda b, x: b.node("softmax", [x]), ("N", 5))
    func, kernel = lower_node(graph.nodes[0], 3)
    verify(func, "nested")
    assert func.name == kernel.name == "kernel3_softmax"
    assert kernel.inputs == graph.inputs
    assert kernel.outputs == graph.outputs
    shapes = {value.name: value.shape for value in kernel.workspaces}
    assert shapes == {
        "kernel3_softmax.greatest": ("N",),
        "kernel3_softmax.power": ("N", 5),
        "kernel3_softmax.total": ("N",),
    }
    assert len(func.params) == 5


def test_an_input_read_twice_is_one_argument() -> None:
    graph = make_graph(lambda b, x: b.node("add", [x, x]))
    func, kernel = lower_node(graph.nodes[0], 0)
    assert len(kernel.inputs) == 1
    assert len(func.params) == 2


@pytest.mark.parametrize("name", ["a; drop", "x" * 300, "п", '"'])
def test_hostile_names_do_not_reach_function_names(name) -> None:
    def build(builder, x):
        return builder.node("add", [x, builder.constant(name, floats(0, 6))], name=name)

    graph = make_graph(build)
    func, _ = lower_node(graph.nodes[0], 0)
    assert func.name == "kernel0_add"
    assert all(param.name.isascii() and len(param.name) <= 40 for param in func.params)


def test_a_graph_without_nodes_has_no_module() -> None:
    assert compile_graph(make_graph(lambda b, x: x), "interp").module is None
