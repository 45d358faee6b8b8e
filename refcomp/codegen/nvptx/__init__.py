"""Kernels at the device level -> LLVM IR for NVIDIA GPUs: see module.py.

Each file prints what differs from other GPUs, spelled by templates/nvptx/ over
templates/llvm_kernels/ and templates/llvm/.
"""
