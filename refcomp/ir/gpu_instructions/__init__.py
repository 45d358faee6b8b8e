"""The tables of `refcomp.ir.gpu_intrinsics`: instructions of GPUs that kernels call by name.

`records` says what a row states, `amd` and `nvidia` hold the rows of each vendor.
"""
