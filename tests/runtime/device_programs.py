"""Programs that the tests of this folder run: vector add, and a host loop with a workspace."""

from refcomp.foundation.artifacts import ScalarParam, Signature, Source, TensorParam
from refcomp.foundation.dtype import F32, I32
from refcomp.ir.func import Program
from refcomp.ir.parser import parse_program
from refcomp.runtime.launch import KernelSignature, kernel_signature

ADD = parse_program("""
func add(A: f32[n], B: f32[n], C: f32[n] out) {
  launch add_kernel (A, B, C, n) grid ((n + 63) // 64, 1, 1) block (64, 1, 1)
}

func add_kernel(A: f32[n], B: f32[n], C: f32[n] out, n: i64) {
  for group in range((n + 63) // 64) blockIdx.x {
    for item in range(64) threadIdx.x {
      if (group * 64 + item < n) {
        C@[group * 64 + item] = A@[group * 64 + item] + B@[group * 64 + item]
      }
    }
  }
}
""")
ADD_SIGNATURE = Signature(
    "add",
    (
        TensorParam("A", F32, ("n",)),
        TensorParam("B", F32, ("n",)),
        TensorParam("C", F32, ("n",), is_output=True),
    ),
    ("n",),
)
ADD_OPENCL = Source(
    """__kernel void add_kernel(__global const float* A, __global const float* B,
                         __global float* C, long n) {
  long i = get_group_id(0) * 64 + get_local_id(0);
  if (i < n) C[i] = A[i] + B[i];
}
""",
    "opencl",
    line_map=("func add_kernel", "", "for group", "C@[group * 64 + item] = ..."),
)

# `steps` times B = A + 1, A = B, by way of a workspace and of a dynamic shared buffer.
STEPS = parse_program("""
func steps(A: f32[n] out, steps: i32) {
  alloc W: f32[n * 2] {
    for k in range(i64(steps)) {
      launch up (A, W, n, k) grid (n, 1, 1) block (1, 1, 1) shared_bytes (n * 4)
      if (k % 2 == 0) {
        launch back (W, A, n) grid (n, 1, 1) block (1, 1, 1)
      } else {
        launch back (W, A, n) grid (1, 1, 1) block (n, 1, 1)
      }
    }
  }
}

func up(A: f32[n], W: f32[n] out, n: i64, k: i64) {
  for i in range(n) blockIdx.x {
    W@[i] = A@[i] + f32(k)
  }
}

func back(W: f32[n], A: f32[n] out, n: i64) {
  for i in range(n) blockIdx.x {
    A@[i] = W@[i]
  }
}
""")
STEPS_SIGNATURE = Signature(
    "steps",
    (TensorParam("A", F32, ("n",), is_output=True), ScalarParam("steps", I32)),
    ("n",),
)
STEPS_OPENCL = Source(
    """#define ITEM (get_group_id(0) * get_local_size(0) + get_local_id(0))
__kernel void up(__global const float* A, __global float* W, long n, long k, __local float* S) {
  S[0] = A[ITEM];
  W[ITEM] = S[0] + (float)k;
}
__kernel void back(__global const float* W, __global float* A, long n) { A[ITEM] = W[ITEM]; }
""",
    "opencl",
)


def signatures_of(program: Program) -> tuple[KernelSignature, ...]:
    """How the kernels of `program` are launched."""
    return tuple(kernel_signature(kernel) for kernel in program.kernels)
