"""Arguments of a kernel as bytes: each at a multiple of its size."""

import struct

import numpy as np
import pytest

from refcomp.foundation.dtype import as_dtype
from refcomp.runtime.device import DeviceMemory
from refcomp.runtime.launch import KernelSignature
from refcomp.runtime.packed_arguments import buffer_offsets, pack_arguments

NAMES = ("i8", None, "f16", "f32", "bool", "i64")
PARAMS = tuple(None if name is None else as_dtype(name) for name in NAMES)
KERNEL = KernelSignature("main.kernel0", "main_kernel0", PARAMS)
VALUES = [
    *(np.int8(-3), DeviceMemory(0x1234567890, None), np.float16(0.5), np.float32(1.5)),
    *(np.bool_(True), np.int64(-(2**40))),
]
PACKED = (
    struct.pack("<b7xQ", -3, 0x1234567890)
    + struct.pack("<e2xf", 0.5, 1.5)
    + struct.pack("<b7xq", 1, -(2**40))
)


def test_arguments_are_packed_naturally():
    assert pack_arguments(KERNEL, VALUES) == PACKED
    assert pack_arguments(KernelSignature("f", "f", ()), []) == b""


def test_the_places_of_addresses():
    assert buffer_offsets(KERNEL) == {1: 8}
    kernel = KernelSignature("f", "f", (None, as_dtype("i8"), None, as_dtype("f16"), None))
    assert buffer_offsets(kernel) == {0: 0, 2: 16, 4: 32}


def test_integers_behind_the_arguments_are_aligned():
    kernel = KernelSignature("f", "f", (as_dtype("i8"),))
    assert pack_arguments(kernel, [np.int8(1)], [2**40, 5]) == struct.pack("<b7xQQ", 1, 2**40, 5)
    assert pack_arguments(KernelSignature("f", "f", ()), [], [7]) == struct.pack("<Q", 7)


def test_each_parameter_needs_a_value():
    with pytest.raises(ValueError, match="shorter"):
        pack_arguments(KERNEL, VALUES[:2])
