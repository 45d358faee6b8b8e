"""From functions to the code of a device: Program -> Source -> Binary, per kind of target.

Each kind of device is one entry of `_COMPILERS`. Code can be made for a device that is not there;
then the limits are those of the target's kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refcomp import toolchain
from refcomp.codegen.amdgpu.module import gpu_features, print_amdgpu
from refcomp.codegen.debug_locations import add_debug_locations, link_lines
from refcomp.codegen.opencl.module import print_opencl
from refcomp.codegen.signature import machine_symbol
from refcomp.driver.devices import device_for
from refcomp.driver.kernel_resources import expected_kernel, warn_of_slow_kernels
from refcomp.driver.pipeline import run_device_passes
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.dump import dump_stage
from refcomp.foundation.errors import UserError
from refcomp.foundation.paths import checked_path
from refcomp.foundation.python_limits import paused_collector
from refcomp.foundation.target import DeviceLimits, Target, as_target, limits_of, number_option
from refcomp.foundation.unlinked import refuse_unlinked
from refcomp.ir.func import PrimFunc, Program
from refcomp.runtime.launch import KernelSignature
from refcomp.runtime.programs.bare_kernel import PackedArgument, PackedSignature
from refcomp.runtime.programs.device_module import DeviceModule
from refcomp.runtime.programs.program import DeviceCode

_ELF = b"\x7fELF"
_DEFAULT_GPU = "gfx90a"


@dataclass(frozen=True, slots=True)
class KernelCode:
    """What a device's driver loads, the texts it was made from by language, and what turns it to
    assembly."""

    code: Source | Binary
    sources: Mapping[str, str]
    disassemble: Callable[[], str] | None = None


@dataclass(frozen=True, slots=True)
class CompiledPrograms:
    """Functions as Programs, the code of all their kernels, and how each is named in it."""

    programs: tuple[Program, ...]
    code: KernelCode
    symbols: Mapping[str, str]


@paused_collector()
def compile_programs(funcs: Sequence[PrimFunc], target: Target | str) -> CompiledPrograms:
    """`funcs`, which are of the nested level, for a target that is a device.

    UserError for what the device cannot do; ToolchainError when its tools cannot compile it.
    """
    chosen = as_target(target)
    limits = device_limits(chosen)
    programs = tuple(run_device_passes(func, chosen.kind, limits) for func in funcs)
    kernels = [kernel for program in programs for kernel in program.kernels]
    code = _COMPILERS[chosen.kind](kernels, chosen, limits)
    for language, text in code.sources.items():
        dump_stage(language, text)
    return CompiledPrograms(programs, code, {k.name: machine_symbol(k.name) for k in kernels})


def load_code_object(path: str | os.PathLike[str]) -> DeviceModule:
    """The kernels of a bare code object, as `Module.save("x.hsaco")` and other compilers write it.

    Its metadata and assembly can be read; `module["kernel"](*args, grid=, block=)` launches one
    (`refcomp.runtime.programs.bare_kernel`). UserError when it cannot be read; ToolchainError when
    damaged.
    """
    name = checked_path(path, "a code object")
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise UserError(
            f"{name} cannot be read", why=error.strerror, remedy="check the path"
        ) from error
    if not data.startswith(_ELF):
        raise UserError(
            f"{name} is no code object",
            why=f"it begins with {data[:4]!r}, not as an ELF file" if data else "it is empty",
            remedy="give what module.save('x.hsaco') or another compiler for AMD GPUs wrote",
        )
    refuse_unlinked(data, os.fspath(path))
    told, binary = toolchain.read_code_object(data), Binary(data, "hsaco")
    target = as_target(f"rocm -mcpu={told.mcpu}")
    kernels = [KernelSignature(kernel.name, kernel.name, ()) for kernel in told.kernels]
    return DeviceModule(
        DeviceCode(binary, kernels, device_for(target)),
        target=str(target),
        sources={"metadata": toolchain.metadata_text(data)},
        disassemble=lambda: toolchain.disassemble(binary),
        bare=map(_packed_signature, told.kernels),
    )


def _packed_signature(kernel: toolchain.KernelMetadata) -> PackedSignature:
    given = (arg for arg in kernel.arguments if not arg.kind.startswith("hidden_"))
    return PackedSignature(
        name=kernel.name,
        arguments=tuple(
            PackedArgument(arg.offset, arg.size, arg.kind, arg.alignment) for arg in given
        ),
        block=kernel.block,
        most_threads=kernel.most_threads,
        shared_bytes=kernel.shared_bytes,
    )


def is_device_target(target: Target) -> bool:
    """Whether code for `target` runs on a device."""
    return target.kind in _COMPILERS


def device_limits(target: Target) -> DeviceLimits:
    """What kernels may ask of the device of `target`: the one that is there, if any."""
    device = device_for(target)
    driver: Any = device.driver
    return limits_of(target, driver.limits(device.index) if device.exist else None)


def _opencl(kernels: Sequence[PrimFunc], target: Target, limits: DeviceLimits) -> KernelCode:
    source = print_opencl(kernels, extensions=limits.features)
    return KernelCode(source, {source.language: source.text})


def _rocm(kernels: Sequence[PrimFunc], target: Target, limits: DeviceLimits) -> KernelCode:
    mcpu = target.option("mcpu", "") or _found_gpu(target)
    toolchain.check_option("rocm", "mcpu", mcpu)  # before the printer, which knows no list of GPUs
    version = toolchain.found_code_object_version()
    layout = toolchain.device_layout("rocm")
    wishes = {name: number_option(target, name, 0) for name in ("wavefront", "waves")}
    wishes["llvm"] = toolchain.llvm_major("rocm")
    source = print_amdgpu(kernels, layout=layout, mcpu=mcpu, code_object=version, **wishes)
    located, loop_ir = add_debug_locations(source, kernels)
    options = {"mcpu": mcpu, "code_object": str(version)}
    options["features"] = gpu_features(kernels, mcpu, wishes["wavefront"], wishes["llvm"])
    if passes := target.option("passes", ""):
        options["passes"] = passes
    binary = toolchain.compile_source(located, options, "hsaco", description="rocm")
    expected = [expected_kernel(kernel) for kernel in kernels]
    code = toolchain.check_code_object(binary, expected, mcpu, version)
    warn_of_slow_kernels(kernels, code)
    metadata = toolchain.metadata_text(binary.data)
    sources = {source.language: source.text, "kernels": loop_ir, "metadata": metadata}
    sources["lines"] = link_lines(source, kernels)
    return KernelCode(binary, sources, lambda: toolchain.disassemble(binary))


def _found_gpu(target: Target) -> str:
    device = device_for(target)
    driver: Any = device.driver
    return str(driver.arch(device.index)) if device.exist else _DEFAULT_GPU


_Compile = Callable[[Sequence[PrimFunc], Target, DeviceLimits], KernelCode]
_COMPILERS: dict[str, _Compile] = {"opencl": _opencl, "rocm": _rocm}
