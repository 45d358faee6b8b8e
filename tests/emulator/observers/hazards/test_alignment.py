"""Addresses that are not aligned as an instruction needs."""

import numpy as np

from refcomp.emulator.code.findings import MISALIGNED
from tests.emulator.observers.hazards.hazardous import watch
from tests.emulator.snippets import put, set_scalar


def _told(*lines, by=1):
    def prepare(waves):
        put(waves, 0, (waves.values.v[0] + np.uint32(by)).astype(np.uint32))
        waves.initialise_scalar(4, waves.values.s[0] + np.uint32(by))
        waves.initialise_scalar(5, waves.values.s[1])

    found = watch(*lines, waves=1, hazards=["alignment"], prepare=prepare)
    assert all(one.kind == MISALIGNED for one in found)
    return [one.what for one in found]


def test_loads_and_stores_may_go_anywhere():
    assert not _told(
        "global_load_dwordx4 v[4:7], v0, s[0:1]",
        "global_store_dwordx2 v0, v[4:5], s[0:1]",
        "ds_read_b128 v[4:7], v0",
        "ds_write_b64 v0, v[4:5]",
    )


def test_updates_must_be_aligned():
    lines = "global_atomic_add v0, v2, s[0:1]", "ds_add_u32 v0, v2", "ds_add_u64 v0, v[2:3]"
    assert _told(*lines) == ["accesses an address that is 1 byte past a multiple of 4"] * 2 + [
        "accesses an address that is 1 byte past a multiple of 8"
    ]
    assert not _told(*lines[:2], by=4)


def test_scalar_loads_drop_what_is_not_aligned():
    line = "s_load_dwordx2 s[6:7], s[4:5], 0x0"
    assert _told(line, by=2) == ["accesses an address that is 2 bytes past a multiple of 4"]
    assert not _told(line, by=4)


def test_only_lanes_that_are_wrong_count():
    def prepare(waves):
        put(waves, 0, np.where(np.arange(64) == 5, 18, 4 * np.arange(64)).astype(np.uint32))
        set_scalar(waves, 9, 0)

    (found,) = watch("ds_add_u32 v0, v2", waves=1, hazards=["alignment"], prepare=prepare)
    assert (found.item, found.wave, found.lane, found.times) == ((5, 0, 0), 0, 5, 1)
