"""Stored tensors: every element type and form, sparse ones, and data in other files."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from refcomp.foundation.errors import UserError
from refcomp.foundation.mapped_files import file_of
from refcomp.frontend.onnx.element_types import ELEMENT_TYPES, STRINGS, stored
from refcomp.frontend.onnx.tensors import TensorReader

READER = TensorReader(None, 1000)
CODES = [code for code in ELEMENT_TYPES if code != STRINGS]


def proto(array: Any, **fields: Any) -> TensorProto:
    tensor = numpy_helper.from_array(np.asarray(array), "t")
    for name, value in fields.items():
        setattr(tensor, name, value)
    return tensor


def with_dims(tensor: TensorProto, *dims: int) -> TensorProto:
    del tensor.dims[:]
    tensor.dims.extend(dims)
    return tensor


@pytest.mark.parametrize("code", CODES, ids=lambda code: ELEMENT_TYPES[code].name)
@pytest.mark.parametrize("raw", [False, True])
def test_every_element_type_is_read(code: int, raw: bool) -> None:
    kind = ELEMENT_TYPES[code]
    values = np.array([0, 1, 1, 0, 1], np.float32).astype(kind.numpy)
    tensor = helper.make_tensor("t", code, [5], values, raw=False)
    if raw:
        tensor = numpy_helper.from_array(values, "t")
        assert tensor.data_type == code
    made = READER.read(tensor)
    assert made.dtype == kind.storage.dtype
    np.testing.assert_array_equal(made, stored(values, code))


def test_strings_are_objects() -> None:
    tensor = helper.make_tensor("t", TensorProto.STRING, [2, 1], [b"a", "é".encode()])
    made = READER.read(tensor)
    assert (made.dtype, made.tolist()) == (object, [["a"], ["é"]])
    tensor.string_data[0] = b"\xff"
    assert READER.read(tensor)[0, 0] == "\ufffd"


def test_elements_that_lie_outside_of_the_proto_share_their_memory() -> None:
    array = np.arange(4, dtype=np.float32)
    tensor = proto(array)
    tensor.ClearField("raw_data")
    made = READER.read(tensor, memoryview(array.tobytes()))
    np.testing.assert_array_equal(made, array)
    assert made.base is not None


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (proto([1.0], raw_data=b"1234567"), r"'t' of shape \[1\] does not fit its 7"),
        (proto([1.0], raw_data=b"12"), r"of shape \[1\] does not fit its 2 bytes"),
        (with_dims(proto([1.0]), 1 << 40, 1 << 40), "does not fit its 8 bytes of data"),
        (with_dims(proto([1.0]), -1), r"shape \[-1\] does not fit"),
        (with_dims(helper.make_tensor("t", 1, [1], [1.0]), 1 << 40), "is damaged"),
        (with_dims(helper.make_tensor("t", TensorProto.INT4, [1], [1]), 1 << 40), "not fit"),
        (with_dims(helper.make_tensor("t", STRINGS, [1], ["a"]), 1 << 40), "is damaged"),
        (proto([1.0], data_type=TensorProto.COMPLEX64), "has the element type complex64"),
        (proto([1.0], data_type=77), "has the element type 77"),
        (proto([1.0], data_type=STRINGS), "is damaged"),
        (proto([1.0], data_type=0), "has the element type undefined"),
    ],
)
def test_damaged_tensors_are_refused(tensor: TensorProto, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        READER.read(tensor)
    assert caught.value.remedy


def sparse(values: Any, indices: Any, dims: list[int]) -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(proto(values), proto(np.asarray(indices, np.int64)), dims)


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_a_sparse_tensor_becomes_dense(indices: Any) -> None:
    made = READER.read_sparse(sparse([2.0, 3.0], indices, [2, 3]))
    assert made.tolist() == [[0, 2, 0], [0, 0, 3]]


def test_a_sparse_tensor_without_elements() -> None:
    empty = np.zeros(0, np.float32)
    assert READER.read_sparse(sparse(empty, np.zeros(0), [2])).tolist() == [0, 0]
    assert READER.read_sparse(sparse(empty, np.zeros((0, 2)), [1, 1])).tolist() == [[0]]


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (sparse([1.0], [6], [2, 3]), "has an index outside of its shape"),
        (sparse([1.0], [-1], [2, 3]), "has an index outside of its shape"),
        (sparse([1.0], [[0, 3]], [2, 3]), "has an index outside of its shape"),
        (sparse([1.0], [0, 1], [2, 3]), r"values of shape \[1\] and indices of shape \[2\]"),
        (sparse([[1.0]], [0], [2, 3]), r"values of shape \[1, 1\]"),
        (sparse([1.0], [0], [1 << 40]), "is larger than 1000 bytes"),
        (sparse([1.0], [0], [1 << 40, 1 << 40]), "is larger than 1000 bytes"),
        (sparse([1.0], [0], [-1]), r"of shape \[-1\]"),
    ],
)
def test_damaged_sparse_tensors_are_refused(tensor, message: str) -> None:
    with pytest.raises(UserError, match=message):
        READER.read_sparse(tensor)


def external(**entries: Any) -> TensorProto:
    tensor = proto(np.arange(2, dtype=np.float32))
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


@pytest.fixture
def reader(tmp_path) -> TensorReader:
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (folder / "data").write_bytes(b"\0" * 4 + np.array([3, 4], np.float32).tobytes())
    (tmp_path / "secret").write_bytes(b"\0" * 8)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "way").symlink_to(tmp_path)
    (folder / "circle").symlink_to(folder / "circle")
    return TensorReader(folder, 1000)


def test_data_in_another_file_is_read(reader: TensorReader) -> None:
    assert reader.read(external(location="data", offset=4)).tolist() == [3, 4]
    made = reader.read(external(location="data", offset=4, length=8, checksum="any"))
    assert made.tolist() == [3, 4]
    inner = external(location="sub/more", length=8)
    assert reader.folder is not None
    (reader.folder / "sub" / "more").write_bytes(b"\0" * 9)
    assert reader.read(inner).tolist() == [0, 0]


def test_tensors_of_a_file_share_its_mapping(reader: TensorReader) -> None:
    first = reader.read(external(location="data", length=8))
    second = reader.read(external(location="data", offset=4))
    file = file_of(first)
    assert file is not None and file_of(second) is file


def test_narrow_types_lie_in_other_files_too(reader: TensorReader) -> None:
    tensor = external(location="four", length=1)
    tensor.data_type = TensorProto.INT4
    assert reader.folder is not None
    (reader.folder / "four").write_bytes(b"\xf1")
    assert reader.read(tensor).tolist() == [1, -1]
    assert np.array([1, -1], ml_dtypes.int4).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"location": "../secret"}, "the path leaves the folder"),
        ({"location": "sub/../../secret"}, "the path leaves the folder"),
        ({"location": "/etc/passwd"}, "the path is absolute"),
        ({"location": "C:\\data"}, "characters that no exporter writes"),
        ({"location": "a\0b"}, "characters that no exporter writes"),
        ({"location": "link"}, "a link leads out of the folder"),
        ({"location": "way/secret"}, "a link leads out of the folder"),
        ({"location": "sub"}, "it is not a file"),
        ({"location": "circle"}, "which is not read|cannot be read"),
        ({"location": "absent"}, "cannot be read"),
        ({"location": "x" * 5000}, "'x{200}', which is not read"),
        ({"location": ""}, "does not say where its data lies"),
        ({"offset": 0}, "does not say where its data lies"),
        ({"location": "data", "where": 1}, "does not say where its data lies"),
        ({"location": "data", "offset": 5}, "does not fit its 7 bytes"),
        ({"location": "data", "offset": 99}, "is said to have 0 bytes at 99"),
        ({"location": "data", "offset": -1}, "has the offset '-1'"),
        ({"location": "data", "offset": "9" * 30}, "has the offset '9999"),
        ({"location": "data", "length": 99}, "is said to have 99 bytes at 0 of 'data'"),
        ({"location": "data", "length": "x"}, "has the length 'x'"),
        ({"location": "data", "length": 0}, "cannot reshape array of size 0"),
    ],
)
def test_lies_about_other_files_are_refused(
    reader: TensorReader, entries: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        reader.read(external(**entries))
    assert "constant 't'" in str(caught.value)


def test_a_large_file_is_not_read_whole(reader: TensorReader) -> None:
    assert reader.folder is not None
    with (reader.folder / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UserError, match="1000 are read at most"):
        reader.read(external(location="large"))
    assert reader.read(external(location="large", offset=1 << 39, length=8)).tolist() == [0, 0]


def test_a_model_of_bytes_has_no_other_files() -> None:
    with pytest.raises(UserError, match="'t' lies in another file"):
        READER.read(external(location="data"))
