"""Kernels printed for NVIDIA GPUs, in batches through LLVM and ptxas, and run on this host.

`NvptxOnHost` rewrites the printed text for this processor: address spaces go, special registers
become arguments, the barrier is a thread library's, libdevice is libm. Each thread of a group is a
thread of the system. So the text's meaning is judged by the interpreter, all but the last step to a
GPU: what llc, libdevice and ptxas make of it is only compiled, and its structure checked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from refcomp.codegen.nvptx.module import print_nvptx
from refcomp.foundation.artifacts import Binary, Source
from refcomp.ir.func import PrimFunc
from refcomp.toolchain import compile_source
from tests.codegen.amdgpu.kernels import EXCHANGE, HostSimulation, with_host_header

LAYOUT = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
LLVMS = [
    pytest.param("15", marks=pytest.mark.llvm15),
    pytest.param("16", marks=pytest.mark.llvm16),
    "19",
]
ARCHS = ("sm_75", "sm_90")


def print_kernels(kernels: Sequence[PrimFunc], arch: str = "sm_75") -> Source:
    """The kernels as text."""
    return print_nvptx(kernels, layout=LAYOUT, arch=arch)


def compile_ptx(kernels: Sequence[PrimFunc], arch: str = "sm_75", **options: str) -> str:
    """The kernels as PTX; with the tools that $REFCOMP_NVPTX_LLVM names."""
    source = print_kernels(kernels, arch)
    given = {"arch": arch, **options}
    return compile_source(source, given, "ptx", description="nvptx").data.decode()


def assemble(ptx: str, arch: str = "sm_75") -> Binary:
    """The PTX as machine code."""
    return compile_source(Source(ptx, "ptx"), {"arch": arch}, "cubin", description="ptxas")


def use_llvm(major: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the nvptx toolchain take its tools from the LLVM of that version."""
    monkeypatch.setenv("REFCOMP_NVPTX_LLVM", f"/usr/lib/llvm-{major}/bin")


_PASSED = "i32 %workitem.number, ptr %group.barrier, ptr %group.pieces"
_IDS = [f"{kind}.{axis}" for kind in ("ctaid", "tid") for axis in "xyz"]
_REWRITES = [
    (r"target datalayout = .*\ntarget triple = .*\n", ""),
    (r"\n!.*", ""),
    (r"declare i32 @llvm\.nvvm\.(read|shfl).*\n", ""),
    (
        r"define ptx_kernel void @(\w+)\((.*)\) #0 \{\n",
        lambda m: (
            f"define void @{m[1]}("
            + ", ".join([*filter(None, [m[2]]), *(f"i32 %{name}" for name in _IDS), _PASSED])
            + ") #0 {\n"
        ),
    ),
    (r"call i32 @llvm\.nvvm\.read\.ptx\.sreg\.(\S+?)\(\), !range .*", r"add i32 0, %\1"),
    (
        r"call i32 @llvm\.nvvm\.shfl\.sync\.bfly\.i32\(i32 -1, (.*), i32 (\d+), i32 \d+\)",
        rf"call i32 @exchange_xor({_PASSED}, i32 \2, \1)",
    ),
    (
        r"call i32 @llvm\.nvvm\.shfl\.sync\.idx\.i32\(i32 -1, (.*), i32 (\S+), i32 (\d+)\)",
        rf"call i32 @exchange_within({_PASSED}, i32 \2, i32 \3, \1)",
    ),
    (
        r"call void @llvm\.nvvm\.barrier0\(\)",
        "call i32 @pthread_barrier_wait(ptr %group.barrier)",
    ),
    (r"declare void @llvm\.nvvm\.barrier0\(\)", "declare i32 @pthread_barrier_wait(ptr)"),
    (r"call void asm sideeffect \"prefetch.*", ""),
    (r"external addrspace\(3\) global \[0 x i8\]", "internal global [65536 x i8] zeroinitializer"),
    (r",? addrspace\(\d\)", ""),
    (r' syncscope\("\w+"\)', ""),
    (r"(@llvm\.masked\.\S+?)p[13]\(", r"\1p0("),
    (r"@__nv_(\w+)", r"@\1"),
]
# The bits from 8 on of the last operand of shfl.sync stay the lane's own, as those of the warp do.
_WITHIN = f"""
define i32 @exchange_within({_PASSED}, i32 %lane, i32 %clamp, i32 %mine) {{
  %low = lshr i32 %clamp, 8
  %kept = or i32 %low, 32
  %own = and i32 %workitem.number, %kept
  %other = or i32 %own, %lane
  %theirs = call i32 @exchange_lane({_PASSED}, i32 %other, i32 %mine)
  ret i32 %theirs
}}
"""


def _to_host_text(text: str) -> str:
    if "@llvm.nvvm.shfl" in text:
        text += EXCHANGE + _WITHIN
        if "@llvm.nvvm.barrier0" not in text:
            text += "declare void @llvm.nvvm.barrier0()\n"
    for pattern, replacement in _REWRITES:
        text = re.sub(pattern, replacement, text)
    return with_host_header(text)


class NvptxOnHost(HostSimulation):
    """Kernels printed for NVIDIA GPUs, compiled for this host; `call(kernel, args)` runs one."""

    def __init__(self, kernels: Sequence[PrimFunc], folder: Path) -> None:
        super().__init__(kernels, folder, _to_host_text(print_kernels(kernels).text))
