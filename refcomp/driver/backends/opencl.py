"""The back end `opencl`: kernels in OpenCL C, which the device's driver compiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from refcomp.codegen.opencl.module import print_opencl
from refcomp.driver.backend import Backend, Code
from refcomp.driver.backends.loading import LIMIT_OPTIONS, device_limits, load_programs
from refcomp.driver.steps import OPENCL_STEPS, FuncOrProgram, kernels_of
from refcomp.foundation.dump import dump_stage
from refcomp.foundation.target import DeviceLimits, Target


def _compile(
    made: Sequence[FuncOrProgram], _target: Target, limits: DeviceLimits | None
) -> Code:
    assert limits is not None
    source = print_opencl(kernels_of(made), extensions=limits.features)
    dump_stage(source.language, source.text)
    return Code(source, {source.language: source.text})


def _texts(
    made: Sequence[FuncOrProgram], target: Target
) -> Mapping[str, Callable[[], str]]:
    def text() -> str:
        return _compile(made, target, device_limits(target)).sources["opencl"]

    return {"opencl": text}


OPENCL = Backend(
    name="opencl",
    summary="kernels in OpenCL C, which the device's driver compiles, and a host function",
    options=LIMIT_OPTIONS,
    # Limits that all common devices fulfil, such as AMD's GPUs.
    limits=DeviceLimits(
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
    ),
    steps=OPENCL_STEPS,
    compile=_compile,
    load=load_programs,
    texts=_texts,
    device="opencl",
    schedules="gpu",
)
