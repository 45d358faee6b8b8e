"""Integers of 4 bits: order of halves, signs, odd extents, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.conversion.packing import (
    pack_int4,
    pack_int4_numpy,
    unpack_int4,
    unpack_int4_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors


def test_first_element_is_in_the_low_half() -> None:
    data = np.array([[1, -1, 7], [-8, 0, 20]], np.int8)
    wanted = np.array([[0xF1, 0x07], [0x08, 0x04]], np.uint8)
    assert_same(run_te(pack_int4, data), wanted)
    assert_same(pack_int4_numpy(data), wanted)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("size", [None, 7, 8])
@pytest.mark.parametrize("axis", [0, -1])
def test_packing_is_undone(signed, size, axis) -> None:
    low, high = (-8, 8) if signed else (0, 16)
    dtype = np.int8 if signed else np.uint8
    data = np.random.default_rng(3).integers(low, high, (size or 8, size or 8)).astype(dtype)
    packed = run_te(pack_int4, data, axis=axis, is_symbolic=axis != 0)
    attributes = {"axis": axis, "size": size, "signed": signed}
    assert_same(run_te(unpack_int4, packed, is_symbolic=axis != 0, **attributes), data)
    assert_same(unpack_int4_numpy(packed, **attributes), data)


def test_ill_formed_calls_are_refused() -> None:
    (floats,) = tensors((2,))
    (words, point) = tensors((2,), (), dtype="int32")
    (codes,) = tensors((2,), dtype="uint8")
    rows = rc.placeholder((rc.var("n"),), "uint8", name="rows")
    with pytest.raises(UserError, match="pack_int4 takes a tensor of integers of one or more"):
        pack_int4(floats)
    with pytest.raises(UserError, match="not i32 of 0"):
        pack_int4(point)
    with pytest.raises(UserError, match="pack_int4: axis 1 is out of range"):
        pack_int4(words, axis=1)
    with pytest.raises(UserError, match="unpack_int4: extent 0 must be a constant"):
        unpack_int4(rows)
    with pytest.raises(UserError, match="unpack_int4 takes bytes in u8, not i32"):
        unpack_int4(words)
    with pytest.raises(UserError, match="unpack_int4 cannot take 5 elements from 2 bytes"):
        unpack_int4(codes, size=5)
    with pytest.raises(UserError, match="unpack_int4 cannot take 2 elements"):
        unpack_int4(codes, size=2)
