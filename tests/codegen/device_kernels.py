"""Kernels of the device level as text, one for each thing that a GPU does, and their arguments."""

from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.verify import verify

VECTOR_ADD = """
func vector_add(A: f32[n], B: f32[n], C: f32[n] out, n: i64, groups: i64) {
  for bx in range(groups) blockIdx.x {
    for tx in range(64) threadIdx.x {
      if (bx * 64 + tx < n) {
        C@[bx * 64 + tx] = A@[bx * 64 + tx] + B@[bx * 64 + tx]
      }
    }
  }
}
"""
MATMUL = """
func matmul(A: f32[32, k], B: f32[k, 32], C: f32[32, 32] out, k: i64) {
  for by in range(2) blockIdx.y { for bx in range(2) blockIdx.x {
    for ty in range(16) threadIdx.y { for tx in range(16) threadIdx.x {
      alloc As: f32[16, 16] shared { alloc Bs: f32[16, 16] shared { alloc sum: f32[1] local {
        sum@[0] = 0.0f32
        for s in range(k // 16) {
          barrier
          As@[ty * 16 + tx] = A@[(by * 16 + ty) * k + s * 16 + tx]
          Bs@[ty * 16 + tx] = B@[(s * 16 + ty) * 32 + bx * 16 + tx]
          barrier
          for r in range(16) { sum@[0] = sum@[0] + As@[ty * 16 + r] * Bs@[r * 16 + tx] }
        }
        C@[(by * 16 + ty) * 32 + bx * 16 + tx] = sum@[0]
      } } }
    } }
  } }
}
"""
# Shared memory of a size that is known at the launch only, and groups of such a size.
GROUP_SUM = """
func group_sum(A: f32[groups, threads], S: f32[groups] out, groups: i64, threads: i64) {
  for g in range(groups) blockIdx.x {
    for t in range(threads) threadIdx.x {
      alloc T: f32[threads] shared {
        T@[t] = A@[g * threads + t]
        barrier
        if (t == 0) {
          alloc sum: f32[1] local {
            sum@[0] = 0.0f32
            for i in range(threads) { sum@[0] = sum@[0] + T@[i] }
            S@[g] = sum@[0]
          }
        }
      }
    }
  }
}
"""
ATOMICS = """
func atomics(A: i32[256], F: f32[256], D: f64[256], I: i32[4] out, L: u64[3] out, R: f32[3] out,
             S: f64[1] out) {
  for g in range(4) blockIdx.x {
    for t in range(64) threadIdx.x {
      alloc T: i32[1] shared {
        if (t == 0) { T@[0] = 0i32 }
        barrier
        let i: i64 = g * 64 + t {
          atomic add T[0] with A@[i]
          barrier
          if (t == 0) { atomic add I[0] with T@[0] }
          atomic max I[1] with A@[i]
          atomic xor I[2] with A@[i]
          atomic or I[3] with A@[i]
          atomic add L[0] with u64(A@[i])
          atomic min L[1] with u64(A@[i])
          atomic and L[2] with u64(A@[i])
          atomic add R[0] with F@[i]
          atomic min R[1] with F@[i]
          atomic max R[2] with F@[i]
          atomic add S[0] with D@[i]
        }
      }
    }
  }
}
"""
VECTORS = """
func vectors(A: f32[n], M: bool[n], B: f32[n] out, K: bool[n] out, n: i64, groups: i64) {
  for bx in range(groups) blockIdx.x {
    for tx in range(8) threadIdx.x {
      let first: i64 = (bx * 8 + tx) * 4 {
        if (first + 4 <= n) {
          let a: f32x4 = A@[ramp(first, 1, 4)] {
            let mask: boolx4 = M@[ramp(first, 1, 4)] and a < broadcast(2.5f32, 4) {
              B@[ramp(first, 1, 4)] = select(mask, min(a, broadcast(1.0f32, 4)) * a, exp(a))
              K@[ramp(first, 1, 4)] = not mask
            }
          }
        } else {
          let rest: boolx4 = ramp(first, 1, 4) < broadcast(n, 4) {
            B@[ramp(first, 1, 4)] = A@[ramp(n - 1, -1, 4) if rest] / broadcast(3.0f32, 4) if rest
          }
        }
      }
    }
  }
}
"""
HALVES = """
func halves(A: f16[64], B: f16[64], C: f16[64] out, D: f32[64] out, x: f16, add: bool) {
  for bx in range(4) blockIdx.x {
    for tx in range(4) threadIdx.x {
      let i: i64 = (bx * 4 + tx) * 4 {
        C@[ramp(i, 1, 4)] = A@[ramp(i, 1, 4)] * B@[ramp(i, 1, 4)] + broadcast(x, 4)
        for j in range(4) {
          if (add) { D@[i + j] = f32(max(A@[i + j] + B@[i + j], x)) }
          else { D@[i + j] = f32(A@[i + j] / B@[i + j] - 0.1f16) }
        }
      }
    }
  }
}
"""
CONTROL = """
func control(A: i64[64], B: i64[64] out, a: i8, b: u16, c: u64, low: i32) {
  for z in range(2) blockIdx.z { for y in range(2) blockIdx.y { for x in range(2) blockIdx.x {
    for tz in range(2) threadIdx.z { for ty in range(2) threadIdx.y {
    for tx in range(2) threadIdx.x {
      let i: i64 = ((z * 2 + y) * 2 + x) * 8 + (tz * 2 + ty) * 2 + tx {
        alloc T: i64[3] local align 32 {
          for k in range(3) { T@[k] = A@[(i + k) % 64] }
          for k in range(1, extent=2) { T@[0] = T@[0] // T@[k] - T@[0] % (i64(a) - k) }
          if (T@[0] > i64(b) and low < 3i32 or c == 9u64) { T@[1] = T@[1] << i }
          B@[i] = if_then_else(T@[2] == 0, T@[0],
                               (let q: i64 = T@[1] * 3 in q >> 1 ^ q & T@[2] | -7))
        }
      }
    } } }
  } } }
}
"""
# Rows of a tile that are one element longer than what is kept, against conflicts between banks.
TRANSPOSE = """
func transpose(A: f32[32, 48], B: f32[48, 32] out) {
  for by in range(2) blockIdx.y { for bx in range(3) blockIdx.x {
    for ty in range(4) threadIdx.y { for tx in range(16) threadIdx.x {
      alloc T: f32[16, 17] shared {
        for r in range(4) {
          T@[(r * 4 + ty) * 17 + tx] = A@[(by * 16 + r * 4 + ty) * 48 + bx * 16 + tx]
        }
        barrier
        for r in range(4) {
          B@[(bx * 16 + r * 4 + ty) * 32 + by * 16 + tx] = T@[tx * 17 + r * 4 + ty]
        }
      }
    } }
  } }
}
"""
# A reduction whose threads halve in number, and another one over the same memory.
SOFTMAX = """
func softmax(A: f32[6, 16], B: f32[6, 16] out) {
  for row in range(6) blockIdx.x {
    for t in range(16) threadIdx.x {
      alloc T: f32[16] shared { alloc kept: f32[2] local {
        kept@[0] = A@[row * 16 + t]
        T@[t] = kept@[0]
        barrier
        for k in range(4) {
          if (t < 8 >> k) { T@[t] = max(T@[t], T@[t + (8 >> k)]) }
          barrier
        }
        kept@[0] = exp(kept@[0] - T@[0])
        barrier
        T@[t] = kept@[0]
        barrier
        for k in range(4) {
          if (t < 8 >> k) { T@[t] = T@[t] + T@[t + (8 >> k)] }
          barrier
        }
        B@[row * 16 + t] = kept@[0] / T@[0]
      } }
    }
  }
}
"""
# Each thread keeps 4 x 4 elements of the product, and reads vectors of its group's tiles.
BLOCKED = """
func blocked(A: f32[24, 32], B: f32[24, 32], C: f32[32, 32] out) {
  for ty in range(8) threadIdx.y { for tx in range(8) threadIdx.x {
    alloc As: f32[8, 32] shared { alloc Bs: f32[8, 32] shared { alloc sum: f32[4, 4] local {
      for i in range(4) { sum@[ramp(i * 4, 1, 4)] = broadcast(0.0f32, 4) }
      for s in range(3) {
        barrier
        As@[ramp(ty * 32 + tx * 4, 1, 4)] = A@[ramp((s * 8 + ty) * 32 + tx * 4, 1, 4)]
        Bs@[ramp(ty * 32 + tx * 4, 1, 4)] = B@[ramp((s * 8 + ty) * 32 + tx * 4, 1, 4)]
        barrier
        for r in range(8) {
          let b: f32x4 = Bs@[ramp(r * 32 + tx * 4, 1, 4)] {
            for i in range(4) {
              sum@[ramp(i * 4, 1, 4)] =
                fma(broadcast(As@[r * 32 + ty * 4 + i], 4), b, sum@[ramp(i * 4, 1, 4)])
            }
          }
        }
      }
      for i in range(4) {
        C@[ramp((ty * 4 + i) * 32 + tx * 4, 1, 4)] = sum@[ramp(i * 4, 1, 4)]
      }
    } } }
  } }
}
"""
# Places that are read from memory, and may lie outside.
GATHER = """
func gather(A: f32[rows, 8], I: i32[n], B: f32[n, 8] out, rows: i64, n: i64, groups: i64) {
  for g in range(groups) blockIdx.x {
    for t in range(32) threadIdx.x {
      let place: i64 = g * 32 + t {
        if (place < n * 8) {
          let row: i64 = i64(I@[place // 8]) {
            B@[place] = if_then_else(0 <= row and row < rows, A@[row * 8 + place % 8], 0.0f32)
          }
        }
      }
    }
  }
}
"""
# Bytes, whose products are added up in 32 bits, and written with what does not fit cut off.
BYTES = """
func bytes(A: i8[32, 16], B: u8[32, 16], S: i32[32] out, C: i8[32] out) {
  for g in range(2) blockIdx.x {
    for t in range(16) threadIdx.x {
      alloc sum: i32[1] local {
        sum@[0] = 0i32
        for k in range(4) {
          let a: i32x4 = i32x4(A@[ramp((g * 16 + t) * 16 + k * 4, 1, 4)]) {
            let b: i32x4 = i32x4(B@[ramp((g * 16 + t) * 16 + k * 4, 1, 4)]) {
              alloc product: i32[4] local {
                product@[ramp(0, 1, 4)] = a * b
                for j in range(4) { sum@[0] = sum@[0] + product@[j] }
              }
            }
          }
        }
        S@[g * 16 + t] = sum@[0]
        C@[g * 16 + t] = i8(min(max(sum@[0] >> 8i32, -128i32), 127i32))
      }
    }
  }
}
"""
TEXTS = {
    "vector_add": VECTOR_ADD,
    "matmul": MATMUL,
    "group_sum": GROUP_SUM,
    "atomics": ATOMICS,
    "vectors": VECTORS,
    "halves": HALVES,
    "control": CONTROL,
    "transpose": TRANSPOSE,
    "softmax": SOFTMAX,
    "blocked": BLOCKED,
    "gather": GATHER,
    "bytes": BYTES,
}


