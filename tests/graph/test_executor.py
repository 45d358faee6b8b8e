"""Running compiled graphs: the digit network against its oracle, launches, threads and errors."""

import ast
import inspect
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import refcomp
from refcomp.cli.references import reference_of
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import as_target
from refcomp.graph import executor as executor_module
from refcomp.graph import plan as plan_module
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.graph import Graph
from refcomp.graph.kernels import schedule_graph
from refcomp.graph.lower import lower_kernel
from refcomp.graph.optimize import optimize
from refcomp.ir.printer import print_func
from refcomp.oracle.compare import judge_bounded
from refcomp.oracle.floats.error_bounds import Licence
from refcomp.runtime.arrays.ndarray import NDArray, array
from refcomp.runtime.host.threads import set_thread_count
from tests.graph.error_bounds import bound_node, bound_outputs
from tests.strategies.graphs import digits_graph, digits_images, make_graph, networks
from tests.strategies.operands import floats, integers

KERNELS_OF_THE_DIGIT_NETWORK = 7


def executor_of(graph: Graph, target: str = "interp") -> GraphExecutor:
    return GraphExecutor(compile_graph(graph, target))


def adding(builder, x):
    return builder.node("add", [x, builder.constant("c", integers(1, 4))])


@pytest.fixture(scope="module")
def digits() -> GraphExecutor:
    return executor_of(digits_graph(), "llvm")


@pytest.fixture(scope="module")
def digits_on_gpu() -> GraphExecutor:
    module = compile_graph(digits_graph(), "rocm -mcpu=gfx942")
    return GraphExecutor(module, refcomp.rocm_emulator("gfx942"))


@pytest.mark.llvm
def test_digits_are_recognised(digits, record_property) -> None:
    images, labels = digits_images()
    (probability,) = digits.run(image=images)
    accuracy = (probability.asnumpy().argmax(axis=1) == labels).mean()
    record_property("summary", f"digit network: {accuracy:.2%} of {len(labels)} images")
    assert accuracy >= 0.97


@pytest.mark.llvm
def test_digits_are_within_the_derived_bound(digits, record_property) -> None:
    images, _ = digits_images()
    (probability,) = digits.run(image=images)
    ((exact, bound),) = bound_outputs(optimize(digits_graph()), {"image": images})
    (meant,) = evaluate_graph(digits_graph(), {"image": images})
    error = np.abs(probability.asnumpy() - meant)
    text = f"largest error {error.max():.1e}; bounds: median {np.median(bound):.1e}"
    record_property("summary", f"digit network: {text}")
    # The oracle rounds where the kernels do, and less often: it is off by no more than they are.
    assert (error <= 2 * bound).all()
    assert (np.abs(meant - exact) <= bound).all()
    assert np.median(bound) < 1e-4, "a bound that allows everything says nothing"


@pytest.mark.rocm
def test_digits_are_within_the_derived_bound_on_an_emulated_gpu(digits_on_gpu) -> None:
    """Machine code of each kernel and all that stands between it and the driver."""
    images = digits_images()[0][:9]
    (probability,) = digits_on_gpu.run(image=images)
    ((exact, bound),) = bound_outputs(optimize(digits_graph()), {"image": images})
    assert (np.abs(probability.asnumpy() - exact) <= bound).all()
    assert digits_on_gpu.launches == KERNELS_OF_THE_DIGIT_NETWORK


@pytest.mark.rocm
@pytest.mark.llvm
def test_an_emulated_gpu_gives_what_the_host_gives() -> None:
    """The same bits, as sums are of the same products in the same order; but exp is rounded in
    another way, within its own bound."""
    images, graph = digits_images()[0][:2], optimize(digits_graph())
    softmax = graph.nodes[-1]
    everything = replace(graph, outputs=tuple(node.outputs[0] for node in graph.nodes))
    gpu = refcomp.rocm_emulator("gfx942")
    on_gpu = GraphExecutor(compile_graph(everything, "rocm -mcpu=gfx942"), gpu)
    here, there = (
        [result.asnumpy() for result in executor.run(image=images)]
        for executor in (executor_of(everything, "llvm"), on_gpu)
    )
    assert softmax.operator == "softmax" and len(here) == len(there) == len(graph.nodes)
    for node, ours, theirs in zip(graph.nodes[:-1], here, there, strict=False):
        np.testing.assert_array_equal(theirs, ours, err_msg=node.name)
    exact, bound = bound_node(softmax, {softmax.reads[0]: here[-2]})
    for probability in (here[-1], there[-1]):
        assert (np.abs(probability - exact) <= bound).all()


