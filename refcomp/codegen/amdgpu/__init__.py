"""Kernels at the device level -> LLVM IR for AMD GPUs: see module.py.

Each file prints what differs from hosts, spelled by templates/amdgpu/ over templates/llvm/.
"""
