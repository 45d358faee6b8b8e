"""Updates of memory by many lanes at once, with and without their old values."""

import numpy as np
import pytest

from refcomp.emulator.instructions.memory.atomics import update_in_order
from tests.emulator.snippets import (
    LANE,
    filled_memory,
    found,
    get,
    make_waves,
    put,
    run,
    set_mask,
    set_scalar,
)


def _run(line, start, operand, kind=np.uint32, lanes=64):
    """What is left in memory, and the old values, when lanes update two numbers in turn."""
    arena, place = filled_memory(np.full(2, start, kind).tobytes(), 16)
    waves = make_waves(arena=arena)
    set_scalar(waves, 2, place.address, 2)
    put(waves, 1, (LANE % 2 * np.dtype(kind).itemsize).astype(np.uint32))
    put(waves, 4, np.asarray(operand, kind))
    set_mask(waves, lanes > LANE)
    run(waves, line)
    left = arena.read(place.address, 2 * np.dtype(kind).itemsize).view(kind)
    return left.tolist(), waves


@pytest.mark.parametrize(
    ("name", "start", "operand", "left"),
    [
        ("add", 5, LANE, [5 + 992, 5 + 1024]),
        ("sub", 2000, LANE, [2000 - 992, 2000 - 1024]),
        ("umax", 7, LANE, [62, 63]),
        ("smin", 7, LANE - 32, [2**32 - 32, 2**32 - 31]),
        ("or", 0, LANE, [62, 63]),
        ("and", 0xFF, np.where(LANE < 60, 0x0F, 0xF8), [8, 8]),
        ("xor", 0, LANE, [0, 0]),
        ("inc", 0, np.full(64, 9), [2, 2]),
        ("dec", 3, np.full(64, 9), [1, 1]),
        ("swap", 0, LANE, [62, 63]),
    ],
)
def test_updates_of_integers(name, start, operand, left):
    operand = np.asarray(operand).astype(np.int64).astype(np.uint32)
    assert _run(f"global_atomic_{name} v1, v4, s[2:3]", start, operand)[0] == left


def test_old_values_come_back_in_order():
    left, waves = _run("global_atomic_add v0, v1, v4, s[2:3] sc0", 10, np.ones(64), lanes=6)
    assert left == [13, 13] and get(waves, 0)[:6].tolist() == [10, 10, 11, 11, 12, 12]
    left, waves = _run(
        "global_atomic_smax_x2 v[6:7], v1, v[4:5], s[2:3] sc0", -5, LANE, np.int64, 4
    )
    assert left == [2, 3] and get(waves, 6, "i64")[:4].tolist() == [-5, -5, 0, 1]


def test_floats():
    left, _ = _run("global_atomic_add_f32 v1, v4, s[2:3]", 0.5, np.ones(64), np.float32)
    assert left == [32.5, 32.5]
    left, _ = _run("global_atomic_max_f64 v1, v[4:5], s[2:3]", 0.5, LANE / 2, np.float64)
    assert left == [31.0, 31.5]


def test_exchange_where_equal():
    arena, place = filled_memory(b"\7\0\0\0")
    data = (LANE + 100).astype(np.uint32)
    waves = make_waves(arena=arena, v1=np.uint32(0), v4=data, v5=np.uint32(7))
    set_scalar(waves, 2, place.address, 2)
    run(waves, "global_atomic_cmpswap v0, v1, v[4:5], s[2:3] sc0")
    assert get(waves, 0).tolist() == [7] + [100] * 63
    assert arena.read(place.address, 4).view(np.uint32).tolist() == [100]


def test_shared_memory():
    waves = make_waves(shared=16, v1=np.uint32(0), v2=LANE.astype(np.uint32))
    run(waves, "ds_write_b32 v1, v1 offset:4", "ds_add_u32 v1, v2 offset:4")
    run(waves, "ds_max_rtn_i32 v3, v1, v2 offset:4", "ds_read_b32 v4, v1 offset:4")
    assert get(waves, 3)[0] == 2016 and get(waves, 4)[0] == 2016
    put(waves, 5, np.full(64, 2016, np.uint32))
    run(waves, "ds_cmpst_rtn_b32 v6, v1, v5, v2 offset:4")
    assert get(waves, 6).tolist() == [2016] + [0] * 63 and not found(waves)
    run(waves, "ds_add_f32 v1, v9 offset:4", "ds_add_u32 v1, v2 offset:8")
    assert [f.what for f in found(waves)] == [
        "an update of memory depends on bits that nothing wrote"
    ] * 2


def test_lanes_update_one_after_the_other():
    memory = np.zeros(8, np.uint8)
    index = np.array([4, 0, 4, 4])
    old = update_in_order(memory, index, lambda a, b: a * 2 + b, [np.ones(4, np.uint32)])
    assert old.tolist() == [0, 0, 1, 3] and memory.view(np.uint32).tolist() == [1, 7]


def _shared(line, start, *operands):
    """What is left in shared memory, and the old value, of one lane."""
    waves = make_waves(shared=16, v0=np.uint32(0))
    for number, operand in enumerate((start, *operands)):
        put(waves, 2 + 2 * number, np.full(64, operand))
    set_mask(waves, LANE == 0)
    wide = "b64" if np.asarray(start).itemsize == 8 else "b32"
    data = "v[2:3]" if wide == "b64" else "v2"
    result = "v[10:11]" if wide == "b64" else "v10"
    run(waves, f"ds_write_{wide} v0, {data}", line, f"ds_read_{wide} {result}, v0")
    return waves


def test_updates_by_two_operands():
    waves = _shared(
        "ds_mskor_rtn_b32 v12, v0, v4, v6", np.uint32(0xFF), np.uint32(0x0F), np.uint32(0x100)
    )
    assert (get(waves, 12)[0], get(waves, 10)[0]) == (0xFF, 0x1F0)
    waves = _shared("ds_wrap_rtn_b32 v12, v0, v4, v6", np.uint32(7), np.uint32(5), np.uint32(9))
    assert (get(waves, 12)[0], get(waves, 10)[0]) == (7, 2)
    for start, left in ((4, 13), (5, 0)):
        operands = np.array([start, 5, 9], np.uint32)
        waves = _shared("ds_wrap_rtn_b32 v12, v0, v4, v6", *operands)
        assert get(waves, 10)[0] == left
    waves = _shared(
        "ds_cmpst_rtn_f64 v[12:13], v0, v[4:5], v[6:7]", np.float64(0), -np.float64(0), 3.5
    )
    assert get(waves, 10, "f64")[0] == 3.5  # -0 equals 0
