"""Products of matrices that follow one another, by one call, against the interpreter."""

import numpy as np
import pytest

from refcomp.emulator.generations.generation import GFX942
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.translation.compilation import HostTools
from refcomp.emulator.translation.engine import Translator
from refcomp.emulator.translation.matrix_runs import MatrixRun
from tests.emulator.snippets import make_waves, put
from tests.emulator.translation.translated import assert_same, bound, tools

# Each product reads what the one before it wrote, as its sums or as a factor.
_CHAIN = (
    "v_mfma_f32_16x16x4_f32 v[8:11], v2, v4, v[8:11]",
    "v_mfma_f32_16x16x4_f32 v[8:11], v3, v5, v[8:11]",
    "v_mfma_f32_16x16x4_f32 v[12:15], v8, v4, v[12:15]",
)


def _waves(undefined=()):
    rng = np.random.default_rng(7)
    waves = make_waves(3, vectors=24)
    for number in range(24):
        put(waves, number, rng.normal(size=(3, 64)).astype(np.float32))
    for number in undefined:
        waves.shadow.v[number] = 1
        waves.dirty.add(FIRST_VECTOR + number)
    return waves


def _translated(*lines):
    translator = Translator(tools(), GFX942, 64)
    parts = translator.parts(bound(*lines))
    for part in parts:
        part(_waves())
    translator.compile()
    return parts


def _assert_agreement(parts, lines, make):
    interpreted, translated = make(), make()
    with np.errstate(all="ignore"):
        for one in bound(*lines):
            one.run(interpreted)
        for part in parts:
            part(translated)
    assert_same(interpreted, translated)
    assert interpreted.dirty == translated.dirty


@pytest.mark.llvm
def test_products_that_follow_one_another_are_one_call():
    (run,) = _translated(*_CHAIN)
    assert isinstance(run, MatrixRun)
    _assert_agreement([run], _CHAIN, _waves)
    assert run.calls == 1


@pytest.mark.llvm
def test_undefined_sums_hold_up_only_their_own_product():
    (run,) = _translated(*_CHAIN)
    _assert_agreement([run], _CHAIN, lambda: _waves(undefined=(13,)))
    assert run.calls == 0
    assert [one.calls for one in run._singles] == [1, 1, 0]


@pytest.mark.llvm
def test_sums_that_a_product_overwrites_may_be_undefined_before():
    lines = (
        "v_mfma_f32_16x16x4_f32 v[12:15], v2, v4, v[8:11]",
        "v_mfma_f32_16x16x4_f32 v[16:19], v3, v5, v[12:15]",
    )
    (run,) = _translated(*lines)
    _assert_agreement([run], lines, lambda: _waves(undefined=(12, 17)))
    assert run.calls == 1


def test_another_shape_is_another_call():
    translator = Translator(HostTools(None, None), GFX942, 64)
    wide = "v_mfma_f32_32x32x2_f32 v[32:47], v2, v4, v[32:47]"
    parts = translator.parts(bound(*_CHAIN, wide, _CHAIN[0], "s_nop 0"))
    assert [len(part._runs) for part in parts] == [3, 1, 1]
