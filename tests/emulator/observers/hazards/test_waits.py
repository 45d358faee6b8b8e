"""Results that are used, or overwritten, before a wait."""

from dataclasses import replace

import pytest

from refcomp.emulator.code.findings import WAIT
from refcomp.emulator.generations.generation import GFX942
from refcomp.emulator.generations.wait_counters import GFX11_COUNTERS
from refcomp.emulator.observers.hazards.waits import Flight
from tests.emulator.observers.hazards.hazardous import watch
from tests.emulator.snippets import put, set_scalar

_LOAD, _OTHER = "global_load_dword v2, v0, s[0:1]", "global_load_dword v3, v0, s[0:1]"
_SHARED, _STORE = "ds_read_b32 v2, v0", "global_store_dword v0, v0, s[0:1]"
_SCALAR, _USE = "s_load_dword s4, s[0:1], 0x0", "v_mov_b32_e32 v9, v2"
_FLAT = "flat_load_dword v2, v[10:11]"


def _prepare(waves):
    put(waves, 0, waves.values.v[0] % 256)
    set_scalar(waves, 12, 0, 4)  # a buffer without a byte
    put(waves, 10, (waves.values.s[0].astype("u8") | waves.values.s[1].astype("u8") << 32)[:, None])


def _told(*lines, **more):
    found = watch(*lines, hazards=["waits"], **more)
    assert all(one.kind == WAIT for one in found)
    return [f"{one.instruction.text}: {one.what}" for one in found]


def test_a_result_that_is_used_too_early():
    (told,) = _told(_LOAD, _USE, "v_mov_b32_e32 v8, v2")
    assert told == (
        "v_mov_b32_e32 v9, v2: uses v2 without a wait (vmcnt) for global_load_dword v2, v0, s[0:1] "
        " (00000000 at 0x0)"
    )


@pytest.mark.parametrize(
    "lines",
    [
        (_LOAD, "s_waitcnt vmcnt(0)", _USE),
        (_LOAD, _OTHER, "s_waitcnt vmcnt(1)", _USE),
        (_LOAD, _STORE, "s_waitcnt vmcnt(1)", _USE),
        (_LOAD, _SHARED.replace("v2", "v5"), "s_waitcnt vmcnt(0)", _USE),
        (_SHARED, "ds_read_b32 v3, v0", "s_waitcnt lgkmcnt(1)", _USE),
        (_SCALAR, "s_waitcnt lgkmcnt(0)", "s_mov_b32 s5, s4"),
        (_LOAD, "v_mov_b32_e32 v9, v3"),
        (_STORE, "v_mov_b32_e32 v0, 0"),  # what is stored was read long ago
        (_LOAD, _LOAD, "s_waitcnt vmcnt(0)", _USE),  # one after the other
        (_FLAT, "s_waitcnt vmcnt(0) lgkmcnt(0)", _USE),
        ("s_load_dword s4, s[0:1], 0x0", "ds_read_b32 v2, v0", "s_waitcnt lgkmcnt(0)", _USE),
    ],
)
def test_waits_that_suffice(lines):
    assert not _told(*lines, prepare=_prepare)


@pytest.mark.parametrize(
    "lines",
    [
        (_LOAD, _OTHER, "s_waitcnt vmcnt(1)", "v_mov_b32_e32 v9, v3"),
        (_LOAD, "s_waitcnt lgkmcnt(0)", _USE),
        (_LOAD, _STORE, "s_waitcnt vmcnt(2)", _USE),
        (_LOAD, "v_mov_b32_e32 v2, 0"),  # the load would come after it
        (_LOAD, _SHARED),  # nobody knows which of them comes last
        (_LOAD, "global_store_dword v0, v2, s[0:1]"),
        (_LOAD, "global_load_dword v3, v2, s[0:1]"),
        # Scalar loads are done in any order: a wait for one of two says nothing.
        (_SCALAR, "s_load_dword s5, s[0:1], 0x4", "s_waitcnt lgkmcnt(1)", "s_mov_b32 s6, s4"),
        (_SCALAR, "s_load_dword s4, s[0:1], 0x4"),
        (_SHARED, _SCALAR, "s_waitcnt lgkmcnt(1)", _USE),
        (_FLAT, "s_waitcnt vmcnt(0)", _USE),
        (_FLAT, "s_waitcnt lgkmcnt(0)", _USE),
        # What is added by an update of a buffer.
        (_LOAD, "buffer_atomic_add v2, off, s[12:15], 0 sc0"),
    ],
)
def test_waits_that_do_not(lines):
    assert _told(*lines, prepare=_prepare)


