"""The back end `rocm`: machine code for AMD GPUs, by way of LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import cast

from refcomp import toolchain
from refcomp.codegen.amdgpu.module import gpu_features, print_amdgpu
from refcomp.codegen.debug_locations import add_debug_locations, link_lines
from refcomp.driver.amd_resources import (
    AmdResources,
    expected_kernel,
    resources_of,
    warn_of_slow_kernels,
)
from refcomp.driver.backend import Backend, Code, CompiledFunctions
from refcomp.driver.backends.loading import device_of, load_programs
from refcomp.driver.steps import ROCM_STEPS, FuncOrProgram, kernels_of
from refcomp.foundation import own_targets
from refcomp.foundation.artifacts import Source
from refcomp.foundation.dump import dump_stage
from refcomp.foundation.target import Target, number_option
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.runtime.hip.driver import HipDriver


def print_rocm(made: Sequence[FuncOrProgram], target: Target) -> Source:
    """Print kernels as LLVM IR for the target's GPU, and for the LLVM that is found here."""
    mcpu = _gpu_of(target)
    # The printer has no list of GPUs.
    toolchain.check_option("rocm", "mcpu", mcpu)
    return print_amdgpu(
        kernels_of(made),
        layout=toolchain.device_layout("rocm"),
        mcpu=mcpu,
        code_object=toolchain.found_code_object_version(),
        wavefront=number_option(target, "wavefront", 0),
        waves=number_option(target, "waves", 0),
        llvm=toolchain.llvm_major("rocm"),
    )


def _compile(
    made: Sequence[FuncOrProgram], target: Target, _limits: DeviceLimits | None
) -> Code:
    kernels = kernels_of(made)
    mcpu = _gpu_of(target)
    source = print_rocm(made, target)
    dump_stage(source.language, source.text)  # before a tool can fail on it
    located, loop_ir = add_debug_locations(source, kernels)
    version = toolchain.found_code_object_version()
    # The debug locations are lines of the loop IR, which a debugger and the emulator show.
    options = {"mcpu": mcpu, "code_object": str(version)}
    options["features"] = gpu_features(
        kernels,
        mcpu,
        number_option(target, "wavefront", 0),
        toolchain.llvm_major("rocm"),
    )
    if passes := target.option("passes", ""):
        options["passes"] = passes
    binary = toolchain.compile_source(located, options, "hsaco", description="rocm")
    expected = [expected_kernel(kernel) for kernel in kernels]
    metadata = toolchain.check_code_object(binary, expected, mcpu, version)
    warn_of_slow_kernels(kernels, metadata)
    sources = {
        source.language: source.text,
        "kernels": loop_ir,
        "metadata": toolchain.metadata_text(binary.data),
        "lines": link_lines(source, kernels),
    }
    for language in ("kernels", "metadata", "lines"):
        dump_stage(language, sources[language])
    return Code(binary, sources, lambda: toolchain.disassemble(binary))


def _texts(
    made: Sequence[FuncOrProgram], target: Target
) -> Mapping[str, Callable[[], str]]:
    """Return the texts that only printing makes, and those that tools make, by stage."""
    # Each text is made at most once, and only if it is requested.
    source = cache(lambda: print_rocm(made, target))
    code = cache(lambda: _compile(made, target, None))
    kernels = kernels_of(made)

    def assembly() -> str:
        disassemble = code().disassemble
        assert disassemble is not None
        return toolchain.without_padding(disassemble())

    return {
        "llvm": lambda: source().text,
        "kernels": lambda: add_debug_locations(source(), kernels)[1],
        "metadata": lambda: code().sources["metadata"],
        "lines": lambda: link_lines(source(), kernels),
        "asm": assembly,
    }


def _resources(compiled: CompiledFunctions) -> tuple[AmdResources, ...]:
    return resources_of(compiled.code.code if compiled.code else None)


def _gpu_of(target: Target) -> str:
    """Return the GPU that the target names, by default that of this machine."""
    if mcpu := target.option("mcpu", ""):
        return mcpu
    device = device_of(target)
    if not device.exist:
        return own_targets.DEFAULT_AMD_GPU
    return cast(HipDriver, device.driver).arch(device.index)


ROCM = Backend(
    name=own_targets.ROCM.name,
    summary=own_targets.ROCM.meaning,
    options=own_targets.ROCM.options,
    limits=own_targets.ROCM.limits,
    steps=ROCM_STEPS,
    compile=_compile,
    load=load_programs,
    texts=_texts,
    device=own_targets.ROCM.device,
    schedules="gpu",
    calls=frozenset({"amdgpu"}),
    resources=_resources,
)