def device_kernel(name: str) -> PrimFunc:
    """The kernel of that name."""
    kernel = parse_func(TEXTS[name])
    verify(kernel, "device")
    return kernel


def _floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-9, 10, shape).astype(np.float32)


def _vector_add(rng: np.random.Generator) -> list[Any]:
    return [_floats(rng, 100), _floats(rng, 100), np.zeros(100, np.float32), 100, 2]


def _matmul(rng: np.random.Generator) -> list[Any]:
    return [_floats(rng, 32, 48), _floats(rng, 48, 32), np.zeros((32, 32), np.float32), 48]


def _group_sum(rng: np.random.Generator) -> list[Any]:
    return [_floats(rng, 5, 24), np.zeros(5, np.float32), 5, 24]


def _atomics(rng: np.random.Generator) -> list[Any]:
    values = rng.integers(0, 1 << 20, 256).astype(np.int32)
    counts = np.array([0, 1 << 63, (1 << 64) - 1], np.uint64)
    floats, extremes = _floats(rng, 256), np.array([0, 100, -100], np.float32)
    doubles = floats.astype(np.float64) / 2
    return [values, floats, doubles, np.zeros(4, np.int32), counts, extremes, np.zeros(1)]


def _vectors(rng: np.random.Generator) -> list[Any]:
    mask = rng.integers(0, 2, 99).astype(np.bool_)
    values = (_floats(rng, 99) / 4).astype(np.float32)
    return [values, mask, np.zeros(99, np.float32), np.zeros(99, np.bool_), 99, 4]


