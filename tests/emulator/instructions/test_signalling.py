"""Signalling NaNs become quiet in all instructions that compute, unless IEEE_MODE is cleared."""

from dataclasses import replace

import numpy as np
import pytest

from refcomp.emulator.code.assembly import IEEE_MODE, IEEE_NANS
from refcomp.emulator.execution.program import bind
from refcomp.emulator.generations.generation import GENERATIONS
from refcomp.emulator.instructions.signalling import keep_signalling
from refcomp.emulator.machine.arrays import NUMPY
from tests.emulator.snippets import get, instruction, make_waves, put, set_scalar

_UNSIGNED = {"f16": np.uint16, "f32": np.uint32, "f64": np.uint64}
_SIGNALLING = {"f16": 0x7C01, "f32": 0x7F800001, "f64": 0x7FF0000000000001}
_QUIET_BIT = {"f16": 1 << 9, "f32": 1 << 22, "f64": 1 << 51}
_LOUD = IEEE_MODE & ~IEEE_NANS
# The manuals have v_div_scale pass its first operand through.
_PASSED_THROUGH = {("v_div_scale_f32", 0), ("v_div_scale_f64", 0)}
# A NaN here becomes quiet and is then left out, or only decides how something else is scaled.
_OF_SEVERAL = ("min3", "max3", "med3", "minmax", "maxmin")
_NUMBER = {
    *((f"v_{name}_{kind}", n) for name in _OF_SEVERAL for kind in ("f16", "f32") for n in (0, 1)),
    *((f"v_div_fixup{name}", 0) for name in ("_f16", "_f32", "_f64", "_legacy_f16")),
    *((f"v_div_scale_{kind}", n) for kind in ("f32", "f64") for n in (1, 2)),
    ("v_trig_preop_f64", 0),
}


def _rows():
    """Each instruction with a float among its operands, each such operand, of each GPU."""
    for gpu, generation in GENERATIONS.items():
        rows = generation.vector | {name: row.half for name, row in generation.packed.items()}
        for name, row in rows.items():
            implicit = [row.results[0] if n == "result" else "mask" for n in row.implicit]
            kinds = [*row.sources, *implicit]
            for place, kind in enumerate(kinds):
                if kind in _UNSIGNED:
                    yield gpu, name, row, kinds, place


def _values(kinds, place, count):
    """Ones, and signalling NaNs as one of the operands."""
    for number, kind in enumerate(kinds):
        if number == place:
            yield np.full((1, count), _SIGNALLING[kind], _UNSIGNED[kind]).view(NUMPY[kind])
        else:
            yield np.ones((1, count), np.bool_ if kind == "mask" else NUMPY[kind])


def _floats(name, row, found):
    """The floats among the results, or in the halves of one."""
    results = found if len(row.results) > 1 else (found,)
    for kind, value in zip(row.results, results, strict=True):
        if kind in _UNSIGNED:
            yield kind, np.asarray(value)
        elif kind == "u32" and name in ("v_pack_b32_f16", "v_cvt_pkrtz_f16_f32"):
            yield "f16", np.asarray(value).view(np.float16)


def _is_signalling(kind, value):
    bits = value.view(_UNSIGNED[kind])
    return np.isnan(value) & (bits & _UNSIGNED[kind](_QUIET_BIT[kind]) == 0)


@pytest.mark.search
@pytest.mark.parametrize("count", [1, 3, 64, 1000])
def test_all_instructions_that_compute_make_them_quiet(count):
    seen = 0
    for gpu, name, row, kinds, place in _rows():
        with np.errstate(all="ignore"):
            found = row.function(*_values(kinds, place, count))
        for kind, value in _floats(name, row, found):
            case = gpu, name, place, kind
            seen += 1
            assert _is_signalling(kind, value).any() == ((name, place) in _PASSED_THROUGH), case
            if (name, place) not in _NUMBER:
                halves = 2 if row.results == ("u32",) else 1
                assert np.isnan(value).sum() * halves == value.size, case
    assert seen > 400


