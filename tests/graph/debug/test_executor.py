"""The debug executor: every value is kept, in memory of its own, with its times."""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.compile import compile_graph
from refcomp.graph.debug import executor as executor_module
from refcomp.graph.debug.executor import DebugExecutor, create
from refcomp.graph.debug.recording import load_recording
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.graph import Graph
from tests.strategies.graphs import digits_graph, digits_images, make_graph
from tests.strategies.operands import floats


def chain(builder, x):
    value = x
    for number in range(4):
        value = builder.node("softmax", [value], name=f"s{number}")
    return value


def narrowed() -> Graph:
    builder = GraphBuilder("net")
    x = builder.input("x", "float32", (4,))
    indices, count = builder.nodes("nonzero", [x])
    found = builder.narrow(indices, count, axis=1, name="found")
    return builder.finish([builder.node("add", [found, found], name="twice")])


def test_outputs_of_all_nodes_are_kept_in_memory_of_their_own() -> None:
    module = compile_graph(make_graph(chain, ("N", 3)), "interp")
    executor = DebugExecutor(module)
    x = floats(0, 5, 3)
    (y,) = executor.run(x=x)
    assert list(executor.outputs) == ["s0", "s1", "s2", "s3"]
    assert executor.symbols == {"N": 5}
    assert np.array_equal(executor.inputs["x"].asnumpy(), x)
    assert np.array_equal(y.asnumpy(), executor.outputs["s3"].asnumpy())
    arrays = [a.numpy() for a in (*executor.outputs.values(), *executor.inputs.values())]
    for number, one in enumerate(arrays):
        assert not any(np.shares_memory(one, other) for other in arrays[:number])
    # A graph executor does share: this is what the debug executor is free of.
    plan = GraphExecutor(module).plan_for({"N": 500})
    assert plan.bytes < 100 * sum(one.nbytes for one in arrays)


def test_the_interface_is_that_of_a_graph_executor() -> None:
    module = compile_graph(make_graph(chain, ("N", 3)), "interp")
    executor = DebugExecutor(module)
    executor.set_input("x", floats(0, 2, 3))
    (y,) = executor.run()
    assert executor.get_output(0) is y
    assert (executor.input_names, executor.num_outputs) == (("x",), 1)
    expected = GraphExecutor(module).run(x=floats(0, 2, 3))[0].asnumpy()
    assert np.array_equal(y.asnumpy(), expected)


def test_each_launch_is_measured(monkeypatch) -> None:
    calls = []

    def seconds_of(call, device, number) -> float:
        call()
        calls.append(number)
        return 0.25 * len(calls)

    monkeypatch.setattr(executor_module, "seconds_of", seconds_of)
    executor = create(make_graph(chain, ("N", 3)), "interp", repeat=2)
    executor.run(x=floats(0, 1, 3))
    assert calls == [1] * 8
    assert executor.launches == 8
    assert executor.times["s0"].results == (0.25, 0.5)
    assert executor.times["s3"].min == 1.75


def test_unfused_keeps_values_inside_of_kernels() -> None:
    def build(builder, x):
        return builder.node("relu", [builder.node("add", [x, x], name="inner")], name="y")

    graph = make_graph(build, ("N", 2))
    x = np.array([[1, -2]], np.float32)
    fused, unfused = create(graph, "interp"), create(graph, "interp", unfused=True)
    fused.run(x=x)
    unfused.run(x=x)
    assert list(fused.outputs) == ["y"]
    assert unfused.outputs["inner"].asnumpy().tolist() == [[2, -4]]


def test_a_narrow_node_reads_its_count() -> None:
    executor = create(narrowed(), "interp")
    for x, found in (
        ([0, 5, 0, 7], [[2, 6]]),
        ([0, 0, 0, 0], [[]]),
        ([1, 1, 1, 1], [[0, 2, 4, 6]]),
    ):
        (twice,) = executor.run(x=np.array(x, np.float32))
        assert twice.asnumpy().tolist() == found
        assert executor.symbols == {"kept": len(found[0])}
        assert executor.outputs["found"].shape == (1, len(found[0]))


def test_one_node_runs_on_arrays_of_the_caller() -> None:
    executor = create(narrowed(), "interp")
    executor.run(x=np.zeros(4, np.float32))
    indices, count = np.array([[3, 1, 0, 0]]), np.array([2])
    (found,) = executor.run_node("found", {"nonzero": indices, "nonzero.1": count})
    assert found.asnumpy().tolist() == [[3, 1]]
    assert executor.outputs["found"].shape == (1, 0)  # the last run's


def test_a_node_takes_constants_by_itself_or_from_the_caller() -> None:
    def build(builder, x):
        return builder.node("add", [x, builder.constant("c", np.array([1, 2], "f4"))], name="y")

    executor = create(make_graph(build, ("N", 2)), "interp")
    x = np.zeros((3, 2), np.float32)
    assert executor.run_node("y", {"x": x})[0].asnumpy()[0].tolist() == [1, 2]
    other = {"x": x, "c": np.array([5, 6], np.float32)}
    assert executor.run_node("y", other)[0].asnumpy()[0].tolist() == [5, 6]


def test_wrong_requests_are_refused() -> None:
    module = compile_graph(make_graph(chain, ("N", 3)), "interp")
    executor = DebugExecutor(module)
    with pytest.raises(UserError, match="no node 'y'") as info:
        executor.run_node("y", {})
    assert info.value.remedy == "nodes: s0, s1, s2, s3"
    with pytest.raises(UserError, match="node s1 reads s0, which is not given") as info:
        executor.run_node("s1", {})
    assert info.value.remedy == "give s0"
    with pytest.raises(UserError, match="repeat is 0") as info:
        DebugExecutor(module, repeat=0)
    assert info.value.remedy == "use an integer of at least 1"
    with pytest.raises(UserError, match="is not a compiled graph"):
        DebugExecutor(module.graph)
    with pytest.raises(UserError, match="there is nothing to save") as info:
        executor.save("x.npz")
    assert info.value.remedy == "call run() first"


def test_a_recording_has_outputs_and_times(tmp_path) -> None:
    path = str(tmp_path / "x.npz")
    executor = create(make_graph(chain, ("N", 3)), "interp", repeat=2)
    executor.run(x=floats(0, 5, 3))
    executor.save(path)
    loaded = load_recording(path)
    assert loaded.times.keys() == executor.outputs.keys()
    assert all(len(times) == 2 for times in loaded.times.values())
    for name, found in executor.outputs.items():
        assert np.array_equal(loaded.outputs[name], found.asnumpy())


@pytest.mark.llvm
def test_the_digit_network_gives_the_same_bits_as_the_graph_executor() -> None:
    images, _ = digits_images()
    module = compile_graph(digits_graph())
    (expected,) = GraphExecutor(module).run(image=images)
    (found,) = DebugExecutor(module).run(image=images)
    assert np.array_equal(found.asnumpy(), expected.asnumpy())


@pytest.mark.rocm
def test_an_emulated_device_has_outputs_and_no_times() -> None:
    module = compile_graph(make_graph(chain, ("N", 3)), "rocm -mcpu=gfx942")
    executor = DebugExecutor(module, refcomp.rocm_emulator("gfx942"), repeat=2)
    executor.run(x=floats(0, 2, 3))
    assert executor.times == {}
    assert len(executor.outputs) == 4
    assert executor.launches == 8
