"""OpenCL C that clang compiles to a code object."""

from __future__ import annotations

import subprocess
from pathlib import Path


def compiled_opencl(folder: Path, text: str, gpu: str, *options: str) -> Path:
    """Compile kernels for one of `tests.emulator.kernels.GPUS`; return the code object's path."""
    source, result = folder / "kernels.cl", folder / "kernels.hsaco"
    source.write_text(text)
    mcpu, _, lanes = gpu.partition(":")
    command = ["/usr/lib/llvm-19/bin/clang", "-x", "cl", "-cl-std=CL2.0", "-O2", "-nogpulib"]
    command += ["-target", "amdgcn-amd-amdhsa", f"-mcpu={mcpu}", "-mcode-object-version=5"]
    command += [f"-mwavefrontsize{lanes}"] if lanes else []
    subprocess.run([*command, *options, str(source), "-o", str(result)], check=True, timeout=120)
    return result
