"""Loops, branches and arrays as C."""

import pytest

from refcomp.codegen.opencl.module import print_opencl
from refcomp.foundation.dtype import F32, I64
from refcomp.foundation.errors import CompilerBug
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import FloatImm, IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.stmt import Allocate, Store
from tests.codegen.opencl.kernels import print_body

PARAMS = "B: f32[64] out, n: i64, i: i32"


def test_the_end_of_a_loop_is_evaluated_once():
    text = print_body("for k in range(n, extent=n * 2) { B@[k] = 0.0f32 }", PARAMS)
    assert "  const long t = (long)(n + n * 2ul);\n  for (long k = n; k < t; ++k) {" in text
    assert "for (int k = 0; k < i; ++k) {" in print_body(
        "for k: i32 in range(i) { B@[k] = 0.0f32 }", PARAMS
    )


def test_branches():
    text = print_body("if (n < 3) { B@[0] = 0.0f32 } else { B@[1] = 0.0f32 }", PARAMS)
    assert "  if (n < 3l) {\n    B[0l] = 0.0f;\n  } else {\n    B[1l] = 0.0f;\n  }\n" in text


def in_a_group(body):
    """What is printed of `body` where threads share S."""
    return print_body(
        f"for t in range(4) threadIdx.x {{ alloc S: f32[4] shared {{ {body} }} }}", PARAMS
    )


MEET = "S@[t] = 1.0f32 barrier B@[t] = S@[3 - t]"


@pytest.mark.parametrize(
    ("body", "is_kept"),
    [
        (f"for k in range(5) {{ for j in range(n) {{ {MEET} }} }}", True),
        (f"for k in range(n) {{ for j in range(n) {{ {MEET} }} }}", True),
        (f"for k in range(5) {{ for j in range(2) {{ {MEET} }} }}", False),
        (f"for j in range(n) {{ {MEET} }}", False),
        (f"for k in range(5) {{ {MEET} for j in range(n) {{ B@[t] = 0.0f32 }} }}", False),
    ],
)
def test_inner_loop_that_may_pass_a_barrier_by_is_kept_in_memory_with_that_around(body, is_kept):
    """See Note [Loops that PoCL does not leave]."""
    text = in_a_group(body)
    kept = "volatile " if is_kept else ""
    assert f"for ({kept}long j = 0l; " in text
    assert text.count("for (volatile long") == 2 * is_kept


def test_every_loop_around_an_inner_loop_that_may_pass_a_barrier_by_is_kept():
    loops = "for k in range(5) { for i in range(n) { for j in range(n) { "
    text = in_a_group(f"{loops} {MEET} }} for m in range(4) {{ {MEET} }} }} }}")
    assert text.count("for (volatile long") == 3
    assert "for (long m = 0l; " in text


def test_shared_arrays_stand_at_the_top_and_local_ones_where_they_are():
    body = """
    for g in range(2) blockIdx.x {
      if (n < 3) {
        alloc S: f32[8] shared align 64 { alloc T: f32[2, 3] local { S@[0] = T@[0] } }
      }
    }
    """
    lines = print_body(body, PARAMS).splitlines()
    start = lines.index("    const int i) {")
    assert lines[start + 1] == "  __local float S[8] __attribute__((aligned(64)));"
    assert "    float T[6];" in lines


def test_shared_arrays_of_unknown_size_are_the_last_parameters():
    allocs = "alloc S: f32[n] shared { alloc T: bool[n, 2] shared { T@[0] = S@[0] < 1.0f32 } }"
    text = print_body(f"for g in range(2) blockIdx.x {{ {allocs} }}", PARAMS)
    assert "int i,\n    __local float* restrict S,\n    __local uchar* restrict T) {" in text


def test_global_memory_in_a_kernel_is_refused():
    out, inner = Buffer("B", F32, (IntImm(1, I64),)), Buffer("T", F32, (IntImm(1, I64),))
    store = Store(out, IntImm(0, I64), FloatImm(1.0, F32))
    func = PrimFunc("f", (out,), Allocate(inner, store), ("B",))
    with pytest.raises(CompilerBug, match="T, a global buffer, is allocated in a kernel"):
        print_opencl([func], extensions=())


def test_a_chain_of_lets_may_be_long():
    lets = "".join(f"let v{k}: i64 = n + {k} {{ " for k in range(300))
    text = print_body(f"{lets} B@[v299] = 0.0f32 {'}' * 300}", PARAMS)
    assert "  const long v299 = (long)(n + 299ul);\n  B[v299] = 0.0f;" in text


def test_a_hint_names_global_memory_only():
    params = "A: f32[64], B: f32[64] out, n: i64"
    text = print_body("prefetch A[n * 2] B@[0] = 1.0f32", params)
    assert "  prefetch(&A[n * 2ul], 1);\n" in text
    assert "prefetch" not in print_body("alloc T: f32[2] local { prefetch T[0] }", params)
