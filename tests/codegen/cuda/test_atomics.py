"""Atomic updates of every dtype, with every operator: run by g++, and compiled by nvcc."""

import copy

import numpy as np
import pytest

from refcomp.codegen.cuda.module import print_cuda
from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.toolchain import compile_source
from tests.codegen.atomic_cases import ATOMIC_KINDS, atomic_kernel
from tests.codegen.cuda.host_kernels import HostKernels

KERNELS = [atomic_kernel(*kind) for kind in ATOMIC_KINDS]


@pytest.mark.gcc
def test_updates_agree_with_the_interpreter():
    built = HostKernels(KERNELS)
    rng = np.random.default_rng(3)
    for kernel, (_, dtype) in zip(KERNELS, ATOMIC_KINDS, strict=True):
        scalar = to_numpy(as_dtype(dtype))
        values = rng.integers(0 if dtype[0] == "u" else -90, 120, 8).astype(scalar)
        start = rng.integers(0, 100, 3).astype(scalar)
        actual = [values, start, np.zeros(2, scalar)]
        expected = copy.deepcopy(actual)
        interpret(kernel, expected)
        for _ in range(5):  # in various orders
            arrays = copy.deepcopy(actual)
            built.call(kernel, arrays)
            for ours, theirs in zip(arrays, expected, strict=True):
                np.testing.assert_array_equal(ours, theirs, err_msg=kernel.name)


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_updates_are_instructions_where_the_gpu_has_them(arch):
    source = print_cuda(KERNELS)
    ptx = compile_source(source, {"arch": arch}, "ptx", description="cuda").data.decode()
    for kernel, (operator, dtype) in zip(KERNELS, ATOMIC_KINDS, strict=True):
        text = ptx[ptx.index(f".entry {kernel.name}(") :].split(".visible")[0]
        is_native = int(dtype[1:]) >= 32 and (
            dtype[0] != "f" or (operator, dtype) == ("add", "f64")
        )
        assert (".cas." not in text) == is_native, kernel.name
        assert not is_native or f".{operator}." in text, kernel.name


def test_a_subnormal_is_not_flushed():
    """atomicAdd on f32 may flush it in global memory."""
    assert "atomicAdd" not in print_cuda([atomic_kernel("add", "f32")]).text