@pytest.mark.pocl
def test_digits_are_within_the_derived_bound_on_opencl() -> None:
    """Whose memory cannot be used in parts: each value has a piece of its own."""
    executor, images = executor_of(digits_graph(), "opencl"), digits_images()[0][:9]
    assert executor.device == refcomp.opencl(0)
    (probability,) = executor.run(image=images)
    ((exact, bound),) = bound_outputs(optimize(digits_graph()), {"image": images})
    assert (np.abs(probability.asnumpy() - exact) <= bound).all()
    pieces = {id(array.memory.owner) for array in executor.plan_for({"N": 9}).outputs}
    pieces |= {id(array.memory.owner) for array in executor.plan_for({"N": 9}).inputs.values()}
    assert len(pieces) == 2


@pytest.mark.llvm
def test_every_kernel_is_within_its_own_bound() -> None:
    """Each kernel alone, on what the kernels before it made: errors do not add up."""
    images = digits_images()[0][:40]
    graph = optimize(digits_graph())
    everything = replace(graph, outputs=tuple(node.outputs[0] for node in graph.nodes))
    made = [result.asnumpy() for result in executor_of(everything, "llvm").run(image=images)]
    known = {graph.inputs[0]: images, **graph.constants}
    for node, actual in zip(graph.nodes, made, strict=True):
        exact, bound = bound_node(node, known)
        assert (np.abs(actual - exact) <= bound).all(), node.name
        assert bound.max() < 2e-3 * np.abs(exact).max(), node.name
        known[node.outputs[0]] = actual


@pytest.mark.llvm
@pytest.mark.parametrize("batch", [0, 1, 7])
def test_any_batch(digits, batch) -> None:
    """To the bit: what becomes of an image does not depend on the others."""
    images = digits_images()[0][:40]
    (probability,), (all_of_them,) = digits.run(image=images[:batch]), digits.run(image=images)
    assert probability.shape == (batch, 10)
    np.testing.assert_array_equal(probability.asnumpy(), all_of_them.asnumpy()[:batch])


@pytest.mark.llvm
def test_launches_per_run(digits) -> None:
    images, _ = digits_images()
    for batch in (1, 450):
        before = digits.launches
        digits.run(image=images[:batch])
        assert digits.launches - before == KERNELS_OF_THE_DIGIT_NETWORK


