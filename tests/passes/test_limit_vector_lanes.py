"""Vectors of 128 bytes are cut, because LLVM moves their loads behind stores, for NVPTX."""

import numpy as np
import pytest

import refcomp
from refcomp.compiler import build_lowered
from refcomp.foundation.target import target_or_current
from refcomp.ir.expr import Expr
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk
from refcomp.ir.verify import verify
from refcomp.passes import limit_vector_lanes as module
from refcomp.passes.limit_vector_lanes import limit_vector_lanes
from tests.passes.docstring_examples import assert_docstring_holds


def test_docstring():
    assert_docstring_holds(module, limit_vector_lanes)


def _lengths(dtype, lanes):
    text = f"B@[ramp(0, 1, {lanes})] = A@[ramp(m, 1, {lanes})]"
    func = parse_func(f"func f(A: {dtype}[n], B: {dtype}[n] out, m: i64) {{ {text} }}")
    limited = limit_vector_lanes(func)
    verify(limited, "flat")
    return {node.dtype.lanes for node in walk(limited.body) if isinstance(node, Expr)} - {1}


@pytest.mark.parametrize(
    ("dtype", "lanes", "expected"),
    [
        ("i64", 15, {15}),
        ("i64", 16, {8}),
        ("f64", 17, {8}),
        ("f32", 31, {31}),
        ("f32", 36, {8, 4}),
        ("i8", 128, {8}),
    ],
)
def test_vectors_of_128_bytes_are_cut(dtype, lanes, expected):
    assert _lengths(dtype, lanes) == expected


def test_calls_on_vectors_keep_their_lengths():
    load = "extern i8x16 llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16(A@[ramp(0, 1, 16)])"
    func = parse_func(f"""func f(A: i8[16], B: i8[16] out, C: i64[16], D: i64[16] out) {{
        B@[ramp(0, 1, 16)] = {load}
        D@[ramp(0, 1, 16)] = C@[ramp(0, 1, 16)]
    }}""")
    assert limit_vector_lanes(func) is func


_MOVED = """func moved(A: i64[16], B: i64[16] out) {
  for b in range(1) blockIdx.x {
    for t in range(16) threadIdx.x {
      alloc S: i64[16] shared {
        S[t] = A[t]
        if (t == 0) {
          for j in range(16) vectorized {
            let v: i64 = S[j] { S[j] = 7 B[j] = v }
          }
        }
      }
    }
  }
}"""


@pytest.mark.llvm
def test_a_vector_that_is_loaded_before_a_store_keeps_its_elements():
    module = build_lowered([parse_func(_MOVED)], target_or_current("nvptx -code=ptx"), 1)
    device = refcomp.cuda_emulator("sm_90")
    given = np.arange(16)
    result = refcomp.empty((16,), "int64", device)
    module(refcomp.array(given, device), result)
    assert result.asnumpy().tolist() == given.tolist()
