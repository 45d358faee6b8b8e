"""Loads to shared memory, past all registers."""

import numpy as np
import pytest

from refcomp.emulator.code.assembly import NAMED
from refcomp.emulator.execution.program import bind
from refcomp.emulator.machine.observation import Observer
from refcomp.foundation.errors import Unsupported
from tests.emulator.snippets import (
    LANE,
    filled_memory,
    found,
    instruction,
    make_waves,
    run,
    set_mask,
    set_scalar,
)

M0 = NAMED["m0"].first


def _waves(**options):
    """v[0:1] and s[4:5] are the address of 0, 1, 2, ... as bytes, v2 four times the lane; s[0:3]
    describes them as a buffer of 200 bytes; M0 says 8, and more bits than count."""
    arena, place = filled_memory(bytes(range(256)))
    waves = make_waves(
        arena=arena,
        shared=512,
        **options,
        v0=np.uint64(place.address) + LANE.astype(np.uint64) * np.uint64(4),
        v2=(LANE * 4).astype(np.uint32),
    )
    set_scalar(waves, 4, place.address, 2)
    set_scalar(waves, 0, place.address, 2)
    set_scalar(waves, 2, 200)
    set_scalar(waves, 3, 0)
    set_scalar(waves, M0, 1 << 20 | 8 | 3)
    return waves


def _shared(waves):
    return waves.shared.data.view(np.uint32)


WORDS = np.arange(256, dtype=np.uint8).view(np.uint32)


@pytest.mark.parametrize(
    "line",
    [
        "global_load_lds_dword v[0:1], off",
        "global_load_lds_dword v2, s[4:5]",
        "global_load_dword v[0:1], off lds",
    ],
)
def test_each_lane_has_a_word(line):
    waves = _waves()
    run(waves, line)
    assert _shared(waves)[2:66].tolist() == WORDS.tolist() and not found(waves)
    known = waves.shared.known.view(np.uint32)
    assert (known[2:66] == 0xFFFFFFFF).all() and not known[:2].any() and not known[66:].any()


def test_an_offset_counts_for_both_addresses():
    waves = _waves()
    set_mask(waves, LANE % 2 == 0)
    run(waves, "global_load_lds_dword v2, s[4:5] offset:4")
    assert _shared(waves)[3:67:2].tolist() == WORDS[1:64:2].tolist()
    assert not _shared(waves)[4:67:2].any()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ubyte", np.arange(0, 256, 4)),
        ("sbyte", np.arange(0, 256, 4).astype(np.int8).astype(np.uint32)),
        ("ushort", WORDS & 0xFFFF),
    ],
)
def test_what_is_narrow_becomes_a_word(name, wanted):
    waves = _waves()
    run(waves, f"global_load_lds_{name} v[0:1], off")
    assert _shared(waves)[2:66].tolist() == wanted.tolist()


def test_buffers():
    waves = _waves()
    set_mask(waves, LANE < 40)
    run(waves, "buffer_load_dword v2, s[0:3], 0 offen offset:8 lds")
    assert _shared(waves)[4:44].tolist() == WORDS[2:42].tolist() and not found(waves)
    set_mask(waves, LANE < 60)
    with pytest.raises(Unsupported, match="a load to shared memory out of range"):
        run(waves, "buffer_load_dword v2, s[0:3], 0 offen lds")


class _Accesses(Observer):
    def __init__(self):
        self.seen = []

    def access(self, waves, access):
        self.seen.append((access.space, access.is_store, access.size, access.index[0]))


def test_who_looks_on_sees_a_load_and_a_store():
    watcher = _Accesses()
    waves = _waves(observers=(watcher,))
    run(waves, "global_load_lds_ubyte v2, s[4:5] offset:4")
    assert [one[:3] for one in watcher.seen] == [("global", False, 1), ("shared", True, 4)]
    assert watcher.seen[1][3] == 12


def test_what_is_wrong_is_told():
    waves = _waves()
    set_scalar(waves, M0, 300)
    run(waves, "global_load_lds_dword v[0:1], off")
    assert found(waves)[0].what == "4 bytes at 512 of 512 bytes of shared memory"
    waves = make_waves(shared=512, v2=(LANE * 4).astype(np.uint32))
    run(waves, "global_load_lds_dword v2, s[4:5]")
    told = [finding.what for finding in found(waves)]
    assert told[0] == "an address depends on bits that nothing wrote"
    with pytest.raises(Unsupported, match="does not support this load to shared memory"):
        bind(instruction("global_load_lds_dwordx4 v[0:1], off"))
