"""Instructions that come too soon: each pair of the tables, and wait states that LLVM put in."""

import re

import numpy as np
import pytest

from refcomp.emulator import EmulatedGpu
from refcomp.emulator.code.findings import WAIT
from refcomp.emulator.generations.generation import ARCHITECTURES, GENERATIONS
from refcomp.emulator.observers.hazards.wait_states import WaitStates
from tests.emulator.kernels import SMALL, disassembled
from tests.emulator.observers.hazards.hazardous import watch
from tests.emulator.observers.hazards.state_kernels import compile_states, state_kernels
from tests.emulator.snippets import put, set_scalar

_XDL = "v_mfma_f32_16x16x16f16 v[4:7], v[0:1], v[2:3], v[4:7]"
_SMFMA = "v_mfma_f32_16x16x4f32 v[4:7], v0, v1, v[4:7]"
_DGEMM = "v_mfma_f64_4x4x4f64 v[4:5], v[0:1], v[2:3], v[4:5]"
_LANE = "v_readfirstlane_b32 s4, v1"
_LOAD = "global_load_dword v9, v0, s[0:1]"
# First, second, and how many must be between them on gfx90a and gfx942; 0: nothing is told.
_PAIRS = [
    ("v_readfirstlane_b32 s1, v15", _LOAD, 5, 5),
    ("v_add_co_u32_e32 v9, vcc, v0, v1", "v_div_fmas_f32 v8, v0, v1, v2", 4, 4),
    (_LANE, "v_readlane_b32 s6, v0, s4", 4, 4),
    (_LANE, "v_writelane_b32 v3, s7, s4", 4, 4),
    (_LANE, "v_add_u32_e32 v3, s4, v0", 0, 2),
    ("v_cmp_lt_u32_e32 vcc, v0, v1", "v_cndmask_b32_e32 v3, v0, v1, vcc", 0, 2),
    ("v_mov_b32_e32 v3, v0", "v_readfirstlane_b32 s4, v3", 0, 1),
    ("v_mov_b32_e32 v3, v0", "v_mov_b32_dpp v8, v3 row_mirror row_mask:0xf bank_mask:0xf", 2, 2),
    ("v_cmpx_ge_u32_e64 vcc, v0, v0", "v_mov_b32_dpp v8, v3 row_mirror row_mask:0xf", 5, 5),
    ("v_cmpx_ge_u32_e64 vcc, v0, v0", "v_readfirstlane_b32 s4, v3", 0, 4),
    ("v_mov_b32_e32 v2, v0", _XDL, 2, 2),
    ("v_cmpx_ge_u32_e64 vcc, v0, v0", _XDL, 4, 4),
    ("v_exp_f32_e32 v3, v0", "v_add_f32_e32 v8, v3, v0", 0, 1),
    ("v_exp_f32_e32 v3, v0", "v_exp_f32_e32 v8, v3", 0, 0),
    ("v_dot2_f32_f16 v3, v0, v1, v3", "v_add_f32_e32 v8, v3, v0", 3, 3),
    ("v_dot2_f32_f16 v3, v0, v1, v3", "v_dot2_f32_f16 v3, v0, v1, v3", 0, 0),
    ("s_mov_b32 m0, 0", "s_movrels_b32 s8, s4", 1, 1),
    ("s_mov_b32 m0, 0", "global_load_dword v0, s[0:1] lds", 1, 1),
    ("global_store_dwordx4 v0, v[4:7], s[0:1]", "v_mov_b32_e32 v6, v0", 1, 2),
    ("global_store_dwordx2 v0, v[4:5], s[0:1]", "v_mov_b32_e32 v5, v0", 0, 0),
    (_XDL, "v_mov_b32_e32 v8, v5", 11, 7),
    (_XDL, "v_mov_b32_e32 v5, v0", 11, 7),
    (_XDL, "global_store_dword v0, v7, s[0:1]", 11, 7),
    (_XDL, "ds_read_b32 v7, v0", 11, 7),
    (_XDL, _XDL, 0, 0),
    (_XDL, "v_mfma_f32_16x16x16f16 v[8:11], v[4:5], v[2:3], v[8:11]", 11, 7),
    (_XDL, "v_mfma_f32_16x16x16f16 v[8:11], v[0:1], v[2:3], v[6:9]", 8, 5),
    (_XDL, "v_mfma_f32_16x16x16f16 v[8:11], v[0:1], v[2:3], v[4:7]", 0, 0),
    (
        "v_mfma_f32_16x16x16f16 v[8:11], v[0:1], v[2:3], v[4:7]",
        "v_mov_b32_e32 v5, v0",
        *(7, 3),
    ),
    (_SMFMA, "v_mov_b32_e32 v8, v5", 11, 10),
    (_SMFMA, "v_mfma_f32_16x16x4f32 v[8:11], v0, v1, v[6:9]", 8, 8),
    (_SMFMA, "v_mfma_f32_16x16x16f16 v[8:11], v[0:1], v[2:3], v[6:9]", 8, 0),
    (_DGEMM, "v_mov_b32_e32 v8, v5", 6, 6),
    (_DGEMM, "global_store_dword v0, v5, s[0:1]", 9, 9),
    (_DGEMM, _DGEMM, 4, 4),
    (_DGEMM, "v_fma_f64 v[8:9], v[0:1], v[2:3], v[8:9]", 2, 2),
]


