"""The CUDA Array Interface: what is written, and what is refused when it is read."""

import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.runtime.arrays.cuda_interface import CudaArray, read_interface, write_interface

F32 = np.dtype(np.float32)
GOOD = {
    "shape": (2, 3),
    "typestr": "<f4",
    "data": (4096, False),
    "strides": None,
    "version": 3,
    "stream": 1,
}


def test_the_description_of_memory():
    assert write_interface(4096, (2, 3), F32) == GOOD
    assert write_interface(4096, (0, 3), F32)["data"] == (0, False)
    assert write_interface(4096, (), np.dtype(bool))["typestr"] == "|b1"


def test_bfloat16_is_refused():
    with pytest.raises(Unsupported, match="bfloat16 array has no __cuda_array_inter") as caught:
        write_interface(4096, (3,), np.dtype(ml_dtypes.bfloat16))
    assert "DLPack" in caught.value.remedy


def test_what_is_written_is_read():
    assert read_interface(GOOD, "Array") == CudaArray(4096, (2, 3), F32, has_stream=True)
    version_2 = {name: value for name, value in GOOD.items() if name != "stream"}
    assert not read_interface(version_2, "Array").has_stream


@pytest.mark.parametrize("strides", [(12, 4), [12, 4]])
def test_strides_of_compact_arrays(strides):
    assert read_interface({**GOOD, "strides": strides}, "Array").shape == (2, 3)
    single = {**GOOD, "shape": (1, 3), "strides": (99, 4)}
    assert read_interface(single, "Array").shape == (1, 3)
    assert read_interface({**GOOD, "shape": (0, 3), "strides": (1, 1)}, "Array").shape == (0, 3)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"strides": (4, 8)},
            r"it is not C-contiguous \(shape \(2, 3\), strides \(4, 8\) bytes\)",
        ),
        ({"data": (4096, True)}, "it is read-only, which a kernel cannot respect"),
        ({"mask": object()}, "it has a mask"),
        ({"typestr": ">f4"}, r"its byte order is not the GPU's \(dtype >f4\)"),
        ({"data": (4098, False)}, "its start is not a multiple of 4 bytes"),
    ],
)
def test_memory_that_cannot_be_shared(change, problem):
    with pytest.raises(
        UserError, match=f"memory of this Array cannot be shared: {problem}"
    ) as caught:
        read_interface({**GOOD, **change}, "Array")
    assert caught.value.remedy == "copy it with its own library first"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"typestr": None}, "TypeError: None is not a text"),
        ({"typestr": "<q9"}, "TypeError"),
        ({"shape": 3}, "TypeError: 3 is not a tuple"),
        ({"data": (1,)}, "ValueError: not enough values"),
        ({"strides": (4,)}, "ValueError: strides (4,) for the shape (2, 3)"),
    ],
)
def test_a_malformed_description(change, why):
    with pytest.raises(UserError, match="__cuda_array_interface__ of this Array is malf") as caught:
        read_interface({**GOOD, **change}, "Array")
    assert why in caught.value.why and "from_dlpack" in caught.value.remedy
    with pytest.raises(UserError, match="malformed"):
        read_interface({}, "Array")


def test_unknown_dtypes_are_refused():
    with pytest.raises(UserError, match="unknown dtype 'complex64'"):
        read_interface({**GOOD, "typestr": "<c8"}, "Array")
