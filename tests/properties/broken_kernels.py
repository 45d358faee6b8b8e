"""Kernels that are right, and what breaks each: two independent judges must see every break.

A kernel stands at the nested level with its barriers, so that nothing puts a barrier back. A break
replaces one text in it by another. Inputs are whole numbers, so that results are exact.
"""

from dataclasses import dataclass

import numpy as np

RACE = "a race on element"
UNWRITTEN = "is read, never written"
OUTSIDE = "is out of range"
DIVERGENT = "not all threads of a group reach a barrier"


@dataclass(frozen=True)
class Break:
    """`old`, which stands once in the text, becomes `new`; the interpreter says one of `told`."""

    name: str
    old: str
    new: str
    told: tuple[str, ...]


@dataclass(frozen=True)
class SoundKernel:
    """A function with kernels, the shapes of its i32 arguments, and its breaks."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    text: str
    breaks: tuple[Break, ...]

    def arguments(self) -> list[np.ndarray]:
        """Fresh arrays of numbers from 0 to 3; the last one, the output, of zeros."""
        rng = np.random.default_rng(7)
        arrays = [rng.integers(0, 4, shape, np.int32) for shape in self.shapes]
        arrays[-1][...] = 0
        return arrays

    def broken(self, how: Break) -> str:
        """The text with the break `how`."""
        assert self.text.count(how.old) == 1, (self.name, how.name)
        return self.text.replace(how.old, how.new)


_TRANSPOSE = SoundKernel(
    "transpose",
    ((8, 8), (8, 8)),
    """
    func transpose(A: i32[8, 8], B: i32[8, 8] out) {
      for by in range(2) blockIdx.y { for bx in range(2) blockIdx.x {
        for ty in range(4) threadIdx.y { for tx in range(4) threadIdx.x {
          alloc T: i32[4, 4] shared {
            if (tx < 4) { T[ty, tx] = A[by * 4 + ty, bx * 4 + tx] }
            barrier
            B[bx * 4 + ty, by * 4 + tx] = T[tx, ty]
          }
        } }
      } }
    }
    """,
    (
        Break("barrier_removed", "barrier", "", (UNWRITTEN, RACE)),
        Break("index_shifted", "T[tx, ty]", "T[tx + 1, ty]", (OUTSIDE,)),
        Break("two_threads_on_one_element", "T[ty, tx] =", "T[ty, tx // 2] =", (RACE,)),
        Break("groups_on_one_tile", "B[bx * 4 + ty, ", "B[ty, ", (RACE,)),
        Break("element_left_unwritten", "tx < 4", "tx < 3", (UNWRITTEN,)),
    ),
)

_MATMUL = SoundKernel(
    "matmul",
    ((8, 8), (8, 8), (8, 8)),
    """
    func matmul(A: i32[n, k], B: i32[k, m], C: i32[n, m] out) {
      for by in range(n // 4) blockIdx.y { for bx in range(m // 4) blockIdx.x {
        for ty in range(4) threadIdx.y { for tx in range(4) threadIdx.x {
          alloc S: i32[1] local { alloc AS: i32[4, 4] shared { alloc BS: i32[4, 4] shared {
            S[0] = 0i32  # begin
            for ko in range(k // 4) {
              AS[ty, tx] = A[by * 4 + ty, ko * 4 + tx]
              BS[ty, tx] = B[ko * 4 + ty, bx * 4 + tx]
              barrier  # filled
              for ki in range(4) { S[0] = S[0] + AS[ty, ki] * BS[ki, tx] }
              barrier  # used
            }
            C[by * 4 + ty, bx * 4 + tx] = S[0]
          } } }
        } }
      } }
    }
    """,
    (
        Break("barrier_after_filling_removed", "barrier  # filled", "", (UNWRITTEN, RACE)),
        Break("barrier_after_use_removed", "barrier  # used", "", (RACE,)),
        Break("sum_not_begun", "S[0] = 0i32  # begin", "", (UNWRITTEN,)),
        Break(
            "rows_overlap", "BS[ty, tx] =", "BS[(ty * 3 + tx) // 4, (ty * 3 + tx) % 4] =", (RACE,)
        ),
        Break("tile_one_too_far", "ko * 4 + tx]", "ko * 4 + tx + 1]", (OUTSIDE,)),
    ),
)

_COPY = SoundKernel(
    "copy",
    ((10,), (10,)),
    """
    func copy(A: i32[n], B: i32[n] out) {
      for g in range((n + 3) // 4) blockIdx.x {
        for t in range(4) threadIdx.x {
          if (g * 4 + t < n) { B[g * 4 + t] = A[g * 4 + t] }
        }
      }
    }
    """,
    (
        Break("guard_dropped", "g * 4 + t < n", "g * 4 + t < n + 4", (OUTSIDE,)),
        Break("groups_overlap", "B[g * 4 + t]", "B[g * 2 + t]", (RACE,)),
    ),
)

_HISTOGRAM = SoundKernel(
    "histogram",
    ((12,), (4,)),
    """
    func histogram(A: i32[12], H: i32[4] out) {
      for g in range(3) blockIdx.x {
        for t in range(4) threadIdx.x {
          atomic add H[i64(A[g * 4 + t])] with 1i32
        }
      }
    }
    """,
    (
        Break(
            "not_atomic",
            "atomic add H[i64(A[g * 4 + t])] with 1i32",
            "H[i64(A[g * 4 + t])] = H[i64(A[g * 4 + t])] + 1i32",
            (RACE,),
        ),
    ),
)

_SUM = SoundKernel(
    "total",
    ((3, 8), (3,)),
    """
    func total(A: i32[n, 8], S: i32[n] out) {
      for g in range(n) blockIdx.x {
        for t in range(8) threadIdx.x {
          alloc T: i32[8] shared {
            T[t] = A[g, t]
            for k in range(3) {
              barrier
              if (t < 4 >> k) { T[t] = T[t] + T[t + (4 >> k)] }
            }
            if (t == 0) { S[g] = T[0] }
          }
        }
      }
    }
    """,
    (
        Break("barrier_removed", "barrier", "", (UNWRITTEN, RACE)),
        Break("barrier_in_first_round_only", "barrier", "if (k == 0) { barrier }", (RACE,)),
        Break("barrier_not_for_all", "barrier", "if (t < 4) { barrier }", (DIVERGENT,)),
        Break("too_many_threads", "t < 4 >> k", "t <= 4 >> k", (OUTSIDE, RACE)),
        Break("all_write_the_sum", "t == 0", "t < 8", (RACE,)),
    ),
)

_SECOND_KERNEL = """} }
        for h in range(n // 4) blockIdx.x { for u in range(4) threadIdx.x {
          B[h * 4 + u] = W[n - 1 - h * 4 - u]"""
_REVERSE = SoundKernel(
    "reverse",
    ((8,), (8,)),
    """
    func reverse(A: i32[n], B: i32[n] out) {
      alloc W: i32[n] {
        for g in range(n // 4) blockIdx.x { for t in range(4) threadIdx.x {
          W[g * 4 + t] = A[g * 4 + t]
        } }
        for h in range(n // 4) blockIdx.x { for u in range(4) threadIdx.x {
          B[h * 4 + u] = W[n - 1 - h * 4 - u]
        } }
      }
    }
    """,
    (
        Break("workspace_half_written", "W[g * 4 + t] =", "W[g * 4 + t % 2] =", (UNWRITTEN, RACE)),
        Break(
            "one_group_too_few",
            "for g in range(n // 4)",
            "for g in range(n // 4 - 1)",
            (UNWRITTEN,),
        ),
        Break(
            "two_kernels_in_one",
            _SECOND_KERNEL,
            "barrier B[g * 4 + t] = W[n - 1 - g * 4 - t]",
            (UNWRITTEN, RACE),
        ),
    ),
)

_WINDOW = SoundKernel(
    "window",
    ((18,), (16,)),
    """
    func window(A: i32[18], B: i32[16] out) {
      for g in range(4) blockIdx.x {
        for t in range(4) threadIdx.x {
          alloc T: i32[6] shared {
            T[t + 1] = A[g * 4 + t + 1]
            if (t == 0) { T[0] = A[g * 4] }
            if (t == 3) { T[5] = A[g * 4 + 5] }
            barrier
            B[g * 4 + t] = T[t] + T[t + 1] + T[t + 2]
          }
        }
      }
    }
    """,
    (
        Break("edge_left_unwritten", "t == 3", "t == 4", (UNWRITTEN,)),
        Break("edge_over_a_neighbour", "T[5] =", "T[3] =", (RACE,)),
        Break("before_the_tile", "T[t] +", "T[t - 1] +", (OUTSIDE,)),
    ),
)

_MAXIMUM = SoundKernel(
    "maximum",
    ((2, 8), (2,)),
    """
    func maximum(A: i32[2, 8], M: i32[2] out) {
      for g in range(2) blockIdx.x {
        for t in range(8) threadIdx.x {
          alloc T: i32[1] shared {
            if (t == 0) { T[0] = 0i32 }
            barrier  # begun
            atomic max T[0] with A[g, t]
            barrier  # ended
            if (t == 7) { M[g] = T[0] }
          }
        }
      }
    }
    """,
    (
        Break("begin_races_with_update", "barrier  # begun", "", (RACE, UNWRITTEN)),
        Break("update_races_with_end", "barrier  # ended", "", (RACE,)),
        Break("never_begun", "T[0] = 0i32", "M[g] = 0i32", (UNWRITTEN,)),
    ),
)

SOUND = (_TRANSPOSE, _MATMUL, _COPY, _HISTOGRAM, _SUM, _REVERSE, _WINDOW, _MAXIMUM)
BROKEN = tuple((kernel, how) for kernel in SOUND for how in kernel.breaks)
