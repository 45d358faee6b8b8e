"""Kernels that another compiler made: clang's OpenCL C, with calls, private arrays and atomics."""

import math

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.emulator.kernels import GPUS, make_gpu
from tests.emulator.opencl import compiled_opencl

pytestmark = [pytest.mark.rocm, pytest.mark.clang]

_SOURCE = """
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define T __builtin_amdgcn_workitem_id_x()
#define I (__builtin_amdgcn_workgroup_id_x() * 64 + T)
#define MEET __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); \\
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
typedef __global int *ints;
kernel void saxpy(__global float *x, __global float *y, float a, int n) {
  if (I < n) y[I] = a * x[I] + y[I];
}
kernel void reverse(ints x, ints y) { local int t[64]; t[T] = x[I]; MEET y[I] = t[63 - T]; }
kernel void reduce(ints x, ints y) {
  local int t[64];
  t[T] = x[I];
  for (int s = 32; s > 0; s >>= 1) { MEET if (T < s) t[T] += t[T + s]; }
  if (T == 0) y[I / 64] = t[0];
}
kernel void scan(ints x, ints y) {
  local int t[64];
  t[T] = x[I];
  for (int s = 1; s < 64; s <<= 1) { MEET int v = T >= s ? t[T - s] : 0; MEET t[T] += v; }
  y[I] = t[T];
}
kernel void histogram(ints x, ints y) {
  local int h[16];
  if (T < 16) h[T] = 0;
  MEET
  __atomic_fetch_add(&h[x[I] & 15], 1, __ATOMIC_RELAXED);
  MEET
  if (T < 16) __atomic_fetch_add(&y[T], h[T], __ATOMIC_RELAXED);
}
kernel void collatz(ints x, ints y) {
  unsigned v = x[I], c = 0;
  while (v != 1) { v = v & 1 ? 3 * v + 1 : v / 2; c++; }
  y[I] = c;
}
kernel void sort(ints x, ints y) {
  int a[8];
  for (int k = 0; k < 8; k++) a[k] = x[I * 8 + k];
  for (int i = 1; i < 8; i++) {
    int v = a[i], j = i;
    while (j > 0 && a[j - 1] > v) { a[j] = a[j - 1]; j--; }
    a[j] = v;
  }
  for (int k = 0; k < 8; k++) y[I * 8 + k] = a[k];
}
__attribute__((noinline)) int gcd(int a, int b) {
  while (b) { int t = a % b; a = b; b = t; }
  return a;
}
kernel void gcds(ints x, ints y) { y[I] = gcd(x[I], x[I ^ 63]); }
kernel void transpose(__global float *x, __global float *y) {
  local float t[8][9];
  t[T / 8][T % 8] = x[I]; MEET y[I] = t[T % 8][T / 8];
}
kernel void pick(ints x, ints y, int n) {
  int a[16];
  for (int k = 0; k < 16; k++) a[k] = k * n;
  y[I] = a[x[I] & 15];
}
kernel void swap(__global char4 *x, __global char4 *y) { y[I] = x[I].wzyx; }
kernel void longs(__global long *x, __global long *y) {
  long v = x[I];
  y[I] = v * v / 3 + (v >> 5) - v % 7;
}
kernel void halves(__global half *x, __global half *y) { y[I] = x[I] * x[I] + (half)0.5f; }
kernel void doubles(__global double *x, __global double *y) {
  y[I] = 1.0 / x[I] + __builtin_sqrt(x[I]);
}
__attribute__((noinline)) int twice(int v) { return 2 * v; }
__attribute__((noinline)) int square(int v) { return v * v; }
kernel void choose(ints x, ints y) {
  int v = x[I], r;
  switch (v & 7) {
    case 0: r = 5; break;
    case 1: r = v * 3; break;
    case 2: r = twice(v); break;
    case 3: r = -v; break;
    case 4: r = square(v); break;
    default: r = v ^ 99;
  }
  y[I] = r;
}
kernel void walk(ints x, ints y) {
  int i = T, c = 0;
  while (c < 100 && i != 0) { i = x[I / 64 * 64 + i % 64] % 64; c++; }
  y[I] = c;
}
__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
kernel void fibs(ints x, ints y) { y[I] = fib(x[I]); }
__attribute__((noinline)) int bump(int *p) { __atomic_fetch_add(p, 3, 0); p[1] *= 2; return *p; }
kernel void anywhere(ints x, ints y) {
  int a[8]; local int b[66];
  b[T] = x[I]; if (T < 2) b[64 + T] = T;
  for (int k = 0; k < 8; k++) a[k] = x[I] + k;
  MEET
  int *p = T % 4 == 0 ? (int *)&a[x[I] & 3] : T % 4 == 1 ? (int *)&b[T] : (int *)&x[I & ~1];
  if (T % 4 != 3) y[I] = bump(p) + a[1];
}
kernel void shuffle(ints x, ints y, int n) {
  int a[16];
  for (int k = 0; k < 16; k++) a[k] = x[k];
  for (int k = 0; k < n; k++) a[k * 7 & 15] += a[k * 3 + 1 & 15];
  for (int k = 0; k < 16; k++) y[I * 16 + k] = a[k];
}
"""
_COUNT = 128


