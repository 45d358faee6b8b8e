"""Taking weights out of a model's bytes: what is taken, and that all else is left to protobuf."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, numpy_helper

from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.mapped_files import MappedFile, file_of
from refcomp.frontend.onnx import from_onnx, reading
from refcomp.frontend.onnx import weights as onnx_weights
from refcomp.frontend.onnx.weights import MIN_BYTES, TakenWeights, take_weights
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.verify import verify_graph
from tests.frontend.models import make_model, single
from tests.strategies.operands import floats

LARGE = floats(0, 128, 128)
SMALL = floats(1, 128)


def model_of(weight: np.ndarray = LARGE) -> onnx.ModelProto:
    nodes = [single("MatMul", "x", "w", outputs=["h"]), single("Add", "h", "b")]
    return make_model(nodes, {"x": ("N", len(weight))}, ["y"], {"b": SMALL, "w": weight})


def memory_of(array: np.ndarray) -> bytes:
    """The bytes at the end of the chain of bases."""
    base = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return base


def test_large_weights_are_taken_and_used_where_they_lie() -> None:
    data = model_of().SerializeToString()
    rest, taken = take_weights(data)
    assert list(taken) == [1] and taken[1].nbytes == LARGE.nbytes >= MIN_BYTES
    assert taken[1].obj is data
    expected = model_of()
    expected.graph.initializer[1].ClearField("raw_data")
    assert onnx.ModelProto.FromString(rest) == expected
    constants = {value.name: array for value, array in from_onnx(data).constants.items()}
    assert memory_of(constants["w"]) is data
    np.testing.assert_array_equal(constants["w"], LARGE)
    # A small array does not keep the whole file in memory.
    assert memory_of(constants["b"]) is not data
    assert not constants["w"].flags.writeable and not constants["b"].flags.writeable


def _change(**fields):
    def change(tensor) -> None:
        for name, value in fields.items():
            setattr(tensor, name, value)

    return change


def _external(tensor) -> None:
    tensor.external_data.add(key="location", value="elsewhere")


@pytest.mark.parametrize(
    "change",
    [
        _change(raw_data=b"1" * (MIN_BYTES - 1)),
        _change(data_location=TensorProto.EXTERNAL),
        _external,
        lambda tensor: tensor.segment.SetInParent(),
    ],
    ids=["small", "location", "external", "segment"],
)
def test_unusual_tensors_are_left_to_protobuf(change) -> None:
    model = model_of()
    change(model.graph.initializer[1])
    data = model.SerializeToString()
    assert take_weights(data) == TakenWeights(data, {})
    with pytest.raises(RefcompError):
        from_onnx(data)


def test_data_beside_the_raw_data_is_ignored() -> None:
    model = model_of()
    model.graph.initializer[1].float_data.append(1.0)
    data = model.SerializeToString()
    assert not take_weights(data).taken
    constants = {value.name: array for value, array in from_onnx(data).constants.items()}
    np.testing.assert_array_equal(constants["w"], LARGE)


def test_of_repeated_data_the_last_counts() -> None:
    tensor = numpy_helper.from_array(LARGE, "w").SerializeToString()
    more = TensorProto(raw_data=(LARGE + 1).tobytes()).SerializeToString()
    graph = model_of().graph
    del graph.initializer[1]
    size = len(tensor) + len(more)
    joined = graph.SerializeToString() + b"\x2a" + onnx_weights._varint(size) + tensor + more
    model = model_of()
    model.ClearField("graph")
    data = model.SerializeToString() + b"\x3a" + onnx_weights._varint(len(joined)) + joined
    constants = {value.name: array for value, array in from_onnx(data).constants.items()}
    np.testing.assert_array_equal(constants["w"], LARGE + 1)


def test_a_model_of_too_many_fields_is_left_to_protobuf(monkeypatch) -> None:
    data = model_of().SerializeToString()
    assert take_weights(data).taken
    monkeypatch.setattr(onnx_weights, "MAX_FIELDS", 10)
    assert take_weights(data) == TakenWeights(data, {})


@pytest.mark.parametrize(
    "dims", [[-1], [1 << 40, 1 << 40], [0, 1 << 62, 1 << 62], [5, 5], []], ids=str
)
def test_shapes_that_do_not_fit_are_refused(dims) -> None:
    model = model_of()
    del model.graph.initializer[1].dims[:]
    model.graph.initializer[1].dims.extend(dims)
    with pytest.raises(RefcompError, match="constant 'w' of shape"):
        from_onnx(model.SerializeToString())


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "uint64", "bool"])
def test_elements_of_all_types(dtype) -> None:
    weight = (np.arange(MIN_BYTES * 2) % 2).astype(dtype).reshape(2, -1)
    model = make_model(
        [single("Identity", "w", outputs=["z"])], {"x": ("N",)}, ["z"], {"w": weight}
    )
    data = model.SerializeToString()
    assert take_weights(data).taken
    (array,) = from_onnx(data).constants.values()
    assert array.dtype == weight.dtype
    np.testing.assert_array_equal(array, weight)


def outcome(data: bytes) -> tuple[str, list[bytes]]:
    """The text and constants of a graph, or the error."""
    try:
        graph = from_onnx(data)
    except RefcompError as error:
        return str(error), []
    return str(graph), [array.tobytes() for array in graph.constants.values()]


SHORT = model_of(floats(0, 3, 128)).SerializeToString()


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_models_mean_the_same_with_and_without_taking(data) -> None:
    content = bytearray(SHORT[: data.draw(st.integers(len(SHORT) // 2, len(SHORT)))])
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, min(len(content), 120) - 1))
        content[place] = data.draw(st.integers(0, 255))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_weights, "MIN_BYTES", 1)
        taken = outcome(bytes(content))
        patch.setattr(onnx_weights, "MIN_BYTES", 1 << 62)
        assert outcome(bytes(content)) == taken


@pytest.fixture
def large_file(tmp_path, monkeypatch) -> Path:
    """A model whose file is mapped."""
    monkeypatch.setattr(reading, "MIN_MAPPED", 1)
    path = tmp_path / "large.onnx"
    path.write_bytes(model_of().SerializeToString())
    return path


def run(graph) -> np.ndarray:
    return (
        GraphExecutor(compile_graph(graph, "interp")).run(x=np.eye(2, 128, dtype="f4"))[0].numpy()
    )


def test_weights_of_a_mapped_file_are_those_of_its_bytes(large_file) -> None:
    graph = from_onnx(large_file)
    weights = {value.name: array for value, array in graph.constants.items()}
    assert isinstance(memory_of(weights["w"]), MappedFile) and file_of(weights["b"]) is None
    np.testing.assert_array_equal(weights["w"], LARGE)
    np.testing.assert_array_equal(run(graph), run(from_onnx(large_file.read_bytes())))
    # A graph may be compiled again.
    np.testing.assert_array_equal(run(graph), LARGE[:2] + SMALL)


def test_a_mapped_file_may_be_replaced_or_deleted(large_file, tmp_path) -> None:
    graph = from_onnx(large_file)
    other = tmp_path / "other.onnx"
    other.write_bytes(b"other")
    other.replace(large_file)
    np.testing.assert_array_equal(run(graph), LARGE[:2] + SMALL)
    large_file.unlink()
    np.testing.assert_array_equal(run(graph), LARGE[:2] + SMALL)


@pytest.mark.parametrize("size", [0, 1000, 100_000])
def test_a_mapped_file_that_was_written_is_refused(large_file, size) -> None:
    graph = from_onnx(large_file)
    compiled = compile_graph(graph, "interp")
    executor = GraphExecutor(compiled)
    large_file.write_bytes(bytes(size))
    later = large_file.stat().st_mtime_ns + 10**9
    os.utime(large_file, ns=(later, later))
    for use in (compile_graph, verify_graph, lambda one: evaluate_graph(one, {})):
        with pytest.raises(UserError, match=r"large.onnx' has changed since the graph") as caught:
            use(graph)
        assert "read the model again" in str(caught.value)
    # What was compiled does not need the file.
    np.testing.assert_array_equal(
        executor.run(x=np.eye(2, 128, dtype="f4"))[0].numpy(), LARGE[:2] + SMALL
    )


def test_a_mapped_file_without_large_weights_is_not_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(reading, "MIN_MAPPED", 1)
    path = tmp_path / "small.onnx"
    path.write_bytes(model_of(floats(2, 4, 128)[:, :4].copy()).SerializeToString())
    rest, taken = take_weights(reading.read_model(path, 1 << 20))
    assert type(rest) is bytes and rest == path.read_bytes() and not taken
