"""Parameters as bytes: TVM's format, all dtypes, and refusal of damaged bytes."""

import struct

import ml_dtypes
import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.dtype import SCALAR_DTYPES, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.graph.params import host_arrays, load_param_dict, save_param_dict

DATA = save_param_dict({"w": np.arange(6, dtype="float32").reshape(2, 3), "b": np.ones(2, "int8")})


def test_layout_is_that_of_tvm() -> None:
    data = save_param_dict({"w": np.array([[1.5, -2]], "float32")})
    expected = struct.pack("<QQ", 0xF7E58D4F05049CB7, 0)
    expected += struct.pack("<QQ", 1, 1) + b"w" + struct.pack("<Q", 1)
    expected += struct.pack("<QQ", 0xDD5E40F096B4A13F, 0)
    expected += struct.pack("<iii", 1, 0, 2) + struct.pack("<BBH", 2, 32, 1)
    expected += struct.pack("<qqq", 1, 2, 8) + struct.pack("<ff", 1.5, -2)
    assert data == expected


@pytest.mark.parametrize("dtype", SCALAR_DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_all_dtypes_and_shapes_come_back(dtype: object, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 2, shape).astype(to_numpy(dtype))
    (made,) = load_param_dict(save_param_dict({"a": array})).values()
    assert made.dtype == to_numpy(dtype).name
    np.testing.assert_array_equal(made.asnumpy(), array)


def test_names_and_order_come_back() -> None:
    params = {"b": np.zeros(1), "ä.weight": rc.array(np.ones(2)), "": np.zeros(1)}
    assert list(load_param_dict(save_param_dict(params))) == list(params)
    assert load_param_dict(save_param_dict({})) == {}
    assert list(load_param_dict(bytearray(DATA))) == ["w", "b"]


def test_other_orders_of_memory_and_bytes_are_converted() -> None:
    array = np.arange(6, dtype=">f4").reshape(2, 3).T
    (made,) = load_param_dict(save_param_dict({"a": array})).values()
    np.testing.assert_array_equal(made.asnumpy(), array)


def test_dlpack_spelling_of_bool_is_read() -> None:
    data = bytearray(save_param_dict({"a": np.array([True, False])}))
    place = data.index(struct.pack("<BBH", 1, 1, 1))
    data[place : place + 2] = bytes([6, 8])
    (made,) = load_param_dict(data).values()
    assert made.asnumpy().tolist() == [True, False]
    data[-1] = 7
    with pytest.raises(UserError, match="'a' has the dtype bool, but other numbers than 0 and 1"):
        load_param_dict(data)


def test_bfloat16_has_code_4() -> None:
    data = save_param_dict({"a": np.ones(1, ml_dtypes.bfloat16)})
    assert struct.pack("<BBH", 4, 16, 1) in data


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([1], r"parameters are a list, not arrays by name\n(.|\n)*pass a dict"),
        ({"w": [1.0]}, "the parameter 'w' cannot be a list"),
        ({3: np.ones(1)}, "the parameter 3 cannot be a ndarray"),
        ({"w": np.array(["x"])}, "unknown dtype"),
    ],
)
def test_other_parameters_are_refused(params: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        host_arrays(params)


def patched(place: int, form: str, value: int) -> bytes:
    data = bytearray(DATA)
    struct.pack_into(form, data, place, value)
    return bytes(data)


# Places: 16 the number of names, 24 the length of the first; 42 the number of arrays, 50 the first
# array: magic, reserved, device at 66, rank at 74, dtype at 78, extents at 82, size at 98.
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the beginning needs 8 bytes, but 0 are left"),
        (b"PK\3\4" + b"\0" * 40, "they do not begin with 0xF7E58D4F05049CB7"),
        (patched(16, "<Q", 2**60), "1152921504606846976 names cannot stand in"),
        (patched(24, "<Q", 2**60), "a name has 1152921504606846976 bytes; at most 65536"),
        (patched(24, "<Q", 500), "a name needs 500 bytes, but"),
        (patched(32, "<B", 0xFF), "a name is not UTF-8"),
        (patched(32, "<B", ord("b")), "two parameters have one name"),
        (patched(42, "<Q", 1), "there are 2 names, but 1 arrays"),
        (patched(42, "<Q", 2**40), "1099511627776 arrays cannot stand in"),
        (patched(50, "<Q", 7), "'w' does not begin with 0xDD5E40F096B4A13F"),
        (patched(66, "<i", 2), "'w' is on a device of kind 2, not on the host"),
        (patched(74, "<i", -1), "'w' has -1 dimensions; at most 64"),
        (patched(74, "<i", 2**30), "'w' has 1073741824 dimensions; at most 64"),
        (patched(78, "<B", 9), "'w' has the dtype of code 9 with 32 bits and 1 lanes"),
        (patched(80, "<H", 4), "with 32 bits and 4 lanes"),
        (patched(82, "<q", -2), r"'w' has the shape \(-2, 3\), but 24 bytes"),
        (patched(82, "<q", 2**62), r"'w' has the shape \(4611686018427387904, 3\), but 24 bytes"),
        (patched(98, "<q", 25), r"'w' has the shape \(2, 3\), but 25 bytes"),
        (DATA + b"x", "1 bytes follow the last array"),
    ],
)
def test_damaged_bytes_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(UserError, match=rf"the parameters cannot be read(.|\n)*{message}"):
        load_param_dict(data)


def test_each_truncation_is_refused() -> None:
    for size in range(len(DATA)):
        with pytest.raises(UserError, match="the parameters cannot be read"):
            load_param_dict(DATA[:size])


def test_bytes_are_needed() -> None:
    with pytest.raises(UserError, match="a str holds no parameters"):
        load_param_dict("text")
