"""The kinds of targets that refcomp brings: their options and the limits of their devices.

`refcomp.foundation.target` knows these kinds from the beginning. Each has a back end of its name in
`refcomp/driver/backends/`, which is imported when something is compiled for it.
"""

from __future__ import annotations

from refcomp.foundation.target_kind import DeviceLimits, TargetKind

# The GPU and the architecture that code is made for if none is named, and none is in this machine.
DEFAULT_AMD_GPU = "gfx90a"
DEFAULT_CUDA_ARCH = "sm_75"  # the oldest architecture that nvcc 13 compiles for

# Limits that all common devices fulfil, such as AMD's GPUs.
OPENCL_LIMITS = DeviceLimits(
    threads_per_axis=(256, 256, 256),
    threads=256,
    shared_bytes=32768,
    features=frozenset(
        {
            "cl_khr_fp64",
            "cl_khr_int64_base_atomics",
            "cl_khr_int64_extended_atomics",
        }
    ),
)
# The limits of an AMD GPU whose own are not known.
AMD_LIMITS = DeviceLimits(
    threads_per_axis=(1024, 1024, 1024),
    threads=1024,
    shared_bytes=65536,
    features=frozenset({"fp16", "fp64", "int64_atomics", "subgroups"}),
    groups_per_axis=(2**31 - 1, 65535, 65535),
    argument_bytes=4096,
    vector_bytes=128,  # 32 adjacent registers, the maximum of an operand
)
# Limits of all GPUs from sm_75 on. Source: CUDA C++ Programming Guide, table of technical
# specifications per compute capability.
CUDA_LIMITS = DeviceLimits(
    threads_per_axis=(1024, 1024, 64),
    threads=1024,
    shared_bytes=65536,
    groups_per_axis=(2**31 - 1, 65535, 65535),
    argument_bytes=4096,
)
_LIBRARIES = "shared objects with C functions that are called, as a.so,b.so"
# Options of saved files.
_SAVED = {
    "system-lib": "1 for objects and libraries that describe their functions, so that "
    "refcomp.system_lib finds them where they are linked (default: 0)",
}
# Options that set limits of the device.
_LIMIT_OPTIONS = {
    "threads": "how many threads a group may have (default: as the device says)",
    "shared_bytes": "bytes of shared memory that a group may have (default: as the device says)",
}

LLVM = TargetKind(
    name="llvm",
    meaning="machine code for this host, by way of LLVM IR",
    options={
        "mcpu": "the processor, as `llc -mcpu=help` lists them (default: native, or generic with "
        "-mtriple)",
        "passes": "the value of `opt -passes=` (default: default<O2>)",
        "libs": _LIBRARIES,
        "mtriple": "the machine for which code is made that is only read, also written -target= "
        "(default: this host)",
        "mattr": "features of that machine's processor, as +neon,-crypto",
        **_SAVED,
    },
    toolchains=("llvm",),
)
INTERP = TargetKind(
    name="interp",
    meaning="the loop IR, run by the plain Python interpreter: slow, no tools",
    options={"libs": _LIBRARIES},
)
OPENCL = TargetKind(
    name="opencl",
    meaning="kernels in OpenCL C, which the device's driver compiles, and a host function",
    options=_LIMIT_OPTIONS | _SAVED,
    limits=OPENCL_LIMITS,
    device="opencl",
    schedules="gpu",
    toolchains=(),
)
ROCM = TargetKind(
    name="rocm",
    meaning="machine code for AMD GPUs, by way of LLVM IR, and a host function",
    options={
        "mcpu": "the GPU, as `llc -march=amdgcn -mcpu=help` lists them (default: the GPU of "
        f"this machine, else {DEFAULT_AMD_GPU})",
        "passes": "the value of `opt -passes=` (default: default<O3>)",
        "wavefront": "lanes of a wave, 32 or 64 (default: as the GPU prefers)",
        "waves": "minimum of waves for which a SIMD has registers (default: those of a group)",
        **_LIMIT_OPTIONS,
        **_SAVED,
    },
    limits=AMD_LIMITS,
    device="rocm",
    schedules="gpu",
    toolchains=("rocm",),
)
CUDA = TargetKind(
    name="cuda",
    meaning="machine code for NVIDIA GPUs, by way of CUDA C++, and a host function",
    options={
        "arch": "the architecture, as `nvcc --list-gpu-code` lists them, or several with commas "
        f"(default: that of the GPU of this machine, else {DEFAULT_CUDA_ARCH})",
        "code": "cubin, ptx or fatbin (default: cubin, or fatbin for several architectures)",
        **_LIMIT_OPTIONS,
        **_SAVED,
    },
    limits=CUDA_LIMITS,
    device="cuda",
    schedules="cuda",
    toolchains=("cuda", "nvrtc"),
)
NVPTX = TargetKind(
    name="nvptx",
    meaning="machine code for NVIDIA GPUs, by way of LLVM IR, and a host function",
    options={
        "arch": "the architecture, as `llc -march=nvptx64 -mcpu=help` lists them, from sm_60 on "
        f"(default: that of the GPU of this machine, else {DEFAULT_CUDA_ARCH})",
        "code": "cubin, or ptx, which the driver compiles (default: cubin if there is a ptxas)",
        "passes": "the value of `opt -passes=` (default: default<O3>)",
        **_LIMIT_OPTIONS,
        **_SAVED,
    },
    limits=CUDA_LIMITS,
    device="cuda",
    schedules="cuda",
    toolchains=("nvptx", "ptxas"),
)
OWN_KINDS = {kind.name: kind for kind in (LLVM, INTERP, OPENCL, ROCM, CUDA, NVPTX)}
