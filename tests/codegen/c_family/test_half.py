"""f16 held in f32: rounded where it must be, and nowhere else."""

import numpy as np
import pytest

from refcomp.ir.parser import parse_func
from tests.codegen.host_kernels import same_bits
from tests.codegen.opencl.kernels import ALL, POCL, OpenCLKernels, print_body

PARAMS = "A: f16[64], B: f16[64] out, D: f64[64]"


def _statement(body: str, extensions=POCL) -> str:
    text = print_body(body, PARAMS, extensions=extensions)
    return next(line for line in text.splitlines() if "B[" in line and "=" in line).strip()


def test_a_result_is_rounded_once_and_not_again_where_it_is_stored():
    assert _statement("B@[0] = A@[0] + A@[1]") == (
        "B[0l] = to_bits_f16_f32(from_bits_f16(A[0l]) + from_bits_f16(A[1l]));"
    )
    assert _statement("B@[0] = A@[0] + A@[1]", ALL) == "B[0l] = A[0l] + A[1l];"
    assert _statement("B@[0] = min(A@[0], A@[1])").count("to_bits") == 1


def test_a_copy_converts_nothing():
    assert _statement("B@[0] = A@[0]") == "B[0l] = A[0l];"


def test_f64_is_rounded_at_once():
    assert _statement("B@[0] = f16(D@[0])") == "B[0l] = to_bits_f16_f64(D[0l]);"


@pytest.mark.pocl
def test_all_f16_survive_a_copy_and_a_sum_with_zero():
    func = parse_func("""
    func f(A: f16[65536], B: f16[65536] out, C: f16[65536] out) {
      for i in range(8192) {
        B@[ramp(i * 8, 1, 8)] = A@[ramp(i * 8, 1, 8)]
        for j in range(8) { C@[i * 8 + j] = A@[i * 8 + j] * 1.0f16 }
      }
    }
    """)
    a = np.arange(65536, dtype=np.uint16).view(np.float16)
    b, c = np.zeros_like(a), np.zeros_like(a)
    OpenCLKernels([func]).call(func, [a, b, c])
    assert b.tobytes() == a.tobytes()
    assert same_bits(c, a).all()
