"""Every intrinsic on every dtype and number of lanes, and what it is called by."""

from pathlib import Path

import mpmath
import numpy as np
import pytest

from refcomp.codegen.llvm.module import print_llvm
from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import CompilerBug
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.ir.parser import parse_func
from refcomp.oracle.lockstep.interpret import interpret
from tests.codegen.host_kernels import Kernels, print_for_host, print_generic
from tests.codegen.intrinsic_cases import (
    CASES,
    COUNT,
    draw_operands,
    intrinsic_kernel,
    kernel_as_written,
    within_bound,
)

LANES = (1, 3, 4, 8, 12, 16, 48)


@pytest.mark.llvm
def test_intrinsics_agree_with_the_interpreter(tmp_path: Path):
    kernels_of = {case: [intrinsic_kernel(*case, lanes) for lanes in LANES] for case in CASES}
    kernels = Kernels([k for ks in kernels_of.values() for k in ks], tmp_path, passes="sroa")
    wrong = []
    for (name, dtype), funcs in kernels_of.items():
        operands = draw_operands(name, dtype)
        result = to_numpy(INTRINSICS[name].result_dtype(dtype))
        expected = np.zeros(COUNT, result)
        interpret(kernel_as_written(name, dtype), [*operands, expected])
        for lanes, func in zip(LANES, funcs, strict=True):
            actual = np.zeros(COUNT, result)
            assert kernels.call(func, [*operands, actual]) == 0
            good = within_bound(name, dtype, actual, expected)
            for k in np.flatnonzero(~good)[:1]:
                inputs = [operand[k] for operand in operands]
                wrong.append(f"{func.name} {inputs}: {actual[k]!r}, not {expected[k]!r}")
            del lanes
    assert not wrong, "\n".join(wrong)


@pytest.mark.llvm
@pytest.mark.parametrize("lanes", [1, 16])
def test_sigmoid_keeps_its_bound(lanes, tmp_path: Path):
    func = intrinsic_kernel("sigmoid", "f32", lanes, count=4096)
    x = np.linspace(-87, 20, 4096, dtype=np.float32)
    actual = np.zeros_like(x)
    Kernels([func], tmp_path).call(func, [x, actual])
    exact = np.array([float(1 / (1 + mpmath.exp(-mpmath.mpf(float(v))))) for v in x])
    ulps = np.abs(actual - exact) / np.spacing(exact.astype(np.float32))
    assert ulps.max() <= INTRINSICS["sigmoid"].ulp


def _printed(body, vector_bits=512):
    func = parse_func(f"func f(A: f32[n], B: f32[n] out, C: f64[n] out) {{ {body} }}")
    return print_generic([func], vector_bits)


@pytest.mark.parametrize(
    ("lanes", "vector_bits", "called"),
    [
        (16, 512, "_ZGVeN16v_expf(<16 x float>"),
        (16, 256, "_ZGVdN8v_expf(<8 x float>"),
        (16, 128, "_ZGVbN4v_expf(<4 x float>"),
        (8, 512, "_ZGVdN8v_expf(<8 x float>"),
        (12, 512, "_ZGVbN4v_expf(<4 x float>"),
        (32, 512, "_ZGVeN16v_expf(<16 x float>"),
        (6, 512, "expf(float"),
    ],
)
def test_vectors_take_the_widest_version_that_divides_them(lanes, vector_bits, called):
    source = _printed(f"B@[ramp(0, 1, {lanes})] = exp(A@[ramp(0, 1, {lanes})])", vector_bits)
    assert f"@{called}" in source.text
    width = 1 if "_ZGV" not in called else int(called.partition("N")[2].partition("v")[0])
    assert source.text.count(f"call {'float' if width == 1 else f'<{width} x float>'} @") == (
        lanes // width
    )
    assert ("libmvec" in source.requires) == (width > 1)


def test_two_arguments_and_doubles():
    ramp = "ramp(0, 1, 8)"
    source = _printed(f"C@[{ramp}] = pow(f64x8(A@[{ramp}]), C@[{ramp}])")
    assert "@_ZGVeN8vv_pow(<8 x double>" in source.text


def test_other_processors_have_no_vector_maths():
    func = parse_func(
        "func f(A: f32[4], B: f32[4] out) { B@[ramp(0, 1, 4)] = exp(A@[ramp(0, 1, 4)]) }"
    )
    source = print_llvm([func], triple="aarch64-linux-gnu", layout="e", vector_bits=128)
    assert "_ZGV" not in source.text and source.text.count("call float @expf") == 4
    assert source.requires == {"libm"}


def test_what_was_not_lowered_is_refused():
    func = parse_func("func f(A: f32[4], B: f32[4] out) { B@[0] = sigmoid(A@[0]) }")
    with pytest.raises(CompilerBug, match="the host has no intrinsic sigmoid of dtype f32"):
        print_generic([func])


@pytest.mark.llvm
def test_every_function_of_the_table_is_in_the_library(tmp_path: Path):
    """The module links: `--no-undefined` refuses a name that no library has."""
    funcs = [intrinsic_kernel(name, dtype, 16) for name, dtype in CASES]
    for bits in (128, 256, 512):
        if bits <= 256 or "avx512f" in Path("/proc/cpuinfo").read_text():
            (tmp_path / str(bits)).mkdir()
            Kernels(funcs, tmp_path / str(bits), print_generic(funcs, bits), passes="sroa")
    assert print_for_host(funcs).requires >= {"libm"}
