"""Waves of a group that synchronise by atomic updates, without a barrier."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from refcomp.emulator.code.findings import RACE, WAIT
from refcomp.emulator.generations.generation import GFX942
from refcomp.emulator.generations.memory_order import GFX11_ORDER, CacheInstruction
from refcomp.emulator.observers.hazards.vector_clocks import GroupClocks
from tests.emulator.observers.hazards.hazardous import watch
from tests.emulator.snippets import put

# The first wave is first to count; the second one reads what the first one wrote.
_WRITE, _READ = "ds_write_b32 v0, v1", "ds_read_b32 v2, v3"
_STORE, _LOAD = "global_store_dword v0, v1, s[0:1]", "global_load_dword v2, v3, s[0:1]"
_COUNT, _COUNT_FAR = "ds_add_rtn_u32 v4, v5, v1", "global_atomic_add v4, v5, v1, s[0:1] sc0"
_WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"
_ONE_LANE, _ALL_LANES = "s_mov_b64 exec, 1", "s_mov_b64 exec, -1"
_DROP = "buffer_inv sc0"
_APART = replace(
    GFX942,
    order=replace(
        GFX11_ORDER,
        invalidates=CacheInstruction("buffer_inv", "sc1"),
        invalidates_own=CacheInstruction("buffer_inv", "sc0"),
    ),
)


def _prepare(waves):
    waves.values.scc[:] = np.arange(waves.waves) % 2 == 0
    put(waves, 3, waves.values.v[0] ^ np.uint32(256))
    put(waves, 5, np.full(64, 512, np.uint32))


def _told(*lines, **more):
    found = watch(*lines, prepare=_prepare, hazards=["races"], **more)
    return [(one.kind, one.instruction.text) for one in found]


def _turn(write, count, read, *, drop=()):
    counting = _ONE_LANE, count, _WAIT, _ALL_LANES
    return [write, _WAIT, *counting, *drop, "s_cbranch_scc1 1", read]


@pytest.mark.parametrize(
    ("write", "count", "read"),
    [(_WRITE, _COUNT, _READ), (_STORE, _COUNT_FAR, _LOAD), (_STORE, _COUNT, _LOAD)],
)
def test_the_wave_that_counts_last_may_go_on(write, count, read):
    lines = _turn(write, count, read)
    assert not _told(*lines)
    assert _told(*(line for line in lines if line != count)) == [(RACE, read)]
    # Where all lanes count, or others, nobody is told anything.
    assert (RACE, read) in _told(*(line for line in lines if line != _ONE_LANE))
    # The first one does not know of the second one.
    lines[-2] = "s_cbranch_scc0 1"
    assert _told(*lines) == [(RACE, read)]


def test_what_is_told_of_must_be_done():
    lines = _turn(_WRITE, _COUNT, _READ)
    del lines[1]
    assert _told(*lines) == [(WAIT, _READ)]
    # All of a group's global memory goes through one cache, but not on pairs of units.
    lines = _turn(_STORE, _COUNT_FAR, _LOAD, drop=[_DROP])
    del lines[1]
    assert not _told(*lines)
    assert _told(*lines, generation=_APART) == [(WAIT, _LOAD)]
    assert not _told(*lines, generation=_APART, is_on_pairs=False)


def test_who_has_not_waited_for_the_count_knows_nothing():
    lines = _turn(_WRITE, _COUNT, _READ)
    lines.remove(_WAIT)
    lines.remove(_WAIT)
    lines.insert(1, _WAIT)
    assert _told(*lines) == [(RACE, _READ)]


def test_caches_of_a_pair_of_units_are_to_be_dropped():
    for drop, told in (([], [(RACE, _LOAD)]), ([_DROP], [])):
        lines = _turn(_STORE, _COUNT_FAR, _LOAD, drop=drop)
        assert _told(*lines, generation=_APART) == told
        assert not _told(*lines, generation=_APART, is_on_pairs=False)
    lines = _turn(_STORE, _COUNT_FAR, _LOAD)
    lines.insert(2, _DROP)
    assert _told(*lines, generation=_APART) == [(RACE, _LOAD)]
    assert not _told(*_turn(_WRITE, _COUNT, _READ), generation=_APART)


def test_groups_do_not_take_turns():
    """Even where they count in one place."""

    def prepare(waves):
        put(waves, 0, waves.values.v[0] + 256 * waves.groups[:, :1])
        _prepare(waves)

    lines = _turn(_STORE, _COUNT_FAR, _LOAD)
    found = watch(*lines, prepare=prepare, hazards=["races"], groups=2, waves=1)
    assert [(one.kind, one.instruction.text) for one in found] == [(RACE, _LOAD)]


def _group_clocks(waves=4, per_group=2):
    latest = SimpleNamespace(is_pending=lambda done: np.zeros(waves, np.bool_))
    waits = SimpleNamespace(latest=latest, done={})
    return GroupClocks(waits, np.arange(1, waves + 1), per_group)


def _synchronise(clocks, wave, place=0, releases=True):
    at = np.array([wave])
    clocks.synchronise("shared", at, at, np.array([place]), releases=releases)


def test_what_is_known_is_passed_on():
    """Of four waves of one group; each knows those before it, at the clocks of then."""
    clocks = _group_clocks(per_group=4)
    for wave in range(4):
        _synchronise(clocks, wave)
    assert clocks.vector_clock(2).tolist() == [1, 2, 3, 0] and clocks.vector_clock(0).tolist() == [
        1,
        0,
        0,
        0,
    ]
    own, other = np.array([3, 3, 3]), np.array([0, 1, 2])
    assert clocks.happened_before(other, np.array([1, 3, 3]), own).tolist() == [True, False, True]
    assert not clocks.happened_before(other, np.array([1, 2, 3]), own, through_cache=True).any()
    clocks.invalidate_cache(np.array([3]))
    assert clocks.happened_before(other, np.array([1, 2, 3]), own, through_cache=True).all()
    clocks.clear()
    assert not clocks.happened_before(other, np.array([1, 2, 3]), own).any()


def test_places_and_groups_are_apart():
    clocks = _group_clocks()
    for wave in range(4):
        _synchronise(clocks, wave)
    assert clocks.vector_clock(2).tolist() == [3, 0] and clocks.vector_clock(3).tolist() == [3, 4]
    assert not clocks.happened_before(np.array([1]), np.array([1]), np.array([3])).any()
    clocks.clear()
    _synchronise(clocks, 0)
    _synchronise(clocks, 1, place=4)
    assert clocks.vector_clock(1).tolist() == [0, 2]
    _synchronise(clocks, 1, releases=False)
    assert clocks.vector_clock(1).tolist() == [1, 2]