def test_exceptions_are_of_instructions_that_there_are():
    assert {(name, place) for _, name, _, _, place in _rows()} >= _PASSED_THROUGH | _NUMBER


def _computed(line, bits, *, mode=IEEE_MODE, kind="u32", gpu="gfx942"):
    """The first lane of v0 after an instruction on v2 (these bits), v4 (1.0) and v6 (1.0)."""
    waves = make_waves(vectors=64, v0=np.uint64(0), v2=np.full(64, bits))
    one = {2: np.float16, 4: np.float32, 8: np.float64}[np.asarray(bits).itemsize](1)
    for place in (4, 6):
        put(waves, place, np.full(64, one))
    set_scalar(waves, 2, (1 << 64) - 1, 2)
    with np.errstate(all="ignore"):
        generation = GENERATIONS[gpu]
        bind(replace(instruction(line, generation), mode=mode), generation)(waves)
    return int(get(waves, 0, kind)[0])


_SINGLE, _HALF, _DOUBLE = np.uint32(0x7F800001), np.uint16(0xFC01), np.uint64(0x7FF4000000000000)
_LINES = [
    ("v_cvt_f16_f32_e32 v0, v2", _SINGLE, 0x7E00),
    ("v_cvt_f16_f32_e64 v0, -v2", _SINGLE, 0xFE00),
    ("v_cvt_f16_f32_e32 v0, v2", np.uint32(0x7FA00000), 0x7F00),
    ("v_cvt_f32_f16_e32 v0, v2", _HALF, 0xFFC02000),
    ("v_cvt_f32_f16_sdwa v0, v2 src0_sel:WORD_0", _HALF, 0xFFC02000),
    ("v_cvt_f32_f64_e32 v0, v[2:3]", _DOUBLE, 0x7FE00000),
    ("v_cvt_pkrtz_f16_f32 v0, v2, v2", _SINGLE, 0x7E007E00),
    ("v_pack_b32_f16 v0, v2, v4", _HALF, 0x3C00FE01),
    ("v_pk_add_f16 v0, v2, v4", _HALF, 0xFE01),
    ("v_pk_fma_f16 v0, v4, v4, v2", _HALF, 0xFE01),
    ("v_fma_mix_f32 v0, v2, v4, v4 op_sel_hi:[1,0,0]", _HALF, 0xFFC02000),
    ("v_fma_mix_f32 v0, v4, v4, v2 op_sel_hi:[1,1,1]", _HALF, 0xFFC02000),
    ("v_fma_mixlo_f16 v0, v4, v4, v2 op_sel_hi:[0,0,0]", _SINGLE, 0x7E00),
    ("v_dot2_f32_f16 v0, v2, v4, v6", _HALF, 0xFFC02000),
    ("v_max_f32_e32 v0, v2, v2", _SINGLE, 0x7FC00001),
    ("v_mul_f32_e32 v0, 1.0, v2", _SINGLE, 0x7FC00001),
    ("v_mov_b32_e32 v0, v2", _SINGLE, 0x7F800001),
    ("v_mov_b32_dpp v0, v2 row_ror:1 row_mask:0xf bank_mask:0xf", _SINGLE, 0x7F800001),
    ("v_cndmask_b32_e64 v0, v2, v2, s[2:3]", _SINGLE, 0x7F800001),
    ("v_max_f32_e64 v0, v2, v2 clamp", _SINGLE, 0),
]


@pytest.mark.parametrize(("line", "bits", "expected"), _LINES)
def test_quiet_nans_keep_sign_and_payload_and_moves_keep_all_bits(line, bits, expected):
    found = _computed(line, bits)
    assert found == expected, hex(found)


