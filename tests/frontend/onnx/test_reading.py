"""The bytes of a model: their size, and whether they are a model at all."""

import builtins
import errno
import os
import threading

import onnx
import pytest

from refcomp.foundation.errors import UserError
from refcomp.foundation.mapped_files import MappedFile
from refcomp.frontend.onnx import reading
from refcomp.frontend.onnx.reading import onnx_package, parse_model, read_model
from tests.frontend.models import make_model, single

MODEL = make_model([single("Relu", "x")], {"x": (2,)}, ["y"])
CONTENT = MODEL.SerializeToString()


def test_a_model_is_read_from_bytes_a_file_and_a_pipe(tmp_path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(CONTENT)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(CONTENT,))
    writer.start()
    read = [read_model(source, 1000) for source in (CONTENT, path, str(path), pipe)]
    writer.join()
    assert read == [CONTENT] * 4
    assert parse_model(CONTENT).graph.node[0].op_type == "Relu"


def test_a_model_that_is_too_large_is_refused(tmp_path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(CONTENT)
    for source in (CONTENT, path):
        with pytest.raises(UserError, match="is larger than 9 bytes") as caught:
            read_model(source, 9)
        assert "max_bytes" in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path) -> None:
    for path in (tmp_path, tmp_path / "absent", "a\0b"):
        with pytest.raises(UserError) as caught:
            read_model(path, 1000)
        assert caught.value.remedy


def changed(change) -> bytes:
    model = onnx.ModelProto.FromString(CONTENT)
    change(model)
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the model is empty"),
        (b"\x00" * 100, "this is not an ONNX model"),
        (b"PK\x03\x04zip", "this is not an ONNX model"),
        (b"\x08\x07", "has no graph or names no operator set"),
        (CONTENT.replace(b"Relu", b"R\xfflu"), "a name is not UTF-8: b'R.xfflu'"),
        (changed(lambda m: m.ClearField("graph")), "has no graph"),
        (changed(lambda m: m.ClearField("opset_import")), "names no operator set"),
        (changed(lambda m: m.ClearField("ir_version")), "has no graph or names"),
    ],
)
def test_bytes_that_are_no_model_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_model(content)


def test_early_models_name_no_operator_set() -> None:
    def change(model) -> None:
        model.ClearField("opset_import")
        model.ir_version = 2

    assert not parse_model(changed(change)).opset_import


def test_onnx_is_optional(monkeypatch) -> None:
    original = builtins.__import__

    def without_onnx(name, *rest):
        if name.split(".")[0] == "onnx":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_onnx)
    with pytest.raises(UserError, match="needs the package onnx") as caught:
        onnx_package()
    assert 'pip install "refcomp[onnx]"' in str(caught.value)


def test_large_files_are_mapped(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(reading, "MIN_MAPPED", len(CONTENT))
    path = tmp_path / "m.onnx"
    path.write_bytes(CONTENT)
    data = read_model(path, 1000)
    assert isinstance(data, MappedFile) and data[:] == CONTENT and not data.is_stable
    assert read_model(CONTENT, 1000) is CONTENT
    with pytest.raises(UserError, match="is larger than 9 bytes"):
        read_model(path, 9)
    monkeypatch.setattr(reading, "MIN_MAPPED", len(CONTENT) + 1)
    assert read_model(path, 1000) == CONTENT


def test_a_file_that_cannot_be_mapped_is_read(tmp_path, monkeypatch) -> None:
    def refuse(*_given, **_named):
        raise OSError(errno.ENODEV, "no such device")

    monkeypatch.setattr(reading, "MIN_MAPPED", 1)
    monkeypatch.setattr(MappedFile, "open", refuse)
    path = tmp_path / "m.onnx"
    path.write_bytes(CONTENT)
    assert read_model(path, 1000) == CONTENT
