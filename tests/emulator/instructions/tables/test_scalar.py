"""Scalar instructions and what they leave in SCC, held against Python's own integers."""

import numpy as np
import pytest

from refcomp.emulator.machine.registers import SCC
from tests.emulator.snippets import found, make_waves, run, scalar, set_scalar

_M = 0xFFFFFFFF


def _signed(x, bits=32):
    return x - (1 << bits) if x >> (bits - 1) & 1 else x


def _overflows(total):
    return total != _signed(total & _M)


_ROWS = [
    ("s_add_u32", 32, lambda a, b: (a + b, a + b > _M)),
    ("s_sub_u32", 32, lambda a, b: (a - b, a < b)),
    ("s_add_i32", 32, lambda a, b: (a + b, _overflows(_signed(a) + _signed(b)))),
    ("s_sub_i32", 32, lambda a, b: (a - b, _overflows(_signed(a) - _signed(b)))),
    ("s_mul_i32", 32, lambda a, b: (a * b, None)),
    ("s_mul_hi_u32", 32, lambda a, b: (a * b >> 32, None)),
    ("s_and_b32", 32, lambda a, b: (a & b, a & b != 0)),
    ("s_andn2_b32", 32, lambda a, b: (a & ~b, a & ~b & _M != 0)),
    ("s_xnor_b32", 32, lambda a, b: (~(a ^ b), ~(a ^ b) & _M != 0)),
    ("s_lshl_b32", 32, lambda a, b: (a << (b & 31), (a << (b & 31)) & _M != 0)),
    ("s_ashr_i32", 32, lambda a, b: (_signed(a) >> (b & 31), _signed(a) >> (b & 31) != 0)),
    ("s_min_i32", 32, lambda a, b: (min(_signed(a), _signed(b)), _signed(a) < _signed(b))),
    ("s_max_u32", 32, lambda a, b: (max(a, b), a > b)),
    ("s_lshl2_add_u32", 32, lambda a, b: ((a << 2) + b, (a << 2) + b > _M)),
    ("s_pack_ll_b32_b16", 32, lambda a, b: (a & 0xFFFF | b << 16, None)),
    ("s_pack_hh_b32_b16", 32, lambda a, b: (a >> 16 | b & 0xFFFF0000, None)),
    ("s_bfm_b32", 32, lambda a, b: (((1 << (a & 31)) - 1) << (b & 31), None)),
    ("s_absdiff_i32", 32, lambda a, b: (abs(_signed((a - b) & _M)), a != b)),
]
_EDGES = [0, 1, 5, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678]


@pytest.mark.search
@pytest.mark.parametrize(("name", "bits", "function"), _ROWS)
def test_agrees_with_python(name, bits, function):
    for a in _EDGES:
        for b in _EDGES:
            waves = make_waves(s4=a, s6=b)
            run(waves, f"{name} s0, s4, s6")
            result, condition = function(a, b)
            assert scalar(waves, 0) == result & _M, (a, b)
            assert condition is None or waves.values.scc[0] == condition, (a, b)


def test_bits_of_quads():
    waves = make_waves()
    set_scalar(waves, 4, 0x8000_0000_0120_0001, 2)
    run(waves, "s_quadmask_b64 s[0:1], s[4:5]", "s_wqm_b64 s[2:3], s[4:5]")
    assert scalar(waves, 0, "u64") == 0x8061 and waves.values.scc[0]
    assert scalar(waves, 2, "u64") == 0xF000_0000_0FF0_000F
    run(waves, "s_quadmask_b32 s0, s5", "s_wqm_b32 s1, 0", "s_bitreplicate_b64_b32 s[2:3], s4")
    assert (scalar(waves, 0), scalar(waves, 1)) == (0x80, 0) and not waves.values.scc[0]
    assert scalar(waves, 2, "u64") == 0x0003_0C00_0000_0003


def _after(*lines, **scalars):
    waves = make_waves()
    for name, value in scalars.items():
        set_scalar(waves, int(name[1:]), value, 2)
    return run(waves, *lines)


def test_wide_results():
    waves = _after("s_lshr_b64 s[0:1], s[4:5], 33", s4=5 << 40)
    assert scalar(waves, 0, "u64") == 5 << 7
    waves = _after("s_bfe_i64 s[0:1], s[4:5], 0x80000", s4=0x80)
    assert scalar(waves, 0, "i64") == -128
    waves = _after("s_bfe_u32 s0, s4, 0x80004", s4=0x12345)
    assert scalar(waves, 0) == 0x34
    waves = _after("s_not_b64 s[0:1], s[4:5]", s4=0)
    assert scalar(waves, 0, "u64") == (1 << 64) - 1
    waves = _after("s_brev_b64 s[0:1], s[4:5]", s4=1)
    assert scalar(waves, 0, "u64") == 1 << 63


