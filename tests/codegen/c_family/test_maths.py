"""Every intrinsic on every dtype, run on PoCL, and what it is called by."""

import numpy as np
import pytest

from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import CompilerBug
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.oracle.lockstep.interpret import interpret
from tests.codegen.intrinsic_cases import (
    CASES,
    COUNT,
    draw_operands,
    intrinsic_kernel,
    kernel_as_written,
    within_bound,
)
from tests.codegen.opencl.kernels import POCL, OpenCLKernels, print_body, together


@pytest.mark.pocl
@pytest.mark.parametrize("lanes", [1, 2])
def test_intrinsics_agree_with_the_interpreter(lanes):
    every = together([intrinsic_kernel(*case, lanes) for case in CASES], f"every_x{lanes}")
    operands = [draw_operands(*case) for case in CASES]
    results = [
        np.zeros(COUNT, to_numpy(INTRINSICS[name].result_dtype(dtype))) for name, dtype in CASES
    ]
    args = [arg for pair in zip(operands, results, strict=True) for arg in (*pair[0], pair[1])]
    OpenCLKernels([every]).call(every, args)
    wrong = []
    for (name, dtype), inputs, actual in zip(CASES, operands, results, strict=True):
        expected = np.zeros_like(actual)
        interpret(kernel_as_written(name, dtype), [*inputs, expected])
        for k in np.flatnonzero(~within_bound(name, dtype, actual, expected))[:1]:
            values = [operand[k] for operand in inputs]
            wrong.append(f"{name} {dtype} {values}: {actual[k]!r}, not {expected[k]!r}")
    assert not wrong, "\n".join(wrong)


def test_functions_of_the_table_are_intrinsics():
    tables = load_spelling("c_family", "opencl").tables
    for kind, functions in tables["maths"].items():
        for name in functions:
            assert kind in INTRINSICS[name].kinds
    lowered = {"rsqrt", "sigmoid", "isnan", "isinf", "isfinite"}
    named = {name for functions in tables["maths"].values() for name in functions}
    assert named | lowered | set(tables["reinterpreted"]) == set(INTRINSICS)


def test_a_function_whose_error_may_exceed_the_bound_is_computed_in_f64():
    assert "B[0l] = (float)erf((double)A[0l]);" in print_body("B@[0] = erf(A@[0])")
    assert "B[0l] = exp(A[0l]);" in print_body("B@[0] = exp(A@[0])")
    assert "B[0l] = erf(A[0l]);" in print_body("B@[0] = erf(A@[0])", extensions=())


def test_vectors_are_computed_lane_by_lane_but_where_results_are_exact():
    text = print_body("B@[ramp(0, 1, 4)] = exp(sqrt(A@[ramp(0, 1, 4)]))")
    assert "const float4 t = sqrt(vload4(0, &A[0l]));" in text
    assert "(float4)(exp(t.s0), exp(t.s1), exp(t.s2), exp(t.s3))" in text


@pytest.mark.parametrize("call", ["f16(sigmoid(A@[0]))", "exp(f16(A@[0]))"])
def test_what_was_not_lowered_is_refused(call):
    with pytest.raises(CompilerBug, match="the device has no intrinsic (sigmoid|exp) of dtype f"):
        print_body(f"B@[0] = f32({call})", extensions=POCL)
