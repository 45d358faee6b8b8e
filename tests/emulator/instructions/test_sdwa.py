"""Operands and results that are parts of registers (SDWA): all parts of all of them."""

import itertools

import numpy as np
import pytest

from tests.emulator.snippets import LANE, get, make_waves, put, run, scalar, set_mask, two_halves

_PARTS = {f"BYTE_{n}": (8 * n, 8) for n in range(4)} | {"WORD_0": (0, 16), "WORD_1": (16, 16)}
_PARTS |= {"DWORD": (0, 32)}
_UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")


def _part(value, name, *, is_signed=False):
    start, width = _PARTS[name]
    found = value >> start & (1 << width) - 1
    return found - (1 << width) if is_signed and found >> width - 1 else found


def _placed(result, old, name, unused):
    start, width = _PARTS[name]
    field = (result & (1 << width) - 1) << start
    if unused == "UNUSED_PRESERVE":
        rest = old & ~(((1 << width) - 1) << start)
    else:
        is_negative = unused == "UNUSED_SEXT" and result >> width - 1 & 1
        rest = -1 << start + width if is_negative else 0
    return (field | rest) & 0xFFFFFFFF


def _waves():
    rng = np.random.default_rng(9)
    words = rng.integers(0, 1 << 32, (3, 64), dtype=np.uint64).astype(np.uint32)
    words[:2, :2] = [[0x80808080, 0x7F7F7F7F], [0xFFFFFFFF, 0]]
    waves = make_waves()
    for number in range(3):
        put(waves, number, words[number])
    return waves, words


@pytest.mark.search
@pytest.mark.parametrize("part", _PARTS)
def test_sources_and_results(part):
    for other, unused, signs in itertools.product(_PARTS, _UNUSED, ("", "sext")):
        waves, (old, a, b) = _waves()
        sources = [f"{signs}({one})" if signs else one for one in ("v1", "v2")]
        line = f"v_add_u32_sdwa v0, {sources[0]}, {sources[1]} dst_sel:{part} dst_unused:{unused}"
        run(waves, f"{line} src0_sel:{other} src1_sel:{part}")
        for lane, found in enumerate(get(waves, 0).tolist()):
            one = _part(int(a[lane]), other, is_signed=bool(signs))
            two = _part(int(b[lane]), part, is_signed=bool(signs))
            if part == "DWORD":
                assert found == one + two & 0xFFFFFFFF
            else:
                wanted = _placed(one + two & 0xFFFFFFFF, int(old[lane]), part, unused)
                assert found == wanted, (line, other)


def test_halves_may_be_negated():
    waves = make_waves(
        v1=two_halves(2.0, -3.0),
        v0=np.uint32(0xFFFF_FFFF),
    )
    parts = "dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:WORD_0"
    run(waves, f"v_mul_f16_sdwa v0, -|v1|, -v1 {parts}")
    assert get(waves, 0)[0] == int(np.float16(6.0).view(np.uint16)) << 16 | 0xFFFF
    run(waves, "v_cvt_f32_f16_sdwa v2, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1")
    assert get(waves, 2, "f32")[0] == -3.0


def test_comparisons_of_parts():
    waves = make_waves(v1=(LANE << 8).astype(np.uint32), v2=np.uint32(0x00FE_0007))
    set_mask(waves, LANE < 16)
    run(waves, "v_cmp_lt_u32_sdwa s[4:5], v1, v2 src0_sel:BYTE_1 src1_sel:WORD_0")
    assert scalar(waves, 4, "u64") == 0x7F
    run(waves, "v_cmp_gt_i32_sdwa vcc, v1, sext(v2) src0_sel:BYTE_1 src1_sel:BYTE_2")
    assert scalar(waves, 106, "u64") == 0xFFFF  # all are above -2
    parts = "dst_sel:BYTE_3 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:BYTE_0"
    run(waves, f"v_cndmask_b32_sdwa v0, v1, v2, vcc {parts}")
    assert get(waves, 0)[0] == 7 << 24


def test_parts_of_undefined_registers():
    waves = make_waves(v1=np.uint32(0x1234))
    waves.shadow.v[1] = 0xFF000000  # the upper byte was never written
    waves.dirty.add(130)
    run(waves, "v_mov_b32_sdwa v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0")
    assert get(waves, 0)[0] == 0x1234 and not waves.shadow.v[0].any()
    run(waves, "v_mov_b32_sdwa v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3")
    assert (waves.shadow.v[0] == 0xFF).all()