class Untouchable(np.ndarray):
    """An array that no numpy function and no arithmetic may touch."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        raise AssertionError(f"numpy computes {ufunc}")

    def __array_function__(self, function, types, args, kwargs):
        raise AssertionError(f"numpy computes {function}")


@pytest.mark.llvm
def test_numpy_computes_nothing_while_a_graph_runs(digits) -> None:
    images = digits_images()[0][:3]
    with pytest.raises(AssertionError, match="numpy computes"):
        images.view(Untouchable) + 1
    (probability,) = digits.run(image=images.view(Untouchable))
    (expected,) = digits.run(image=images)
    np.testing.assert_array_equal(probability.asnumpy(), expected.asnumpy())


@pytest.mark.parametrize("module", [executor_module, plan_module])
def test_numpy_is_not_even_imported_where_graphs_run(module) -> None:
    tree = ast.parse(inspect.getsource(module))
    imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    imported |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert not {name for name in imported if name.split(".")[0] == "numpy"}


@pytest.mark.llvm
@settings(max_examples=6)
@given(networks())
def test_compiled_networks_keep_their_meaning(graph) -> None:
    x = floats(2, 3, *graph.inputs[0].shape[1:])
    (output,), reference = graph.outputs, reference_of(graph)
    (actual,) = executor_of(graph, "llvm").run(x=x)
    bounded = reference.bounds({"x": x}, [output.name], Licence(), {})[output.name]
    report = judge_bounded(actual.asnumpy(), bounded)
    assert report.agrees, report


def test_interpreted_graph_with_several_outputs() -> None:
    def build(builder, x):
        first, second = builder.nodes("split", [x], {"axis": 1, "sizes": (1, 3)})
        return [builder.node("relu", [second]), first, x, builder.constant("c", floats(5, 2))]

    x = integers(0, 2, 4)
    executor = executor_of(make_graph(build, ("N", 4)))
    relu, first, same, constant = (result.asnumpy() for result in executor.run(x=x))
    np.testing.assert_array_equal(relu, np.maximum(x[:, 1:], 0))
    np.testing.assert_array_equal(first, x[:, :1])
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(constant, floats(5, 2))
    assert executor.num_outputs == 4


def test_results_are_fresh_arrays() -> None:
    executor = executor_of(make_graph(adding, ("N", 4)))
    (first,) = executor.run(x=integers(0, 2, 4))
    kept = first.asnumpy()
    executor.run(x=integers(9, 2, 4))
    np.testing.assert_array_equal(first.asnumpy(), kept)


def test_set_input_keeps_a_copy_and_get_output_gives_the_last_result() -> None:
    executor = executor_of(make_graph(adding, ("N", 4)))
    with pytest.raises(UserError, match="the last run has no output 'y'"):
        executor.get_output("y")
    with pytest.raises(UserError, match="the last run has no output 0"):
        executor.get_output(0)
    x = integers(0, 2, 4)
    executor.set_input("x", x)
    expected = x + integers(1, 4)
    x[:] = 0
    executor.run()
    np.testing.assert_array_equal(executor.get_output(0).asnumpy(), expected)
    executor.run(x=x)
    np.testing.assert_array_equal(executor.get_output().asnumpy(), x + integers(1, 4))
    with pytest.raises(UserError, match="has no output 1"):
        executor.get_output(1)


def test_inputs_may_be_ndarrays_or_laid_out_otherwise() -> None:
    executor = executor_of(make_graph(adding, ("N", 4)))
    x = integers(0, 4, 2)
    expected = x.T + integers(1, 4)
    for given_x in (x.T, array(x.T), np.asfortranarray(x.T)):
        (result,) = executor.run(x=given_x)
        assert isinstance(result, NDArray)
        np.testing.assert_array_equal(result.asnumpy(), expected)


def test_plans_are_made_once_per_extent_and_few_are_kept(monkeypatch) -> None:
    made = []
    original = executor_module.make_plan

    def counting(module, symbols, *others):
        made.append(symbols["N"])
        return original(module, symbols, *others)

    monkeypatch.setattr(executor_module, "make_plan", counting)
    executor = executor_of(make_graph(adding, ("N", 4)))
    for batch in (1, 2, 1, 2, 1):
        executor.run(x=integers(0, batch, 4))
    assert made == [1, 2]
    for batch in range(3, 11):
        executor.plan_for({"N": batch})
    executor.plan_for({"N": 10})
    assert made == [1, 2, *range(3, 11)]
    executor.plan_for({"N": 1})
    assert made[-1] == 1


@pytest.mark.llvm
def test_threads_take_turns(digits) -> None:
    images = digits_images()[0]
    expected = digits.run(image=images)[0].asnumpy()
    wrong: list[int] = []

    def work(first: int) -> None:
        for _ in range(20):
            (result,) = digits.run(image=images[first : first + 1])
            if not np.array_equal(result.asnumpy(), expected[first : first + 1]):
                wrong.append(first)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"y": floats(0, 2, 4)}, "the graph has no input 'y'"),
        ({}, "no value is given for input 'x'"),
        ({"x": floats(0, 2, 4).astype(np.float64)}, "input 'x' is f32, but the array is f64"),
        ({"x": floats(0, 2, 5)}, "extent 1 of input 'x' is 5 instead of 4"),
        ({"x": floats(0, 4)}, "has 2 dimensions, but the array has 1"),
        ({"x": [[1.0, 2, 3, 4]]}, "input 'x' cannot be a list"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(feeds, message) -> None:
    executor = executor_of(make_graph(adding, ("N", 4)))
    with pytest.raises(UserError, match=message):
        executor.run(**feeds)
    if "y" in feeds:
        with pytest.raises(UserError, match=message) as info:
            executor.set_input("y", feeds["y"])
        assert "x: f32[N, 4]" in info.value.remedy


def test_names_that_are_no_identifiers() -> None:
    graph = make_graph(adding, ("N", 4))
    builder_graph = make_graph(lambda b, x: b.node("relu", [b.input("in put:0", "f32", ("N", 4))]))
    assert executor_of(graph).input_names == ("x",)
    executor = executor_of(builder_graph)
    x = integers(0, 2, 4)
    (result,) = executor.run({"in put:0": x, "x": floats(0, 2, 3, 6, 6)})
    np.testing.assert_array_equal(result.asnumpy(), np.maximum(x, 0))


@pytest.mark.llvm
def test_results_have_equal_bits_in_each_run_and_for_any_number_of_threads() -> None:
    images, _ = digits_images()
    feeds = {"image": np.concatenate([images, images, images])}
    found = set()
    try:
        for count in (1, 1, 2, 3, 8):
            set_thread_count(count)
            executor = GraphExecutor(compile_graph(digits_graph(), "llvm"))
            for _ in range(2):
                found.add(executor.run(feeds)[0].asnumpy().tobytes())
    finally:
        set_thread_count(None)
    assert len(found) == 1


@pytest.mark.llvm
def test_kernels_of_the_digit_network_share_their_work() -> None:
    """So that the test above compares more than one thread with one."""
    functions, _ = schedule_graph(optimize(digits_graph()), "llvm")
    texts = [print_func(lower_kernel(one, as_target("llvm"))) for one in functions]
    assert sum(" parallel {" in text for text in texts) >= 2


def built() -> tuple[object, object, dict[str, NDArray]]:
    """Return a compiled network of one layer, whose weights are not set."""
    net = refcomp.sym.dense(refcomp.sym.Variable("x"), units=4, name="fc")
    weights = {"fc_weight": floats(0, 4, 3), "fc_bias": floats(1, 4)}
    return refcomp.graph.build(net, "interp", {"x": (1, 3)}, params=weights)


def test_classic_calls_set_inputs_and_read_outputs() -> None:
    graph, lib, params = built()
    executor = executor_module.create(graph, lib, refcomp.cpu(0))
    x = floats(2, 1, 3)
    executor.set_input(0, x)
    executor.set_input(**params)
    (expected,) = executor.run()
    np.testing.assert_allclose(expected.asnumpy(), x @ floats(0, 4, 3).T + floats(1, 4), rtol=1e-6)
    out = refcomp.empty((1, 4))
    assert executor.get_output(0, out) is out
    np.testing.assert_array_equal(out.asnumpy(), expected.asnumpy())
    np.testing.assert_array_equal(executor.get_input("x").asnumpy(), x)
    taken = refcomp.empty((4, 3))
    assert executor.get_input("fc_weight", taken) is taken
    np.testing.assert_array_equal(taken.asnumpy(), floats(0, 4, 3))


def test_weights_may_be_replaced_between_runs() -> None:
    graph, lib, params = built()
    executor = executor_module.create(graph.json(), lib)
    x = floats(2, 1, 3)
    executor.load_params(refcomp.graph.save_param_dict(params))
    executor.run(x=x)
    executor.set_input("fc_weight", np.zeros((4, 3), "float32"))
    (made,) = executor.run(x=x)
    np.testing.assert_array_equal(made.asnumpy()[0], floats(1, 4))


def test_constants_of_a_compiled_graph_may_be_replaced() -> None:
    executor = executor_of(make_graph(adding, (2, 4)))
    executor.set_input("c", integers(3, 4))
    x = integers(5, 2, 4)
    (made,) = executor.run({executor.input_names[0]: x})
    np.testing.assert_array_equal(made.asnumpy(), x + integers(3, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda e: e.run(x=floats(0, 1, 3)),
            r"the parameters fc_weight have no elements\n(.|\n)*set_in",
        ),
        (
            lambda e: e.set_input("fc_weigh", 1),
            r"no input or parameter 'fc_weigh'\n(.|\n)*did you mean fc_w",
        ),
        (
            lambda e: e.set_input("conv", 1),
            r"no input or parameter 'conv'\n(.|\n)*build folds(.|\n)*build r",
        ),
        (lambda e: e.set_input(1, 1), "the graph has no input 1\n(.|\n)*a number below 1"),
        (lambda e: e.set_input("fc_weight", floats(0, 3, 4)), r"cannot have the shape \(3, 4\)"),
        (lambda e: e.set_input("fc_weight", floats(0, 3)), "has 2 dimensions, but the array has 1"),
        (lambda e: e.set_input("x", 3), "input 'x' cannot be a int"),
        (
            lambda e: e.get_input("x"),
            r"the input 'x' has not been set\n(.|\n)*call set_input first",
        ),
        (lambda e: e.get_input("y"), "no input or parameter 'y'"),
        (lambda e: e.load_params(b""), "the parameters cannot be read"),
    ],
)
def test_wrong_classic_calls_are_refused(call: object, message: str) -> None:
    graph, lib, _ = built()
    with pytest.raises(UserError, match=message):
        call(executor_module.create(graph, lib))


def test_executor_needs_a_compiled_graph() -> None:
    with pytest.raises(UserError, match="a int is not a compiled graph"):
        executor_module.create(3, None)
    with pytest.raises(UserError, match="it is not JSON"):
        executor_module.create("text", None)
