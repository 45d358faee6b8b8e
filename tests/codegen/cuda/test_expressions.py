"""Every node on f16, which has instructions of its own: run by g++, and compiled by nvcc."""

from itertools import chain

import numpy as np
import pytest

from refcomp.codegen.cuda.module import print_cuda
from refcomp.toolchain import compile_source
from tests.codegen.cuda.host_kernels import HostKernels
from tests.codegen.host_kernels import same_bits
from tests.codegen.one_operation import (
    binary_cases,
    cast_cases,
    choice_cases,
    constant_cases,
    let_cases,
)
from tests.codegen.opencl.kernels import together

LANES = (1, 4)
CASES = [
    case
    for case in chain(binary_cases(), constant_cases(), cast_cases(), choice_cases(), let_cases())
    if "f16" in case.name
]


def _kernels():
    return [together([case.kernels[lanes] for case in CASES], f"all_x{lanes}") for lanes in LANES]


@pytest.mark.gcc
def test_nodes_agree_with_the_interpreter():
    kernels = _kernels()
    built = HostKernels(kernels)
    wrong = []
    for kernel in kernels:
        results = [case.empty_result() for case in CASES]
        args = [(*case.operands, result) for case, result in zip(CASES, results, strict=True)]
        built.call(kernel, list(chain.from_iterable(args)))
        for case, result in zip(CASES, results, strict=True):
            for k in np.flatnonzero(~same_bits(result, case.expected))[:1]:
                inputs = [operand[k] for operand in case.operands]
                wrong.append(f"{case.name}: {inputs} gives {result[k]}, not {case.expected[k]}")
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.nvcc
def test_nvcc_compiles_each_node():
    source = print_cuda(_kernels())
    ptx = compile_source(source, {"arch": "sm_75"}, "ptx", description="cuda").data.decode()
    for instruction in ("add.rn.f16", "sub.rn.f16", "mul.rn.f16", "mul.rn.f16x2"):
        assert instruction in ptx
    assert "fma.rn.f16" not in ptx and "mul.f16" not in ptx
