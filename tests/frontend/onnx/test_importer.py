"""Reading ONNX files: the digit network, symbolic extents, and files that are broken or hostile."""

import builtins
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from refcomp.foundation.errors import RefcompError, Unsupported, UserError
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.evaluate import evaluate_graph
from tests.frontend.models import make_model, single
from tests.strategies.graphs import DIGITS, digits_graph, digits_images
from tests.strategies.operands import floats

FILE = DIGITS / "digits.onnx"
RELU = make_model([single("Relu", "x")], {"x": ("N", 4)}, ["y"])


def text_of(info: pytest.ExceptionInfo[RefcompError]) -> str:
    return str(info.value)


@pytest.mark.search
def test_the_digit_network_means_what_onnx_runtime_computes() -> None:
    images, _ = digits_images()
    session = onnxruntime.InferenceSession(FILE, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"image": images})
    (meant,) = evaluate_graph(digits_graph(), {"image": images})
    np.testing.assert_allclose(meant, expected, atol=2e-6)


def test_bytes_and_path_give_the_same_graph() -> None:
    assert str(from_onnx(FILE.read_bytes())) == str(from_onnx(str(FILE)))


def test_symbolic_and_unnamed_extents_are_kept() -> None:
    model = make_model([single("Relu", "x")], {"x": ("batch", None, 3)}, ["y"])
    graph = from_onnx(model.SerializeToString())
    assert graph.inputs[0].shape == ("batch", "'x'.extent1", 3)
    assert graph.outputs[0].shape == graph.inputs[0].shape


def test_hostile_names_survive_as_names() -> None:
    evil = 'x"; }\n{% raw %}'
    model = make_model([single("Relu", evil, outputs=[evil + "2"])], {evil: ("N", 4)}, [evil + "2"])
    graph = from_onnx(model.SerializeToString())
    x = floats(0, 2, 4)
    np.testing.assert_array_equal(evaluate_graph(graph, {evil: x})[0], np.maximum(x, 0))
    assert "\n{%" not in str(graph)


def test_missing_file(tmp_path) -> None:
    with pytest.raises(UserError, match="absent.onnx' cannot be read") as info:
        from_onnx(tmp_path / "absent.onnx")
    assert "No such file" in text_of(info)
    with pytest.raises(UserError, match="cannot be read"):
        from_onnx(tmp_path)


@pytest.mark.tools
def test_reading_a_small_file_takes_little_memory() -> None:
    program = (
        "import resource, sys, onnx, onnx.numpy_helper\n"
        "from refcomp.frontend import from_onnx\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from_onnx(sys.argv[1])\n"
    )
    subprocess.run([sys.executable, "-c", program, str(FILE)], check=True)


def test_size_is_bounded(tmp_path) -> None:
    path = tmp_path / "large.onnx"
    path.write_bytes(FILE.read_bytes())
    with pytest.raises(UserError, match="is larger than 1000 bytes") as info:
        from_onnx(path, max_bytes=1000)
    assert "max_bytes" in text_of(info)
    with pytest.raises(UserError, match="is larger than 10 bytes"):
        from_onnx(FILE.read_bytes(), max_bytes=10)


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"PK\x03\x04zip", b"hello", b"\x08\x07"])
def test_foreign_files_are_refused(content) -> None:
    with pytest.raises(UserError) as info:
        from_onnx(content)
    assert "export" in text_of(info)


@settings(max_examples=40)
@given(st.data())
def test_truncated_and_damaged_files_end_in_a_clear_error_or_a_graph(data) -> None:
    content = bytearray(FILE.read_bytes()[: data.draw(st.integers(0, FILE.stat().st_size))])
    for _ in range(data.draw(st.integers(0, 3))):
        if content:
            place = data.draw(st.integers(0, min(len(content), 4000) - 1))
            content[place] = data.draw(st.integers(0, 255))
    try:
        from_onnx(bytes(content))
    except RefcompError as error:
        assert "Traceback" not in str(error)


def test_truncated_file_says_what_to_do() -> None:
    content = FILE.read_bytes()
    for end in (len(content) // 2, len(content) - 1):
        with pytest.raises(UserError) as info:
            from_onnx(content[:end])
        assert "damaged" in text_of(info) and "again" in text_of(info)


def test_onnx_is_optional(monkeypatch) -> None:
    original = builtins.__import__

    def without_onnx(name, *rest):
        if name.split(".")[0] == "onnx":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_onnx)
    with pytest.raises(UserError, match="needs the package onnx") as info:
        from_onnx(FILE)
    assert 'pip install "refcomp[onnx]"' in text_of(info)


def test_an_operator_has_the_meaning_of_its_version() -> None:
    x = np.array([[1, 2], [3, 5]], np.float32)
    for version, axis in ((11, 1), (13, -1)):
        model = make_model([single("Softmax", "x")], {"x": (2, 2, 1)}, ["y"], opset=version)
        (made,) = evaluate_graph(from_onnx(model.SerializeToString()), {"x": x[..., None]})
        total = made.sum(axis=(1, 2) if axis == 1 else 2)
        np.testing.assert_allclose(total, np.ones_like(total), rtol=1e-6)


def test_a_set_that_the_model_does_not_name_is_refused() -> None:
    node = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml")
    model = make_model([node], {"x": ("N",)}, ["y"])
    with pytest.raises(UserError, match="names no version of the operators of 'ai.onnx.ml'"):
        from_onnx(model.SerializeToString())


