"""Instructions on bytes, held against Python's own integers."""

import numpy as np
import pytest

from tests.emulator.snippets import get, make_waves, put, run


def _bytes(x):
    return [x >> 8 * n & 255 for n in range(4)]


def _sad(a, b):
    return sum(abs(x - y) for x, y in zip(_bytes(a), _bytes(b), strict=True))


def _masked(a, b):
    return sum(abs(x - y) for x, y in zip(_bytes(a), _bytes(b), strict=True) if y)


def _quad(one, a, b, c):
    parts = [one(a >> 8 * n & 0xFFFFFFFF, b) + (c >> 16 * n & 0xFFFF) & 0xFFFF for n in range(4)]
    return sum(part << 16 * n for n, part in enumerate(parts))


def _average(a, b, c):
    parts = zip(_bytes(a), _bytes(b), _bytes(c), strict=True)
    return sum((x + y + (z & 1) >> 1) << 8 * n for n, (x, y, z) in enumerate(parts))


_CASES = {
    "v_sad_u8": lambda a, b, c: _sad(a, b) + c,
    "v_msad_u8": lambda a, b, c: _masked(a, b) + c,
    "v_sad_hi_u8": lambda a, b, c: (_sad(a, b) << 16) + c,
    "v_sad_u16": lambda a, b, c: abs((a & 0xFFFF) - (b & 0xFFFF)) + abs((a >> 16) - (b >> 16)) + c,
    "v_sad_u32": lambda a, b, c: abs(a - b) + c,
    "v_lerp_u8": _average,
}


def _drawn(count):
    rng = np.random.default_rng(6)
    values = rng.integers(0, 1 << 32, (count, 64), dtype=np.uint64)
    values[:, ::5] &= rng.choice([0xFF, 0xFF00FF00, 0], (count, 13)).astype(np.uint64)
    return values


@pytest.mark.parametrize("name", _CASES)
def test_words(name):
    values = _drawn(3).astype(np.uint32)
    waves = make_waves()
    for n in range(3):
        put(waves, 1 + n, values[n])
    run(waves, f"{name} v0, v1, v2, v3")
    wanted = [_CASES[name](*map(int, lane)) & 0xFFFFFFFF for lane in values.T]
    assert get(waves, 0).tolist() == wanted


@pytest.mark.parametrize(
    ("name", "one"), [("v_qsad_pk_u16_u8", _sad), ("v_mqsad_pk_u16_u8", _masked)]
)
def test_four_at_once(name, one):
    low, high, b, more = _drawn(4)
    waves = make_waves()
    a, c = low | high << np.uint64(32), more | low << np.uint64(32)
    put(waves, 2, a)
    put(waves, 4, b.astype(np.uint32))
    put(waves, 6, c)
    run(waves, f"{name} v[0:1], v[2:3], v4, v[6:7]")
    wanted = [_quad(one, *map(int, lane)) for lane in zip(a, b, c, strict=True)]
    assert get(waves, 0, "u64").tolist() == wanted
