"""The kernels of `cuda_cooperation.cu`: their arguments, launches and results by numpy.

Each function computes what the kernel of its name does.
"""

import numpy as np

from tests.emulator.ptx.cuda_cases import Cases, Draws, bf16, from_bf16, front_sorted, zeros

_DRAWS = Draws(11)
_floats, _ints = _DRAWS.floats, _DRAWS.ints
COOPERATION = Cases()


@COOPERATION.add(2, 96, np.int32(5), _floats(2, 5, 64), zeros(2, 64, dtype="f"), tolerance=1e-5)
def specialised_warps(tiles, x, y):
    y[:] = (x.astype(float) * x[:, :, ::-1]).sum(axis=1)


@COOPERATION.add(1, 128, _ints(-99, 99, 128), zeros(128))
def chained_warps(x, y):
    y[:] = np.cumsum(x)


@COOPERATION.add(2, 64, _ints(-99, 99, 128), zeros(16))
def tile_sums(x, sums):
    sums[:] = x.reshape(16, 8).sum(axis=1)


_SIGNED = _ints(-9, 9, 150)
_POSITIVE = front_sorted(151, int((_SIGNED > 0).sum()))


@COOPERATION.add(3, 64, np.int32(150), _SIGNED, zeros(151), zeros(1), order=_POSITIVE)
def append_positive(n, x, kept, count):
    found = x[x > 0]
    kept[: len(found)] = found
    count[0] = len(found)


@COOPERATION.add(2, 96, np.int32(170), _ints(0, 5, 170), zeros(5))
def matched_counts(n, x, counts):
    counts += np.bincount(x, minlength=5).astype(np.int32)


@COOPERATION.add(1, 64, _ints(0, 2**32, 64, dtype=np.uint32), zeros(64, dtype=np.uint32))
def lane_reductions(x, y):
    warps = x.reshape(2, 32)
    sums = warps.sum(axis=1, dtype=np.uint32)[:, None]
    most = np.repeat(x.reshape(4, 16).max(axis=1), 16).reshape(2, 32)
    parity = np.bitwise_xor.reduce(warps, axis=1)[:, None]
    y[:] = (sums + 3 * most + 5 * parity).reshape(-1)


@COOPERATION.add(1, 32, _ints(-99, 99, 32), zeros(32))
def shuffle_widths(x, y):
    lane = np.arange(32)
    up = np.where(lane % 16 >= 2, lane - 2, lane)
    down = np.where(lane % 8 < 3, lane + 5, lane)
    y[:] = x[lane // 8 * 8 + 3] + 2 * x[up] + 3 * x[lane ^ 1] + 4 * x[down]


@COOPERATION.add(3, 96, _ints(-9, 92, 3, 96), zeros(3, 3))
def block_votes(x, y):
    y[:] = np.stack([(x > 0).sum(axis=1), (x == 7).any(axis=1), (x < 90).all(axis=1)], axis=1)


@COOPERATION.add(1, 160, np.int32(150), _ints(-99, 99, 150), zeros(150))
def exclusive_scan(n, x, y):
    y[:] = np.cumsum(x) - x


@COOPERATION.add(
    5, 64, np.int32(300), _ints(-99, 99, 300), zeros(300), zeros(5), zeros(5), zeros(5)
)
def look_back_scan(n, x, y, state, own, prefix):
    y[:] = np.cumsum(x)
    sums = np.pad(x, (0, 20)).reshape(5, 64).sum(axis=1)
    state[:], own[1:], prefix[:] = 2, sums[1:], np.cumsum(sums)


@COOPERATION.add(
    1,
    (16, 16),
    np.int32(48),
    _floats(48, 48),
    _floats(48, 48),
    zeros(48, 48, dtype="f"),
    tolerance=1e-4,
)
def pipelined_matmul(n, a, b, c):
    c[:16, :16] = (a.astype(float) @ b)[:16, :16]


@COOPERATION.add(2, 64, _floats(2, 256), zeros(2, 256, dtype="f"))
def copied_tile(x, y):
    y[:] = x[:, ::-1]


@COOPERATION.add(1, 128, np.int32(5), _ints(-99, 99, 5, 64), zeros(64))
def produced_and_consumed(rounds, x, y):
    for row in x:
        y[:] = 2 * y + row[::-1]


@COOPERATION.add(
    (1, 2),
    (32, 2),
    np.int32(32),
    _floats(32, 32, dtype=np.float16),
    _floats(32, 32, dtype=np.float16),
    zeros(32, 32, dtype="f"),
    tolerance=1e-4,
)
def tensor_matmul(n, a, b, c):
    c[:] = 0.5 * (a.astype(float) @ b.astype(float))


@COOPERATION.add(
    1,
    32,
    bf16(_floats(16, 16)),
    bf16(_floats(16, 16)),
    zeros(16, 16, dtype="f"),
    tolerance=1e-4,
)
def tensor_bf16(a, b, c):
    c[:] = np.maximum(1 + from_bf16(a).astype(float) @ from_bf16(b).astype(float).T, 0)


@COOPERATION.add(
    1,
    32,
    _floats(16, 16, dtype=np.float16),
    _floats(8, 16, dtype=np.float16),
    zeros(16, 8, dtype="f"),
    tolerance=1e-4,
)
def loaded_matrices(a, b, c):
    c[:] = a.astype(float) @ b.astype(float).T


@COOPERATION.add(4, 32, zeros(1), zeros(1), zeros(4))
def sent_message(flag, message, y):
    flag[0], message[0] = 1, 41
    y[1:] = 41 + np.arange(1, 4)


@COOPERATION.add(
    2, 64, np.int32(200), _ints(-999, 999, 200), zeros(1), zeros(1), zeros(1, dtype=np.uint64)
)
def atomic_summaries(n, x, total, most, bits):
    total[0], most[0] = x.sum(), x.max()
    bits[0] = np.bitwise_or.reduce(np.uint64(1) << (x & 63).astype(np.uint64))


@COOPERATION.add(2, 64, np.int32(100), _floats(100), np.full(1, -1e30, np.float32))
def largest_float(n, x, most):
    most[0] = x.max()


@COOPERATION.add(2, 64, _ints(-999, 999, 4, 32))
def sorted_lanes(x):
    x.sort(axis=1)


@COOPERATION.add(1, 128, _ints(0, 256, 128, dtype=np.uint32))
def radix_sorted(x):
    x.sort()


@COOPERATION.add(
    1,
    96,
    np.int32(150),
    _floats(150),
    np.roll(np.arange(150, dtype=np.int32), 40),
    zeros(150, dtype="f"),
    shared_bytes=1200,
)
def reversed_pairs(n, x, keys, y):
    y[keys] = x[::-1]


@COOPERATION.add((2, 2), (32, 4), np.int32(64), _floats(64, 64), zeros(64, 64, dtype="f"))
def swizzled_transpose(n, x, y):
    y[:] = x.T
