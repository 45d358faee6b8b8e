"""Two threads, the same bytes, one writes: told of unless barriers or updates order them."""

from dataclasses import replace

import numpy as np
import pytest

from refcomp.emulator.code.findings import RACE, WAIT
from refcomp.emulator.generations.generation import GFX942
from refcomp.emulator.generations.memory_order import GFX11_ORDER, CacheInstruction
from refcomp.emulator.machine.sources import APERTURES
from refcomp.emulator.observers.hazards import access_history
from refcomp.foundation.errors import Unsupported
from tests.emulator.observers.hazards.hazardous import watch
from tests.emulator.snippets import put

_MEET = "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_barrier"
# v0 is the own place of a thread, v3 that of a thread of the other wave.
_WRITE, _READ = "ds_write_b32 v0, v1", "ds_read_b32 v2, v3"
_STORE, _LOAD = "global_store_dword v0, v1, s[0:1]", "global_load_dword v2, v3, s[0:1]"
_STORE_THERE = "global_store_dword v3, v1, s[0:1]"
# All threads' 4 bytes at 512.
_ONE = "v_mov_b32_e32 v4, 0x200"

# Whose waves of a group may have caches of their own.
_LATER = replace(GFX942, order=replace(GFX11_ORDER, invalidates=GFX942.order.invalidates))
# And must drop what they have there.
_DROP = "buffer_inv sc0"
_APART = replace(
    _LATER, order=replace(_LATER.order, invalidates_own=CacheInstruction("buffer_inv", "sc0"))
)


def _prepare(waves):
    place = waves.values.v[0]
    put(waves, 3, place ^ np.uint32(256))


def _told(*lines, **more):
    found = watch(*lines, prepare=_prepare, hazards=["races"], **more)
    return [(one.kind, one.instruction.text) for one in found]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *((_WRITE, _READ), (_READ, _WRITE), (_WRITE, "ds_write_b32 v3, v1")),
        *((_STORE, _LOAD), (_LOAD, _STORE), (_STORE, _STORE_THERE)),
        *(("ds_add_u32 v0, v1", _READ), (_READ, "ds_add_u32 v0, v1")),
        *(("ds_add_u32 v3, v1", _WRITE), (_WRITE, "ds_add_u32 v3, v1")),
        ("global_atomic_add v0, v1, s[0:1]", _LOAD),
        ("ds_write_b8 v0, v1", "ds_read_u8 v2, v3"),
    ],
)
def test_only_a_barrier_orders_the_waves_of_a_group(first, second):
    assert _told(first, second) == [(RACE, second)]
    assert not _told(first, *_MEET, second)
    # A barrier orders what is done, not what is under way, unless all goes through one cache.
    wanted = [] if first.startswith("global_") else [(WAIT, second)]
    assert _told(first, "s_barrier", second) == wanted
    assert _told(first, "s_barrier", second, generation=_LATER) == [(WAIT, second)]
    one_cache = {"generation": _LATER, "is_on_pairs": False}
    assert _told(first, "s_barrier", second, **one_cache) == wanted


@pytest.mark.parametrize("is_shared", [True, False])
def test_accesses_of_any_memory_are_done_when_that_is(is_shared):
    """In shared memory when one counter says so; in global memory all go through one cache."""

    def prepare(waves):
        at = APERTURES["src_shared_base"] + waves.values.v[0].astype("u8")
        if not is_shared:
            base = waves.values.s[0].astype("u8") | waves.values.s[1].astype("u8") << 32
            at = base[:, None] + waves.values.v[0]
        put(waves, 4, at)
        put(waves, 6, at ^ np.uint64(256))

    store, load = "flat_store_dword v[4:5], v1", "flat_load_dword v2, v[6:7]"
    for waits, told in (
        *((["s_waitcnt lgkmcnt(0)"], []), (["s_waitcnt vmcnt(0) lgkmcnt(0)"], [])),
        (["s_waitcnt vmcnt(0)"], [WAIT] if is_shared else []),
    ):
        found = watch(store, *waits, "s_barrier", load, prepare=prepare, hazards=["races"])
        assert [one.kind for one in found] == told, waits
    assert [one.kind for one in watch(store, load, prepare=prepare, hazards=["races"])] == [RACE]


