"""The machine code of a tiled product of f32: wide accesses, fused operations, nothing spilled."""

import re
from collections import Counter

import pytest

from refcomp.driver.compile import compile_functions
from refcomp.foundation.options import build_options
from refcomp.lowering.lower import lower
from refcomp.topi.contraction.dense import gemm
from refcomp.topi.schedules.cuda import schedule_cuda
from tests.strategies.operands import tensors

pytestmark = [pytest.mark.llvm, pytest.mark.nvcc]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_memory_is_accessed_by_128_bits_and_nothing_is_spilled(arch):
    inputs = tensors((1024, 1024), (1024, 1024))
    output = gemm(*inputs)
    with build_options(contract=True, narrow_indices=True):
        func = lower(schedule_cuda([output]), [*inputs, output], "product")
        code = compile_functions([func], f"nvptx -arch={arch}").code
    names = r"\b((?:LDG|STG|LDS|STS|LDL|STL|FFMA|FMUL)\S*) "
    found = Counter(re.findall(names, code.disassemble()))
    fused = found.pop("FFMA")
    assert {name.removesuffix(".CONSTANT") for name in found} == {
        *("LDG.E.128", "STG.E.128", "LDS.128", "STS.128")
    }
    # Each element that a thread has read takes part in several operations.
    assert fused >= 8 * found["LDS.128"]
    assert "0 bytes spill stores, 0 bytes spill loads" in code.sources["ptxas"]
