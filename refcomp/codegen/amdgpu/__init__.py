"""Kernels at the device level -> LLVM IR for AMD GPUs; module.py is the door.

Each file prints what differs from hosts, spelled by templates/amdgpu/ over templates/llvm/.
"""
