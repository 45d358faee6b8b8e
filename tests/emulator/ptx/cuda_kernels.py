"""The kernels of `cuda_kernels.cu`: their arguments, launches and results by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.emulator.ptx.cuda_cases import Case, front_sorted

Array = Any
_RNG = np.random.default_rng(7)


def _floats(*shape: int) -> Array:
    return _RNG.standard_normal(shape).astype(np.float32)


def _ints(low: int, high: int, *shape: int) -> Array:
    return _RNG.integers(low, high, shape).astype(np.int32)


def _zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


def _saxpy(n: Any, a: Any, x: Array, y: Array) -> None:
    y[:n] = np.float64(a) * x[:n] + y[:n]


def _grid_stride(n: Any, x: Array, y: Array) -> None:
    y[:n] = np.float64(1) * x[:n] * x[:n] - 1


def _block_sum(n: Any, x: Array, sums: Array) -> None:
    sums[:] = [x[128 * k : min(128 * (k + 1), n)].sum(dtype=np.float64) for k in range(len(sums))]


def _shuffled_sum(n: Any, x: Array, total: Array) -> None:
    total[0] = x[:n].sum(dtype=np.float64)


def _inclusive_scan(n: Any, x: Array, y: Array) -> None:
    y[:n] = np.cumsum(x[:n])


def _warp_scan(n: Any, x: Array, y: Array) -> None:
    for first in range(0, n, 32):
        y[first : min(first + 32, n)] = np.cumsum(x[first : min(first + 32, n)])


def _histogram(n: Any, x: Array, counts: Array) -> None:
    counts += np.bincount(x[:n], minlength=256).astype(np.uint32)


def _transpose(rows: Any, columns: Any, x: Array, y: Array) -> None:
    y[:] = x.T


def _row_softmax(columns: Any, x: Array, y: Array) -> None:
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    y[:] = e / e.sum(axis=1, keepdims=True)


def _tiled_matmul(n: Any, a: Array, b: Array, c: Array) -> None:
    c[:] = a.astype(np.float64) @ b


def _stencil(n: Any, x: Array, y: Array) -> None:
    padded = np.pad(x[:n], 1).astype(np.float64)
    y[:n] = padded[:-2] + 2 * padded[1:-1] + padded[2:]


def _last_block_sum(n: Any, x: Array, parts: Array, total: Array) -> None:
    parts[:] = [x[64 * k : min(64 * (k + 1), n)].sum() for k in range(len(parts))]
    total[0] = parts.sum()


def _compact(n: Any, x: Array, kept: Array, count: Array) -> None:
    found = x[:n][x[:n] % 3 == 0]
    kept[: len(found)] = found
    count[0] = len(found)


def _bitonic_sort(x: Array) -> None:
    x.sort()


def _greatest_divisors(n: Any, a: Array, b: Array, c: Array) -> None:
    c[:] = np.gcd(a, b)


def _largest_of_each(columns: Any, x: Array, values: Array, places: Array) -> None:
    values[:], places[:] = x.max(axis=1), x.argmax(axis=1)


def _half_products(n: Any, x: Array, y: Array, z: Array) -> None:
    z[:] = x * y + np.float16(0.5)


def _local_rank(n: Any, x: Array, rank: Array) -> None:
    rank[:] = np.argsort(x, axis=1, kind="stable")


def _filter(n: Any, x: Array, y: Array) -> None:
    y[:n] = np.convolve(x[:n].astype(np.float64), [0.1, 0.2, 0.4, 0.2, 0.1], "same")


def _spin_lock(lock: Array, counter: Array) -> None:
    counter[0] += 8


def _powers(n: Any, x: Array, y: Array) -> None:
    y[:] = np.abs(x) ** 1.5 + np.log(1 + x * x) + np.sin(x)


def _long_division(n: Any, a: Array, b: Array, q: Array) -> None:
    for i, (p, s) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        whole = abs(p) // abs(s) * (1 if (p < 0) == (s < 0) else -1) if s else 0
        q[i] = whole + 2 * (p - whole * s) if s else -1


def _bits(n: Any, x: Array, y: Array) -> None:
    for i, v in enumerate(x.tolist()):
        lowest = (v & -v).bit_length()
        y[i] = v.bit_count() + 100 * (32 - v.bit_length()) + 10000 * lowest + (v >> 31) * 1000000


def _dot4(n: Any, x: Array, y: Array, z: Array) -> None:
    a, b = (v.view(np.int8).reshape(-1, 4).astype(np.int32) for v in (x, y))
    z[:] = (a * b).sum(axis=1) + 7


def _int(value: int) -> np.int32:
    return np.int32(value)


_HALVES = [_floats(40).astype(np.float16) for _ in range(2)]
_LONGS = [_RNG.integers(-(2**40), 2**40, 50), _RNG.integers(-9, 10, 50)]

_TO_COMPACT = _ints(1, 99, 250)

CASES = [
    Case(
        "saxpy",
        (4, 1, 1),
        (64, 1, 1),
        (_int(200), np.float32(1.5), _floats(200), _floats(200)),
        _saxpy,
        1e-6,
    ),
    Case(
        "grid_stride",
        (2, 1, 1),
        (96, 1, 1),
        (_int(1000), _floats(1000), _zeros(1000)),
        _grid_stride,
        1e-5,
    ),
    Case(
        "block_sum",
        (3, 1, 1),
        (128, 1, 1),
        (_int(300), _floats(300), _zeros(3)),
        _block_sum,
        1e-4,
        shared_bytes=512,
    ),
    Case(
        "shuffled_sum",
        (3, 1, 1),
        (160, 1, 1),
        (_int(450), _floats(450), _zeros(1)),
        _shuffled_sum,
        1e-4,
    ),
    Case(
        "inclusive_scan",
        (1, 1, 1),
        (256, 1, 1),
        (_int(200), _ints(-50, 50, 200), _zeros(200, dtype=np.int32)),
        _inclusive_scan,
    ),
    Case(
        "warp_scan",
        (2, 1, 1),
        (96, 1, 1),
        (_int(170), _ints(-50, 50, 170), _zeros(170, dtype=np.int32)),
        _warp_scan,
    ),
    Case(
        "histogram",
        (3, 1, 1),
        (100, 1, 1),
        (_int(3000), _RNG.integers(0, 256, 3000).astype(np.uint8), _zeros(256, dtype=np.uint32)),
        _histogram,
    ),
    Case(
        "transpose",
        (3, 2, 1),
        (16, 16, 1),
        (_int(30), _int(40), _floats(30, 40), _zeros(40, 30)),
        _transpose,
    ),
    Case(
        "row_softmax",
        (5, 1, 1),
        (64, 1, 1),
        (_int(100), _floats(5, 100), _zeros(5, 100)),
        _row_softmax,
        1e-5,
    ),
    Case(
        "tiled_matmul",
        (3, 3, 1),
        (16, 16, 1),
        (_int(40), _floats(40, 40), _floats(40, 40), _zeros(40, 40)),
        _tiled_matmul,
        1e-4,
    ),
    Case("stencil", (3, 1, 1), (128, 1, 1), (_int(300), _floats(300), _zeros(300)), _stencil, 1e-5),
    Case(
        "last_block_sum",
        (9, 1, 1),
        (64, 1, 1),
        (_int(550), _ints(-99, 99, 550), _zeros(9, dtype=np.int32), _zeros(1, dtype=np.int32)),
        _last_block_sum,
    ),
    Case(
        "compact",
        (4, 1, 1),
        (64, 1, 1),
        (_int(250), _TO_COMPACT, _zeros(251, dtype=np.int32), _zeros(1, dtype=np.int32)),
        _compact,
        order=front_sorted(251, int((_TO_COMPACT % 3 == 0).sum())),
    ),
    Case("bitonic_sort", (1, 1, 1), (128, 1, 1), (_ints(-999, 999, 128),), _bitonic_sort),
    Case(
        "common_divisors",
        (1, 1, 1),
        (64, 1, 1),
        (_int(60), _ints(1, 5000, 60), _ints(1, 5000, 60), _zeros(60, dtype=np.int32)),
        _greatest_divisors,
    ),
    Case(
        "largest_of_each",
        (1, 1, 1),
        (20, 1, 1),
        (_int(7), _RNG.standard_normal((20, 7)), np.zeros(20), _zeros(20, dtype=np.int32)),
        _largest_of_each,
    ),
    Case(
        "half_products",
        (1, 1, 1),
        (64, 1, 1),
        (_int(40), *_HALVES, _zeros(40, dtype=np.float16)),
        _half_products,
    ),
    Case(
        "local_rank",
        (1, 1, 1),
        (40, 1, 1),
        (_int(40), _floats(40, 8), _zeros(40, 8, dtype=np.int32)),
        _local_rank,
    ),
    Case("filter", (2, 1, 1), (64, 1, 1), (_int(100), _floats(100), _zeros(100)), _filter, 1e-4),
    Case(
        "spin_lock",
        (2, 1, 1),
        (128, 1, 1),
        (_zeros(1, dtype=np.int32), _zeros(1, dtype=np.int32)),
        _spin_lock,
    ),
    Case(
        "powers",
        (1, 1, 1),
        (64, 1, 1),
        (_int(50), _RNG.standard_normal(50), np.zeros(50)),
        _powers,
        1e-12,
    ),
    Case(
        "long_division",
        (1, 1, 1),
        (64, 1, 1),
        (_int(50), *_LONGS, _zeros(50, dtype=np.int64)),
        _long_division,
    ),
    Case(
        "bits",
        (1, 1, 1),
        (64, 1, 1),
        (_int(50), _RNG.integers(0, 2**32, 50).astype(np.uint32), _zeros(50, dtype=np.uint32)),
        _bits,
    ),
    Case(
        "dot4",
        (1, 1, 1),
        (64, 1, 1),
        (
            _int(50),
            _ints(-(2**31), 2**31, 50),
            _ints(-(2**31), 2**31, 50),
            _zeros(50, dtype=np.int32),
        ),
        _dot4,
    ),
]
