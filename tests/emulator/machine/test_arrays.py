"""Types of registers: widths, joining and splitting, masks as bits."""

import numpy as np

from refcomp.emulator.machine.arrays import (
    as_bits,
    bits_of,
    bits_of_mask,
    join,
    mask_kind,
    mask_of,
    registers_of,
    split,
)


def test_widths():
    assert [bits_of(kind) for kind in ("f16", "i32", "f64", "mask64")] == [16, 32, 64, 64]
    assert [registers_of(kind) for kind in ("u16", "f32", "u64", "mask64")] == [1, 1, 2, 2]
    assert mask_kind(32) == "mask32" and registers_of("mask32") == 1


def test_halves_join_and_split():
    low, high = np.array([[1, 2]], np.uint32), np.array([[3, 0xFFFFFFFF]], np.uint32)
    both = join(low, high)
    assert both.tolist() == [[(3 << 32) + 1, (0xFFFFFFFF << 32) + 2]]
    assert [part.tolist() for part in split(both)] == [low.tolist(), high.tolist()]


def test_masks_are_bits():
    mask = np.zeros((2, 64), np.bool_)
    mask[0, [0, 63]] = mask[1, 5] = True
    assert bits_of_mask(mask).tolist() == [(1 << 63) + 1, 32]
    assert (mask_of(bits_of_mask(mask)) == mask).all()
    narrow = mask[:, :32]
    assert bits_of_mask(narrow).dtype == np.uint32 and bits_of_mask(narrow).tolist() == [1, 32]
    assert (mask_of(bits_of_mask(narrow)) == narrow).all()


def test_bits_of_values():
    assert as_bits(np.float32(1.0), "f32") == 0x3F800000
    assert as_bits(np.float16(-0.0), "f16") == 0x8000
