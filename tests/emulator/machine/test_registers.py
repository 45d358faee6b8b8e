"""Registers: typed views, masked writes, and which bits nobody wrote."""

import numpy as np

from refcomp.emulator.machine.registers import FIRST_VECTOR, SCC, File
from tests.emulator.snippets import LANE, get, make_waves, run, set_mask, undefined


def test_only_active_lanes_are_written():
    waves = make_waves(v1=np.arange(64, dtype=np.uint32))
    set_mask(waves, LANE < 10)
    waves.write_vector(1, "u32", np.full((1, 64), 7, np.uint32))
    assert get(waves, 1).tolist() == [7] * 10 + list(range(10, 64))


def test_sixty_four_bits_take_two_registers():
    waves = make_waves()
    waves.write_vector(2, "f64", np.full((1, 64), 1.5))
    assert get(waves, 3)[0] == 0x3FF80000 and (get(waves, 2, "f64") == 1.5).all()


def test_some_waves_may_run_alone():
    waves = make_waves(3, v0=np.uint32(0))
    waves.select(np.array([0, 2]))
    assert waves.count() == 2
    waves.write_vector(0, "u32", np.uint32(5))
    assert [get(waves, 0, wave=wave)[0] for wave in range(3)] == [5, 0, 5]


def test_lanes_that_do_not_exist_hinder_nothing():
    existing = np.zeros((1, 64), np.bool_)
    existing[0, :3] = True
    waves = make_waves(existing=existing)
    assert waves.covers and not waves.is_full
    waves.write_vector(1, "u32", np.uint32(5))
    waves.define((FIRST_VECTOR + 1,))
    assert FIRST_VECTOR + 1 not in waves.dirty


def test_what_nobody_wrote_is_undefined():
    waves = make_waves()
    assert FIRST_VECTOR in waves.dirty and SCC in waves.dirty and 126 not in waves.dirty
    assert (undefined(waves, 4) == 0xFFFFFFFF).all()
    set_mask(waves, LANE < 10)
    run(waves, "v_mov_b32_e32 v4, 0")
    assert (undefined(waves, 4)[:10] == 0).all() and (undefined(waves, 4)[10:] != 0).all()
    assert FIRST_VECTOR + 4 in waves.dirty
    set_mask(waves, LANE < 64)
    run(waves, "v_mov_b32_e32 v4, 0")
    assert FIRST_VECTOR + 4 not in waves.dirty


def test_nothing_is_watched_where_that_is_not_wanted():
    waves = make_waves(watched=False)
    assert waves.shadow is None and not waves.dirty
    run(waves, "v_add_u32_e32 v1, v2, v3")
    assert not waves.dirty


def test_all_registers_but_those_that_nobody_has_begin_with_the_same():
    for unused, own in ((slice(0, 0), range(9)), (slice(3, 6), (0, 1, 2, 6, 7, 8))):
        file = File(9, 2, 32, 0xFFFFFFFF, unused)
        assert all((file.v[number] == 0xFFFFFFFF).all() for number in own)
        assert (file.s == 0xFFFFFFFF).all() and file.scc.all()
