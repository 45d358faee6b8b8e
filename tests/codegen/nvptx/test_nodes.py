"""Every node, intrinsic and access: run on the host against the interpreter, and compiled."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from refcomp.foundation.dtype import to_numpy
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.ir.parser import parse_func
from refcomp.oracle.lockstep.interpret import interpret
from tests.codegen.access_cases import DTYPES, access_arguments, access_kernel, accesses
from tests.codegen.host_kernels import same_bits
from tests.codegen.intrinsic_cases import (
    CASES,
    COUNT,
    draw_operands,
    intrinsic_kernel,
    kernel_as_written,
    within_bound,
)
from tests.codegen.nvptx.kernels import NvptxOnHost, assemble, compile_ptx, print_kernels
from tests.codegen.one_operation import binary_cases, cast_cases, choice_cases, let_cases

LANES = (1, 4)
GENERATORS = (binary_cases, cast_cases, choice_cases, let_cases)


@pytest.mark.llvm
def test_remainders_and_halves_agree_with_the_interpreter(tmp_path: Path):
    """Those nodes that NVIDIA GPUs have spelled in another way than hosts."""
    drawn = [case for case in binary_cases() if "mod" in case.name.lower() or "f16" in case.name]
    assert drawn
    simulation = NvptxOnHost([case.kernels[n] for case in drawn for n in LANES], tmp_path)
    wrong = []
    for case, lanes in itertools.product(drawn, LANES):
        result = case.empty_result()
        simulation.call(case.kernels[lanes], [*case.operands, result])
        bad = np.flatnonzero(~same_bits(result, case.expected))
        wrong += [f"{case.name} x{lanes}: {result[k]}, not {case.expected[k]}" for k in bad[:1]]
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.llvm
def test_intrinsics_agree_with_the_interpreter(tmp_path: Path):
    """By libm in the place of libdevice: the names and operands are judged, not the accuracy."""
    kernels = {case: [intrinsic_kernel(*case, lanes) for lanes in LANES] for case in CASES}
    simulation = NvptxOnHost([k for ks in kernels.values() for k in ks], tmp_path)
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
    drawn = [(access_kernel(*a, dtype), dtype) for dtype in DTYPES for a in accesses(dtype, 4)]
    simulation = NvptxOnHost([func for func, _ in drawn], tmp_path)
    wrong = []
    for func, dtype in drawn:
        expected, actual = access_arguments(dtype), access_arguments(dtype)
        interpret(func, expected)
        simulation.call(func, actual)
        if not all(same_bits(a, e).all() for a, e in zip(actual, expected, strict=True)):
            wrong.append(func.name)
    assert not wrong


@pytest.mark.llvm
@pytest.mark.nvcc
def test_nodes_and_accesses_compile():
    """All of them to PTX, half of them as vectors. ptxas, which takes long, gets every fourth."""
    turn = itertools.cycle(LANES)
    nodes = [case.kernels[next(turn)] for cases in GENERATORS for case in cases()]
    reads = [access_kernel(*a, dtype) for dtype in DTYPES for a in accesses(dtype, 4)]
    kernels = [*nodes, *reads]
    ptx = compile_ptx(kernels, passes="always-inline,sroa")
    assert ptx.count(".entry") == len(kernels) and ".extern .func" not in ptx
    assemble(compile_ptx([*nodes[::4], *reads[::4]], passes="always-inline,sroa"))


def test_remainders_are_the_librarys_and_roots_are_instructions():
    func = parse_func("""
    func f(A: f32[8], B: f16[8], C: f64[8], R: f32[8] out, S: f16[8] out, T: f64[8] out) {
      R@[0] = truncmod(A@[0], A@[1])  S@[0] = truncmod(B@[0], B@[1])
      T@[0] = truncmod(C@[0], C@[1])  R@[1] = sqrt(A@[2])
    }
    """)
    source = print_kernels([func])
    assert source.text.count("call float @__nv_fmodf") == 2
    assert source.text.count("call double @__nv_fmod(") == 1
    assert "call float @llvm.sqrt.f32" in source.text and " frem " not in source.text
    assert source.requires == {"libdevice"}
