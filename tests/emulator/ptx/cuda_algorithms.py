"""The kernels of `cuda_algorithms.cu`: their arguments, launches and results by numpy.

Each function computes what the kernel of its name does.
"""

import math
import struct
import zlib

import numpy as np

from tests.emulator.ptx.cuda_cases import (
    Cases,
    Draws,
    bf16,
    from_bf16,
    front_sorted,
    sum_bound,
    zeros,
)

_DRAWS = Draws(13)
_floats, _ints = _DRAWS.floats, _DRAWS.ints
ALGORITHMS = Cases()


def _sorted(v):
    return np.sort(v, axis=None)


@ALGORITHMS.add(3, 32, np.int32(70), _floats(3, 70), zeros(3, 70, dtype="f"), tolerance=1e-5)
def online_softmax(columns, x, y):
    e = np.exp(x.astype(float) - x.max(axis=1, keepdims=True))
    y[:] = e / e.sum(axis=1, keepdims=True)


@ALGORITHMS.add(
    2,
    (32, 2),
    np.int32(70),
    np.float32(1e-5),
    _floats(4, 70),
    _floats(70),
    _floats(70),
    zeros(4, 70, dtype="f"),
    tolerance=1e-4,
)
def layer_norm(columns, epsilon, x, gain, bias, y):
    wide = x.astype(float)
    centred = wide - wide.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(axis=1, keepdims=True) + epsilon)
    y[:] = centred * scale * gain + bias


@ALGORITHMS.add(
    3, 128, np.int32(600), _floats(3, 600), _floats(600), zeros(3, dtype="f"), tolerance=1e-4
)
def matrix_vector(columns, a, x, y):
    y[:] = a.astype(float) @ x


_LEFT_MATRIX, _RIGHT_MATRIX = _floats(32, 32), _floats(32, 32)


@ALGORITHMS.add(
    1,
    64,
    np.int32(32),
    _LEFT_MATRIX,
    _RIGHT_MATRIX,
    zeros(32, 32, dtype="f"),
    tolerance=1e-6,
    absolute=sum_bound(_LEFT_MATRIX, _RIGHT_MATRIX.T),
)
def blocked_matmul(n, a, b, c):
    c[:] = a.astype(float) @ b


@ALGORITHMS.add(
    32,
    32,
    np.int32(32),
    _ints(-128, 128, 32, 32, dtype=np.int8),
    _ints(-128, 128, 32, 32, dtype=np.int8),
    zeros(32, 32),
)
def int8_matmul(n, a, b, c):
    c[:] = a.astype(np.int32) @ b.astype(np.int32).T


_FACTORS = np.array([1.5, -0.5], np.float16)


@ALGORITHMS.add(
    2,
    64,
    np.int32(100),
    _FACTORS.view(np.uint32)[0],
    _floats(100, 2, dtype=np.float16),
    _floats(100, 2, dtype=np.float16),
)
def half_pairs(n, a, x, y):
    # A product of two f16 and a sum with a third one are exact in f64.
    y[:] = np.minimum((_FACTORS * x.astype(float) + y).astype(np.float16), np.float16(1))


@ALGORITHMS.add(
    2, 64, np.int32(100), bf16(_floats(100)), bf16(_floats(100)), zeros(100, dtype=np.uint16)
)
def bf16_products(n, x, y, z):
    z[:] = bf16(from_bf16(x) * from_bf16(y) + np.float32(0.25))


@ALGORITHMS.add(
    (2, 3),
    (16, 8),
    np.int32(20),
    np.int32(30),
    _floats(20, 30),
    zeros(20, 30, dtype="f"),
    tolerance=1e-4,
)
def diffusion_2d(rows, columns, x, y):
    p = np.pad(x.astype(float), 1, mode="edge")
    near = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
    y[:] = 0.5 * x + 0.125 * near


@ALGORITHMS.add(
    (2, 2), (8, 8), np.int32(12), _floats(12, 12, 12), zeros(12, 12, 12, dtype="f"), tolerance=1e-4
)
def laplace_3d(size, x, y):
    inner = slice(1, -1)
    x = x.astype(float)
    total = -6 * x[inner, inner, inner]
    for axis in range(3):
        for step in (-1, 1):
            total += np.roll(x, step, axis)[inner, inner, inner]
    y[inner, inner, inner] = total


@ALGORITHMS.add(
    (2, 3),
    (16, 8),
    np.int32(20),
    np.int32(30),
    _ints(0, 256, 20, 30, dtype=np.uint8),
    zeros(20, 30, dtype=np.uint8),
)
def blurred(rows, columns, x, y):
    p = np.pad(x.astype(np.int32), 1)
    line = p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
    y[:] = (line[:-2] + 2 * line[1:-1] + line[2:]) // 16


_BEGINS = np.concatenate([[0], np.cumsum(_ints(0, 60, 40))]).astype(np.int32)
_COLUMNS = _ints(0, 50, int(_BEGINS[-1]))


