"""Waves on their way: loops, branches that part them, barriers, calls, an end to endless loops."""

from itertools import count

import numpy as np
import pytest

from refcomp.emulator.code.findings import BARRIER, ENDLESS
from refcomp.emulator.limits import Limits
from refcomp.foundation.errors import UserError
from tests.emulator.snippets import (
    assembly,
    execute,
    filled_memory,
    found,
    get,
    make_waves,
    put,
    set_scalar,
)


def test_waves_that_part_meet_again():
    code = assembly(
        "s_mov_b32 s1, 0",
        "s_add_u32 s1, s1, s0",
        "s_sub_u32 s0, s0, 1",
        "s_cmp_lg_u32 s0, 0",
        "s_cbranch_scc1 65532",
        "v_mov_b32_e32 v0, s1",
        "s_endpgm",
    )
    waves = make_waves(3)
    waves.initialise_scalar(0, np.array([1, 4, 2], np.uint32))
    execution = execute(waves, code)
    assert [get(waves, 0, wave=n)[0] for n in range(3)] == [1, 10, 3]
    assert execution.steps == 3 * 3 + 4 * (1 + 4 + 2)


@pytest.mark.parametrize(
    ("line", "names"),
    [("v_mov_b32_e32 v16, 0", "17 and 0"), ("v_mov_b32_e32 a0, v1", "2 and 1")],
)
def test_registers_that_a_kernel_does_not_have_are_refused(line, names):
    """A damaged descriptor may ask for fewer than the code names."""
    code = assembly("s_branch 1", line, "s_endpgm")
    assert execute(make_waves(), code).steps == 2  # no wave comes there
    code = assembly("s_nop 0", line, "s_endpgm")
    with pytest.raises(UserError, match="uses registers that it does not have") as caught:
        execute(make_waves(), code)
    wanted = f"it has 16 vector registers and 0 accumulators, and names {names}"
    assert wanted in str(caught.value)


def test_accumulators_lie_apart():
    code = assembly("v_mov_b32_e32 v3, 0", "v_mov_b32_e32 a1, v3", "s_endpgm")
    execute(make_waves(vectors=258, unused=slice(4, 256)), code)
    for line in ("v_mov_b32_e32 v4, 0", "v_mov_b32_e32 a2, v3"):
        with pytest.raises(UserError, match="uses registers that it does not have"):
            execute(make_waves(vectors=258, unused=slice(4, 256)), assembly(line, "s_endpgm"))


def test_conditions():
    code = assembly(
        "s_cbranch_vccz 1",
        "s_mov_b32 s0, 1",
        "s_cbranch_execnz 1",
        "s_mov_b32 s0, 2",
        "s_endpgm",
    )
    for vcc, wanted in ((0, 7), (1 << 40, 1)):
        waves = make_waves(s0=7)
        set_scalar(waves, 106, vcc, 2)
        execute(waves, code)
        assert waves.values.s[0, 0] == wanted


def test_all_waves_of_a_group_meet_at_a_barrier():
    code = assembly(
        "s_cmp_eq_u32 s0, 0",
        "s_cbranch_scc1 2",
        "ds_write_b32 v0, v1",
        "s_nop 0",
        "s_barrier",
        "ds_read_b32 v2, v0",
        "s_endpgm",
    )
    waves = make_waves(2, shared=4)
    waves.initialise_scalar(0, np.array([0, 1], np.uint32))
    put(waves, 0, np.zeros(64, np.uint32))
    put(waves, 1, np.full(64, 9, np.uint32))
    execute(waves, code)
    assert get(waves, 2)[0] == 9 and not found(waves)


def test_waves_at_different_barriers_are_told_of():
    code = assembly("s_cbranch_scc1 2", "s_barrier", "s_endpgm", "s_barrier", "s_endpgm")
    waves = make_waves(2)
    waves.values.scc[1] = True
    waves.shadow.scc[:] = False
    execute(waves, code)
    (finding,) = found(waves)
    assert (
        finding.kind == BARRIER and finding.what == "waves of a group wait at 2 different barriers"
    )


def test_calls_return():
    code = assembly(
        "f:",
        "s_getpc_b64 s[0:1]",
        "s_add_u32 s0, s0, 12",
        "s_addc_u32 s1, s1, 0",
        "s_swappc_b64 s[30:31], s[0:1]",
        "g:",
        "s_cbranch_scc1 1",
        "s_setpc_b64 s[30:31]",
        "s_endpgm",
    )
    # The call leads to g, returns behind itself, and SCC, set there, ends it.
    waves = make_waves()
    assert execute(waves, code, limit=50).is_given_up
    set_scalar(waves, 4, 99)
    assert waves.values.s[30, 0] == 16


def test_a_jump_to_nowhere_is_refused():
    waves = make_waves()
    set_scalar(waves, 0, 3, 2)
    with pytest.raises(UserError, match="a jump leads to 0x3, where no instruction begins"):
        execute(waves, assembly("s_setpc_b64 s[0:1]", "s_endpgm"))


def _flag(count, **options):
    """Waves that know in s[2:3], and v0 counts from there, a number that is 0."""
    arena, place = filled_memory(bytes(4))
    waves = make_waves(count, arena=arena, v0=np.uint32(0), **options)
    set_scalar(waves, 2, place.address, 2)
    return waves, arena.read(place.address, 4).view(np.uint32)


