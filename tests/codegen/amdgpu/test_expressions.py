"""Every node, intrinsic and access: run on the host against the interpreter, and compiled."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from refcomp.foundation.dtype import to_numpy
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.ir.parser import parse_func
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.toolchain import disassemble
from tests.codegen.access_cases import DTYPES, access_arguments, access_kernel, accesses
from tests.codegen.amdgpu.kernels import (
    TOOLS_AND_GPUS,
    HostSimulation,
    compile_kernels,
    print_kernels,
    use_llvm,
    with_llvm,
)
from tests.codegen.host_kernels import same_bits
from tests.codegen.intrinsic_cases import (
    CASES,
    COUNT,
    draw_operands,
    intrinsic_kernel,
    kernel_as_written,
    within_bound,
)
from tests.codegen.one_operation import (
    binary_cases,
    cast_cases,
    choice_cases,
    constant_cases,
    let_cases,
)

LANES = (1, 4)
GENERATORS = (binary_cases, cast_cases, choice_cases, let_cases, constant_cases)


@pytest.mark.llvm
@pytest.mark.parametrize("cases", GENERATORS)
def test_nodes_agree_with_the_interpreter(cases, tmp_path: Path):
    drawn = list(cases())
    simulation = HostSimulation([case.kernels[n] for case in drawn for n in LANES], tmp_path)
    wrong = []
    for case in drawn:
        for lanes in LANES:
            result = case.empty_result()
            simulation.call(case.kernels[lanes], [*case.operands, result])
            bad = np.flatnonzero(~same_bits(result, case.expected))
            if bad.size:
                k = bad[0]
                inputs = [operand[k] for operand in case.operands]
                told = f"{inputs} gives {result[k]}, not {case.expected[k]}"
                wrong.append(f"{case.name} x{lanes}: {told}")
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.llvm
def test_intrinsics_agree_with_the_interpreter(tmp_path: Path):
    kernels = {case: [intrinsic_kernel(*case, lanes) for lanes in LANES] for case in CASES}
    simulation = HostSimulation([k for ks in kernels.values() for k in ks], tmp_path)
    wrong = []
    for (name, dtype), funcs in kernels.items():
        operands = draw_operands(name, dtype)
        expected = np.zeros(COUNT, to_numpy(INTRINSICS[name].result_dtype(dtype)))
        interpret(kernel_as_written(name, dtype), [*operands, expected])
        for func in funcs:
            actual = np.zeros_like(expected)
            simulation.call(func, [*operands, actual])
            good = within_bound(name, dtype, actual, expected)
            wrong += [f"{func.name}: {actual[k]}" for k in np.flatnonzero(~good)[:1]]
    assert not wrong, "\n".join(wrong)


@pytest.mark.llvm
def test_accesses_agree_with_the_interpreter(tmp_path: Path):
    drawn = [(access_kernel(*a, dtype), dtype) for dtype in DTYPES for a in accesses(dtype, 16)]
    simulation = HostSimulation([func for func, _ in drawn], tmp_path)
    wrong = []
    for func, dtype in drawn:
        expected, actual = access_arguments(dtype), access_arguments(dtype)
        interpret(func, expected)
        simulation.call(func, actual)
        if not all(same_bits(a, e).all() for a, e in zip(actual, expected, strict=True)):
            wrong.append(func.name)
    assert not wrong


@pytest.mark.rocm
@pytest.mark.parametrize(("llvm", "gpu"), TOOLS_AND_GPUS)
def test_nodes_compile(llvm, gpu, monkeypatch):
    """All of them at once, half of them as vectors, without what takes long."""
    use_llvm(llvm, monkeypatch)
    turn = itertools.cycle(LANES if gpu == "gfx90a" else LANES[::-1])
    nodes = [case.kernels[next(turn)] for cases in GENERATORS[:4] for case in cases()]
    intrinsics = [intrinsic_kernel(*case, next(turn)) for case in CASES]
    reads = [access_kernel(*a, dtype) for dtype in DTYPES for a in accesses(dtype, 4)]
    kernels = [*nodes, *intrinsics, *reads[gpu == "gfx90a" :: 2]]
    compile_kernels(kernels, gpu, passes="always-inline,sroa", verify="0")


def _assembly(body, dtype="f16"):
    params = f"A: {dtype}[64], B: {dtype}[64], C: {dtype}[64] out"
    func = parse_func(f"func f({params}) {{ for t in range(64) threadIdx.x {{ C@[t] = {body} }} }}")
    return disassemble(compile_kernels([func]))


@pytest.mark.rocm
@pytest.mark.parametrize("llvm", [with_llvm(llvm) for llvm in ("15", "16", "19")])
def test_half_precision_is_divided_in_single_precision(llvm, monkeypatch):
    use_llvm(llvm, monkeypatch)
    text = _assembly("A@[t] / B@[t]")
    assert "v_div_fixup_f32" in text and "div_fixup_f16" not in text
    assert "v_cvt_f16_f32" in text


def test_remainders_and_roots_are_the_librarys():
    func = parse_func("""
    func f(A: f32[8], B: f16[8], C: f64[8], R: f32[8] out, S: f16[8] out, T: f64[8] out) {
      R@[0] = truncmod(A@[0], A@[1])  S@[0] = truncmod(B@[0], B@[1])
      T@[0] = truncmod(C@[0], C@[1])  R@[1] = sqrt(A@[2])
    }
    """)
    source = print_kernels([func])
    assert source.text.count("call float @__ocml_fmod_f32") == 2
    assert source.text.count("call double @__ocml_fmod_f64") == 1
    assert "call float @__ocml_sqrt_f32" in source.text and " frem " not in source.text
    assert source.requires == {"ocml"}


def test_what_rounds_to_nearest_is_known_to_every_llvm():
    func = parse_func("func f(A: f32[8], R: f32[8] out) { R@[0] = round(A@[0]) }")
    assert "@llvm.rint.f32" in print_kernels([func]).text
