"""CUDA C++ for NVIDIA GPUs, a dialect of the C family.

`module.py` prints a file, and `named_instructions.py` the instructions that kernels name.
"""
