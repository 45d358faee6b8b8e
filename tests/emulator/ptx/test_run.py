"""Kernels of refcomp, as LLVM and as nvcc make PTX of them, compute what the interpreter does."""

import copy

import numpy as np
import pytest

from refcomp.codegen.cuda.module import print_cuda
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.toolchain import compile_source
from tests.codegen.device_kernels import TEXTS, device_kernel, draw_arguments
from tests.codegen.nvptx.kernels import compile_ptx
from tests.emulator.ptx.ptx_kernels import EmulatedPtx

# Kernels that call exp, whose last bit may differ, and that add floats in any order.
_INEXACT = ("vectors", "atomics", "softmax")
_BEGINS = {"group_sum": (128,)}  # where shared buffers of unknown size begin


def _check(text, begins):
    emulated = EmulatedPtx(text)
    for name in TEXTS:
        kernel = device_kernel(name)
        actual = draw_arguments(name)
        expected = copy.deepcopy(actual)
        interpret(kernel, expected)
        report = emulated.call(kernel, actual, begins.get(name, ()))
        assert report.findings == (), name
        for ours, theirs in zip(actual, expected, strict=True):
            tolerance = 1e-6 if name in _INEXACT else 0
            np.testing.assert_allclose(ours, theirs, tolerance, err_msg=name)


@pytest.mark.llvm
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_kernels_by_llvm_compute(arch):
    _check(compile_ptx([device_kernel(name) for name in TEXTS], arch), _BEGINS)


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_kernels_by_nvcc_compute(arch):
    source = print_cuda([device_kernel(name) for name in TEXTS])
    _check(
        compile_source(source, {"arch": arch}, "ptx", description="cuda").data.decode(),
        {"group_sum": (0,)},
    )