def _sparse(begins, columns, values, x, y):
    for row in range(40):
        some = slice(begins[row], begins[row + 1])
        y[row] = (values[some].astype(float) * x[columns[some]]).sum()


@ALGORITHMS.add(
    2,
    32,
    np.int32(40),
    _BEGINS,
    _COLUMNS,
    _floats(len(_COLUMNS), dtype=float),
    _floats(50, dtype=float),
    zeros(40, dtype=float),
    tolerance=1e-12,
)
def sparse_rows(rows, begins, columns, values, x, y):
    _sparse(begins, columns, values, x, y)


@ALGORITHMS.add(
    11,
    128,
    np.int32(40),
    _BEGINS,
    _COLUMNS,
    _floats(len(_COLUMNS)),
    _floats(50),
    zeros(40, dtype="f"),
    tolerance=1e-4,
)
def sparse_by_warps(rows, begins, columns, values, x, y):
    _sparse(begins, columns, values, x, y)


_FOUND = len(set(_COLUMNS[: _BEGINS[10]].tolist()) - set(range(10)))
_FRONT = np.arange(10, dtype=np.int32)
_LEVELS = np.where(np.arange(50) < 10, 2, -1).astype(np.int32)


@ALGORITHMS.add(
    1,
    32,
    np.int32(2),
    _BEGINS,
    _COLUMNS,
    _LEVELS,
    _FRONT,
    np.int32(10),
    zeros(51),
    zeros(1),
    order=front_sorted(51, _FOUND),
)
def search_step(level, begins, targets, levels, front, size, following, count):
    found = [t for t in np.unique(targets[: begins[10]]) if levels[t] == -1]
    levels[found] = 3
    following[: len(found)] = found
    count[0] = len(found)


def _roots(parent):
    while (parent != parent[parent]).any():
        parent = parent[parent]
    return parent


@ALGORITHMS.add(
    1,
    64,
    np.int32(45),
    _ints(0, 50, 45),
    _ints(0, 50, 45),
    np.arange(50, dtype=np.int32),
    order=lambda v: _roots(v) if np.shape(v) == (50,) else np.asarray(v),
)
def connected(edges, start, end, parent):
    for _ in range(50):
        for a, b in zip(start, end, strict=True):
            parent[a] = parent[b] = min(parent[a], parent[b])


@ALGORITHMS.add((3, 3), (16, 8), np.int32(48), np.int32(20), np.int32(30), zeros(20, 48))
def mandelbrot(width, height, limit, counts):
    f = np.float32
    p = f(-2) + f(0.0625) * np.arange(48, dtype=f)
    q = f(-1.25) + f(0.125) * np.arange(20, dtype=f)
    for r, c in np.ndindex(20, 48):
        x = y = f(0)
        k = 0
        while k < limit and x * x + y * y < f(4):
            x, y = x * x - y * y + p[c], (f(2) * x) * y + q[r]
            k += 1
        counts[r, c] = k


@ALGORITHMS.add(2, 32, np.int32(64), _floats(64, 4), zeros(64, 3, dtype="f"), tolerance=1e-3)
def pulled_bodies(n, bodies, pull):
    place = bodies[:, :3].astype(float)
    away = place[None] - place[:, None]
    inverse = 1 / np.sqrt((away**2).sum(axis=2) + 0.01)
    pull[:] = (away * (bodies[:, 3] * inverse**3)[:, :, None]).sum(axis=1)


