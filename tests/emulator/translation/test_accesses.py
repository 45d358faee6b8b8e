"""Loads and stores by translated code, against the interpreter."""

from functools import partial

import numpy as np
import pytest

from refcomp.emulator.machine.memory import Arena
from refcomp.emulator.translation.printer import Variant, print_unit
from tests.emulator.snippets import LANE, found, make_waves, put, set_scalar
from tests.emulator.translation.translated import (
    Units,
    assert_same,
    compile_for,
    only_unit,
    run_both,
)

_SIZE = 4096
_PATTERNS = {
    "row": LANE,
    "reversed": LANE[::-1],
    "same": LANE * 0 + 7,
    "halves": LANE // 8,
    "scattered": LANE * 37 % 61,
}
_LINES = [
    ("global_load_dword v4, v0, s[4:5] offset:8", "v_mov_b32 v9, v4"),
    ("global_load_dwordx2 v[4:5], v[2:3], off", "v_mov_b32 v9, v4"),
    ("global_load_dwordx3 v[4:6], v[2:3], off offset:4", "v_mov_b32 v9, v4"),
    ("global_load_dwordx4 v[2:5], v[2:3], off offset:-4", "v_mov_b32 v9, v4"),
    ("global_load_ubyte v4, v0, s[4:5]", "global_load_sshort v5, v[2:3], off offset:2"),
    ("global_load_sbyte v4, v0, s[4:5]", "global_load_ushort v5, v[2:3], off offset:2"),
    ("ds_read_b32 v4, v0 offset:12", "ds_read_b64 v[6:7], v0 offset:16"),
    ("ds_read_b96 v[4:6], v0", "ds_read_b128 v[0:3], v0 offset:16"),
    ("ds_read2_b32 v[4:5], v0 offset0:3 offset1:9", "ds_read2st64_b32 v[6:7], v0 offset1:1"),
    ("ds_read2_b64 v[4:7], v0 offset1:2", "ds_read_u8 v8, v0 offset:3"),
    ("global_store_dword v0, v1, s[4:5] offset:8", "global_store_dwordx2 v[2:3], v[8:9], off"),
    ("global_store_dwordx3 v[2:3], v[6:8], off offset:4", "v_mov_b32 v8, v4"),
    ("global_store_dwordx4 v[2:3], v[6:9], off offset:4", "v_mov_b32 v6, v7"),
    ("global_store_byte v0, v1, s[4:5]", "global_store_short v[2:3], v6, off offset:2"),
    ("ds_write_b32 v0, v1 offset:12", "ds_write_b64 v0, v[6:7] offset:1024"),
    ("ds_write_b96 v0, v[6:8]", "ds_write_b8 v0, v9 offset:2048"),
    ("ds_write_b128 v0, v[6:9]", "ds_write_b16 v0, v9 offset:2048"),
    ("ds_write2_b32 v0, v1, v6 offset1:200", "ds_write2st64_b64 v0, v[6:7], v[8:9] offset0:2"),
    ("s_load_dwordx4 s[8:11], s[4:5], 0x20", "s_load_dword s12, s[4:5], s13"),
]


def _waves(pattern, *, watched, is_full, count=2, size=_SIZE, step=16):
    rng = np.random.default_rng(11)
    arena = Arena(1 << 16, is_watched=watched)
    addresses = []
    for label in ("before", "memory", "behind"):
        place = arena.allocate(size, label)
        arena.write(place.address, rng.integers(0, 256, size, np.uint8))
        addresses.append(place.address)
    address = addresses[1]
    # Groups of a wave each, and memory of its own for each: no wave depends on the others' order.
    waves = make_waves(count, groups=count, watched=watched, shared=_SIZE, arena=arena)
    waves.shared.data[:] = rng.integers(0, 256, len(waves.shared.data), np.uint8)
    if watched:
        waves.shared.known[:] = 0xFF
    offset = (step * _PATTERNS[pattern] + 1024 * np.arange(count)[:, None] % 3072).astype(np.uint32)
    for number in range(16):
        put(waves, number, rng.integers(0, 1 << 32, (count, 64), np.uint32))
    put(waves, 0, offset)
    put(waves, 2, offset + np.uint64(address + 64))
    set_scalar(waves, 4, address, 2)
    set_scalar(waves, 13, 24)
    if not is_full:
        waves.initialise_mask(rng.random((count, 64)) < 0.5)
    return waves


