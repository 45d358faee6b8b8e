"""The machine code of scheduled operators at full size: wide accesses, no spills, dense loops.

No GPU runs here. One file of all kernels is printed and compiled for each architecture. From sm_80
on, tiles are copied to shared memory without registers (LDGSTS).
"""

import re
from functools import cache

import pytest

from refcomp.codegen.cuda.module import print_cuda
from refcomp.driver.pipeline import run_pipeline
from refcomp.foundation.options import build_options
from refcomp.lowering.lower import lower
from refcomp.toolchain import compile_source
from refcomp.toolchain.disassembly import disassemble
from refcomp.topi.broadcast.arithmetic import add
from refcomp.topi.contraction.dense import gemm
from refcomp.topi.convolution.conv2d import conv2d_nhwc
from refcomp.topi.schedules.cuda import schedule_cuda
from tests.strategies.operands import tensors
from tests.topi.schedules.sass import counts, parsed

ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
_SAME = {"padding": (1, 1, 1, 1)}
_OPERATORS = {
    "product": (((4096, 4096), (4096, 4096)), gemm),
    "convolution": (((32, 56, 56, 64), (3, 3, 64, 64)), lambda x, w: conv2d_nhwc(x, w, **_SAME)),
    "addition": (((1 << 28,), (1 << 28,)), add),
}


@cache
def _kernels():
    kernels = []
    for name, (shapes, operator) in _OPERATORS.items():
        inputs = tensors(*shapes)
        output = operator(*inputs)
        with build_options(contract=True, narrow_indices=True):
            func = lower(schedule_cuda([output]), [*inputs, output], name)
            kernels += run_pipeline(func, "cuda").kernels
    return kernels


@cache
def _instructions(arch):
    """Return for each kernel the addresses, instructions and branch targets of its machine code."""
    source = print_cuda(_kernels(), arch)
    binary = compile_source(source, {"arch": arch}, "cubin", description="cuda")
    parts = re.split(r"\.text\.(\w+?)_kernel0:\n", disassemble(binary))[1:]
    return dict(zip(parts[::2], map(parsed, parts[1::2]), strict=True))


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", _OPERATORS)
def test_memory_is_accessed_by_128_bits_and_nothing_is_spilled(name, arch):
    found = counts(_instructions(arch)[name][0])
    accesses = {o for o in found if re.match(r"(LDGSTS|LDG|STG|LDS|STS|LDL|STL|ATOM|RED)\b", o)}
    accesses = {o.replace(".SYS", "").replace("LDS.U.", "LDS.") for o in accesses}  # of sm_75
    expected = {"LDG.E.128", "STG.E.128"}
    if name != "addition":
        expected |= {"LDS.128", "STS.128"}
    if name != "addition" and arch != "sm_75":
        # ptxas itself adds reads of no register, `LDS RZ, [RZ]`, where it waits for copies.
        expected |= {"LDGSTS.E.BYPASS.128", "LDS"}
    if name == "product" and arch != "sm_75":
        expected -= {"LDG.E.128", "STS.128"}  # every element is copied
    assert accesses == expected


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", ["product", "convolution"])
def test_most_of_a_loop_is_multiply_adds(name, arch):
    opcodes, loops = _instructions(arch)[name]
    found = counts(opcodes)
    inside = [counts(opcodes[first : last + 1]) for first, last in loops]
    (loop,) = [c for c in inside if c["FFMA"] == max(i["FFMA"] for i in inside)][:1]
    assert loop["FFMA"] == found["FFMA"] >= 4 * 64
    assert loop["FFMA"] / sum(loop.values()) > 0.85
    assert loop["LDS.128"] * 16 <= loop["FFMA"]
    assert found["FMUL"] == found["FADD"] == 0
