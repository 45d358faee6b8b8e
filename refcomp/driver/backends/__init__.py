"""The back ends of refcomp, one record in a file each, which is imported on first use.

llvm.py     machine code for this host, by way of LLVM IR
interp.py   the loop IR itself, run by the interpreter
opencl.py   kernels in OpenCL C
rocm.py     kernels as machine code for AMD GPUs
cuda.py     kernels in CUDA C++, compiled for NVIDIA GPUs
nvptx.py    kernels as machine code for NVIDIA GPUs, by way of LLVM IR
division.py how the functions of a large module are divided into parts
loading.py  how programs with kernels are loaded, on any device, and what its limits are
"""

from refcomp.driver.backend import Backend, backend_of, backends, register_backend
from refcomp.foundation.target import Target, as_target

__all__ = [
    "Backend",
    "Target",
    "as_target",
    "backend_of",
    "backends",
    "register_backend",
]
