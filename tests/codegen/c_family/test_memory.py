"""Every shape of access on every dtype, run on PoCL, against the interpreter."""

import pytest

from refcomp.oracle.lockstep.interpret import interpret
from tests.codegen.access_cases import DTYPES, access_arguments, access_kernel, accesses
from tests.codegen.host_kernels import same_bits
from tests.codegen.opencl.kernels import OpenCLKernels, print_body, together


@pytest.mark.pocl
def test_accesses_agree_with_the_interpreter():
    cases = {
        dtype: [access_kernel(*access, dtype) for access in accesses(dtype, 16)] for dtype in DTYPES
    }
    all_of = {dtype: together(funcs, f"all_{dtype}") for dtype, funcs in cases.items()}
    kernels = OpenCLKernels(list(all_of.values()))
    wrong = []
    for dtype, funcs in cases.items():
        expected = [access_arguments(dtype) for _ in funcs]
        actual = [access_arguments(dtype) for _ in funcs]
        for func, args in zip(funcs, expected, strict=True):
            interpret(func, args)
        kernels.call(all_of[dtype], [arg for args in actual for arg in args])
        wrong += [
            func.name
            for func, ours, theirs in zip(funcs, actual, expected, strict=True)
            if not all(same_bits(a, e).all() for a, e in zip(ours, theirs, strict=True))
        ]
    assert not wrong


def test_each_shape_has_its_own_text():
    assert "vstore16(vload16(0, &A[k]), 0, &B[k]);" in print_body(
        "B@[ramp(k, 1, 16)] = A@[ramp(k, 1, 16)]"
    )
    strided = print_body("B@[ramp(k, 2, 4)] = A@[ramp(k, -2, 4)]")
    assert "(float4)(A[k], A[k - 2l], A[k - 4l], A[k - 6l])" in strided
    assert "B[k + 6l] = t.s3;" in strided
    gathered = print_body("B@[ramp(k, k, 4)] = A@[ramp(k, k, 4)]")
    assert "A[t.s3]" in gathered and "B[t_2.s3] = t_1.s3;" in gathered
    masked = print_body("B@[ramp(k, 1, 4)] = A@[ramp(k, 1, 4) if ramp(k, 1, 4) < broadcast(9, 4)]")
    assert "t.s1 ? A[k + 1l] : 0.0f" in masked and "vstore4(" in masked
    assert "if (k < 3l) B[k] = k < 2l ? A[k] : 0.0f;" in print_body(
        "B@[k] = A@[k if k < 2] if k < 3"
    )


def test_a_subscript_of_64_bits_stays_unsigned_and_a_narrow_one_does_not():
    assert "B[k * 3ul - 1ul] = 0.0f;" in print_body("B@[k * 3 - 1] = 0.0f32")
    assert "B[(int)((int)k * 3u)] = 0.0f;" in print_body("B@[i32(k) * 3i32] = 0.0f32")
