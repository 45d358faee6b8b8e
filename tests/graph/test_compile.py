"""Compiling graphs: kernels, their names and arguments, and that one run of the tools makes all."""

import numpy as np
import pytest

import refcomp.graph.lower as lowering
from refcomp.driver.backends import division
from refcomp.foundation.machine import machine
from refcomp.foundation.options import build_options
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.lowering.lower import lower
from refcomp.toolchain.parts import PartsBuild
from tests.strategies.graphs import digits_graph, make_graph
from tests.strategies.operands import floats


@pytest.mark.search
def test_digit_network_is_seven_kernels(monkeypatch) -> None:
    built = []

    def build_once(funcs, target, count):
        built.append([func.name for func in funcs])

    monkeypatch.setattr(lowering, "build_lowered", build_once)
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


def _residual(builder, value, k, seed=0):
    """One block; all blocks are equal but for names and constants."""
    weight = builder.constant(f"w{k}", floats(k + seed, 4, 4))
    product = builder.node("matmul", [value, weight], name=f"product{k}")
    return builder.node("add", [value, builder.node("relu", [product])], name=f"sum{k}")


def test_equal_nodes_share_a_function() -> None:
    def build(builder, value):
        for k in range(3):
            value = _residual(builder, value, k)
        return builder.node("softmax", [value])

    graph = make_graph(build, ("N", 4))
    module = compile_graph(graph, "interp")
    names = ["kernel0_matmul_relu_add", "kernel3_softmax"]
    assert [kernel.name for kernel in module.kernels] == [names[0]] * 3 + names[1:]
    assert module.module is not None and list(module.module.signatures) == names
    x = floats(9, 2, 4)
    (result,) = GraphExecutor(module).run(x=x)
    (expected,) = evaluate_graph(graph, {"x": x})
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-5)


@pytest.fixture
def build_cache(tmp_path, monkeypatch):
    """The cache of modules is on, empty and this test's own."""
    monkeypatch.setenv("REFCOMP_BUILD_CACHE", "1")
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))
    for name, value in (("own_version", "this version"), ("is_own_version_current", True)):
        monkeypatch.setattr(f"refcomp.driver.build_cache.{name}", lambda value=value: value)


def _residual_network(seed=0):
    def build(builder, value):
        for k in range(2):
            value = _residual(builder, value, k, seed)
        # Along the batch, so that its stages are stored.
        return builder.node("softmax", [value], {"axis": 0})

    return make_graph(build, ("N", 4))


@pytest.mark.llvm
def test_a_graph_in_the_cache_is_not_lowered(build_cache, monkeypatch) -> None:
    first = compile_graph(_residual_network())
    monkeypatch.setattr(lowering, "lower", lambda *given: pytest.fail("it was lowered"))
    monkeypatch.setattr(lowering, "build_lowered", lambda *given: pytest.fail("it was built"))
    # The weights are no part of the code.
    again = compile_graph(_residual_network(seed=5))
    assert [kernel.name for kernel in again.kernels] == [kernel.name for kernel in first.kernels]
    assert [len(one.workspaces) for one in again.kernels] == [0, 0, 4]
    x = floats(9, 2, 4)
    (expected,) = evaluate_graph(_residual_network(seed=5), {"x": x})
    (result,) = GraphExecutor(again).run(x=x)
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-5)


@pytest.mark.llvm
def test_other_graphs_targets_and_options_are_lowered(build_cache, monkeypatch) -> None:
    lowered = []
    monkeypatch.setattr(
        lowering, "lower", lambda *given: lowered.append(given[-1]) or lower(*given)
    )
    graph = make_graph(lambda b, x: b.node("relu", [x]), ("N", 4))
    for changes, target in (({}, "llvm"), ({}, "llvm -mcpu=x86-64"), ({"contract": False}, "llvm")):
        with build_options(**changes):
            compile_graph(graph, target)
            compile_graph(graph, target)
    compile_graph(make_graph(lambda b, x: b.node("relu", [x]), ("M", 4)))
    compile_graph(make_graph(lambda b, x: b.node("relu", [x]), ("N", 5)))
    compile_graph(make_graph(lambda b, y: b.node("tanh", [y]), ("N", 4)))
    assert lowered == ["kernel0_relu"] * 5 + ["kernel0_tanh"]


def test_a_graph_without_nodes_has_no_module() -> None:
    assert compile_graph(make_graph(lambda b, x: x), "interp").module is None


@pytest.mark.llvm
def test_a_graph_with_sixty_kernels_computes_the_same_in_parts(monkeypatch, tmp_path) -> None:
    random = np.random.default_rng(0)

    def build(b, x):
        for k in range(60):  # each with extents of its own
            weights = random.normal(size=(4 + k, 5 + k)).astype("float32") / (4 + k)
            x = b.node("gemm", [x, b.constant(f"w{k}", weights)])
        return x

    graph = make_graph(build, ("N", 4))
    started = []
    start = PartsBuild.start

    def noted(self, source):
        started.append(source)
        start(self, source)

    monkeypatch.setattr(PartsBuild, "start", noted)
    given = random.normal(size=(3, 4)).astype("float32")
    results = []
    for nodes in (10**9, 500):
        monkeypatch.setattr(division, "PART_NODES", nodes)
        monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / str(nodes)))
        module = compile_graph(graph)
        assert len(module.kernels) == 60
        (result,) = GraphExecutor(module).run({"x": given})
        results.append(result.asnumpy())
    assert len(started) > 2
    np.testing.assert_array_equal(*results)


def test_loop_ir_of_kernels_is_logged(caplog) -> None:
    graph = make_graph(lambda b, x: b.node("relu", [b.node("exp", [x])]), (4,))
    with caplog.at_level("DEBUG", logger="refcomp.graph"):
        compile_graph(graph, "interp")
    (text,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("kernel ")]
    assert text.startswith("kernel kernel0_exp_relu\nfunc kernel0_exp_relu(x: f32[4]")
    assert "max(exp(x[" in text


def _multiply_add_calls(target: str) -> int:
    """Return how often the code of x * x + tanh(x) and of a product names fmaf."""

    def build(b, x):
        square = b.node("multiply", [x, x])
        weight = b.constant("w", floats(1, 64, 8))
        product = b.node("matmul", [b.node("tanh", [x]), weight])
        return [b.node("add", [square, x]), product]

    module = compile_graph(make_graph(build, (1, 64)), target).module
    assert module is not None
    return module.get_source("asm").count("fmaf")


@pytest.mark.llvm
@pytest.mark.skipif(machine() != "x86_64", reason="it is compiled for x86-64")
def test_a_graph_contracts_only_where_an_instruction_does() -> None:
    assert _multiply_add_calls("llvm -mcpu=x86-64") == 0
    assert _multiply_add_calls("llvm -mcpu=x86-64-v3") == 0
    with build_options(contract=True):
        assert _multiply_add_calls("llvm -mcpu=x86-64") > 0
