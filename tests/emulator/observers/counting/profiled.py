"""Kernels whose counts can be told by hand, as text, and what a profile counts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from refcomp.emulator import LaunchReport
from refcomp.emulator.execution.launch import Extents
from refcomp.emulator.observers.counting import KernelCounts, Profile, WaveCounting
from refcomp.ir.parser import parse_func
from refcomp.ir.verify import verify
from tests.emulator.kernels import GPU, Kernels

# A tile of 32 x 32 by way of shared memory, whose rows are PITCH apart.
TRANSPOSE = """
func transpose(A: f32[64, 64], B: f32[64, 64] out) {
  for by in range(2) blockIdx.y { for bx in range(2) blockIdx.x {
    for ty in range(32) threadIdx.y { for tx in range(32) threadIdx.x {
      alloc T: f32[1056] shared {
        T@[ty * PITCH + tx] = A@[(by * 32 + ty) * 64 + bx * 32 + tx]
        barrier
        B@[(bx * 32 + ty) * 64 + by * 32 + tx] = T@[tx * PITCH + ty]
      }
    } }
  } }
}
"""
STRIDED = """
func strided(A: f32[8192], B: f32[256] out) {
  for g in range(4) blockIdx.x { for t in range(64) threadIdx.x {
    B@[g * 64 + t] = A@[(g * 64 + t) * 32]
  } }
}
"""
# Eight counters, each of which eight lanes of a wave update.
COUNTERS = """
func counters(H: i32[8] out) {
  for g in range(4) blockIdx.x { for t in range(64) threadIdx.x {
    atomic add H[t % 8] with i32(t)
  } }
}
"""
SHARED_COUNTERS = """
func shared_counters(H: i32[8] out) {
  for g in range(4) blockIdx.x { for t in range(64) threadIdx.x {
    alloc T: i32[8] shared {
      if (t < 8) { T@[t] = 0i32 }
      barrier
      atomic add T[t % 8] with i32(t)
      barrier
      if (t < 8) { H@[t] = T@[t] }
    }
  } }
}
"""


def profile_text(
    text: str, args: Sequence[Any], grid: Extents, block: Extents, gpu: str = GPU
) -> tuple[KernelCounts, LaunchReport]:
    """What a profile counts of one launch of the kernel, compiled for `gpu`."""
    kernel = parse_func(text)
    verify(kernel, "device")
    kernels, profile = Kernels([kernel], gpu), Profile()
    kernels.gpu.observers = (WaveCounting(profile),)
    report = kernels.run(kernel, args, grid, block)
    assert report.findings == ()
    (counts,) = profile.kernels
    return counts, report