@pytest.mark.llvm
def test_accesses_agree_with_the_interpreter():
    units = Units()
    runs = [units.add(*lines) for lines in _LINES]
    makers = [
        partial(_waves, pattern, watched=watched, is_full=is_full)
        for watched in (True, False)
        for is_full in (True, False)
        for pattern in _PATTERNS
    ]
    compile_for(units, runs, *makers)
    for run, lines in zip(runs, _LINES, strict=True):
        for make in makers:
            try:
                interpreted, translated = run_both(run, make)
                assert_same(interpreted, translated)
            except AssertionError as error:
                error.add_note(f"{lines}, {make}")
                raise
            assert not found(interpreted) and not found(translated)
        assert not run.stops, lines


@pytest.mark.llvm
def test_lanes_that_overlap_store_in_the_interpreters_order():
    units = Units()
    cases = [
        ("global_store_dwordx2 v0, v[6:7], s[4:5]", "v_mov_b32 v9, v4"),
        ("global_store_dwordx3 v0, v[6:8], s[4:5]", "v_mov_b32 v9, v4"),
        ("global_store_dwordx4 v[2:3], v[6:9], off", "v_mov_b32 v9, v4"),
        ("ds_write_b64 v0, v[6:7]", "v_mov_b32 v9, v4"),
        ("ds_write_b96 v0, v[6:8]", "v_mov_b32 v9, v4"),
        ("ds_write_b128 v0, v[6:9]", "ds_write2_b32 v0, v5, v6 offset0:40 offset1:41"),
    ]
    runs = [units.add(*lines) for lines in cases]
    makers = [
        partial(_waves, pattern, watched=watched, is_full=is_full, step=4)
        for watched in (True, False)
        for is_full in (True, False)
        for pattern in ("row", "reversed", "scattered")
    ]
    compile_for(units, runs, *makers)
    for run in runs:
        for make in makers:
            interpreted, translated = run_both(run, make)
            assert_same(interpreted, translated)
        assert not run.stops


def _outside(change, *, watched, count=5):
    """Waves of which wave 3 does what only the interpreter can judge."""
    waves = _waves("row", watched=watched, is_full=True, count=count)
    change(waves)
    return waves


def _far(waves):
    waves.values.v[0, 3, 5] = 1 << 20


def _behind(waves):
    waves.values.v[2, 3, 5] += 1 << 16


def _into_the_next(waves):
    waves.values.v[0, 3] += 2 * 4096  # another allocation is in bounds, too


@pytest.mark.llvm
@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize(
    ("lines", "change", "findings"),
    [
        (("ds_read_b32 v4, v0", "v_add_u32 v5, v5, v4"), _far, 1),
        (("v_add_u32 v5, v5, v0", "ds_write_b32 v0, v5"), _far, 1),
        (("global_load_dword v4, v[2:3], off", "v_add_u32 v5, v5, v4"), _behind, 1),
        (("v_add_u32 v5, v5, v0", "global_store_dword v[2:3], v5, off"), _behind, 1),
        (("global_load_dword v4, v0, s[4:5]", "v_add_u32 v5, v5, v4"), _into_the_next, 0),
    ],
)
def test_what_is_out_of_bounds_is_reported_by_the_interpreter(lines, change, findings, watched):
    units = Units()
    run = units.add(*lines)
    make = partial(_outside, change, watched=watched)
    compile_for(units, [run], make)
    interpreted, translated = run_both(run, make)
    assert_same(interpreted, translated)
    assert list(map(str, found(interpreted))) == list(map(str, found(translated)))
    assert len(found(translated)) == findings
    assert run.stops == findings