@pytest.mark.parametrize("first", [_STORE, "global_atomic_add v0, v1, s[0:1]"])
def test_a_wave_may_read_what_its_own_cache_had_before_the_barrier(first):
    assert not _told(first, *_MEET, _DROP, _LOAD, generation=_APART)
    for lines in ((first, *_MEET, _LOAD), (first, _DROP, *_MEET, _LOAD)):
        assert _told(*lines, generation=_APART) == [(RACE, _LOAD)]
        assert not _told(*lines, generation=_APART, is_on_pairs=False)
    again = first, *_MEET, _DROP, _LOAD, *_MEET, first, *_MEET, _LOAD
    assert _told(*again, generation=_APART) == [(RACE, _LOAD)]
    # Stores and updates go through, shared memory has no caches, and a wave sees what it wrote.
    for later in (_STORE_THERE, "global_atomic_add v3, v1, s[0:1]", f"{_LOAD} glc"):
        assert not _told(first, *_MEET, later, generation=_APART)
    assert not _told(_WRITE, *_MEET, _READ, generation=_APART)
    assert not _told(first, "global_load_dword v2, v0, s[0:1]", generation=_APART)


def test_the_reason_is_that_of_the_lane_that_races():
    """Of two groups only the second one's waves race, within the group."""

    def prepare(waves):
        own = waves.values.v[0]
        is_second = waves.groups[:, :1].repeat(2, axis=0) == 1
        put(waves, 3, np.where(is_second, own ^ np.uint32(256), own))

    (found,) = watch(_WRITE, _READ, groups=2, prepare=prepare, hazards=["races"])
    assert found.group == (1, 0, 0)
    assert found.what.endswith("no barrier is between the two")


def test_why_a_read_may_be_stale():
    more = {"prepare": _prepare, "hazards": ["races"], "generation": _APART}
    (found,) = watch(_STORE, *_MEET, _LOAD, **more)
    assert (
        "a barrier is between the two, but the wave has not invalidated its cache since"
        in found.what
    )


def test_both_accesses_are_told_of():
    (found,) = watch(_WRITE, _READ, prepare=_prepare)
    assert found.what == (
        "reads 4 bytes at 256 of shared memory, which work item (64, 0, 0) of group (0, 0, 0) "
        "wrote with ds_write_b32 v0, v1  (00000000 at 0x0); no barrier is between the two"
    )
    assert (found.item, found.times) == ((0, 0, 0), 128)
    (found,) = watch(_LOAD, _STORE, prepare=_prepare, groups=1, hazards=["races"])
    assert "writes 4 bytes at 0 of the memory, which work item (64, 0, 0)" in found.what
    assert "read with global_load_dword v2, v3" in found.what


@pytest.mark.parametrize(
    "lines",
    [
        (_READ, _READ),
        (_WRITE, "ds_read_b32 v2, v0"),  # each thread its own
        (_WRITE, "ds_write_b32 v0, v1"),
        ("ds_add_u32 v0, v1", "ds_add_u32 v3, v1"),
        (_ONE, "ds_add_u32 v4, v1"),
        (_LOAD, "global_load_dword v2, v0, s[0:1]"),
        ("ds_write_b8 v0, v1", "ds_read_u8 v2, v3 offset:1"),
    ],
)
def test_what_cannot_race(lines):
    assert not _told(*lines)


def test_lanes_of_one_instruction_that_write_to_one_place():
    """In one wave, too; but what a wave does later is in order."""
    for line in ("ds_write_b32 v4, v1", "global_store_dword v4, v1, s[0:1]"):
        (found,) = watch(_ONE, line, waves=1)
        assert found.kind == RACE and "writes too; one instruction does both" in found.what
    lines = "ds_write_b32 v0, v1", "ds_read_b32 v2, v4", "ds_write_b32 v0, v1"
    assert not watch("v_mov_b32_e32 v4, 0", *lines, waves=1, hazards=["races"])


