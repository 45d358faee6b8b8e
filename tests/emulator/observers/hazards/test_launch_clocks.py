"""Groups that synchronise by atomic updates of global memory."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from refcomp.emulator.code.findings import RACE, WAIT
from refcomp.emulator.generations.generation import GFX942
from refcomp.emulator.generations.memory_order import GFX90A_ORDER, CacheInstruction
from refcomp.emulator.observers.hazards.launch_clocks import LaunchClocks
from refcomp.emulator.observers.hazards.vector_clocks import GroupClocks
from tests.emulator.observers.hazards.hazardous import watch
from tests.emulator.snippets import put

# Each group writes its own place, counts itself at 2048, and reads the place of group 0.
_STORE = "global_store_dword v5, v1, s[0:1]"
_RELEASE = "buffer_wbl2 sc1", "s_waitcnt vmcnt(0) lgkmcnt(0)"
_COUNT = "global_atomic_add v2, v6, v1, s[0:1] sc0"
_ACQUIRE = "s_waitcnt vmcnt(0)", "buffer_inv sc1"
_LOAD = "global_load_dword v2, v7, s[0:1]"
_TELLS = (_STORE, *_RELEASE, _COUNT, *_ACQUIRE, _LOAD)


def _prepare(waves):
    first = np.arange(64) == 0
    waves.initialise_mask(np.tile(first, (waves.waves, 1)))
    put(waves, 5, 4 * waves.values.v[1])
    put(waves, 6, np.full(64, 2048, np.uint32))
    put(waves, 7, np.zeros(64, np.uint32))


def _told(*lines, generation=GFX942, waves=1):
    found = watch(
        *lines, waves=waves, batches=3, prepare=_prepare, hazards=["races"], generation=generation
    )
    return [(one.kind, one.instruction.text) for one in found]


def test_the_last_group_may_read_what_all_wrote():
    assert not _told(*_TELLS)


def test_places_may_have_several_cells():
    """Counters of 8 bytes; and of 4, where memory is followed by bytes."""
    wide = [line.replace("add v2, v6, v1", "add_x2 v[2:3], v6, v[8:9]") for line in _TELLS]
    octet = "global_store_byte v6, v1, s[0:1] offset:1024"
    for lines in (wide, [octet, *_TELLS]):
        found = [one for one in _told(*lines) if one[1] != octet]
        assert not found
        assert (RACE, _LOAD) in _told(*(line for line in lines if line != "buffer_inv sc1"))


@pytest.mark.parametrize("line", ["buffer_wbl2 sc1", _COUNT, "buffer_inv sc1"])
def test_nothing_may_be_left_out(line):
    lines = [one for one in _TELLS if one != line]
    assert (RACE, _LOAD) in _told(*lines)


def test_what_is_told_of_must_be_done():
    lines = (_STORE, "buffer_wbl2 sc1", _COUNT, *_ACQUIRE, _LOAD)
    assert set(_told(*lines)) == {(WAIT, _LOAD)}
    unread = (_STORE, *_RELEASE, _COUNT, "buffer_inv sc1", "s_waitcnt vmcnt(0)", _LOAD)
    assert (RACE, _LOAD) in _told(*unread)


@pytest.mark.parametrize("before", [_COUNT, "s_waitcnt vmcnt(0)", _LOAD])
def test_what_comes_after_the_caches_were_written_back_is_not_told_of(before):
    lines = [line for line in _TELLS if line != _STORE]
    place = lines.index(before)
    lines[place:place] = [_STORE, "s_waitcnt vmcnt(0)"]
    assert (RACE, _LOAD) in _told(*lines)


def test_other_gpus_need_not_write_back():
    older = replace(GFX942, order=GFX90A_ORDER, idle=GFX942.idle | {"buffer_wbinvl1_vol"})
    lines = [line.replace("buffer_inv sc1", "buffer_wbinvl1_vol") for line in _TELLS]
    lines.remove("buffer_wbl2 sc1")
    assert not _told(*lines, generation=older)
    late = [line for line in lines if line != _STORE]
    late.insert(late.index(_COUNT) + 1, _STORE)
    assert (RACE, _LOAD) in _told(*late, generation=older)


def test_caches_are_dropped_from_the_outside_in():
    """Where each unit has one of its own besides, as on RDNA."""
    order = replace(GFX942.order, invalidates_own=CacheInstruction("buffer_inv", "sc0"))
    apart = replace(GFX942, order=order)
    start, end = _TELLS[:-2], _TELLS[-1]
    assert not _told(*start, "buffer_inv sc1", "buffer_inv sc0", end, generation=apart)
    for wrong in (["sc1"], ["sc0"], ["sc0", "sc1"]):
        drops = [f"buffer_inv {mark}" for mark in wrong]
        assert (RACE, _LOAD) in _told(*start, *drops, end, generation=apart), wrong


@pytest.mark.parametrize("place", [0, 4])
def test_a_group_shares_what_one_of_its_waves_knows(place):
    """The first wave tells of what both wrote, and drops its caches; the second one reads after a
    barrier."""
    meet = "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_barrier"

    def prepare(waves):
        _prepare(waves)
        waves.values.scc[1] = True
        put(waves, 5, 8 * waves.values.v[1])
        put(waves, 7, np.full(64, place, np.uint32))
        put(waves, 8, np.array([[0], [4]]) + np.zeros(64, int))

    jumped = ("s_cbranch_scc1 5", *_TELLS[1:6])
    right = ("v_add_u32_e32 v5, v5, v8", _STORE, *meet, *jumped, *meet, _LOAD)
    assert not watch(*right, waves=2, batches=3, prepare=prepare, hazards=["races"])
    wrong = [line for line in right if line != "buffer_inv sc1"]
    wrong[wrong.index("s_cbranch_scc1 5")] = "s_cbranch_scc1 4"
    assert watch(*wrong, waves=2, batches=3, prepare=prepare, hazards=["races"])


def test_who_knows_all_may_set_the_counter_anew():
    """Updates reach all groups by themselves."""

    def prepare(waves):
        _prepare(waves)
        waves.values.scc[:] = waves.groups[0, 0] != 2

    lines = (*_TELLS[:-1], "s_cbranch_scc1 1", "global_store_dword v6, v1, s[0:1]")
    more = {"waves": 1, "batches": 3, "hazards": ["races"]}
    assert not watch(*lines, prepare=prepare, **more)
    early = [line for line in lines if line != "s_cbranch_scc1 1"]
    assert watch(*early, prepare=prepare, **more)


def test_where_too_many_places_tell_groups_count_as_ordered(monkeypatch):
    lines = (_STORE, *_RELEASE, _COUNT, "buffer_inv sc1", "s_waitcnt vmcnt(0)", _LOAD)
    assert _told(*lines)
    monkeypatch.setattr("refcomp.emulator.observers.hazards.launch_clocks._MAX_BYTES", -1)
    assert not _told(*lines)
    # Those of one group do not.
    within = "ds_write_b32 v0, v1", "ds_read_b32 v2, v6", "buffer_inv sc1"
    assert watch("v_mov_b32_e32 v6, 0", *within, waves=2, hazards=["races"])


def _launch_clocks(waves=100):
    """Of groups of one wave, in which one access is under way, and nothing is done."""
    waits = SimpleNamespace(done={"queue": np.zeros(waves, np.int32)})
    waits.latest = SimpleNamespace(positions={"queue": np.ones(waves, np.int32)})
    waits.latest.is_pending = lambda done: waits.latest.positions["queue"] > done["queue"]
    clock = np.ones(waves, np.int64)
    group_clocks = GroupClocks(waits, clock, 1)
    return LaunchClocks(waits, clock, np.ones(waves, np.int64), group_clocks, 1)


def _synchronise(clocks, wave, place, releases=True):
    at = np.array([wave])
    clocks.synchronise(at, at, np.array([place]), releases=releases, needs_write_back=False)


def _release(clocks):
    for wave in range(100):
        _synchronise(clocks, wave, place=wave)


def _write_back(clocks):
    for wave in range(100):
        clocks.write_back(np.array([wave]))


def _acquire(clocks):
    """Each learns what those before it told of."""
    for wave in range(100):
        _synchronise(clocks, wave, place=0)
        clocks._waits.done["queue"][:] = 1
        clocks.invalidate_caches(np.array([wave]))


@pytest.mark.parametrize("use", [_release, _write_back, _acquire])
def test_all_that_is_held_counts(use, monkeypatch):
    """A wave's knowledge has 800 bytes, and 100 waves have some: more than 79_000 bytes is lost,
    whatever it is held for, and then nothing is held."""
    clocks = _launch_clocks()
    use(clocks)
    assert not clocks.has_overflowed and clocks.bytes_held() > 79_000
    monkeypatch.setattr("refcomp.emulator.observers.hazards.launch_clocks._MAX_BYTES", 79_000)
    clocks = _launch_clocks()
    use(clocks)
    assert clocks.has_overflowed and not clocks.bytes_held()


def test_what_is_no_longer_held_does_not_count(monkeypatch):
    """Nor does it cost anything to look again and again for what another wave told of."""
    monkeypatch.setattr("refcomp.emulator.observers.hazards.launch_clocks._MAX_BYTES", 20_000)
    clocks = _launch_clocks()
    clocks._waits.done["queue"][:] = 1
    for _ in range(1000):
        clocks.write_back(np.array([0]))
        clocks.clock[0] += 1
    _synchronise(clocks, 0, place=0)
    for _ in range(1000):
        _synchronise(clocks, 1, place=0, releases=False)
    assert not clocks.has_overflowed and clocks.bytes_held() < 5_000


def test_reads_that_are_never_waited_for_count(monkeypatch):
    monkeypatch.setattr("refcomp.emulator.observers.hazards.launch_clocks._MAX_BYTES", 20_000)
    clocks = _launch_clocks()
    _synchronise(clocks, 0, place=0)
    for _ in range(200):
        _synchronise(clocks, 1, place=0, releases=False)
    assert clocks.has_overflowed and not clocks.bytes_held()


def test_clocks_begin_anew_without_barriers_too(monkeypatch):
    """Updates and caches written back move them, and what was known at old clocks is forgotten."""
    monkeypatch.setattr("refcomp.emulator.observers.hazards.races.MAX_CLOCK", 4)
    highest, kept = [], LaunchClocks.synchronise

    def synchronise(clocks, *given, **more):
        kept(clocks, *given, **more)
        highest.append(int(clocks.clock.max()))

    monkeypatch.setattr(LaunchClocks, "synchronise", synchronise)
    again = (_STORE, *_RELEASE, _COUNT, *_ACQUIRE) * 8
    assert not _told(*again, _LOAD)
    assert max(highest) < 4 and len(highest) == 24


def test_old_clocks_are_forgotten():
    """What a wave does at its new clock 1 is not what others knew of."""
    clocks = _launch_clocks()
    _acquire(clocks)
    own, other = np.array([99]), np.array([0])
    assert clocks.happened_before(other, np.array([1]), own).all()
    clocks.clear()
    assert not clocks.happened_before(other, np.array([1]), own).any()
    clocks.invalidate_caches(own)
    assert not clocks.happened_before(other, np.array([1]), own).any()
