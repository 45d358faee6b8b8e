"""The back ends of refcomp, one record in a file each; importing this package registers them.

llvm.py     machine code for this host, by way of LLVM IR
interp.py   the loop IR itself, run by the interpreter
opencl.py   kernels in OpenCL C
rocm.py     kernels as machine code for AMD GPUs
cuda.py     kernels in CUDA C++, compiled for NVIDIA GPUs
nvptx.py    kernels as machine code for NVIDIA GPUs, by way of LLVM IR
loading.py  how programs with kernels are loaded, on any device, and what its limits are
"""

from refcomp.driver.backend import Backend, backend_of, backends, register_backend
from refcomp.driver.backends.cuda import CUDA
from refcomp.driver.backends.interp import INTERP
from refcomp.driver.backends.llvm import LLVM
from refcomp.driver.backends.nvptx import NVPTX
from refcomp.driver.backends.opencl import OPENCL
from refcomp.driver.backends.rocm import ROCM
from refcomp.foundation.target import Target, as_target

for _backend in (LLVM, INTERP, OPENCL, ROCM, CUDA, NVPTX):
    register_backend(_backend)

__all__ = [
    "Backend",
    "Target",
    "as_target",
    "backend_of",
    "backends",
    "register_backend",
]