def test_every_barrier_counts():
    """What was read must not be overwritten in the next round."""
    rounds = _WRITE, *_MEET, _READ, *_MEET
    assert not _told(*rounds, *rounds)
    wrong = _WRITE, *_MEET, _READ
    assert _told(*wrong, *wrong[:1]) == [(RACE, _WRITE)]


def test_groups_race_whatever_barriers_they_have():
    found = watch(_STORE, *_MEET, groups=2, waves=1, hazards=["races"])
    assert [one.kind for one in found] == [RACE]
    found = watch(_STORE, *_MEET, groups=1, waves=1, batches=2, hazards=["races"])
    (one,) = found
    assert "writes 4 bytes at 0 of the memory, which work item (0, 0, 0) of group (0, 0, 0)" in (
        one.what
    )
    assert one.group == (1, 0, 0) and "nothing orders the two groups" in one.what
    assert not watch(_WRITE, groups=2, waves=1)
    assert not watch(_WRITE, groups=1, waves=1, batches=2)


def test_updates_of_all_groups_do_not_race():
    line = "global_atomic_add v0, v1, s[0:1]"
    assert not watch(line, groups=2, waves=1, batches=2)
    assert not watch(line, "global_load_dword v2, v0, s[0:1] sc1", groups=2, waves=1, batches=2)
    assert watch(line, "global_load_dword v2, v0, s[0:1]", groups=2, waves=1, hazards=["races"])


@pytest.mark.parametrize("first", ["global_atomic_add v0, v1, s[0:1]", f"{_STORE} sc1"])
def test_atomics_for_a_group_race_with_those_of_other_groups(first):
    """Waves of one group see them in order."""
    near, far = (f"global_load_dword v2, v3, s[0:1] {mark}" for mark in ("sc0", "sc1"))
    for line in (near, far):
        assert not _told(first, line)
    assert not _told(f"{_STORE} sc0", near) and not _told(near, f"{_STORE_THERE} sc0")
    groups = {"prepare": lambda waves: put(waves, 3, waves.values.v[0])}
    groups |= {"groups": 2, "waves": 1, "hazards": ["races"]}
    assert not watch(first, far, **groups)
    (found,) = watch(first, near, **groups)
    assert found.kind == RACE and found.instruction.text == near
    assert "nothing orders the two groups" in found.what
    told = [one.instruction.text for one in watch(f"{_STORE} sc0", far, **groups)]
    assert f"{_STORE} sc0" in told and far in told


def test_loads_do_not_race_with_updates_that_look_again():
    """As LLVM makes them of updates that a GPU does not have."""
    swap = "global_atomic_cmpswap v0, v[4:5], s[0:1]"
    load = "global_load_dword v2, v0, s[0:1]"
    assert not watch(load, swap, groups=2, waves=1, batches=2, hazards=["races"])
    assert not _told("ds_read_b32 v2, v0", "ds_cmpst_b32 v3, v4, v5")
    found = watch(swap, _STORE, groups=2, waves=1, hazards=["races"])
    assert found and "updated with global_atomic_cmpswap" in found[0].what
    assert _told("ds_cmpst_b32 v3, v4, v5", _WRITE) == [(RACE, _WRITE)]


def test_what_was_not_waited_for_is_told_of_at_later_barriers_too():
    """A load that goes on over two barriers while others write there."""
    found = _told(_READ, "s_barrier", "s_barrier", _WRITE)
    assert found == [(WAIT, _WRITE)]
    assert not _told(_READ, "s_barrier", "s_waitcnt lgkmcnt(0)", "s_barrier", _WRITE)


_DIRECT = "global_load_lds_dword v0, s[0:1]"