@ALGORITHMS.add(2, 64, np.int32(20), np.uint32(7), zeros(1, dtype=np.uint32))
def points_in_circle(rounds, seed, inside):
    state = (np.uint64(seed) + 2654435761 * np.arange(1, 129, dtype=np.uint64)).astype(np.uint32)
    for _ in range(rounds):
        state ^= state << np.uint32(13)
        state ^= state >> np.uint32(17)
        state ^= state << np.uint32(5)
        x, y = (state & np.uint32(0xFFFF)).astype(np.int64), (state >> np.uint32(16)).astype(int)
        inside += np.uint32((x * x // 2 + y * y // 2 < 1 << 31).sum())


@ALGORITHMS.add(
    1, 64, np.int32(40), _floats(40, 4, 4, dtype=float), zeros(40, dtype=float), tolerance=1e-9
)
def determinants(n, x, y):
    y[:] = np.linalg.det(x)


_LEFT = np.where(np.arange(31) < 15, 2 * np.arange(31) + 1, -1).astype(np.int32)
_RIGHT = np.where(np.arange(31) < 15, 2 * np.arange(31) + 2, -1).astype(np.int32)


@ALGORITHMS.add(1, 31, _LEFT, _RIGHT, _ints(-99, 99, 31), zeros(31))
def sums_of_trees(left, right, value, y):
    for node in range(30, -1, -1):
        below = y[left[node]] + y[right[node]] if left[node] >= 0 else 0
        y[node] = value[node] + below


@ALGORITHMS.add(1, 64, _ints(0, 3, 64), _ints(-99, 99, 64), _ints(-99, 99, 64), zeros(64))
def chosen_operations(which, a, b, c):
    c[:] = np.choose(which, [a + b, a - b, a * b])


@ALGORITHMS.add(1, 40, _floats(40), zeros(40, dtype="f"), tolerance=1e-6)
def areas(sizes, y):
    y[:] = np.where(np.arange(40) % 3 > 0, 2 * sizes, 3.0 * sizes * sizes)


@ALGORITHMS.add(
    1,
    64,
    np.void(struct.pack("ffi", 1.5, 0.25, 50)),
    _floats(50),
    zeros(50, dtype="f"),
    tolerance=1e-5,
)
def passed_structs(line, x, y):
    y[:] = np.clip((1.5 * x.astype(float) + 0.25) ** 2, 0.25, 4)


@ALGORITHMS.add(
    1,
    64,
    np.int32(40),
    _ints(0, 2**64, 40, dtype=np.uint64),
    _ints(0, 2**64, 40, dtype=np.uint64),
    zeros(40, dtype=np.uint64),
    zeros(40, 2, dtype=np.uint64),
)
def wide_integers(n, a, b, high, sums):
    for i, (p, q) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        whole = (p * q + p + (q << 64)) % 2**128
        high[i] = p * q >> 64
        sums[i] = whole % 2**64, whole >> 64


_TEXT = np.frombuffer(b"abracadabra abra cadabra" * 4, np.int8)


@ALGORITHMS.add(
    2,
    64,
    np.int32(len(_TEXT)),
    _TEXT.copy(),
    np.int32(4),
    np.frombuffer(b"abra", np.int8).copy(),
    zeros(40),
    zeros(1),
    order=front_sorted(40, 16),
)
def found_words(length, text, size, word, places, count):
    whole = text.tobytes()
    found = [i for i in range(len(whole)) if whole[i : i + 4] == b"abra"]
    places[: len(found)] = found
    count[0] = len(found)


@ALGORITHMS.add(
    1, 40, np.int32(9), _ints(0, 256, 40, 9, dtype=np.uint8), zeros(40, dtype=np.uint32)
)
def checksums(size, x, y):
    y[:] = [zlib.crc32(row.tobytes()) for row in x]


@ALGORITHMS.add(
    1, 32, np.int32(30), _ints(0, 2**32, 30, dtype=np.uint32), zeros(30, dtype=np.uint32)
)
def game_of_life(rows, x, y):
    cells = (x[:, None] >> np.arange(32, dtype=np.uint32)) & 1
    near = sum(
        np.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
    )
    lives = (near == 3) | ((near == 2) & (cells == 1))
    y[:] = (lives << np.arange(32, dtype=np.uint64)).sum(axis=1)


@ALGORITHMS.add(
    2,
    64,
    np.int32(100),
    np.uint64(0x0123456789ABCDEF),
    _ints(0, 2**64, 100, dtype=np.uint64),
    np.full(1, 2**32 - 1, np.uint32),
)
def nearest_codes(n, code, codes, best):
    counts = [int(one).bit_count() << 16 | i for i, one in enumerate(code ^ codes)]
    best[0] = min(counts)


@ALGORITHMS.add(2, 64, np.int32(100), np.float32(60), _floats(100), zeros(100, dtype=np.int8))
def quantised(n, scale, x, y):
    y[:] = np.clip(np.rint(x * scale), -128, 127)


@ALGORITHMS.add(
    1, 64, np.int32(50), _ints(0, 9999, 50), np.full(64, -1, np.int32), np.int32(64), order=_sorted
)
def hashed(n, keys, table, size):
    found = np.unique(keys)
    table[: len(found)] = found


@ALGORITHMS.add(
    1,
    64,
    np.int32(40),
    100 + _floats(40, dtype=float),
    100 + _floats(40, dtype=float),
    zeros(40, dtype=float),
    tolerance=1e-12,
)
def option_prices(n, spots, strikes, prices):
    def normal(v):
        return 0.5 * math.erfc(-v / math.sqrt(2))

    for i, (s, k) in enumerate(zip(spots, strikes, strict=True)):
        d = math.log(s / k) / 0.3 + 0.25
        prices[i] = s * normal(d) - k * math.exp(-0.02) * normal(d - 0.3)


@ALGORITHMS.add(1, 32, _floats(64, 2), zeros(64, 2, dtype="f"), tolerance=1e-4)
def fourier(x, y):
    found = np.fft.fft(x[:, 0] + 1j * x[:, 1])
    y[:] = np.stack([found.real, found.imag], axis=1)


@ALGORITHMS.add(1, 64, np.int32(60), _ints(0, 50, 60), zeros(60))
def checked_and_printed(n, x, y):
    y[:] = 2 * x


@ALGORITHMS.add(1, 40, np.int32(5), _ints(-9, 9, 40, 5), zeros(40))
def listed(n, x, y):
    for column in range(4, -1, -1):
        y[:] = 3 * y + x[:, column]
