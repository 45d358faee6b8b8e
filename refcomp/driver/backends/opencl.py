"""The back end `opencl`: kernels in OpenCL C, which the device's driver compiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from refcomp.codegen.opencl.module import print_opencl
from refcomp.driver.backend import Backend, Code
from refcomp.driver.backends.loading import device_limits, load_programs
from refcomp.driver.steps import OPENCL_STEPS, FuncOrProgram, kernels_of
from refcomp.foundation import own_targets
from refcomp.foundation.dump import dump_stage
from refcomp.foundation.target import Target
from refcomp.foundation.target_kind import DeviceLimits


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
    name=own_targets.OPENCL.name,
    summary=own_targets.OPENCL.meaning,
    options=own_targets.OPENCL.options,
    limits=own_targets.OPENCL.limits,
    steps=OPENCL_STEPS,
    compile=_compile,
    load=load_programs,
    texts=_texts,
    device=own_targets.OPENCL.device,
    schedules=own_targets.OPENCL.schedules,
)