def _negative(waves, wave):
    _set_addresses(waves, wave, 0x8000_1000_0000_0000)


def _last(waves, wave):
    _set_addresses(waves, wave, 2**64 - 4)


def _flipped(waves, wave):
    waves.values.v[3, wave, 48:] ^= 0x80000000  # after lanes that found the window


def _set_addresses(waves, wave, address):
    """Set the addresses of a wave, in vector and in scalar registers."""
    for number in range(2):
        word = np.uint32(address >> (32 * number) & 0xFFFFFFFF)
        waves.values.v[2 + number, wave] = word
        waves.values.s[4 + number, wave] = word


def _flipped_base(waves, wave):
    waves.values.s[4, wave] += 256  # within the allocation
    waves.values.s[5, wave] ^= 0x80000000


def _wrapped(change, wave, *, watched):
    waves = _waves("row", watched=watched, is_full=True, count=2)
    change(waves, wave)
    return waves


@pytest.mark.llvm
@pytest.mark.parametrize("watched", [True, False])
def test_addresses_beyond_half_of_all_are_out_of_bounds(watched):
    # Differences of such addresses and those of allocations do not fit into signed 64 bits.
    units = Units()
    vectors = [_flipped, _negative, _last]
    scalars = [_flipped_base, _negative, _last]
    cases = [
        (units.add("global_load_dword v4, v[2:3], off", "v_mov_b32 v9, v4"), vectors),
        (units.add("global_load_dword v4, v[2:3], off offset:8", "v_mov_b32 v9, v4"), vectors),
        (units.add("global_store_dword v[2:3], v4, off", "v_mov_b32 v9, v5"), vectors),
        (units.add("global_load_dword v4, v0, s[4:5]", "v_mov_b32 v9, v4"), scalars),
        (units.add("global_store_dwordx2 v0, v[4:5], s[4:5]", "v_mov_b32 v9, v5"), scalars),
    ]
    runs = [run for run, _ in cases]
    compile_for(units, runs, partial(_waves, "row", watched=watched, is_full=True))
    for run, changes in cases:
        for change in changes:
            for wave in range(2):
                make = partial(_wrapped, change, wave, watched=watched)
                interpreted, translated = run_both(run, make)
                assert_same(interpreted, translated)
                (finding,) = map(str, found(interpreted))
                assert "out of bounds" in finding
                assert [finding] == list(map(str, found(translated)))
        assert run.stops == 2 * len(changes)


def _with_gap(where, *, is_full=True):
    waves = _waves("row", watched=True, is_full=is_full, count=5)
    if where == "shared":
        waves.shared.known[64 + waves.shared_base[3, 0]] = 0xFE
    elif where == "global":
        waves.around.arena.bytes.known[8192 + 64 : 8192 + 68] = 0
    else:
        waves.shadow.v[5, 3, 20] = 0x10
        waves.dirty.add(129 + 5)
    return waves


@pytest.mark.llvm
@pytest.mark.parametrize("is_full", [True, False])
@pytest.mark.parametrize("where", ["shared", "global", "register"])
def test_undefined_bits_are_left_to_the_interpreter(where, is_full):
    units = Units()
    run = units.add(
        "ds_read_b32 v4, v0", "global_load_dword v6, v0, s[4:5]", "v_add_u32 v5, v5, v4"
    )
    make = partial(_with_gap, where, is_full=is_full)
    compile_for(units, [run], make)
    interpreted, translated = run_both(run, make)
    assert_same(interpreted, translated)
    assert interpreted.dirty <= translated.dirty


def test_a_store_is_made_after_all_checks():
    unit = only_unit("global_store_dword v0, v1, s[4:5]", "ds_read_b32 v4, v0")
    text = print_unit(unit, Variant(False, True, False), "unit0", 8)
    assert text.index("masked.scatter") > text.rindex("label %bail")