@pytest.mark.parametrize(
    ("line", "first", "count"),
    [
        ("v_mfma_f32_32x32x1_2b_f32 v[0:31], v40, v41, v[0:31]", np.float32, 32),
        ("v_mfma_f64_4x4x4_4b_f64 v[0:1], v[40:41], v[42:43], v[0:1]", np.float64, 1),
    ],
)
def test_products_of_matrices_make_them_quiet(line, first, count):
    kind = {4: "f32", 8: "f64"}[np.dtype(first).itemsize]
    step = np.dtype(first).itemsize // 4
    waves = make_waves(vectors=64)
    for number in range(count):
        put(waves, number * step, np.full(64, _SIGNALLING[kind], _UNSIGNED[kind]))
    for place in (40, 42) if step == 2 else (40, 41):
        put(waves, place, np.full(64, first(1)))
    with np.errstate(all="ignore"):
        bind(instruction(line))(waves)
    quiet = _SIGNALLING[kind] | _QUIET_BIT[kind]
    assert (get(waves, 0, kind.replace("f", "u")) == quiet).all()


# IEEE_MODE cleared.


@pytest.mark.parametrize(
    ("line", "bits", "expected"),
    [
        ("v_add_f32_e32 v0, v2, v4", _SINGLE, 0x7F800001),
        ("v_mul_f32_e64 v0, v4, -v2", _SINGLE, 0xFF800001),
        ("v_fma_f32 v0, v4, v4, v2", _SINGLE, 0x7F800001),
        ("v_fma_f32 v0, v4, v4, v2", np.uint32(0x7FC00001), 0x7FC00001),
        ("v_cvt_f32_f16_e32 v0, v2", _HALF, 0xFF802000),
        ("v_cvt_f32_f64_e32 v0, v[2:3]", _DOUBLE, 0x7FA00000),
        # Its payload does not fit: it cannot stay a signalling one.
        ("v_cvt_f32_f64_e32 v0, v[2:3]", np.uint64(0x7FF0000000000001), 0x7FC00000),
        ("v_cvt_f16_f32_e32 v0, v2", np.uint32(0x7FA00000), 0x7F00),
        ("v_cvt_pkrtz_f16_f32 v0, v2, v2", np.uint32(0x7FA00000), 0x7F007F00),
        ("v_rcp_f16_e32 v0, v2", _HALF, 0xFC01),
        ("v_floor_f32_e32 v0, v2", _SINGLE, 0x7F800001),
        ("v_min_f32_e32 v0, v2, v4", _SINGLE, 0x3F800000),
        ("v_max_f32_e32 v0, v4, v2", _SINGLE, 0x3F800000),
        ("v_max_f32_e32 v0, v2, v2", _SINGLE, 0x7F800001),
        ("v_min3_f32 v0, v4, v4, v2", _SINGLE, 0x3F800000),
        ("v_med3_f32 v0, v2, v4, 2.0", _SINGLE, 0x3F800000),
        ("v_pk_max_f16 v0, v2, v4", _HALF, 0x3C00),
        ("v_div_scale_f32 v0, vcc, v2, v4, v6", _SINGLE, 0x7F800001),
    ],
)
def test_without_ieee_mode_they_go_through_and_choices_pass_over_them(line, bits, expected):
    found = _computed(line, bits, mode=_LOUD)
    assert found == expected, hex(found)


def test_without_ieee_mode_nothing_else_changes():
    """Every row computes the same of numbers and of quiet NaNs, choices of two NaNs apart."""
    numbers = [1.5, -0.0, np.inf, np.nan, 3.0, -2.25, 0.0, 1e-3]
    for gpu, name, row, kinds, place in _rows():
        del gpu
        if place != 0 or row.results[0] not in _UNSIGNED or set(kinds) - set(_UNSIGNED):
            continue
        values = [np.roll(np.array(numbers, NUMPY[kind]), n) for n, kind in enumerate(kinds)]
        with np.errstate(all="ignore"):
            usual, other = (
                function(*values)
                for function in (row.function, keep_signalling(name, row, row.function))
            )
        if len(row.results) > 1:
            usual, other = usual[0], other[0]
        assert np.asarray(usual).tobytes() == np.asarray(other).tobytes(), name
