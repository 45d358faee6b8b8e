"""Errors of layers over their bounds: the table, the summary, the exit code, a real graph."""

import json
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from benchmarks.inference import layers
from benchmarks.inference.layers import LayerErrors, errors_of, main, table_of
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.debug.comparing import NodeComparison


def small_graph():
    """A product and its exponential, which become one kernel."""
    builder = GraphBuilder("net")
    x = builder.input("x", "float32", (2, 8))
    w = builder.constant("w", np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3))
    product = builder.node("matmul", [x, w], name="product")
    return builder.finish([builder.node("exp", [product], name="y")])


def layer(name, ratio, wrong=0):
    return NodeComparison(name, "conv2d+relu", 10, wrong, 1, ratio, None, None, "evaluate")


FINE = LayerErrors("net", [layer("[a]", 0.25), layer("b", 0.99), layer("c", 0.5)])
BROKEN = LayerErrors("bad", [layer("a", 0.25), layer("b", 3.0, wrong=4)])


def printed(table) -> str:
    text = StringIO()
    Console(file=text, width=120).print(table)
    return text.getvalue()


def test_the_summary_counts_wrong_layers_and_names_the_largest_error() -> None:
    assert str(FINE) == (
        "net: 3 layers with 30 elements, 0 wrong; largest error 0.99 of its bound; "
        "3 elements that no bound decides"
    )
    assert (BROKEN.wrong, BROKEN.worst) == (1, 3.0)
    assert LayerErrors("none", []).worst == 0.0


def test_the_worst_layers_come_first_unless_all_are_shown() -> None:
    worst = printed(table_of(FINE, 2))
    assert worst.index("0.990") < worst.index("0.500") and "[a]" not in worst
    every = printed(table_of(FINE, None))
    assert every.index("[a]") < every.index("0.990") < every.index("0.500")


def run(monkeypatch, *arguments: str) -> tuple[int, str]:
    text = StringIO()
    judged = {"resnet50": FINE, "vgg19": BROKEN}
    monkeypatch.setattr(layers, "errors_of_model", lambda name, batch: judged[name])
    return main(arguments, Console(file=text, width=140)), text.getvalue()


def test_a_wrong_layer_is_an_exit_code(monkeypatch, tmp_path) -> None:
    file = tmp_path / "found.json"
    assert run(monkeypatch, "resnet50", "--json", str(file))[0] == 0
    (found,) = json.loads(file.read_text()).values()
    assert [one["ratio"] for one in found] == [0.25, 0.99, 0.5]
    code, text = run(monkeypatch, "resnet50", "vgg19", "--all")
    assert code == 1 and "bad: 2 layers with 20 elements, 1 wrong" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet"], "no light model resnet; there are bvlc_alexnet, "),
        (["resnet50", "--batch", "0"], "a batch has one image at least, not 0"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message, capsys) -> None:
    with pytest.raises(SystemExit) as refusal:
        main(arguments)
    assert refusal.value.code == 2
    assert message in capsys.readouterr().err


def test_layers_are_judged_on_what_they_read() -> None:
    found = errors_of("net", small_graph(), "interp")
    assert [one.operator for one in found.layers] == ["matmul+exp"]
    assert (found.wrong, found.layers[0].elements) == (0, 6) and 0 < found.worst < 1