def _prepare(waves):
    put(waves, 15, waves.values.s[1][:, None])


def _told(gpu, *lines, **more):
    more = {"waves": 1, "generation": GENERATIONS[gpu], "prepare": _prepare} | more
    found = watch(*lines, hazards=["wait-states"], **more)
    assert all(one.kind == WAIT for one in found)
    return [f"{one.instruction.text}: {one.what}" for one in found]


def _between(count):
    return [f"s_nop {count - 1}"] if count else []


@pytest.mark.parametrize(("first", "second", "gfx90a", "gfx942"), _PAIRS)
def test_pairs(first, second, gfx90a, gfx942):
    for gpu, needed in (("gfx90a", gfx90a), ("gfx942", gfx942)):
        lines = (first, *_between(needed), second)
        assert not _told(gpu, *lines)
        if needed:
            (told,) = _told(gpu, first, *_between(needed - 1), second)
            assert told.startswith(f"{second}: uses ")
            assert f" {needed - 1} of {needed} wait states after {first}" in told


def test_what_is_told():
    (told,) = _told("gfx942", _LANE, "s_nop 0", "v_add_u32_e32 v3, s4, v0")
    assert told == (
        "v_add_u32_e32 v3, s4, v0: uses s4 only 1 of 2 wait states after "
        "v_readfirstlane_b32 s4, v1  "
        "(00000000 at 0x0): VALU writes SGPR, then VALU reads SGPR; s_nop is missing"
    )


def test_the_latest_product_counts():
    """It wrote the register last."""
    quick = "v_mfma_f32_4x4x4f16 v[4:7], v[0:1], v[2:3], v[4:7]"
    slow = "v_mfma_f32_16x16x4f16 v[0:15], v[0:1], v[2:3], v[0:15]"
    for register, is_told in (("v5", False), ("v9", True)):
        use = f"v_cmp_lt_u32_e32 vcc, v5, {register}"
        told = [one for one in _told("gfx942", slow, quick, "s_nop 4", use) if use in one]
        assert [
            f"uses {register} only 6 of 11 wait states after {slow}" in one for one in told
        ] == ([True] * is_told)


def test_loops_and_branches_count_as_they_run():
    """A product at the end of a loop, whose sums are read at its start."""
    lines = ["v_mov_b32_e32 v8, v5", "s_nop 4", _XDL, "s_sub_u32 s8, s8, 1", "s_cmp_lg_u32 s8, 0"]
    loop = [*lines, "s_cbranch_scc1 65530"]
    count = {"prepare": lambda waves: set_scalar(waves, 8, 3)}
    (told,) = _told("gfx942", *loop, **count)
    assert "uses v5 only 3 of 7 wait states after" in told
    loop[1:2], loop[-1] = ["s_nop 4", "s_nop 0"], "s_cbranch_scc1 65529"
    assert _told("gfx942", *loop, **count)
    loop.insert(4, "s_nop 3")
    loop[-1] = "s_cbranch_scc1 65528"
    assert not _told("gfx942", *loop, **count)


def test_waves_that_left_a_loop_early_are_not_forgotten_and_cost_nothing(monkeypatch):
    """Each wave runs once more often than the one before; none is long enough behind `_LANE`."""
    seen = []

    def earlier(self, does, how=WaitStates._earlier):
        seen.append(len(found := how(self, does)))
        return found

    monkeypatch.setattr(WaitStates, "_earlier", earlier)

    def prepare(waves):
        waves.initialise_scalar(20, np.arange(1, 49, dtype=np.uint32))

    loop = [_LANE, "s_add_u32 s21, s21, 1", "s_cmp_lt_u32 s21, s20", "s_cbranch_scc1 65532"]
    lines = ["s_mov_b32 s21, 0", *loop, "v_readlane_b32 s6, v0, s4"]
    more = {"waves": 2, "groups": 24, "prepare": prepare, "hazards": ["wait-states"]}
    (found,) = watch(*lines, **more)
    assert "uses s4 only 3 of 4 wait states" in found.what and found.times == 48 * 64
    assert max(seen) == 1