def test_unsupported_operators_are_told_all_at_once_with_counts() -> None:
    nodes = [
        single("Absent", "x", outputs=["a"]),
        single("Absent", "a", outputs=["b"]),
        single("Relu", "b", outputs=["c"]),
        single("Elu", "x", outputs=["d"], other=1),
        helper.make_node("Gelu", ["d"], ["e"], domain="com.microsoft"),
        single("Softmax", "e", outputs=["y"]),
    ]
    model = make_model(nodes, {"x": ("N", 4)}, ["y"])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(Unsupported, match="cannot run 4 nodes of this model") as info:
        from_onnx(model.SerializeToString())
    text = text_of(info)
    assert "'Absent' (2 nodes: 'Absent', 'Absent'): refcomp does not support" in text
    assert "'Elu' (1 node: 'Elu'): its attribute 'other' is unknown to refcomp" in text
    assert "'com.microsoft.Gelu' (1 node: 'Gelu'): refcomp does not support" in text
    assert "Relu" not in text and "Softmax" not in text


def damaged(change) -> bytes:
    model = onnx.ModelProto()
    model.CopyFrom(onnx.load(FILE))
    change(model)
    return model.SerializeToString()


def _external(model) -> None:
    tensor = model.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.ClearField("raw_data")
    tensor.external_data.add(key="location", value="../../etc/passwd")


def _set(**fields):
    def change(model) -> None:
        for name, value in fields.items():
            setattr(model.graph.initializer[0], name, value)

    return change


def _huge_shape(model) -> None:
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend([1 << 40, 1 << 40])


def _negative_shape(model) -> None:
    model.graph.initializer[0].dims[0] = -16


def _negative_input(model) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -1


def _out_of_order(model) -> None:
    first = model.graph.node[0]
    model.graph.node.append(first)
    del model.graph.node[0]


def _twice(model) -> None:
    model.graph.node[1].output[0] = model.graph.node[0].output[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_external, "'Conv_0.weight' lies in another file"),
        (_set(raw_data=b"1234567"), r"'Conv_0.weight' of shape \[16, 1, 3, 3\]"),
        (_set(data_type=TensorProto.COMPLEX64), "has the element type complex64"),
        (_set(data_type=TensorProto.STRING), "'Conv_0.weight' of shape .* does not fit"),
        (_set(data_type=77), "has the element type 77"),
        (_huge_shape, "does not fit its 576 bytes of data"),
        (_negative_shape, "does not fit its 576 bytes of data"),
        (_negative_input, "extent 1 of input 'image' is -1"),
        (_out_of_order, "reads 'Conv_0', which nothing before it makes"),
        (_twice, "two nodes of the model make 'Conv_0'"),
        (lambda m: m.graph.output[0].ClearField("name"), "nothing makes the output ''"),
        (lambda m: m.graph.input.append(m.graph.input[0]), "two inputs named 'image'"),
        (lambda m: m.graph.initializer.append(m.graph.initializer[0]), "named 'Conv_0.weight'"),
        (
            lambda m: m.graph.sparse_initializer.add(),
            "sparse constant '' .*|has the element type undefined",
        ),
        (lambda m: m.graph.input[0].type.Clear(), "input 'image' is a value without a type"),
    ],
)
def test_models_that_make_no_sense_are_refused(change, message) -> None:
    with pytest.raises(RefcompError, match=message):
        from_onnx(damaged(change))


def test_constants_listed_as_inputs_are_constants() -> None:
    def change(model) -> None:
        info = helper.make_tensor_value_info("Conv_0.bias", TensorProto.FLOAT, [16])
        model.graph.input.append(info)

    assert [value.name for value in from_onnx(damaged(change)).inputs] == ["image"]


def test_other_element_types() -> None:
    for dtype in (TensorProto.DOUBLE, TensorProto.INT32, TensorProto.BFLOAT16, TensorProto.FLOAT16):
        model = make_model([single("Identity", "x")], {"x": ("N",)}, ["y"], dtype=dtype)
        graph = from_onnx(model.SerializeToString())
        assert graph.inputs[0].dtype == graph.outputs[0].dtype


def test_inputs_of_every_kind() -> None:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    sequence = helper.make_sequence_type_proto(tensor)
    kinds = {
        "t": (tensor, "t: f32[2]"),
        "u": (helper.make_tensor_type_proto(TensorProto.FLOAT, None), "u: f32[*]"),
        "s": (sequence, "s: seq(f32)"),
        "o": (helper.make_optional_type_proto(tensor), "o: optional(f32)"),
        "os": (helper.make_optional_type_proto(sequence), "os: optional(seq(f32))"),
        "w": (helper.make_tensor_type_proto(TensorProto.STRING, [2]), "w: string[*]"),
        "f": (helper.make_tensor_type_proto(TensorProto.INT4, [2]), "f: i8[2]"),
    }
    infos = [helper.make_value_info(name, kind) for name, (kind, _) in kinds.items()]
    model = helper.make_model(
        helper.make_graph([], "g", infos, infos), opset_imports=[helper.make_opsetid("", 21)]
    )
    graph = from_onnx(model.SerializeToString())
    assert [str(value) for value in graph.inputs] == [text for _, text in kinds.values()]
    assert graph.outputs == graph.inputs


def test_inputs_of_other_kinds_are_refused() -> None:
    mapping = onnx.TypeProto()
    mapping.map_type.key_type = TensorProto.INT64
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None))
    for kind, text in (
        (mapping, "map that refcomp does not know"),
        (helper.make_sequence_type_proto(mapping), "map_type"),
        (helper.make_sequence_type_proto(sequence), "sequence_type"),
    ):
        model = helper.make_model(
            helper.make_graph([], "g", [helper.make_value_info("x", kind)], []),
            opset_imports=[helper.make_opsetid("", 21)],
        )
        with pytest.raises(UserError, match=f"input 'x' is a {text}"):
            from_onnx(model.SerializeToString())
