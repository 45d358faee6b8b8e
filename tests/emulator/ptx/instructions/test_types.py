import numpy as np
import pytest

from refcomp.emulator.ptx.instructions.types import (
    CARRY,
    as_unsigned,
    bits_of,
    dtype_of,
    is_signed,
    is_type,
    unsigned_of,
)


@pytest.mark.parametrize(
    ("kind", "bits", "dtype"),
    [
        ("pred", 1, np.bool_),
        (CARRY, 1, np.bool_),
        ("u8", 8, np.uint8),
        ("s16", 16, np.int16),
        ("b64", 64, np.uint64),
        ("f16", 16, np.float16),
        ("bf16", 16, np.uint16),
        ("f16x2", 32, np.uint32),
        ("s16x2", 32, np.uint32),
        ("tf32", 32, np.uint32),
        ("e4m3x2", 16, np.uint16),
        ("ue8m0x2", 16, np.uint16),
    ],
)
def test_width_and_array_of_each_type(kind: str, bits: int, dtype: type) -> None:
    assert bits_of(kind) == bits
    assert dtype_of(kind) == dtype
    assert unsigned_of(kind).itemsize == dtype_of(kind).itemsize


def test_names_of_types() -> None:
    assert all(map(is_type, ("u32", "bf16x2", "pred", "tf32", "b128", "e5m2x2", "f32x2")))
    assert not any(map(is_type, ("rn", "ftz", "f4e", "rc8", "x4", "and", "v4", "u7")))
    assert is_signed("s32")
    assert not is_signed("u32")


def test_bits_of_values() -> None:
    assert as_unsigned(np.array([-1.0], np.float32)).tolist() == [0xBF800000]
    assert as_unsigned(np.array([True])).dtype == np.bool_