@pytest.mark.parametrize("use", ["ds_read_b32 v2, v0", "ds_write_b32 v0, v1", "ds_read_u8 v2, v0"])
def test_a_wave_waits_for_its_own_loads_to_shared_memory(use):
    """They are no results in registers: nothing else tells that they are there."""
    lines = "s_mov_b32 m0, 0", "s_nop 0", _DIRECT
    (found,) = watch(*lines, use, waves=1, hazards=["races"])
    assert (found.kind, found.instruction.text, found.times) == (WAIT, use, 64)
    assert found.what.startswith(f"{'writes' if 'write' in use else 'reads'} ")
    assert f"{_DIRECT}  (00000000 at 0x8) of the same wave still loads: a wait" in found.what
    assert found.what.endswith("(vmcnt) is missing")
    assert not watch(*lines, "s_waitcnt vmcnt(0)", use, waves=1, hazards=["races"])
    elsewhere = "s_mov_b32 m0, 0x200", *lines[1:]
    assert not watch(*lines, "s_waitcnt vmcnt(0)", *elsewhere, use, waves=1, hazards=["races"])
    later = (*lines, *elsewhere, "s_waitcnt vmcnt(1)", use)
    assert not watch(*later, waves=1, hazards=["races"])


def test_what_goes_on_is_followed_when_cells_become_bytes():
    """A byte elsewhere is read while what was written in words is under way."""
    byte = "ds_read_u8 v5, v4 offset:1"
    lines = (_ONE, _WRITE, byte, "s_barrier", "s_waitcnt lgkmcnt(0)", _READ)
    (found,) = watch(*lines, prepare=_prepare, hazards=["races"])
    assert (found.kind, found.times) == (WAIT, 128)


def test_more_threads_than_records_distinguish_are_refused():
    with pytest.raises(Unsupported, match="this launch cannot be checked for races") as caught:
        watch(_WRITE, waves=1, batches=2**21 + 1, hazards=["races"])
    assert "it has 134217792 threads, and the check supports at most 134217728" in str(caught.value)
    assert "launch fewer groups, or check only for other hazards" in str(caught.value)


def test_groups_on_several_units_of_cdna_are_refused():
    with pytest.raises(Unsupported, match="this launch cannot be checked for races") as caught:
        watch(_WRITE, is_split=True, hazards=["races"])
    assert "the waves of a group run on several compute units (tgsplit)" in str(caught.value)
    assert "check only for other hazards, or compile without tgsplit" in str(caught.value)
    assert not watch("ds_write_b32 v0, v1", is_split=True, hazards=["waits"])


_SCALAR = "s_load_dword s4, s[0:1], 0x0"


def test_scalar_loads_do_not_see_what_the_launch_wrote():
    """Not even what the own wave did, or what came before a barrier."""
    own = "global_store_dword v0, v1, s[0:1]", "s_waitcnt vmcnt(0)"
    (found,) = watch(*own, _SCALAR, waves=1, hazards=["races"])
    assert (found.kind, found.instruction.text) == (RACE, _SCALAR)
    assert found.what.endswith("; scalar loads may return what was there before the launch")
    assert _told(_STORE, *_MEET, _SCALAR) == [(RACE, _SCALAR)]
    for lines in (
        (*own, "s_dcache_inv", _SCALAR),
        (*own, f"{_SCALAR} glc"),
        (*own, "s_load_dword s4, s[0:1], 0x200"),
        (_SCALAR, "s_waitcnt lgkmcnt(0)", *own),
    ):
        assert not watch(*lines, waves=1, hazards=["races"])


def test_clocks_begin_anew_when_they_are_full(monkeypatch):
    monkeypatch.setattr("refcomp.emulator.observers.hazards.races.MAX_CLOCK", 3)
    rounds = _WRITE, *_MEET, _READ, *_MEET
    assert not _told(*rounds * 4)
    assert _told(*rounds * 4, _WRITE, _READ) == [(RACE, _READ)]
    assert access_history.MAX_CLOCK == 2**16 - 1
