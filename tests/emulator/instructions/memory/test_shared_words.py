"""Words of shared memory by all lanes: the same as the general way, and in fact another way."""

from itertools import count
from unittest.mock import patch

import numpy as np
import pytest

from refcomp.emulator.instructions.memory import shared_words
from refcomp.emulator.machine.observation import Observer
from tests.emulator.snippets import LANE, found, get, make_waves, put, run, set_mask

_BYTES = 1024
_OPERATIONS = (
    "ds_write_b32 v{a}, v{d} offset:{small}",
    "ds_write_b64 v{a}, v[{d}:{d1}] offset:{small}",
    "ds_write_b96 v{a}, v[{d}:{d2}] offset:{small}",
    "ds_write_b128 v{a}, v[{d}:{d3}] offset:{small}",
    "ds_write2_b32 v{a}, v{d}, v{d1} offset0:{one} offset1:{two}",
    "ds_write2st64_b32 v{a}, v{d}, v{d1} offset1:1",
    "ds_read_b32 v{d}, v{a} offset:{small}",
    "ds_read_b64 v[{d}:{d1}], v{a} offset:{small}",
    "ds_read_b96 v[{d}:{d2}], v{a} offset:{small}",
    "ds_read_b128 v[{d}:{d3}], v{a} offset:{small}",
    "ds_read2_b64 v[{d}:{d3}], v{a} offset0:{one} offset1:{two}",
    "ds_read_u16 v{d}, v{a} offset:{small}",
    "v_add_u32_e32 v{a}, {step}, v{a}",
)


def _waves(rng, watched):
    """Four waves of two groups; the registers v1 and v2 are addresses, v12 on undefined."""
    waves = make_waves(4, groups=2, shared=_BYTES, watched=watched)
    for register in range(3, 12):
        put(waves, register, rng.integers(0, 2**32, (4, 64), dtype=np.uint32))
    put(waves, 1, (LANE * 4).astype(np.uint32))
    put(waves, 2, (rng.permutation(64) // 4 * 16).astype(np.uint32))
    return waves


def _program(rng):
    """Lines; addresses may leave the memory, and may be overwritten."""
    lines = []
    for _ in range(60):
        data = int(rng.choice([1, 3, 4, 6, 8, 12]))
        names = {"a": int(rng.integers(1, 3)), "d": data}
        names |= {f"d{n}": data + n for n in (1, 2, 3)}
        names |= {"small": int(rng.choice([0, 0, 4, 16, 64, 260, 800, 2])), "step": 16}
        names |= {"one": int(rng.integers(0, 4)), "two": int(rng.integers(4, 40))}
        lines.append(_OPERATIONS[rng.integers(len(_OPERATIONS))].format(**names))
    return lines


def _state(waves):
    files = [waves.values, *([waves.shadow] if waves.shadow else [])]
    told = [(str(f.instruction), f.kind, f.what, f.item, f.times) for f in found(waves)]
    known = waves.shared.known
    return (
        [file.v.copy() for file in files],
        waves.shared.data.copy(),
        None if known is None else known.copy(),
        told,
    )


@pytest.mark.search
@pytest.mark.parametrize("watched", [False, True])
def test_it_is_the_same_as_the_general_way(watched):
    fast = count()
    place = shared_words.places_of

    def counted(waves, register):
        found = place(waves, register)
        next(fast) if found is not None else None
        return found

    for seed in range(24):
        states = []
        for way in (counted, lambda waves, register: None):
            rng = np.random.default_rng(seed)
            waves, lines = _waves(rng, watched), _program(rng)
            with patch.object(shared_words, "places_of", way):
                run(waves, *lines[:40])
                set_mask(waves, LANE % 3 != 0)
                run(waves, *lines[40:50])
                set_mask(waves, LANE >= 0)
                run(waves, *lines[50:])
            states.append(_state(waves))
        np.testing.assert_equal(*states)
    assert next(fast) > 120


def test_what_an_address_register_says_is_kept_until_it_says_something_else():
    waves = make_waves(2, shared=_BYTES, v1=(LANE * 4).astype(np.uint32))
    first = shared_words.places_of(waves, 1)
    run(waves, "ds_write_b32 v1, v1", "ds_read_b32 v2, v1")
    assert shared_words.places_of(waves, 1) is first
    run(waves, "v_add_u32_e32 v1, 4, v1", "ds_read_b32 v3, v1 offset:4")
    second = shared_words.places_of(waves, 1)
    assert second is not first and second.highest == 256 and second.bits == 0x1FC
    assert get(waves, 2).tolist() == (LANE * 4).tolist()
    assert get(waves, 3)[:62].tolist() == (LANE * 4 + 8)[:62].tolist()


def test_waves_that_are_observed_or_not_whole_go_the_general_way():
    assert shared_words.places_of(make_waves(2, observers=(Observer(),)), 1) is None
    waves = make_waves(2)
    assert shared_words.places_of(waves, 1) is not None
    waves.select(np.array([0]))
    assert shared_words.places_of(waves, 1) is None
    set_mask(waves, LANE < 63)
    waves.select(slice(None))
    assert shared_words.places_of(waves, 1) is None
