"""Profiles: work and bounds of nodes, with times that the test gives."""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.graph.debug import executor as executor_module
from refcomp.graph.debug.executor import create
from refcomp.graph.debug.peaks import Peaks
from refcomp.graph.debug.roofline import COMPUTE, MEMORY, check_times, profile_network
from tests.graph.debug.profiles import node, profile
from tests.strategies.graphs import make_graph
from tests.strategies.operands import floats


def build(builder, x):
    product = builder.node("matmul", [x, builder.constant("w", floats(1, 64, 64))], name="m")
    return builder.node("softmax", [product], name="y")


@pytest.mark.llvm
def test_nodes_have_their_work_and_their_bound(monkeypatch) -> None:
    times = iter([9.0, 9.0, 9.0, 9.0, 2e-6, 4e-6, 1e-6, 1e-6])  # the first run is not counted
    monkeypatch.setattr(executor_module, "seconds_of", lambda call, *_: (call(), next(times))[1])
    executor = create(make_graph(build, ("N", 64)), repeat=2)
    x = floats(0, 32, 64)
    # 2 * 32 * 64 * 64 operations take 2.6 us at this peak, 32 KiB of bytes 3.3 us.
    found = profile_network(executor, {"x": x}, Peaks(gflops=100.0, gbytes=10.0, threads=1))
    product, softmax = found.nodes
    assert (product.seconds, product.mean) == (2e-6, 3e-6)
    assert product.multiply_adds == 32 * 64 * 64
    assert product.bytes == 4 * (32 * 64 + 64 * 64 + 32 * 64)
    assert product.least == pytest.approx(max(262144 / 1e11, product.bytes / 1e10))
    assert product.bound_by == MEMORY
    assert product.gflops == pytest.approx(131.072)
    assert softmax.bound_by == MEMORY
    assert found.share(product) == pytest.approx(2 / 3)
    fast = profile_network_again(monkeypatch, executor, x, Peaks(100.0, 1000.0, 1))
    assert fast.nodes[0].bound_by == COMPUTE


def profile_network_again(monkeypatch, executor, x, peaks):
    monkeypatch.setattr(executor_module, "seconds_of", lambda call, *_: (call(), 1e-6)[1])
    return profile_network(executor, {"x": x}, peaks)


@pytest.mark.llvm
def test_without_peaks_there_is_no_roof() -> None:
    executor = create(make_graph(build, ("N", 64)))
    found = profile_network(executor, {"x": floats(0, 2, 64)})
    assert all(one.least is one.bound_by is one.of_roof is None for one in found.nodes)


def test_totals_are_sums_and_the_slowest_comes_first() -> None:
    totals = profile().by_operator()
    assert [(one.operator, one.name) for one in totals] == [
        ("matmul", "2"),
        ("copy", "1"),
        ("nonzero", "1"),
    ]
    matmul, copy, nonzero = totals
    assert matmul.seconds == pytest.approx(3e-3)
    assert matmul.flops == 150_000_000
    assert matmul.of_roof == pytest.approx(1.5e-3 / 3e-3)
    assert (matmul.bound_by, copy.bound_by, nonzero.bound_by) == (COMPUTE, MEMORY, None)
    assert nonzero.flops is nonzero.gflops is nonzero.of_roof is None


def test_a_time_of_zero_divides_nothing() -> None:
    empty = node("z", "relu", 0.0, 0, 0)
    assert (empty.gflops, empty.gbytes, empty.of_roof) == (0.0, 0.0, 0.0)


def test_an_interpreter_has_no_times() -> None:
    executor = create(make_graph(build, ("N", 64)), "interp")
    with pytest.raises(UserError) as info:
        profile_network(executor, {"x": np.zeros((1, 64), np.float32)})
    assert info.value.what == "the target interp has no times to profile"
    assert info.value.remedy == "profile the target llvm"


@pytest.mark.rocm
def test_counts_of_an_emulated_device_are_not_times() -> None:
    graph = make_graph(lambda builder, x: builder.node("relu", [x]), ("N", 4))
    executor = create(graph, "rocm -mcpu=gfx942", refcomp.rocm_emulator("gfx942"))
    with pytest.raises(UserError) as info:
        check_times(executor)
    assert "has no times to profile" in info.value.what
    assert info.value.why == "it is emulated: it counts instructions, and counts are not times"
