"""Products of matrices, held against numpy on whole matrices.

Where elements lie is taken from the equations in `matrix_tables`.
"""

import ml_dtypes
import numpy as np
import pytest

from refcomp.emulator.execution.program import bind
from refcomp.emulator.generations.generation import GENERATIONS
from refcomp.emulator.instructions.matrix.layouts import product_of
from refcomp.foundation.errors import Unsupported
from tests.emulator.instructions.matrix.matrix_tables import (
    GFX90A,
    GFX942,
    drawn_matrices,
    factor_words,
    sum_words,
    sums_of,
)
from tests.emulator.snippets import LANE, instruction, make_waves, put, run, set_mask, undefined

_ALL = GFX942 | GFX90A


def _put_words(waves, first, words):
    """How many registers they take."""
    for number in range(words.shape[1]):
        put(waves, first + number, words[:, number])
    return words.shape[1]


def _registers(first, count):
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def _product(name, modifiers="", c=None):
    """A, B, C and what the instruction makes of them, in waves of which few lanes are active."""
    *_, first, second = _ALL[name]
    a, b, sums = drawn_matrices(name)
    waves = make_waves(vectors=80)
    words = [
        _put_words(waves, place, factor_words(name, matrix, kind))
        for place, matrix, kind in ((2, a, first), (4, b, second))
    ]
    count = _put_words(waves, 8, sum_words(name, sums))
    set_mask(waves, LANE < 3)  # which does not matter
    total = _registers(8, count)
    factors = f"{_registers(2, words[0])}, {_registers(4, words[1])}"
    run(waves, f"{name} {total}, {factors}, {total if c is None else c} {modifiers}".strip())
    assert not undefined(waves, 8).any()
    found = np.stack([waves.values.v[8 + n, 0] for n in range(count)], axis=-1)
    return a, b, sums, sums_of(name, found)


@pytest.mark.parametrize("name", _ALL)
def test_products_agree_with_numpy(name):
    a, b, c, d = _product(name)
    np.testing.assert_array_equal(d, a @ b.swapaxes(1, 2) + c)


@pytest.mark.parametrize("name", ["v_mfma_f32_16x16x4_f32", "v_mfma_i32_16x16x32_i8"])
def test_sums_may_be_a_constant(name):
    constant = "2.0" if "f32" in name else "2"
    a, b, _, d = _product(name, c=constant)
    np.testing.assert_array_equal(d, a @ b.swapaxes(1, 2) + 2)


def test_one_block_of_the_first_factor_may_go_to_several():
    a, b, c, d = _product("v_mfma_f32_4x4x4_16b_f16", "cbsz:2 abid:3")
    read = np.arange(16) // 4 * 4 + 3
    np.testing.assert_array_equal(d, a[read] @ b.swapaxes(1, 2) + c)
    with pytest.raises(
        Unsupported, match=r"broadcast \(cbsz, abid\) of a block that does not exist"
    ):
        bind(instruction("v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], v[0:3] cbsz:2 abid:4"))


def test_lanes_of_the_second_factor_may_be_moved():
    a, b, c, d = _product("v_mfma_f32_16x16x4_f32", "blgp:3")
    np.testing.assert_array_equal(d, a @ np.roll(b, -1, axis=2).swapaxes(1, 2) + c)
    a, b, c, d = _product("v_mfma_f32_32x32x1_2b_f32", "blgp:2")
    np.testing.assert_array_equal(d, a @ b[[1, 1]].swapaxes(1, 2) + c)


def test_factors_of_f64_may_be_negated():
    a, b, c, d = _product("v_mfma_f64_16x16x4_f64", "neg:[1,0,1]")
    np.testing.assert_array_equal(d, -a @ b.swapaxes(1, 2) - c)