@pytest.fixture(scope="module", params=GPUS)
def code(request, tmp_path_factory):
    return compiled_opencl(tmp_path_factory.mktemp("opencl"), _SOURCE, request.param).read_bytes()


def _run(code, name, x, y, *numbers):
    gpu = make_gpu(hazards=True)
    report = gpu.run(gpu.load(code), name, (2, 1, 1), (64, 1, 1), [x, y, *numbers])
    assert not report.findings
    return y


def _ints(low=1, high=20, count=_COUNT):
    return np.random.default_rng(3).integers(low, high, count).astype(np.int32)


def _steps(n):
    return 0 if n == 1 else 1 + _steps(3 * n + 1 if n % 2 else n // 2)


def _chosen(v):
    return {0: 5, 1: v * 3, 2: 2 * v, 3: -v, 4: v * v}.get(v & 7, v ^ 99)


def _walked(x):
    counts = []
    for k in range(_COUNT):
        i, c = k % 64, 0
        while c < 100 and i != 0:
            i, c = int(x[k // 64 * 64 + i % 64]) % 64, c + 1
        counts.append(c)
    return counts


_EXPECTED = {
    "reverse": lambda x: x.reshape(2, 64)[:, ::-1].ravel(),
    "reduce": lambda x: np.append(x.reshape(2, 64).sum(1), np.zeros(_COUNT - 2)),
    "scan": lambda x: x.reshape(2, 64).cumsum(1).ravel(),
    "histogram": lambda x: np.bincount(x & 15, minlength=_COUNT),
    "collatz": lambda x: [_steps(int(v)) for v in x],
    "gcds": lambda x: np.gcd(x, x[np.arange(_COUNT) ^ 63]),
    "choose": lambda x: [_chosen(int(v)) for v in x],
    "walk": _walked,
}


@pytest.mark.parametrize("name", _EXPECTED)
def test_kernels_on_integers(name, code):
    x = _ints()
    y = _run(code, name, x, np.zeros(_COUNT, np.int32))
    np.testing.assert_array_equal(y, _EXPECTED[name](x))


def test_arguments_of_other_types(code):
    x = np.arange(_COUNT, dtype=np.float32)
    y = _run(code, "saxpy", x, np.ones_like(x), np.float32(2), np.int32(100))
    np.testing.assert_array_equal(y, np.where(x < 100, 2 * x + 1, 1))
    picked = _run(code, "pick", _ints(), np.zeros(_COUNT, np.int32), np.int32(-7))
    np.testing.assert_array_equal(picked, (_ints() & 15) * -7)


def test_arrays_of_other_types(code):
    bytes_ = _ints(-128, 128, 4 * _COUNT).astype(np.int8)
    swapped = _run(code, "swap", bytes_, np.zeros_like(bytes_))
    np.testing.assert_array_equal(swapped.reshape(-1, 4), bytes_.reshape(-1, 4)[:, ::-1])
    longs = _ints(-(2**20), 2**20).astype(np.int64) * 123
    wanted = [int(v) ** 2 // 3 + (int(v) >> 5) - int(math.fmod(v, 7)) for v in longs]
    np.testing.assert_array_equal(_run(code, "longs", longs, np.zeros_like(longs)), wanted)
    halves = np.linspace(-9, 9, _COUNT).astype(np.float16)
    result = _run(code, "halves", halves, np.zeros_like(halves))
    twice_rounded = halves * halves + np.float16(0.5)
    once_rounded = (halves.astype(np.float64) ** 2 + 0.5).astype(np.float16)
    assert ((result == twice_rounded) | (result == once_rounded)).all()
    doubles = np.linspace(0.1, 9, _COUNT)
    result = _run(code, "doubles", doubles, np.zeros_like(doubles))
    np.testing.assert_array_equal(result, 1 / doubles + np.sqrt(doubles))


def test_private_and_shared_arrays(code):
    x = _ints(-50, 50, 8 * _COUNT)
    result = _run(code, "sort", x, np.zeros_like(x)).reshape(-1, 8)
    np.testing.assert_array_equal(result, np.sort(x.reshape(-1, 8), axis=1))
    tiles = np.arange(_COUNT, dtype=np.float32)
    result = _run(code, "transpose", tiles, np.zeros_like(tiles)).reshape(2, 8, 8)
    np.testing.assert_array_equal(result, tiles.reshape(2, 8, 8).transpose(0, 2, 1))


def _anywhere(x):
    """Those of every fourth lane add to their own array, to the group's, to the argument."""
    y, changed = np.zeros(_COUNT, np.int32), x.copy()
    for k, v in enumerate(x):
        first = {0: v + (v & 3), 1: v, 2: v}.get(k % 4)
        if first is not None:
            y[k] = first + 3 + v + (1 + ((v & 3) == 1) * 3 if k % 4 == 0 else 1)
            if k % 4 == 0 and (v & 3) == 0:
                y[k] += v + 1
        if k % 4 == 2:
            changed[k], changed[k + 1] = v + 3, 2 * x[k + 1]
    return y, changed


def test_pointers_to_any_memory(code):
    x = _ints(0, 50)
    wanted, changed = _anywhere(x)
    np.testing.assert_array_equal(_run(code, "anywhere", x, np.zeros(_COUNT, np.int32)), wanted)
    np.testing.assert_array_equal(x, changed)


def test_registers_chosen_by_a_number(code):
    x = _ints(0, 50)
    wanted = x[:16].copy()
    for k in range(9):
        wanted[k * 7 & 15] += wanted[k * 3 + 1 & 15]
    y = _run(code, "shuffle", x, np.zeros(16 * _COUNT, np.int32), np.int32(9))
    np.testing.assert_array_equal(y.reshape(-1, 16), np.tile(wanted, (_COUNT, 1)))


def test_a_stack_that_overflows_is_told_of(code):
    """The compiler keeps 32 bytes for a recursion that it does not see."""
    with pytest.raises(UserError, match="a jump leads to") as caught:
        _run(code, "fibs", np.full(_COUNT, 9, np.int32), np.zeros(_COUNT, np.int32))
    assert "of 32 bytes of private memory" in str(caught.value)
    assert "in fib+" in str(caught.value)


@pytest.mark.parametrize("gpu", GPUS)
def test_kernels_may_do_without_denormals(gpu, tmp_path):
    text = """kernel void halve(__global float *x, __global float *y) {
      int i = __builtin_amdgcn_workitem_id_x();
      y[i] = 0.5f * x[i];
    }"""
    x = np.full(64, 2.0**-126, np.float32)
    x[1::2] = -x[1::2] / 2
    wanted = {"-cl-denorms-are-zero": np.zeros(64), "-O2": x / 2}
    for option, result in wanted.items():
        loaded = make_gpu()
        code = loaded.load(compiled_opencl(tmp_path, text, gpu, option).read_bytes())
        y = np.ones_like(x)
        loaded.run(code, "halve", (1, 1, 1), (64, 1, 1), [x, y])
        np.testing.assert_array_equal(y, result)
        assert np.signbit(y).tolist() == np.signbit(x).tolist()


@pytest.mark.parametrize("gpu", GPUS)
def test_kernels_may_round_otherwise(gpu, tmp_path):
    """Bounds of products from below and above, with rounding as it was set on the way."""
    text = r"""
    #define SET "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), "
    kernel void bounds(__global float *x, __global float *low, __global float *high) {
      int i = __builtin_amdgcn_workitem_id_x();
      float a = x[i], b = x[i ^ 1], l, h;
      __asm volatile(SET "2\n v_mul_f32 %0, %1, %2\n" SET "0" : "=v"(l) : "v"(a), "v"(b));
      __asm volatile(SET "1\n v_mul_f32 %0, %1, %2\n" SET "0" : "=v"(h) : "v"(a), "v"(b));
      low[i] = l; high[i] = h;
    }"""
    x = np.random.default_rng(7).normal(size=64).astype(np.float32)
    x[:2] = [1.5, 2.0]  # of which the product is exact
    low, high = np.zeros_like(x), np.zeros_like(x)
    device = make_gpu()
    code = device.load(compiled_opencl(tmp_path, text, gpu).read_bytes())
    device.run(code, "bounds", (1, 1, 1), (64, 1, 1), [x, low, high])
    exact = x.astype(np.float64) * x[np.arange(64) ^ 1]
    assert (low <= exact).all() and (exact <= high).all()
    np.testing.assert_array_equal(np.nextafter(low, np.float32(np.inf))[2:], high[2:])
    assert low[:2].tolist() == high[:2].tolist() == [3.0, 3.0]


@pytest.mark.parametrize("gpu", GPUS)
def test_a_trap_is_told_of(gpu, tmp_path):
    text = """kernel void checked(__global int *x) {
      int i = __builtin_amdgcn_workitem_id_x();
      if (x[i] > 9) __builtin_trap();
      x[i] = 7;
    }"""
    device = make_gpu()
    code = device.load(compiled_opencl(tmp_path, text, gpu).read_bytes())
    x = np.arange(64, dtype=np.int32) % 10
    assert not device.run(code, "checked", (1, 1, 1), (64, 1, 1), [x]).findings
    assert (x == 7).all()
    x[5] = 10
    with pytest.raises(UserError, match="the kernel checked stopped by a trap"):
        device.run(code, "checked", (1, 1, 1), (64, 1, 1), [x])


_STAGED = r"""
kernel void staged(__global int *x, __global int *y) {
  local int t[128];
  int i = __builtin_amdgcn_workitem_id_x();
  __asm volatile("s_mov_b32 m0, %0\n s_nop 0\n global_load_lds_dword %1, off\n WAIT"
                 :: "s"(t + __builtin_amdgcn_readfirstlane(i)), "v"(x + i) : "memory");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
  y[i] = t[127 - i];
}"""


def test_loads_to_shared_memory_must_be_waited_for(tmp_path):
    """They keep no order at barriers, as loads and stores of registers do."""
    for wait, kinds in (("s_waitcnt vmcnt(0)", []), ("s_nop 0", ["wait"])):
        device = make_gpu(hazards=True)
        text = _STAGED.replace("WAIT", wait)
        code = device.load(compiled_opencl(tmp_path, text, "gfx942").read_bytes())
        x, y = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
        report = device.run(code, "staged", (1, 1, 1), (128, 1, 1), [x, y])
        np.testing.assert_array_equal(y, x[::-1])
        assert [finding.kind for finding in report.findings] == kinds


_CHAIN = """
kernel void chain(__global int *flags, __global int *sums) {
  int g = __builtin_amdgcn_workgroup_id_x(), before = 0;
  local int shared;
  if (__builtin_amdgcn_workitem_id_x() == 0) {
    volatile __global atomic_int *last = (volatile __global atomic_int *)(flags + g - 1);
    if (g) {
      while (!__opencl_atomic_load(last, __ATOMIC_ACQUIRE, __OPENCL_MEMORY_SCOPE_DEVICE));
      before = sums[g - 1];
    }
    shared = before;
  }
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  if (__builtin_amdgcn_workitem_id_x() == 127) {
    volatile __global atomic_int *own = (volatile __global atomic_int *)(flags + g);
    sums[g] = shared + g;
    __opencl_atomic_store(own, 1, __ATOMIC_RELEASE, __OPENCL_MEMORY_SCOPE_DEVICE);
  }
}"""


@pytest.mark.parametrize("gpu", GPUS)
def test_groups_wait_for_the_group_before_them(gpu, tmp_path):
    """As scans do that look back: in a loop, while the group before waits at a barrier."""
    device = make_gpu(hazards=True)
    code = device.load(compiled_opencl(tmp_path, _CHAIN, gpu).read_bytes())
    flags, sums = np.zeros(10, np.int32), np.zeros(10, np.int32)
    report = device.run(code, "chain", (10, 1, 1), (128, 1, 1), [flags, sums])
    np.testing.assert_array_equal(sums, np.cumsum(np.arange(10)))
    assert flags.all() and not report.findings
