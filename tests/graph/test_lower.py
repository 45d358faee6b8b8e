"""Lowering the kernels of a graph, one after the other, and certifying them."""

import refcomp.graph.lower as lowering
from refcomp.foundation.options import build_options
from refcomp.foundation.target import as_target
from refcomp.graph.kernels import schedule_graph
from refcomp.graph.lower import build_kernels, lower_kernel
from refcomp.lowering.lower import lower
from tests.strategies.graphs import make_graph


def test_functions_are_lowered_when_the_build_asks_for_them(monkeypatch) -> None:
    events = []

    def recorded(schedule, args, name):
        events.append(f"lower {name}")
        return lower(schedule, args, name)

    def build(funcs, target, count):
        assert count == 2
        events.extend(f"build {func.name}" for func in funcs)

    monkeypatch.setattr(lowering, "lower", recorded)
    monkeypatch.setattr(lowering, "build_lowered", build)
    graph = make_graph(lambda b, x: [b.node("softmax", [x], {"axis": k}) for k in (0, 1)])
    kernels, _ = schedule_graph(graph)
    build_kernels(kernels, as_target("interp"))
    names = ["kernel0_softmax", "kernel1_softmax"]
    assert events == [f"{what} {name}" for name in names for what in ("lower", "build")]


def test_kernels_are_certified_if_an_option_asks_for_it(monkeypatch) -> None:
    certified = []
    monkeypatch.setattr(lowering, "certify_build", lambda *given: certified.append(given[2:]))
    (kernel,), _ = schedule_graph(make_graph(lambda b, x: b.node("relu", [x]), (2, 3)))
    for is_certified in (False, True):
        with build_options(certify=is_certified):
            lower_kernel(kernel, as_target("interp"))
    assert certified == [("kernel0_relu", "interp")]