def test_sums_round():
    """f64 after each product, narrow types once."""
    waves = make_waves(vectors=40)
    one = np.ones(64)
    put(waves, 2, np.where(LANE < 16, 1.0, 2.0**-30))
    put(waves, 4, np.where(LANE < 16, one, 2.0**-30))
    run(waves, "v_mfma_f64_16x16x4_f64 v[8:15], v[2:3], v[4:5], 0")
    assert waves.values.vector(8, "f64", slice(None))[0, 0] == 1.0  # not 1 + 3 * 2**-60
    put(waves, 2, np.where(LANE < 16, 1.0, 2.0**-12).astype(np.float32))
    run(waves, "v_mfma_f32_16x16x4_f32 v[8:11], v2, v2, 0")
    assert waves.values.v[8, 0, 0].view(np.float32) == 1.0  # 2**-24 is lost three times


def test_xf32_has_ten_bits_of_mantissa():
    waves = make_waves(
        vectors=16,
        v2=np.where(LANE == 0, 1 + 2.0**-10 + 2.0**-13, 0).astype(np.float32),
        v3=np.float32(0),
        v4=np.where(LANE < 16, 1.0, 0).astype(np.float32),
    )
    run(waves, "v_mfma_f32_16x16x8_xf32 v[8:11], v[2:3], v[4:5], 0")
    assert waves.values.v[8, 0, 0].view(np.float32) == 1 + 2.0**-10


def test_undefined_rows_make_undefined_sums():
    waves = make_waves(vectors=16, v2=np.float32(0), v3=np.float32(0))
    waves.shadow.v[2, 0, 5] = 1  # row 5 of A
    waves.dirty.add(131)
    run(waves, "v_mfma_f32_16x16x4_f32 v[8:11], v2, v3, 0")
    marked = np.stack([undefined(waves, 8 + n) for n in range(4)]) != 0
    assert {(n, lane // 16) for n, lane in np.argwhere(marked)} == {(1, 1)}


def test_undefined_blocks_and_moved_lanes():
    waves = make_waves(vectors=16, v2=np.float32(0), v3=np.float32(0))
    waves.shadow.v[2, 0, 4] = 1  # row 0 of block 1
    waves.dirty.add(131)
    run(waves, "v_mfma_f32_4x4x1_16b_f32 v[8:11], v2, v3, 0 cbsz:1 abid:1")
    marked = np.stack([undefined(waves, 8 + n) for n in range(4)]) != 0
    assert {(n, int(lane)) for n, lane in np.argwhere(marked)} == {(0, n) for n in range(8)}


def test_what_is_not_known_is_refused():
    with pytest.raises(Unsupported, match="does not support op_sel of a matrix product"):
        bind(instruction("v_mfma_f32_16x16x4_f32 v[0:3], v4, v5, v[0:3] op_sel:[1,0,0]"))
    with pytest.raises(Unsupported, match="does not support the instruction v_smfmac_f32_16x16x32"):
        bind(instruction("v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10"))
    assert product_of("v_mfma_f32_16x16x1_f32") is None


@pytest.mark.parametrize(
    ("name", "tiny", "gpu"),
    [
        ("v_mfma_f32_16x16x16_f16", np.float16(2.0**-20), "gfx942"),
        ("v_mfma_f32_16x16x16f16", np.float16(2.0**-20), "gfx90a"),
        ("v_mfma_f32_16x16x16f16", np.float16(2.0**-20), "gfx942"),
        ("v_mfma_f32_16x16x16bf16_1k", ml_dtypes.bfloat16(2.0**-130), "gfx90a"),
    ],
)
def test_only_gfx90a_drops_denormals(name, tiny, gpu):
    waves = make_waves(vectors=16)
    for first, value in ((2, tiny), (4, 1.0)):
        words = np.full((64, 4), value, np.asarray(tiny).dtype).view(np.uint32)
        put(waves, first, words[:, 0])
        put(waves, first + 1, words[:, 1])
    run(waves, f"{name} v[8:11], v[2:3], v[4:5], 0", of=GENERATIONS[gpu])
    assert waves.values.v[8, 0, 0].view(np.float32) == (16 * float(tiny) if gpu == "gfx942" else 0)
    for number in range(8, 12):
        put(waves, number, np.full(64, 2.0**-127, np.float32))
    run(waves, f"{name} v[8:11], v[2:3], v[4:5], v[8:11]", of=GENERATIONS[gpu])
    assert (waves.values.v[9, 0, 0].view(np.float32) != 0) == (gpu == "gfx942")