def _halves(rng: np.random.Generator) -> list[Any]:
    first, second = (rng.uniform(-300, 300, 64).astype(np.float16) for _ in range(2))
    return [first, second, np.zeros(64, np.float16), np.zeros(64, np.float32), 0.3, True]


def _control(rng: np.random.Generator) -> list[Any]:
    return [rng.integers(-90, 90, 64), np.zeros(64, np.int64), -7, 3, 9, 2]


def _transpose(rng: np.random.Generator) -> list[Any]:
    return [_floats(rng, 32, 48), np.zeros((48, 32), np.float32)]


def _softmax(rng: np.random.Generator) -> list[Any]:
    return [_floats(rng, 6, 16) / 8, np.zeros((6, 16), np.float32)]


def _blocked(rng: np.random.Generator) -> list[Any]:
    return [_floats(rng, 24, 32), _floats(rng, 24, 32), np.zeros((32, 32), np.float32)]


def _gather(rng: np.random.Generator) -> list[Any]:
    places = rng.integers(-2, 9, 13).astype(np.int32)
    return [_floats(rng, 7, 8), places, np.zeros((13, 8), np.float32), 7, 13, 4]


def _bytes(rng: np.random.Generator) -> list[Any]:
    signed = rng.integers(-128, 128, (32, 16)).astype(np.int8)
    unsigned = rng.integers(0, 256, (32, 16)).astype(np.uint8)
    return [signed, unsigned, np.zeros(32, np.int32), np.zeros(32, np.int8)]


ARGUMENTS: dict[str, Callable[[np.random.Generator], list[Any]]] = {
    "vector_add": _vector_add,
    "matmul": _matmul,
    "group_sum": _group_sum,
    "atomics": _atomics,
    "vectors": _vectors,
    "halves": _halves,
    "control": _control,
    "transpose": _transpose,
    "softmax": _softmax,
    "blocked": _blocked,
    "gather": _gather,
    "bytes": _bytes,
}


def draw_arguments(name: str) -> list[Any]:
    """Arguments for the kernel of that name, the same ones each time."""
    return ARGUMENTS[name](np.random.default_rng(7))
