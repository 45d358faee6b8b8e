"""The memory plan as text."""

import pytest

from benchmarks.light_models import make
from refcomp.foundation.target import as_target
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.compile import GraphModule
from refcomp.graph.kernels import schedule_graph
from refcomp.graph.memory_picture import memory_picture
from refcomp.graph.optimize import optimize
from tests.strategies.graphs import digits_graph, make_graph


def scheduled(graph) -> GraphModule:
    """A graph with its kernels, not compiled."""
    optimized = optimize(graph)
    _, calls = schedule_graph(optimized)
    return GraphModule(optimized, calls, None, as_target("llvm"))


def test_a_chain_takes_two_places() -> None:
    def build(builder, x):
        first = builder.node("softmax", [x], name="first")
        second = builder.node("softmax", [first], name="a name with spaces")
        return builder.node("softmax", [second], name="third")

    picture = memory_picture(scheduled(make_graph(build, ("N", 16))), {"N": 2})
    assert picture == (
        "# memory of all values but constants, N = 2\n"
        "# 256 bytes; 256 live at once: 1.000 times that\n"
        "#       offset        bytes  steps  value\n"
        "             0          128  ##...  x\n"
        '             0          128  ..##.  "a name with spaces"\n'
        "           128          128  .##..  first\n"
        "           128          128  ...##  third\n"
    )


def test_long_names_and_many_steps_are_shortened() -> None:
    def build(builder, x):
        for _ in range(100):
            x = builder.node("softmax", [x], name="n" * 50)
        return x

    lines = memory_picture(scheduled(make_graph(build, (4,))), {}).splitlines()
    assert max(map(len, lines)) <= 2 + 12 + 1 + 12 + 2 + 64 + 2 + 40
    assert all("#" in line for line in lines)


def ratio(picture: str) -> float:
    """The peak beside the largest set of live values."""
    return float(picture.splitlines()[1].rsplit(" times", 1)[0].rsplit(" ", 1)[1])


@pytest.mark.parametrize("batch", [1, 64])
def test_the_digit_network_takes_what_lives_at_once(batch: int) -> None:
    assert ratio(memory_picture(scheduled(digits_graph()), {"N": batch})) <= 1.05


@pytest.mark.search
@pytest.mark.parametrize("name", ["resnet50", "squeezenet"])
def test_networks_take_what_lives_at_once(name: str) -> None:
    graph = from_onnx(make(name).SerializeToString())
    assert ratio(memory_picture(scheduled(graph), {})) <= 1.05