def test_each_wave_counts_by_itself():
    """The second wave jumps over the wait states."""

    def prepare(waves):
        waves.values.scc[1] = True

    lines = (_XDL, "s_cbranch_scc1 1", "s_nop 6", "v_mov_b32_e32 v8, v5")
    more = {"waves": 2, "hazards": ["wait-states"], "prepare": prepare}
    found = watch(*lines, **more)
    assert [(one.item, one.times) for one in found] == [((64, 0, 0), 64)]


def test_rdna3_waits_but_for_a_few():
    exp, use = "v_exp_f32_e32 v3, v0", "v_add_f32_e32 v8, v3, v0"
    other, trans = "v_mov_b32_e32 v9, v0", "v_exp_f32_e32 v9, v0"
    (told,) = _told("gfx1100", exp, *[other] * 5, "s_nop 7", use)
    assert "uses v3 only 5 of 6 vector instructions after v_exp_f32_e32 v3, v0" in told
    assert told.endswith(
        ": trans writes VGPR, then VALU reads VGPR; s_waitcnt_depctr 0xfff is missing"
    )
    assert _told("gfx1100", exp, trans, use)
    for between in ([other] * 6, [trans] * 2, ["s_waitcnt_depctr 0xfff"], ["ds_read_b32 v9, v0"]):
        assert not _told("gfx1100", exp, *between, use)
    assert _told("gfx1100", exp, "s_waitcnt_depctr 0xfffe", use)
    product = "v_wmma_f32_16x16x16_f16 v[0:7], v[0:7], v[8:15], v[0:7]"
    (told,) = _told("gfx1100", product, product)
    assert told.endswith(": WMMA writes VGPR, then WMMA reads SrcAB; v_nop is missing")
    assert not _told("gfx1100", product, "v_nop", product)


# What LLVM put in.


@pytest.fixture(scope="module", params=ARCHITECTURES)
def right(request):
    code = compile_states(request.param)
    return request.param, code, disassembled(code)


def _found(code, name, assembly):
    options = {"hazards": ["wait-states"], "is_watched": False}
    gpu = EmulatedGpu(lambda data: assembly, size=SMALL, **options)
    a, c = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    return gpu.run(gpu.load(code), name, (1, 1, 1), (64, 1, 1), [a, c]).findings


@pytest.mark.rocm
def test_right_kernels_are_not_told_of(right):
    gpu, code, assembly = right
    for name in state_kernels(gpu):
        found = _found(code, name, assembly)
        assert not found, "\n".join(map(str, found))


_STATES = {"s_nop": re.compile(r"\t(s_nop)( \w+)\s*// ([0-9A-F]+):")}
_STATES["others"] = re.compile(r"\t(s_waitcnt_depctr|v_nop)( \w+)?\s*// ([0-9A-F]+):")


def _shortened(assembly, name, pattern):
    """Texts with one wait state less than LLVM found necessary, and where that is."""
    lines = assembly.splitlines()
    start = next(k for k, line in enumerate(lines) if line.endswith(f"<{name}>:"))
    end = next(k for k in range(start, len(lines)) if "s_endpgm" in lines[k])
    for number in range(start, end):
        if match := pattern.match(lines[number]):
            less = []
            if match[1] == "s_nop" and int(match[2]):
                less = [lines[number].replace(match[2], f" {int(match[2]) - 1}", 1)]
            yield "\n".join([*lines[:number], *less, *lines[number + 1 :]]), int(match[3], 16)


@pytest.mark.rocm
def test_each_wait_state_is_needed(right, record_property):
    gpu, code, assembly = right
    count, unseen = 0, []
    pattern = _STATES["others" if GENERATIONS[gpu].states.counts_vectors else "s_nop"]
    for name in state_kernels(gpu):
        for text, place in _shortened(assembly, name, pattern):
            count += 1
            if not any(one.instruction.address > place for one in _found(code, name, text)):
                unseen.append(f"{name} at {place:#x}")
    record_property("summary", f"{count - len(unseen)} of {count} shortened waits told of")
    assert count >= 3 and not unseen, unseen
