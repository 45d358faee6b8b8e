"""Barriers that some waves of a group do not reach."""

from refcomp.emulator.code.findings import BARRIER
from tests.emulator.observers.hazards.hazardous import watch


def _prepare(waves):
    waves.values.scc[1] = True


def test_waves_that_ended_before_a_barrier():
    lines = "s_cbranch_scc1 1", "s_barrier"
    found = watch(*lines, waves=3, hazards=["barriers"], prepare=_prepare)
    assert [(one.kind, one.instruction.mnemonic, one.times) for one in found] == [
        (BARRIER, "s_barrier", 128)
    ]
    assert found[0].what == "passes the barrier without 1 wave of its group that ended before"
    assert not watch(*lines, waves=3, hazards=["waits", "races"], prepare=_prepare)


def test_groups_need_not_wait_for_each_other():
    lines = "s_cbranch_scc1 1", "s_barrier"
    assert not watch(*lines, waves=1, groups=2, hazards=["barriers"], prepare=_prepare)


def test_lanes_that_are_not_active_do_not_matter():
    assert not watch("s_mov_b64 exec, 1", "s_barrier", hazards=["barriers"])
