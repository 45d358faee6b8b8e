"""The machine code of sums of products for hosts of each vector width, this one or not.

The texts are only compiled. In the innermost loop, sums stay in registers.
"""

import re
import subprocess

import pytest

from refcomp.codegen.llvm.module import print_llvm
from refcomp.driver.pipeline import run_pipeline
from refcomp.foundation.options import build_options
from refcomp.lowering.lower import lower
from refcomp.te.operation import placeholder
from refcomp.toolchain import find_tools, load_description
from refcomp.topi.contraction.quantized_packed_dense import quantized_dense_pack
from refcomp.topi.convolution.conv2d_nchwc import conv2d_nchwc
from refcomp.topi.schedules import llvm
from refcomp.topi.schedules.host_panels import choose_pair_panel_width
from refcomp.topi.schedules.vector_registers import AVX2, AVX512, NEON, SSE
from tests.strategies.operands import tensors

_X86 = (
    "x86_64-pc-linux-gnu",
    "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
)
_ARM = ("aarch64-linux-gnu", "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32")
# For each processor: its registers, triple and layout, one instruction that multiplies and adds
# (that multiplies, before x86-64-v3) a vector of this width, and how it names the stack.
_HOSTS = {
    "x86-64": (SSE, _X86, r"\tmulps\t.*%xmm", "%rsp"),
    "x86-64-v3": (AVX2, _X86, r"\tvfmadd\d+ps\t.*%ymm", "%rsp"),
    "x86-64-v4": (AVX512, _X86, r"\tvfmadd\d+ps\t.*%zmm", "%rsp"),
    "neoverse-n1": (NEON, _ARM, r"\tfmla\tv\d+\.4s", "[sp"),
}

_BRANCH = re.compile(r"\n\t(?:j[a-z]+|b\.[a-z]+|cbn?z|tbn?z)\t")


def _convolution(registers):
    block = registers.channel_block
    blocks = 64 // block
    data, weight = tensors((1, blocks, 28, 28, block), (blocks, blocks, 3, 3, block, block))
    return [data, weight, conv2d_nchwc(data, weight, padding=(1, 1, 1, 1))]


def _quantized_product(registers):
    width = choose_pair_panel_width(128, 64, 192, registers)
    data = placeholder((128, 128), "uint8")
    panels = placeholder((-(-192 // width), 64, width), "int32")
    return [data, panels, quantized_dense_pack(data, panels, units=192)]


def _printed(args, registers, triple, layout, monkeypatch):
    monkeypatch.setattr(llvm, "vector_registers", lambda target: registers)
    with build_options(contract=registers is not SSE):
        func = lower(llvm.schedule_llvm([args[-1]]), args, "sums")
        funcs = [run_pipeline(func, "llvm")]
    bits = 8 * registers.bytes
    machine = {"triple": triple, "layout": layout, "vector_bits": bits, "word_bits": bits}
    return print_llvm(funcs, **machine).text


def _assembly(text, processor):
    tools = find_tools(load_description("llvm")).paths
    # As toolchains/llvm.toml has it: sums that wait in memory between two parts of a reduction
    # become registers by loop-invariant code motion.
    passes = load_description("llvm").options["passes"].default
    opt = [tools["opt"], f"-passes={passes}", "-disable-loop-unrolling", "-o", "-"]
    llc = [tools["llc"], "-O2", f"-mcpu={processor}", "-o", "-"]
    code = subprocess.run(opt, input=text.encode(), capture_output=True, check=True).stdout
    return subprocess.run(llc, input=code, capture_output=True, check=True).stdout.decode()


def _inner_loop(assembly, multiply):
    """Return the block with the most products."""
    bodies = re.split(r"\n\S+:", assembly)
    inner = max(bodies, key=lambda body: len(re.findall(multiply, body)))
    # Behind its branch, the loop has ended: sums are stored.
    return _BRANCH.split(inner)[0]


@pytest.mark.llvm
@pytest.mark.parametrize("processor", _HOSTS)
def test_sums_of_a_blocked_convolution_stay_in_registers(processor, monkeypatch):
    registers, machine, multiply, stack = _HOSTS[processor]
    text = _printed(_convolution(registers), registers, *machine, monkeypatch)
    inner = _inner_loop(_assembly(text, processor), multiply)
    products = len(re.findall(multiply, inner))
    # A tile of fewer sums does not hide the latency of a multiply-add.
    assert products >= 8
    assert stack not in inner


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("processor", "registers", "multiply"),
    [
        ("x86-64", SSE, r"\tpmaddwd\t.*%xmm"),
        ("x86-64-v3", AVX2, r"\tvpmaddwd\t.*%ymm"),
        ("x86-64-v4", AVX512, r"\tvpmaddwd\t.*%zmm"),
        # VNNI: products and sums are one instruction.
        ("alderlake", AVX2, r"\tvpdpwssd\t.*%ymm"),
        ("icelake-server", AVX512, r"\tvpdpwssd\t.*%zmm"),
    ],
)
def test_quantized_products_are_added_in_pairs(processor, registers, multiply, monkeypatch):
    text = _printed(_quantized_product(registers), registers, *_X86, monkeypatch)
    inner = _inner_loop(_assembly(text, processor), multiply)
    assert len(re.findall(multiply, inner)) >= 8
    assert "pmull" not in inner
    assert "%rsp" not in inner