def test_counts():
    waves = _after("s_bcnt1_i32_b64 s0, s[4:5]", "s_ff1_i32_b64 s1, s[4:5]", s4=0x30 << 30)
    assert (scalar(waves, 0), scalar(waves, 1)) == (2, 34)
    waves = _after("s_flbit_i32_b32 s0, s4", "s_flbit_i32 s1, s6", s4=1, s6=_M)
    assert (scalar(waves, 0), scalar(waves, 1)) == (31, _M)


def test_carries_and_choices():
    waves = _after("s_add_u32 s0, s4, s4", "s_addc_u32 s1, 0, 0", s4=0x80000000)
    assert scalar(waves, 0, "u64") == 1 << 32
    waves = _after("s_cmp_gt_i32 s4, 0", "s_cselect_b32 s0, 7, 8", s4=_M)
    assert scalar(waves, 0) == 8
    waves = _after("s_cmp_lg_u64 s[4:5], 0", "s_cselect_b64 s[0:1], -1, 0", s4=1 << 40)
    assert scalar(waves, 0, "i64") == -1
    waves = _after("s_bitcmp1_b32 s4, 3", "s_cselect_b32 s0, 1, 0", s4=8)
    assert scalar(waves, 0) == 1


def test_sixteen_bits_have_signs():
    waves = _after("s_movk_i32 s0, 0xfc10", "s_mov_b32 s1, s0", "s_addk_i32 s1, 0x10")
    assert (scalar(waves, 0, "i32"), scalar(waves, 1, "i32")) == (-1008, -992)
    waves = _after("s_cmpk_eq_i32 s4, 0xffff", s4=_M)
    assert waves.values.scc[0]
    waves = _after("s_cmpk_eq_u32 s4, 0xffff", s4=0xFFFF)
    assert waves.values.scc[0]
    waves = _after("s_sext_i32_i8 s0, s4", "s_bitset0_b32 s4, 31", s4=_M)
    assert (scalar(waves, 0, "i32"), scalar(waves, 4)) == (-1, 0x7FFFFFFF)


def test_each_wave_has_its_own():
    waves = make_waves(3)
    waves.initialise_scalar(4, np.array([1, 2, 3], np.uint32))
    waves.select(np.array([0, 2]))
    run(waves, "s_lshl_b32 s4, s4, 4")
    assert waves.values.s[4].tolist() == [16, 2, 48]


@pytest.mark.parametrize("bits", [32, 64])
def test_the_sign_follows_a_field_that_ends_beyond_the_value(bits):
    pair = "s4" if bits == 32 else "s[4:5]"
    for value in (1 << bits - 1, (1 << bits) - 5, 0x1234567 << bits - 29):
        for start in (0, 3, bits // 2, bits - 1):
            for width in (0, 1, bits // 2, bits - 1, bits):
                place = start | width << 16
                result = "s0" if bits == 32 else "s[0:1]"
                waves = _after(f"s_bfe_i{bits} {result}, {pair}, s6", s4=value, s6=place)
                field = _signed(value, bits) >> start & (1 << width) - 1
                wanted = _signed(field, width) if width else 0
                found = scalar(waves, 0, f"i{bits}")
                assert found == wanted, (value, start, width)
                assert waves.values.scc[0] == (wanted != 0)


def test_undefined_bits_go_where_their_values_do():
    """As of a byte that was loaded to the lower half of a register: the rest is nobody's."""
    waves = make_waves(s4=5, s5=0x80)
    waves.shadow.s[5], waves.values.scc[:], waves.shadow.scc[:] = 0xFFFF0000, False, False
    waves.dirty.add(5)
    run(waves, "s_cselect_b32 s0, s4, s5", "s_sext_i32_i8 s1, s0", "s_sext_i32_i16 s2, s0")
    run(waves, "s_mov_b32 s6, s4", "s_cmov_b32 s6, s5", "s_ashr_i32 s3, s0, 4")
    wanted = [0xFFFF0000, 0, 0, 0xFFFFF000, 0]
    assert [int(waves.shadow.s[n, 0]) for n in (0, 1, 2, 3, 6)] == wanted
    assert scalar(waves, 1, "i32") == -128 and not found(waves)
    waves.values.scc[:], waves.shadow.scc[:] = True, False
    run(waves, "s_cselect_b32 s0, s4, s5", "s_cmov_b32 s6, s5")
    assert [int(waves.shadow.s[n, 0]) for n in (0, 6)] == [0, 0xFFFF0000]
    waves.shadow.scc[:] = True  # what both have in common is defined
    waves.dirty.add(SCC)
    set_scalar(waves, 5, 7)
    run(waves, "s_cselect_b32 s0, s4, s5")
    assert int(waves.shadow.s[0, 0]) == 2
