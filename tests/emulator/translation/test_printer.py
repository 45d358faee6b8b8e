"""Each translated instruction against the interpreter, on random operands."""

import zlib
from functools import cache, partial

import numpy as np
import pytest

from refcomp.emulator.generations.generation import GENERATIONS
from refcomp.emulator.machine.arrays import bits_of, mask_kind
from refcomp.emulator.translation.printer import Variant, print_module, print_unit
from refcomp.emulator.translation.texts import load_texts
from tests.emulator.snippets import make_waves, put
from tests.emulator.translation.translated import (
    Units,
    assert_same,
    compile_for,
    only_unit,
    run_both,
)

_SMALL = [0, 1, 2, 31, 32, 63, 0xFFFF, 0x10000, 0xFFFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
_ONES = [0x3F800000, 0xBF800000, 0x3F000000, 0x40200000, 0x4F000000, 0xCF000000]
_NANS = [0x7FC00000, 0x7F800001, 0xFFA00000]
_LIMITS = [0x7F800000, 0xFF800000, 0x80000001, 0x007FFFFF, 0x00800000]
_SPECIAL = np.array([*_SMALL, *_ONES, *_NANS, *_LIMITS], np.uint32)
_WAVES = 3
_VECTORS = 24


def _lanes(of):
    return of.usual_lanes


def _rows(of):
    """A line of assembly for each vector instruction that has a text, and a row on the GPU."""
    texts = load_texts(8)
    lines = {}
    for name, row in of.vector.items():
        if texts.instruction(name) is None or name in of.special:
            continue
        own = mask_kind(_lanes(of))
        kinds = [own if kind == "mask" else kind for kind in (*row.results, *row.sources)]
        operands = []
        for number, kind in enumerate(kinds):
            if kind.startswith("mask"):
                first = 20 + 2 * number
                operands.append(f"s[{first}:{first + 1}]" if _lanes(of) == 64 else f"s{first}")
            elif bits_of(kind) == 64:
                operands.append(f"v[{2 * number}:{2 * number + 1}]")
            else:
                operands.append(f"v{2 * number}")
        lines[name] = f"{name} {', '.join(operands)}"
    return lines


def _scalar_rows(of):
    texts = load_texts(1)
    lines = {}
    for name, row in of.scalar.items():
        if texts.instruction(name) is None:
            continue
        operands = []
        for number, kind in enumerate([k for k in (*row.results, *row.sources) if k != "scc"]):
            first = 4 + 4 * number
            is_last = number == len(row.results) - ("scc" in row.results) + len(row.sources) - 1
            if name.startswith(("s_cmpk", "s_movk", "s_addk", "s_mulk")) and is_last:
                operands.append("0x8123")
            else:
                operands.append(f"s[{first}:{first + 1}]" if bits_of(kind) == 64 else f"s{first}")
        lines[name] = f"{name} {', '.join(operands)}"
    return lines


@cache  # a row is run in several variants
def _draw(name, lanes):
    """The generator for a row, and what vector and scalar registers hold: any or special bits."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    drawn = []
    for shape in ((_VECTORS, _WAVES, lanes), (106, _WAVES)):
        bits = rng.integers(0, 1 << 32, shape, np.uint32)
        drawn.append(np.where(rng.random(shape) < 0.5, bits, rng.choice(_SPECIAL, shape)))
    return rng.bit_generator.state, *drawn


def _waves(name, of, *, is_full, watched=False):
    lanes = _lanes(of)
    state, vectors, scalars = _draw(name, lanes)
    rng = np.random.default_rng()
    rng.bit_generator.state = state
    waves = make_waves(_WAVES, watched=watched, vectors=_VECTORS, lanes=lanes)
    for number, values in enumerate(vectors):
        put(waves, number, values)
    for number, values in enumerate(scalars):
        waves.initialise_scalar(number, values)
    waves.values.scc[:] = rng.random(_WAVES) < 0.5
    if watched:
        waves.shadow.scc[:] = False
        waves.dirty.clear()
        waves.dirty.add(129 + 22)  # a register that no row uses
    if not is_full:
        waves.initialise_mask(rng.random((_WAVES, lanes)) < 0.4)
    return waves


@pytest.mark.llvm
@pytest.mark.parametrize("gpu", GENERATIONS)
@pytest.mark.parametrize("kind", ["vector", "scalar"])
def test_rows_agree_with_the_interpreter(gpu, kind):
    of = GENERATIONS[gpu]
    rows = _rows(of) if kind == "vector" else _scalar_rows(of)
    assert len(rows) > 50
    units = Units(of, _lanes(of))
    nothing = "v_mov_b32 v23, v22" if kind == "vector" else "s_mov_b32 s99, s98"
    runs = {name: units.add(nothing, line) for name, line in rows.items()}
    cases = [(True, False), (False, False), (True, True), (False, True)]
    for is_full, watched in cases:
        for name, run in runs.items():
            with np.errstate(all="ignore"):
                run(_waves(name, of, is_full=is_full, watched=watched))
    units.translator.compile()
    for is_full, watched in cases:
        for name, run in runs.items():
            maker = partial(_waves, name, of, is_full=is_full, watched=watched)
            table = of.vector if kind == "vector" else of.scalar
            result = table[name].results[0]
            try:
                both = run_both(run, maker)
                assert_same(*both, result=result if result in ("f16", "f32", "f64") else "")
            except AssertionError as error:
                error.add_note(f"{rows[name]}, all lanes: {is_full}, checked: {watched}")
                raise
            assert not run.stops


def test_text_is_the_same_each_time_and_names_nothing_of_the_kernel():
    unit = only_unit("v_add_f32 v0, v1, v2", "v_mul_f32 v3, v0, v0")
    variant = Variant(is_masked=True, is_checked=True, has_shadow=True)
    texts = [print_module([print_unit(unit, variant, "unit0", 8)], 8) for _ in range(2)]
    assert texts[0] == texts[1]
    assert "fmul <8 x float>" in texts[0] and "snippet" not in texts[0]


def test_masks_are_read_by_scalar_instructions_after_the_loop_over_lanes():
    unit = only_unit("v_cmp_lt_u32 vcc, v0, v1", "s_and_b64 s[4:5], vcc, s[6:7]")
    text = print_unit(unit, Variant(False, False, False), "unit0", 8)
    assert text.index("loop1.after:") < text.index("and i64")


@pytest.mark.llvm
def test_masks_pass_between_vector_and_scalar_instructions():
    units = Units()
    run = units.add(
        "v_cmp_lt_u32 vcc, v0, v1",
        "v_cndmask_b32 v2, v0, v1, vcc",
        "s_and_b64 s[4:5], vcc, s[6:7]",
        "s_andn2_b64 vcc, vcc, s[4:5]",
        "v_addc_co_u32 v3, vcc, v2, v1, vcc",
        "v_mov_b32 v0, vcc_lo",
        "v_cndmask_b32 v1, v3, v2, s[4:5]",
    )
    makers = [
        partial(_waves, "masks", units.of, is_full=is_full, watched=watched)
        for is_full in (True, False)
        for watched in (True, False)
    ]
    compile_for(units, [run], *makers)
    for make in makers:
        assert_same(*run_both(run, make))
