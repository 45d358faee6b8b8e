"""Kernels in LLVM IR for which LLVM puts wait states in: one result is used right after another.

Each of 64 lanes loads a number and stores another one. Products of matrices go by GPU.
"""

from __future__ import annotations

from refcomp.foundation.artifacts import Source
from refcomp.toolchain import compile_source, device_layout

_NONE = "i32 0, i32 0, i32 0"
_V4, _H4, _D4 = "<4 x float>", "<4 x half>", "<4 x double>"
_V8, _H16 = "<8 x float>", "<16 x half>"
_MFMA, _WMMA = "@llvm.amdgcn.mfma", "@llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16"
_KERNELS = {
    "lanes": """
  %u = mul i32 %x, 3
  %l = call i32 @llvm.amdgcn.readfirstlane(i32 %x)
  %k = and i32 %l, 31
  %r = call i32 @llvm.amdgcn.readlane(i32 %u, i32 %k)
  %d = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %u, i32 273, i32 15, i32 15, i1 false)
  %e = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %d, i32 274, i32 15, i32 15, i1 false)
  %f = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %e, i32 276, i32 15, i32 15, i1 false)
  %c = icmp ult i32 %x, 7
  %g = select i1 %c, i32 %f, i32 %d
  %h = add i32 %g, %r
  %o = and i32 %k, 3
  %w = getelementptr i32, ptr addrspace(1) %A, i32 %o
  %q = load volatile i32, ptr addrspace(1) %w
  %z = add i32 %h, %q
""",
    "floats": """
  %a = uitofp i32 %x to float
  %b = fadd float %a, 3.0
  %c = fdiv float %b, 7.5
  %d = call float @llvm.amdgcn.rcp.f32(float %b)
  %e = fadd float %c, %d
  %f = call float @llvm.amdgcn.exp2.f32(float %e)
  %g = fmul float %f, 3.0
  %h = call float @llvm.amdgcn.sqrt.f32(float %g)
  %k = fadd float %h, %g
  %z = bitcast float %k to i32
""",
    "doubles": """
  %a = uitofp i32 %x to double
  %b = fadd double %a, 3.0
  %c = fdiv double 7.5, %b
  %d = fptrunc double %c to float
  %z = bitcast float %d to i32
""",
}
_PRODUCTS = f"""
  %a = uitofp i32 %x to float
  %p = call {_V4} {_MFMA}.f32.4x4x1f32(float %a, float %a, {_V4} zeroinitializer, {_NONE})
  %b = extractelement {_V4} %p, i32 1
  %q = call {_V4} {_MFMA}.f32.16x16x4f32(float %b, float %a, {_V4} %p, {_NONE})
  %r = call {_V4} {_MFMA}.f32.16x16x4f32(float %b, float %b, {_V4} %q, {_NONE})
  %c = extractelement {_V4} %r, i32 2
  %h = fptrunc float %c to half
  %v = insertelement {_H4} <half 1.0, half 2.0, half 3.0, half 4.0>, half %h, i32 1
  %s = call {_V4} {_MFMA}.f32.16x16x16f16({_H4} %v, {_H4} %v, {_V4} %r, {_NONE})
  %t = shufflevector {_V4} %s, {_V4} %r, <4 x i32> <i32 2, i32 3, i32 4, i32 5>
  %w = call {_V4} {_MFMA}.f32.16x16x16f16({_H4} %v, {_H4} %v, {_V4} %t, {_NONE})
  %d = extractelement {_V4} %w, i32 3
  %z = bitcast float %d to i32
"""
_WAVE_PRODUCTS = f"""
  %a = uitofp i32 %x to float
  %v = insertelement {_V8} zeroinitializer, float %a, i32 3
  %h = bitcast {_V8} %v to {_H16}
  %p = call {_V8} {_WMMA}({_H16} %h, {_H16} %h, {_V8} %v)
  %k = bitcast {_V8} %p to {_H16}
  %q = call {_V8} {_WMMA}({_H16} %k, {_H16} %h, {_V8} %v)
  %b = extractelement {_V8} %q, i32 3
  %z = bitcast float %b to i32
"""
_DOUBLE_PRODUCTS = f"""
  %a = uitofp i32 %x to double
  %p = call double {_MFMA}.f64.4x4x4f64(double %a, double %a, double 0.0, {_NONE})
  %q = call double {_MFMA}.f64.4x4x4f64(double %p, double %a, double %p, {_NONE})
  %v = insertelement {_D4} zeroinitializer, double %q, i32 1
  %w = call {_D4} {_MFMA}.f64.16x16x4f64(double %q, double %a, {_D4} %v, {_NONE})
  %b = extractelement {_D4} %w, i32 2
  %c = fadd double %b, %q
  %d = fptrunc double %c to float
  %z = bitcast float %d to i32
"""
_KERNEL = """
define amdgpu_kernel void @{name}(ptr addrspace(1) noalias %A, ptr addrspace(1) noalias %C) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %at = getelementptr i32, ptr addrspace(1) %A, i32 %i
  %x = load i32, ptr addrspace(1) %at
{body}
  %to = getelementptr i32, ptr addrspace(1) %C, i32 %i
  store i32 %z, ptr addrspace(1) %to
  ret void
}}
"""
_HEAD = f"""target datalayout = "{device_layout("rocm")}"
target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.readfirstlane(i32)
declare i32 @llvm.amdgcn.readlane(i32, i32)
declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)
declare float @llvm.amdgcn.rcp.f32(float)
declare float @llvm.amdgcn.exp2.f32(float)
declare float @llvm.amdgcn.sqrt.f32(float)
attributes #0 = {{ nounwind "amdgpu-flat-work-group-size"="64,64" }}
"""
_WMMA_DECLARED = f"""
declare {_V8} {_WMMA}({_H16}, {_H16}, {_V8})
"""
_MFMA_DECLARED = f"""
declare {_V4} {_MFMA}.f32.4x4x1f32(float, float, {_V4}, i32, i32, i32)
declare {_V4} {_MFMA}.f32.16x16x4f32(float, float, {_V4}, i32, i32, i32)
declare {_V4} {_MFMA}.f32.16x16x16f16({_H4}, {_H4}, {_V4}, i32, i32, i32)
declare double {_MFMA}.f64.4x4x4f64(double, double, double, i32, i32, i32)
declare {_D4} {_MFMA}.f64.16x16x4f64(double, double, {_D4}, i32, i32, i32)
"""


def state_kernels(gpu: str) -> dict[str, str]:
    """What each kernel for a GPU does with its number `%x`, which gives `%z`."""
    if gpu == "gfx1100":
        return _KERNELS | {"wave_products": _WAVE_PRODUCTS}
    return _KERNELS | {"products": _PRODUCTS, "double_products": _DOUBLE_PRODUCTS}


def compile_states(gpu: str) -> bytes:
    """The code object of them all."""
    kernels = state_kernels(gpu)
    text = _HEAD + (_MFMA_DECLARED if "products" in kernels else _WMMA_DECLARED)
    text += "".join(_KERNEL.format(name=name, body=body) for name, body in kernels.items())
    source = Source(text, "llvm", entries=tuple(kernels))
    options = {"mcpu": gpu, "passes": "always-inline", "verify": "0"}
    return compile_source(source, options, "hsaco", description="rocm").data
