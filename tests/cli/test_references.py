"""What arrays are judged by: tensors with names, models, and loop IR to the bit."""

from pathlib import Path

import numpy as np
import pytest

from refcomp.cli.references import LoopReference, TensorReference, load_reference
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.oracle.floats.error_bounds import Licence

_PROGRAM = """
import refcomp as rc

def computation():
    n = rc.var("n")
    a = rc.placeholder((n, 4), name="A")
    k = rc.reduce_axis((0, 4), "k")
    b = rc.compute((n,), lambda i: rc.sum(a[i, k] * 1.1, axis=k), name="B")
    c = rc.compute((n,), lambda i: rc.exp(b[i]), name="C")
    return rc.create_schedule(c), [a, c]

def with_scalar():
    x = rc.var("x", "float32")
    a = rc.placeholder((4,), name="A")
    b = rc.compute((4,), lambda i: a[i] * x, name="B")
    return rc.create_schedule(b), [a, x, b]
"""
_TWINS = """
import refcomp as rc

def computation():
    p, q = rc.var("n"), rc.var("n")
    a = rc.placeholder((p,), name="A")
    b = rc.compute((p, q - 1), lambda i, j: a[i], name="B")
    return rc.create_schedule(b), [q, a, b]
"""
_EXP = "func f(A: f32[4], B: f32[4] out) { for i in range(4) { B[i] = exp(A[i]) } }"
_LICENCE = Licence()


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(_PROGRAM, encoding="utf-8")
    return str(path)


def _reference(program: str) -> tuple[TensorReference, dict, dict]:
    reference = load_reference(program)
    assert isinstance(reference, TensorReference)
    a = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    b = (a * np.float32(1.1)).sum(axis=1)
    return reference, {"A": a}, {"B": b, "C": np.exp(b)}


def test_tensors_have_names_and_symbolic_shapes(program: str) -> None:
    reference, _, _ = _reference(program)
    assert (reference.inputs, reference.outputs) == (("A",), ("C",))
    assert [str(param) for param in reference.params] == ["A: f32[n, 4]"]
    assert {param.name for param in reference.results} == {"B", "C"}


def test_symbols_of_one_name_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "twins.py"
    path.write_text(_TWINS)
    reference = load_reference(str(path))
    assert isinstance(reference, TensorReference)
    assert [str(param) for param in reference.results] == ["B: f32[n, (n_2 - 1)]"]
    assert list(reference.symbols) == ["n", "n_2"]
    inputs = {"A": np.float32([1, 2])}
    bounded = reference.bounds(inputs, ["B"], _LICENCE, {"n": 2, "n_2": 4})["B"]
    assert bounded.value.tolist() == [[1, 1, 1], [2, 2, 2]]


def test_bounds_follow_from_the_inputs_alone(program: str) -> None:
    reference, inputs, results = _reference(program)
    bounds = reference.bounds(inputs, ["B", "C"], _LICENCE, {})
    for name, array in results.items():
        assert (np.abs(array - bounds[name].value) <= bounds[name].error).all()


def test_the_first_result_that_does_not_follow_is_suspected(program: str) -> None:
    reference, inputs, right = _reference(program)
    assert reference.suspects(inputs, right, _LICENCE, {}) == []
    wrong = {"B": right["B"] + 1, "C": np.exp(right["B"] + 1)}
    (suspect,) = reference.suspects(inputs, wrong, _LICENCE, {})
    assert suspect.startswith("stage B, at ") and "program.py:8" in suspect
    late = {"B": right["B"], "C": right["C"] * 2}
    assert [s.split(",")[0] for s in reference.suspects(inputs, late, _LICENCE, {})] == ["stage C"]
    only = {"C": right["C"] * 2}
    names = [s.split(",")[0] for s in reference.suspects(inputs, only, _LICENCE, {})]
    assert names == ["stage A", "stage B", "stage C"][-len(names) :] and len(names) >= 2


def test_nodes_of_a_model_are_suspected_by_name(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    nodes = [
        onnx.helper.make_node("Mul", ["x", "two"], ["doubled"]),
        onnx.helper.make_node("Relu", ["doubled"], ["y"]),
    ]
    x, y = (onnx.helper.make_tensor_value_info(n, 1, ["N"]) for n in "xy")
    two = onnx.numpy_helper.from_array(np.float32([2]), "two")
    graph = onnx.helper.make_graph(nodes, "g", [x], [y], [two])
    opset = onnx.helper.make_opsetid("", 17)
    path = str(tmp_path / "model.onnx")
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset]), path)
    reference = load_reference(path)
    assert (reference.inputs, reference.outputs) == (("x",), ("y",))
    inputs = {"x": np.float32([1, -1, 3])}
    doubled = np.float32([2, -2, 6])
    found = {"doubled": doubled, "y": np.float32([2, -2, 6])}
    assert reference.suspects(inputs, found, _LICENCE, {}) == ["node y (relu)"]
    assert reference.bounds(inputs, ["y"], _LICENCE, {})["y"].value.tolist() == [2, 0, 6]


def test_loop_ir_is_judged_to_the_bit(tmp_path: Path, add_text: str) -> None:
    path = tmp_path / "add.txt"
    path.write_text(add_text)
    reference = load_reference(str(path))
    assert isinstance(reference, LoopReference) and reference.outputs == ("C",)
    arrays = {"A": np.float32([1, 2]), "B": np.float32([3, 4]), "C": np.zeros(2, np.float32)}
    bounded = reference.bounds(arrays, ["C"], _LICENCE, {})["C"]
    assert bounded.value.tolist() == [4, 6] and not bounded.error.any()
    assert not arrays["C"].any()
    assert reference.suspects({}, {}, _LICENCE, {}) == ["function add"]


def test_refusals(program: str, tmp_path: Path, add_text: str, scale_text: str) -> None:
    with pytest.raises(Unsupported, match="argument x is not a tensor"):
        load_reference(f"{program}:with_scalar")
    for text, what in ((_EXP, "f calls exp"), (scale_text, "scale takes scalar arguments")):
        (tmp_path / "text.txt").write_text(text)
        with pytest.raises(Unsupported, match=what) as caught:
            load_reference(str(tmp_path / "text.txt"))
        assert "bit for bit" in str(caught.value)
    (tmp_path / "text.txt").write_text(add_text + scale_text)
    with pytest.raises(UserError, match="holds 2 functions"):
        load_reference(str(tmp_path / "text.txt"))
