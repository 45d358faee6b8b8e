"""Kernels at the device level -> LLVM IR for AMD GPUs: see module.py.

Each file prints what differs from other GPUs, spelled by templates/amdgpu/ over
templates/llvm_kernels/ and templates/llvm/.
"""