def test_waves_may_wait_for_each_other_in_a_loop():
    """Each is to run when the one with the next number has written: nobody starves."""
    code = assembly(
        "s_load_dword s4, s[2:3], 0x0",
        "s_cmp_lg_u32 s4, s0",
        "s_cbranch_scc1 65533",
        "v_mov_b32_e32 v1, s1",
        "global_store_dword v0, v1, s[2:3]",
        "s_endpgm",
    )
    waves, flag = _flag(3)
    waves.initialise_scalar(0, np.array([2, 1, 0], np.uint32))
    waves.initialise_scalar(1, np.array([3, 2, 1], np.uint32))
    execute(waves, code, limit=100_000)
    assert flag[0] == 3 and not found(waves)


def test_groups_wait_at_barriers_for_themselves_alone():
    """The second group waits in a loop for what the first writes behind a barrier."""
    code = assembly(
        "s_cmp_eq_u32 s0, 0",
        "s_cbranch_scc1 3",
        "s_load_dword s4, s[2:3], 0x0",
        "s_cmp_lg_u32 s4, 1",
        "s_cbranch_scc1 65533",
        "s_barrier",
        "v_mov_b32_e32 v1, 1",
        "global_store_dword v0, v1, s[2:3]",
        "s_endpgm",
    )
    waves, flag = _flag(4, groups=2)
    waves.initialise_scalar(0, np.array([0, 0, 1, 1], np.uint32))
    execute(waves, code, limit=100_000)
    assert flag[0] == 1 and not found(waves)


def test_endless_loops_end():
    waves = make_waves()
    execution = execute(waves, assembly("kernel:", "s_branch 65535", "s_endpgm"), limit=100)
    assert execution.is_given_up and execution.steps == 101
    (finding,) = found(waves)
    assert finding.kind == ENDLESS and finding.instruction.mnemonic == "s_branch"
    assert finding.what.startswith("no wave has ended for 100 instructions; 1 of 1 still run\n")
    assert "raise the limit (max_steps, max_seconds)" in finding.what
    with pytest.raises(UserError, match="the kernel snippet stopped by a trap"):
        execute(make_waves(), assembly("s_trap 2", "s_endpgm"))


# The first wave loops, the others wait for it at a barrier; waves whose s0 is 2 end at once.
_STUCK = (
    *("kernel:", "s_cmp_eq_u32 s0, 2", "s_cbranch_scc1 4"),
    *("s_cmp_eq_u32 s0, 1", "s_cbranch_scc1 65535", "s_nop 0", "s_barrier", "s_endpgm"),
)


def _stuck(limits):
    """What is found in two groups of two waves, of which one ends."""
    waves = make_waves(4, groups=2)
    waves.initialise_scalar(0, np.array([1, 0, 0, 2], np.uint32))
    execute(waves, assembly(*_STUCK), limits=limits)
    return [finding for finding in found(waves) if finding.kind == ENDLESS]


def test_waves_that_never_end_are_listed_with_their_places():
    (finding,) = _stuck(Limits(20_000))
    first, *places, _ = finding.what.splitlines()
    assert first == "no wave has ended for 20000 instructions; 2 of 4 still run"
    assert [line.strip() for line in places] == [
        "1 wave at kernel+0xc: s_cbranch_scc1 65535  (00000000 at 0xc); "
        "it is wave 0 of group (0, 0, 0)",
        "1 wave at kernel+0x14: s_barrier  (00000000 at 0x14); it is wave 1 of group (0, 0, 0)",
    ]
    assert (finding.kernel, finding.group, finding.wave, finding.times) == (
        *("snippet", (0, 0, 0)),
        *(0, 1),
    )


def test_a_limit_of_time_goes_by_the_clock_that_is_given():
    """Each look at this clock takes a second."""
    ticks = count()
    (finding,) = _stuck(Limits(10**9, 7.5, lambda: float(next(ticks))))
    assert finding.what.startswith("no wave has ended for 7.5 seconds; 2 of 4 still run\n")
    assert 8 <= next(ticks) < 20


@pytest.mark.search
def test_a_long_kernel_whose_waves_end_is_not_stopped():
    """The waves loop 500 to 5000 times: only one after the other they run so many instructions."""
    code = assembly("s_sub_u32 s0, s0, 1", "s_cmp_lg_u32 s0, 0", "s_cbranch_scc1 65533", "s_endpgm")
    loops = np.arange(500, 5001, 500, dtype=np.uint32)
    waves = make_waves(10)
    waves.initialise_scalar(0, loops)
    execution = execute(waves, code, limit=40_000)
    assert not execution.is_given_up and execution.steps == 3 * int(loops.sum()) + 10 == 82_510
    waves = make_waves(10)
    waves.initialise_scalar(0, loops)
    assert execute(waves, code, limit=10_000).is_given_up


def test_branches_must_not_depend_on_undefined_bits():
    waves = make_waves()
    execute(waves, assembly("s_cbranch_scc1 0", "s_cbranch_vccz 0", "s_endpgm"))
    assert [f.what for f in found(waves)] == ["a branch depends on bits that nothing wrote"] * 2
    waves = make_waves()
    set_scalar(waves, 106, 1)  # one defined 1 is enough
    execute(waves, assembly("s_cbranch_vccz 0", "s_endpgm"))
    assert not found(waves)
