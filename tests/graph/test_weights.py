"""Weights as inputs, as constants, and in mapped files."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.parser import parse_graph
from refcomp.graph.verify import verify_graph
from refcomp.graph.weights import (
    constants_to_inputs,
    inputs_to_constants,
    map_weights,
    save_weights,
)
from refcomp.runtime.device import address_of
from tests.strategies.graphs import digits_graph
from tests.strategies.operands import floats

TEXT = "graph g(x: f32[N], w: f32[N]) -> (y) { require N < 9 y: f32[N] = add(x, w) }"


def test_weights_as_inputs_mean_the_same() -> None:
    graph = digits_graph()
    lifted, weights = constants_to_inputs(graph)
    verify_graph(lifted)
    assert not lifted.constants
    image = floats(1, 2, 1, 8, 8)
    (expected,) = evaluate_graph(graph, {"image": image})
    (actual,) = evaluate_graph(lifted, {"image": image, **weights})
    np.testing.assert_array_equal(actual, expected)
    back = inputs_to_constants(lifted, weights)
    assert str(back) == str(graph)


def test_some_constants_become_inputs() -> None:
    lifted, weights = constants_to_inputs(digits_graph(), ["Gemm_12.bias"])
    assert list(weights) == ["Gemm_12.bias"]
    assert [value.name for value in lifted.inputs] == ["image", "Gemm_12.bias"]
    with pytest.raises(
        UserError, match="(?s)no constant 'Gemm_12.bais'.*did you mean Gemm_12.bias"
    ):
        constants_to_inputs(digits_graph(), ["Gemm_12.bais"])


def test_a_constant_fixes_the_symbols_of_its_shape() -> None:
    graph = inputs_to_constants(parse_graph(TEXT), {"w": floats(0, 3)})
    verify_graph(graph)
    assert str(graph).splitlines()[0] == "graph g(x: f32[3]) -> (y) {"
    assert graph.requires == ()
    with pytest.raises(UserError, match="(?s)the graph g requires N < 9.*N = 9"):
        inputs_to_constants(parse_graph(TEXT), {"w": floats(0, 9)})


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"v": floats(0, 3)}, "(?s)the graph has no input 'v'.*did you mean w|x, w"),
        ({"w": floats(0, 3, 1)}, r"input w: f32.N. cannot be f32.3, 1."),
        ({"w": np.zeros(3)}, r"input w: f32.N. cannot be f64.3."),
        ({"w": floats(0, 3), "x": floats(0, 2)}, r"input x: f32.N. cannot be f32.2."),
        ({"w": [1.0]}, "weight 'w' is a list"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        inputs_to_constants(parse_graph(TEXT), weights)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "int8", "bool", "uint64"])
def test_saved_weights_are_mapped_with_all_bits(dtype: str, tmp_path: Path) -> None:
    elements = np.arange(6).reshape(2, 3).astype(to_numpy(as_dtype(dtype)))
    save_weights(tmp_path / "w", {'a/../"b': elements, "t": elements.T})
    found = map_weights(tmp_path / "w")
    assert list(found) == ['a/../"b', "t"]
    for name, expected in (('a/../"b', elements), ("t", elements.T)):
        assert found[name].dtype == elements.dtype
        assert found[name].tobytes() == np.ascontiguousarray(expected).tobytes()
        assert found[name].shape == expected.shape
        assert not found[name].flags.writeable


def test_executors_read_mapped_weights_where_they_are(tmp_path: Path) -> None:
    save_weights(tmp_path, {"w": floats(0, 1024)})
    mapped = map_weights(tmp_path)
    graph = inputs_to_constants(parse_graph(TEXT.replace("require N < 9", "")), mapped)
    executor = GraphExecutor(compile_graph(graph, "interp"))
    (constant,) = executor._constants.values()
    assert address_of(constant.numpy()) == address_of(mapped["w"])


def damaged(folder: Path, change: str) -> None:
    index = folder / "index.json"
    if change == "no index":
        index.unlink()
    elif change == "deep index":
        index.write_text("[" * 10**5)
    elif change == "pickle":
        np.save(folder / "0.npy", np.array([{}], object), allow_pickle=True)
    elif change == "truncated":
        (folder / "0.npy").write_bytes((folder / "0.npy").read_bytes()[:-1])
    elif change == "empty":
        (folder / "0.npy").write_bytes(b"")
    elif change == "huge":
        text = (folder / "0.npy").read_bytes().replace(b"(4,)", b"(4000000000000,)")
        (folder / "0.npy").write_bytes(text)
    elif change == "other dtype":
        np.save(folder / "0.npy", np.zeros(4))
    elif change == "missing":
        (folder / "0.npy").unlink()
    else:
        index.write_text(change)


GOOD = {"format": "refcomp weights 1", "weights": [["w", "f32"]]}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("no index", "index.json: .*No such file"),
        ("deep index", "index.json: .*recursion"),
        ("{", "index.json: "),
        ("[]", "index.json is not an index of 'refcomp weights 1'"),
        (json.dumps(GOOD | {"format": "refcomp weights 2"}), "is not an index"),
        (json.dumps(GOOD | {"weights": [["w", "f33"]]}), "is not an index"),
        (json.dumps(GOOD | {"weights": [["w", "f32"], ["w", "f32"]]}), "is not an index"),
        (json.dumps(GOOD | {"weights": [["w", "f32"], ["v", "f32"]]}), "1.npy: .*No such file"),
        ("pickle", "0.npy: "),
        ("truncated", "0.npy: "),
        ("empty", "0.npy: "),
        ("huge", "0.npy: "),
        ("other dtype", "0.npy holds float64 instead of f32"),
        ("missing", "0.npy: .*No such file"),
    ],
)
def test_damaged_folders_are_refused(change: str, why: str, tmp_path: Path) -> None:
    save_weights(tmp_path, {"w": floats(0, 4)})
    damaged(tmp_path, change)
    with pytest.raises(UserError, match="the weights in .* cannot be read") as caught:
        map_weights(tmp_path)
    assert re.search(why, str(caught.value.why)), caught.value.why


def test_a_folder_with_files_is_not_overwritten(tmp_path: Path) -> None:
    save_weights(tmp_path, {})
    with pytest.raises(UserError, match="is not empty"):
        save_weights(tmp_path, {})
    with pytest.raises(UserError, match="cannot be written"):
        save_weights(tmp_path / "index.json" / "x", {})
    with pytest.raises(UserError, match="weight 'w' is a list"):
        save_weights(tmp_path / "new", {"w": [1]})
