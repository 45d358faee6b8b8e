"""Words of the device's memory loaded by all lanes: as by the general way, and in fact another."""

from itertools import count
from unittest.mock import patch

import numpy as np
import pytest

from refcomp.emulator.instructions.memory import global_words
from refcomp.emulator.instructions.memory.global_words import (
    AddressRegisters,
    _is_written,
    _item_width,
)
from refcomp.emulator.machine.observation import Observer
from tests.emulator.snippets import (
    LANE,
    filled_memory,
    found,
    get,
    make_waves,
    put,
    run,
    set_mask,
    set_scalar,
)

_SIZE = 4096
_OPERATIONS = (
    "global_load_dword v{d}, v{o}, s[2:3] offset:{small}",
    "global_load_dwordx2 v[{d}:{d1}], v{o}, s[2:3] offset:{small}",
    "global_load_dwordx3 v[{d}:{d2}], v{o}, s[2:3] offset:{small}",
    "global_load_dwordx4 v[{d}:{d3}], v{o}, s[2:3] offset:{small}",
    "global_load_dword v{d}, v[4:5], off offset:{small}",
    "global_load_dwordx2 v[{d}:{d1}], v[4:5], off offset:{small}",
    "global_load_dwordx4 v[{d}:{d3}], v[4:5], off offset:{small}",
    "global_load_ushort v{d}, v{o}, s[2:3] offset:{small}",
    "global_store_dword v{o}, v{d}, s[2:3] offset:{small}",
    "v_add_u32_e32 v{o}, {step}, v{o}",
    "v_add_u32_e32 v4, {step}, v4",
    "s_add_u32 s2, s2, {step}",
)


def _waves(rng, watched):
    """v1 and v2 are offsets, v[4:5] and s[2:3] addresses; half of the memory is written."""
    arena, place = filled_memory(rng.bytes(_SIZE // 2), _SIZE, watched=watched)
    waves = make_waves(3, watched=watched, arena=arena)
    for register in range(6, 16):
        put(waves, register, rng.integers(0, 2**32, (3, 64), dtype=np.uint32))
    put(waves, 1, (LANE * 4 + np.arange(3)[:, None] * 256).astype(np.uint32))
    put(waves, 2, (rng.permutation(64) // 4 * 16).astype(np.uint32))
    put(waves, 4, np.broadcast_to(place.address + LANE.astype(np.uint64) * 8, (3, 64)).copy())
    set_scalar(waves, 2, place.address, 2)
    return waves, place


def _program(rng):
    """Lines; addresses may leave the memory, and may be overwritten."""
    lines = []
    for _ in range(50):
        data = int(rng.choice([1, 2, 6, 8, 10, 12]))
        names = {"o": int(rng.integers(1, 3)), "d": data}
        names |= {f"d{n}": data + n for n in (1, 2, 3)}
        names |= {"small": int(rng.choice([0, 0, 4, 16, 64, 800, 1600, -16, 2])), "step": 16}
        lines.append(_OPERATIONS[rng.integers(len(_OPERATIONS))].format(**names))
    return lines


def _state(waves, place):
    files = [waves.values, *([waves.shadow] if waves.shadow else [])]
    told = [(str(f.instruction), f.kind, f.what, f.item, f.times) for f in found(waves)]
    memory = bytes(waves.around.arena.read(place.address, _SIZE))
    return [file.v.copy() for file in files], waves.dirty.copy(), memory, told


@pytest.mark.search
@pytest.mark.parametrize("watched", [False, True])
def test_it_is_the_same_as_the_general_way(watched):
    fast, place_of = count(), global_words.places_of

    def counted(waves, address):
        known = place_of(waves, address)
        next(fast) if known is not None else None
        return known

    for seed in range(24):
        states = []
        for way in (counted, lambda waves, address: None):
            rng = np.random.default_rng(seed)
            waves, place = _waves(rng, watched)
            lines = _program(rng)
            with patch.object(global_words, "places_of", way):
                run(waves, *lines[:30])
                set_mask(waves, LANE % 3 != 0)
                run(waves, *lines[30:40])
                set_mask(waves, LANE >= 0)
                run(waves, *lines[40:])
            states.append(_state(waves, place))
        np.testing.assert_equal(*states)
    assert next(fast) > 100


def test_an_address_is_kept_until_its_registers_hold_something_else():
    waves, place = _waves(np.random.default_rng(0), True)
    near, far = AddressRegisters(1, 2), AddressRegisters(4, None)
    first, second = (global_words.places_of(waves, address) for address in (near, far))
    run(waves, "global_load_dwordx2 v[6:7], v1, s[2:3]", "global_load_dword v6, v[4:5], off")
    assert global_words.places_of(waves, near) is first
    assert global_words.places_of(waves, far) is second
    assert (first.lowest, first.highest, second.highest) == (place.address & 0xFFFF, 764, 504)
    run(waves, "s_add_u32 s2, s2, 4")
    moved = global_words.places_of(waves, near)
    run(waves, "s_add_u32 s3, s3, 1")
    assert global_words.places_of(waves, near).lowest == moved.lowest + 2**32
    assert moved.lowest == first.lowest + 4 and global_words.places_of(waves, far) is second
    run(waves, "v_add_u32_e32 v5, 1, v5")
    assert global_words.places_of(waves, far).lowest == second.lowest + 2**32
    run(waves, "global_load_dword v6, v[4:5], off")
    assert [one.kind for one in found(waves)] == ["out of bounds"] and not get(waves, 6).any()


@pytest.mark.parametrize("address", ["v3, s[2:3]", "v1, s[10:11]", "v[3:4], off", "v[2:3], off"])
def test_undefined_addresses_are_told_of(address):
    waves, _ = _waves(np.random.default_rng(0), True)
    run(waves, f"global_load_dword v6, {address}")
    assert found(waves)[0].what == "an address depends on bits that nothing wrote"


def test_waves_that_are_observed_or_not_whole_go_the_general_way():
    address = AddressRegisters(1, 2)
    assert global_words.places_of(make_waves(2, observers=(Observer(),)), address) is None
    waves = make_waves(2)
    assert global_words.places_of(waves, address) is not None
    waves.select(np.array([0]))
    assert global_words.places_of(waves, address) is None


def test_items_are_as_large_as_addresses_allow():
    assert [_item_width(bits, 16) for bits in (0, 32, 24, 4, 6, 1)] == [16, 16, 8, 4, 0, 0]
    assert [_item_width(bits, 12) for bits in (0, 4, 2)] == [4, 4, 0]
    assert [_item_width(bits, 4) for bits in (0, 4, 3)] == [4, 4, 0]


def test_only_short_stretches_are_looked_at_as_a_whole():
    known = np.full(500, 0xFF, np.uint8)
    assert _is_written(known, 50, 400, 100) and not _is_written(known, 50, 400, 99)
    known[49] = known[450] = 0
    assert _is_written(known, 50, 400, 100)
    known[449] = 0xFE
    assert not _is_written(known, 50, 400, 100)
