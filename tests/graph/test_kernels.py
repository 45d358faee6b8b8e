"""Kernels of a graph: names, arguments, workspaces and schedules."""

import pytest

from refcomp.foundation.target import as_target
from refcomp.graph.kernels import schedule_graph, schedule_node
from refcomp.graph.lower import lower_kernel
from refcomp.ir.verify import verify
from tests.strategies.graphs import make_graph
from tests.strategies.operands import floats


def test_calls_of_one_function_have_workspaces_of_their_own() -> None:
    graph = make_graph(lambda b, x: b.node("softmax", [b.node("softmax", [x])]), ("N", 5))
    (function,), (first, second) = schedule_graph(graph)
    assert first.name == second.name == function.name
    assert [value.name for value in first.workspaces] == [v.name for v in second.workspaces]
    assert not set(first.workspaces) & set(second.workspaces)


def test_arguments_are_inputs_outputs_and_workspaces() -> None:
    graph = make_graph(lambda b, x: b.node("softmax", [x]), ("N", 3))
    function = schedule_node(graph.nodes[0], 3)
    func = lower_kernel(function, as_target("llvm"))
    kernel = function.called_by(graph.nodes[0])
    verify(func, "nested")
    assert func.name == kernel.name == "kernel3_softmax"
    assert kernel.inputs == graph.inputs
    assert kernel.outputs == graph.outputs
    shapes = {value.name: value.shape for value in kernel.workspaces}
    assert shapes == {
        "kernel3_softmax.greatest": ("N",),
        "kernel3_softmax.inverse": ("N",),
        "kernel3_softmax.power": ("N", 3),
        "kernel3_softmax.total": ("N",),
    }
    assert len(func.params) == 6


def test_an_input_read_twice_is_one_argument() -> None:
    graph = make_graph(lambda b, x: b.node("add", [x, x]))
    (function,), (kernel,) = schedule_graph(graph)
    assert len(kernel.inputs) == 1
    assert len(lower_kernel(function, as_target("llvm")).params) == 2


@pytest.mark.parametrize("name", ["a; drop", "x" * 300, "п", '"'])
def test_hostile_names_do_not_reach_function_names(name) -> None:
    def build(builder, x):
        return builder.node("add", [x, builder.constant(name, floats(0, 6))], name=name)

    graph = make_graph(build)
    func = lower_kernel(schedule_node(graph.nodes[0], 0), as_target("llvm"))
    assert func.name == "kernel0_add"
    assert all(param.name.isascii() and len(param.name) <= 40 for param in func.params)


def test_kind_of_the_target_chooses_the_schedule() -> None:
    graph = make_graph(lambda b, x: b.node("relu", [x]), (64, 64))
    primitives = {}
    for target in ("llvm", "opencl", "cuda"):
        steps = schedule_node(graph.nodes[0], 0, target).schedule.steps
        primitives[target] = {step.primitive for step in steps}
    assert "bind" not in primitives["llvm"]
    assert "bind" in primitives["opencl"] and "bind" in primitives["cuda"]


@pytest.mark.parametrize(("gpu", "kind"), [("gfx942", "ExternOp"), ("gfx1100", "ComputeOp")])
def test_products_become_kernels_of_matrix_cores_where_a_gpu_has_them(gpu, kind) -> None:
    def build(builder, x):
        weights = builder.constant("w", floats(0, 64 * 32).reshape(64, 32))
        return builder.node("matmul", [x, weights])

    graph = make_graph(build, (48, 64))
    (output,) = schedule_node(graph.nodes[0], 0, f"rocm -mcpu={gpu}").outputs
    assert type(output.op).__name__ == kind
