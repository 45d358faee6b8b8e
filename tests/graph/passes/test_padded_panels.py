"""Panels of padded matrices: equal to what the nodes compute, without a padded copy."""

import numpy as np
import pytest

from refcomp.foundation.mapped_files import MappedFile
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.passes import padded_panels
from refcomp.graph.passes.fold_constants import fold_constants
from refcomp.graph.passes.padded_panels import find_padded_panels
from tests.strategies.graphs import make_graph, operators_of
from tests.strategies.operands import floats, integers


def panels_graph(
    matrix: np.ndarray,
    width: int,
    *,
    axes=(1, 0, 2),
    transposed=False,
    outputs=("turn",),
    shape=None,
    **border,
):
    """A graph that lays out a matrix as pack_matrices does, and returns some of its values."""

    def build(builder, x):
        value = builder.constant("w", matrix, copy=False)
        depth, columns = matrix.shape
        if transposed:
            value = builder.node("transpose", [value], {"axes": (1, 0)})
            depth, columns = columns, depth
        spare = -columns % width
        given = {"pad_before": (0, 0), "pad_after": (0, spare), **border}
        values = {"pad": builder.node("pad", [value], given)}
        rows, whole = values["pad"].shape
        split = {"shape": shape or (rows, whole // width, width)}
        values["split"] = builder.node("reshape", [values["pad"]], split)
        values["turn"] = builder.node("transpose", [values["split"]], {"axes": axes})
        return [builder.node("relu", [x]), *(values[name] for name in outputs)]

    return make_graph(build, (3,))


def assert_folds(graph, is_found=True) -> None:
    assert bool(find_padded_panels(graph, graph.nodes)) == is_found
    changed = fold_constants(graph)
    assert operators_of(changed) == ["relu"]
    feeds = {"x": floats(1, 3)}
    for made, wanted in zip(
        evaluate_graph(changed, feeds), evaluate_graph(graph, feeds), strict=True
    ):
        assert made.dtype == wanted.dtype and made.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (7, 9), (2, 3), (4, 41)])
@pytest.mark.parametrize("transposed", [False, True])
def test_panels_are_those_of_the_nodes(shape, transposed, monkeypatch) -> None:
    def seven(shape, dtype):
        return np.full(shape, 7, dtype)

    monkeypatch.setattr(padded_panels, "aligned_empty", seven)
    graph = panels_graph(floats(0, *shape), 4 if shape[transposed ^ 1] % 4 else 6)
    assert_folds(graph)


@pytest.mark.parametrize("dtype", ["float64", "int16"])
def test_panels_have_the_matrix_dtype(dtype) -> None:
    graph = panels_graph(integers(0, 3, 5).astype(dtype), 4)
    assert_folds(graph)
    assert fold_constants(graph).outputs[1].dtype == graph.outputs[1].dtype


@pytest.mark.parametrize(
    "other",
    [
        {"axes": (0, 1, 2)},
        {"pad_before": (0, 3), "pad_after": (0, 0)},
        {"pad_before": (1, 0)},
        {"pad_after": (0, 7)},
        {"pad_value": 1.0},
        {"pad_value": -0.0},
        {"mode": "edge"},
        {"outputs": ("turn", "split")},
        {"outputs": ("turn", "pad")},
        {"shape": (6, 1, 4)},
    ],
)
def test_other_nodes_are_computed_one_by_one(other) -> None:
    assert_folds(panels_graph(floats(0, 3, 5), 4, **other), is_found=False)


def test_whole_panels_need_no_padding() -> None:
    assert_folds(panels_graph(floats(0, 3, 8), 4), is_found=False)


def test_a_matrix_may_have_other_readers() -> None:
    matrix = floats(0, 3, 5)

    def build(builder, x):
        weight = builder.constant("w", matrix)
        padded = builder.node("pad", [weight], {"pad_before": (0, 0), "pad_after": (0, 3)})
        split = builder.node("reshape", [padded], {"shape": (3, 2, 4)})
        turned = builder.node("transpose", [split], {"axes": (1, 0, 2)})
        return [builder.node("relu", [x]), builder.node("exp", [weight]), turned]

    assert_folds(make_graph(build, (3,)))


def test_a_matrix_may_lie_in_a_file(tmp_path) -> None:
    path = tmp_path / "weights"
    matrix = floats(0, 9, 5)
    path.write_bytes(matrix.tobytes())
    with path.open("rb") as file:
        mapped = np.frombuffer(MappedFile.open(file, path), np.float32).reshape(9, 5)
    for transposed in (False, True):
        assert_folds(panels_graph(mapped, 4, transposed=transposed))
