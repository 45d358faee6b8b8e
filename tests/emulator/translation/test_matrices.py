"""Products of matrices by translated code, against the interpreter."""

from functools import partial

import numpy as np
import pytest

from refcomp.emulator.generations.generation import GFX90A, GFX942
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.translation.engine import Translator
from refcomp.emulator.translation.matrices import decode_matrix
from refcomp.emulator.translation.matrix_runs import MatrixRun
from tests.emulator.snippets import instruction, make_waves, put
from tests.emulator.translation.translated import assert_same, bound, tools

_SHAPES = {
    "v_mfma_f32_16x16x4_f32": ("v2", "v4", 4),
    "v_mfma_f32_32x32x2_f32": ("v2", "v4", 16),
    "v_mfma_f32_16x16x1_4b_f32": ("v2", "v4", 16),
    "v_mfma_f32_32x32x1_2b_f32": ("v2", "v4", 32),
    "v_mfma_f32_16x16x16_f16": ("v[2:3]", "v[4:5]", 4),
    "v_mfma_f32_32x32x8_f16": ("v[2:3]", "v[4:5]", 16),
    "v_mfma_f32_16x16x16_bf16": ("v[2:3]", "v[4:5]", 4),
    "v_mfma_f32_32x32x4_2b_bf16": ("v[2:3]", "v[4:5]", 32),
}


def _line(name: str, sums: str = "") -> str:
    a, b, count = _SHAPES[name]
    total = f"v[8:{7 + count}]"
    return f"{name} {total}, {a}, {b}, {sums or total}"


def _floats(rng, name):
    """Floats for waves of 128 each: any and denormal, with inf and NaN, and zeros of both signs."""
    values = rng.normal(size=(3, 128)).astype(np.float32)
    tiny = np.float32(2.0**-17 if name.endswith("_f16") else 2.0**-130)
    values = np.where(rng.random(values.shape) < 0.2, values * tiny, values)
    values = np.where(rng.random(values.shape) < 0.2, np.copysign(np.float32(0), values), values)
    values[1, rng.integers(128)] = rng.choice([np.inf, -np.inf, np.nan])
    values[2] = np.copysign(np.float32(0), values[2])
    return values


def _waves(name, *, watched=True, undefined=(), rows=None, is_general=False):
    """Waves whose factors are small integers, or floats of all sorts if `is_general`."""
    rng = np.random.default_rng(len(name))
    waves = make_waves(3, watched=watched, vectors=48)
    is_single = name.endswith("_f32")
    for number in range(48):
        # Sums of small integers are exact in any order.
        if is_single or number >= 8:
            sums = rng.normal(size=(3, 64)).astype(np.float32)
            if is_general:
                sums = _floats(rng, name)[:, ::2]
                sums[2] = -0.0
            put(waves, number, sums)
            continue
        small = rng.integers(-8, 9, (3, 128)).astype(np.float32)
        if is_general:
            small = _floats(rng, name)
        bits = small.view(np.uint32) >> 16
        if name.endswith("_f16"):
            bits = small.astype(np.float16).view(np.uint16)
        put(waves, number, bits.astype(np.uint16).view(np.uint32))
    waves.initialise_mask(rng.random((3, 64)) < 0.5)  # which does not matter
    for number in undefined:
        waves.shadow.v[number] = 1
        waves.dirty.add(FIRST_VECTOR + number)
    if rows is not None:
        waves.select(np.array(rows))
    return waves


def _assert_same_floats(interpreted, translated):
    """Assert that all vector registers are equal to the bit, except for the bits of NaN."""
    one, other = (waves.values.v.view(np.float32) for waves in (interpreted, translated))
    np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
    both = [np.where(np.isnan(values), 0, values).view(np.uint32) for values in (one, other)]
    np.testing.assert_array_equal(*both)


@pytest.mark.llvm
def test_products_agree_with_the_interpreter():
    translator = Translator(tools(), GFX942, 64)
    lines = [line for name in _SHAPES for line in (_line(name), _line(name, "0"))]
    runs = {line: translator.parts(bound(line))[0] for line in lines}
    for line, run in runs.items():
        assert isinstance(run, MatrixRun), line
        run(_waves(line.split()[0]))
    translator.compile()
    for line, run in runs.items():
        for options in (
            {},
            {"watched": False},
            {"undefined": (8,)} if line.endswith(" 0") else {},
            {"rows": (0, 2)},
            {"is_general": True},
        ):
            make = partial(_waves, line.split()[0], **options)
            interpreted, translated = make(), make()
            with np.errstate(all="ignore"):
                bound(line)[0].run(interpreted)
            run(translated)
            if "is_general" in options:
                _assert_same_floats(interpreted, translated)
            else:
                assert_same(interpreted, translated)
            assert interpreted.dirty == translated.dirty
        assert run.calls == 5


@pytest.mark.llvm
def test_a_sum_of_negative_zeros_starts_at_positive_zero():
    line = _line("v_mfma_f32_16x16x16_f16")

    def make():
        waves = make_waves(vectors=48)
        zeros = dict.fromkeys(range(48), 0)
        sums = dict.fromkeys(range(8, 12), 0x80000000)
        for number, bits in {**zeros, 4: 0xBC00BC00, 5: 0xBC00BC00, **sums}.items():
            put(waves, number, np.uint32(bits))  # 0 . -1 + -0
        return waves

    translator = Translator(tools(), GFX942, 64)
    (run,) = translator.parts(bound(line))
    run(make())
    translator.compile()
    interpreted, translated = make(), make()
    bound(line)[0].run(interpreted)
    run(translated)
    assert run.calls == 1
    for waves in (interpreted, translated):
        assert (waves.values.v[8] == 0).all()


@pytest.mark.llvm
def test_undefined_factors_are_left_to_the_interpreter():
    line = _line("v_mfma_f32_16x16x4_f32")
    translator = Translator(tools(), GFX942, 64)
    (run,) = translator.parts(bound(line))
    run(_waves(line.split()[0]))
    translator.compile()
    make = partial(_waves, line.split()[0], undefined=(2,))
    interpreted, translated = make(), make()
    bound(line)[0].run(interpreted)
    run(translated)
    assert_same(interpreted, translated)
    assert not run.calls and translated.shadow.v[8].any()


@pytest.mark.parametrize(
    ("line", "of"),
    [
        ("v_mfma_f32_4x4x1_16b_f32 v[8:11], v2, v4, v[8:11]", GFX942),
        ("v_mfma_i32_16x16x32_i8 v[8:11], v[2:3], v[4:5], v[8:11]", GFX942),
        ("v_mfma_f64_16x16x4_f64 v[8:15], v[2:3], v[4:5], v[8:15]", GFX942),
        ("v_mfma_f32_16x16x4_f32 v[8:11], v2, v4, 1.0", GFX942),
        ("v_mfma_f32_16x16x4_f32 v[8:11], v2, v4, v[10:13]", GFX942),
        ("v_mfma_f32_16x16x4_f32 v[8:11], v9, v4, v[8:11]", GFX942),
        ("v_mfma_f32_16x16x4_f32 v[8:11], v2, v4, v[8:11] blgp:1", GFX942),
        ("v_mfma_f32_16x16x16f16 v[8:11], v[2:3], v[4:5], v[8:11]", GFX90A),
        ("v_mov_b32 v0, v1", GFX942),
    ],
)
def test_other_products_are_interpreted(line, of):
    assert decode_matrix(instruction(line, of), of) is None