def test_a_wait_for_as_many_as_can_be_counted_is_none():
    """Counters stop there, however many are under way."""
    lines = _SHARED, *[f"ds_write_b32 v0, v0 offset:{4 * n}" for n in range(1, 17)]
    assert _told(*lines, "s_waitcnt vmcnt(63) expcnt(7) lgkmcnt(15)", _USE)
    assert not _told(*lines, "s_waitcnt lgkmcnt(14)", _USE)


def test_stores_have_a_counter_of_their_own_on_later_gpus():
    later = replace(GFX942, counters=GFX11_COUNTERS)
    lines = _LOAD, _STORE, "s_waitcnt vmcnt(0)", _USE
    assert not _told(*lines, generation=later)
    assert _told(_LOAD, _STORE, "s_waitcnt vmcnt(1)", _USE, generation=later)


def test_only_waves_that_did_not_wait_are_told_of():
    """The second wave jumps over the wait."""

    def prepare(waves):
        _prepare(waves)
        waves.values.scc[1] = True

    found = watch(_LOAD, "s_cbranch_scc1 1", "s_waitcnt vmcnt(0)", _USE, prepare=prepare)
    assert [(one.kind, one.item, one.times) for one in found] == [(WAIT, (64, 0, 0), 64)]
    assert "work item (64, 0, 0): lane 0 of wave 1" in str(found[0])


def test_each_wave_has_its_own_counters():
    """Waves that part load different numbers of times."""

    def prepare(waves):
        _prepare(waves)
        waves.values.scc[0] = True

    lines = _LOAD, "s_cbranch_scc1 1", _OTHER, "s_waitcnt vmcnt(1)", _USE
    found = watch(*lines, prepare=prepare, hazards=["waits"])
    assert [(one.item, one.times) for one in found] == [((0, 0, 0), 64)]


def test_nothing_is_told_where_that_is_not_wanted():
    assert not watch(_LOAD, _USE, hazards=["races"], prepare=lambda w: set_scalar(w, 9, 0))


def test_a_wave_with_a_full_counter_waits_before_it_begins_more():
    more = _OTHER.replace("v3", "v4")
    assert _told(_LOAD, *[more] * 62, _USE)
    assert not _told(_LOAD, *[more] * 64, _USE)
    # Scalar loads are done in any order: which of them is not known.
    assert _told(_SCALAR, *[_SCALAR.replace("s4", "s5")] * 64, "s_mov_b32 s6, s4")


@pytest.mark.search
@pytest.mark.parametrize("hazard", ["waits", "races"])
@pytest.mark.parametrize("counters", [GFX942.counters, GFX11_COUNTERS])
def test_each_access_looks_at_few_that_came_before(hazard, counters, monkeypatch):
    """However many stores and updates there are that nothing waits for."""
    looks = 0

    def is_pending(flight, done, how=Flight.is_pending):
        nonlocal looks
        looks += 1
        return how(flight, done)

    monkeypatch.setattr(Flight, "is_pending", is_pending)
    copy = _OTHER, "s_waitcnt vmcnt(0)", "global_store_dword v0, v1, s[0:1]"
    update = "s_mov_b64 exec, 1", "global_atomic_add v0, v1, s[0:1]"
    generation = replace(GFX942, counters=counters)
    for body, most in ((copy, 10), (update, 200)):
        looks = 0
        watch(*body * 400, hazards=[hazard], generation=generation, waves=1)
        assert looks <= most * 400
