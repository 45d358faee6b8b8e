"""The back end `cuda`: machine code for NVIDIA GPUs, by way of CUDA C++."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from refcomp import toolchain
from refcomp.codegen.cuda.module import print_cuda
from refcomp.codegen.cuda.ptx_locations import locate_in_loop_ir
from refcomp.codegen.debug_locations import link_lines, loop_ir_text
from refcomp.driver.backend import Backend, Code
from refcomp.driver.backends.loading import load_programs
from refcomp.driver.backends.nvidia import (
    REPORT,
    all_archs_of,
    arch_of,
    assemble,
    code_format,
    limits_of_archs,
    report_text,
    resources_of_compiled,
)
from refcomp.driver.steps import CUDA_STEPS, FuncOrProgram, kernels_of
from refcomp.foundation import own_targets
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.dump import dump_stage
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import Target
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.func import PrimFunc

_COMPILERS = ("cuda", "nvrtc")  # toolchains, in order of preference
_FORMATS = ("cubin", "ptx", "fatbin")


def _compile(
    made: Sequence[FuncOrProgram], target: Target, _limits: DeviceLimits | None
) -> Code:
    kernels = kernels_of(made)
    source = print_cuda(kernels, arch_of(target))
    dump_stage(source.language, source.text)  # before a tool can fail on it
    wish = _format(target)
    built = assemble(lambda: _run_compiler(source, target, wish), kernels, target)
    sources = {
        source.language: source.text,
        "kernels": loop_ir_text(kernels),
        "lines": link_lines(source, kernels),
    }
    if built.report:
        sources[REPORT] = report_text(built.report)
    if wish == "ptx":
        ptx = _located(built.binary, source, kernels)
        sources[wish] = ptx.data.decode()
        return Code(ptx, sources)
    return Code(built.binary, sources, lambda: toolchain.disassemble(built.binary))


def _format(target: Target) -> str:
    """Return the format of the code: a fatbin if it is for several architectures."""
    archs = all_archs_of(target)
    wish = code_format(target, _FORMATS, "fatbin" if len(archs) > 1 else "cubin")
    if len(archs) > 1 and wish != "fatbin":
        raise UserError(
            f"code of format {wish} is for one architecture, not for {len(archs)}",
            where=f"-arch={','.join(archs)} -code={wish}",
            remedy="name one architecture, or use -code=fatbin",
        )
    return wish


def _run_compiler(
    source: Source, target: Target, wish: str
) -> toolchain.ReportedBinary:
    archs = all_archs_of(target)
    options = {"arch": archs[0]}
    if wish != "fatbin":
        return toolchain.compile_by_first(source, options, wish, _COMPILERS)
    # NVRTC makes code for one architecture only.
    for arch in archs:
        toolchain.check_option("cuda", "arch", arch)
    options["capabilities"] = ",".join(arch.removeprefix("sm_") for arch in archs)
    return toolchain.compile_with_report(source, options, wish, description="cuda")


def _located(ptx: Binary, source: Source, kernels: Sequence[PrimFunc]) -> Binary:
    """Return PTX whose locations are lines of the loop IR, which the emulator shows."""
    text = ptx.data.decode()
    return replace(ptx, data=locate_in_loop_ir(text, source, kernels).encode())


def _texts(
    made: Sequence[FuncOrProgram], target: Target
) -> Mapping[str, Callable[[], str]]:
    """Return the texts of the printer and of the tools, by stage."""
    # Each text is made at most once, and only if it is requested.
    kernels = kernels_of(made)
    source = cache(lambda: print_cuda(kernels, arch_of(target)))
    code = cache(lambda: _compile(made, target, None))

    def ptx() -> str:
        options = {"arch": arch_of(target)}
        found = toolchain.compile_by_first(source(), options, "ptx", _COMPILERS)
        return _located(found.binary, source(), kernels).data.decode()

    def assembly() -> str:
        binary = code().code
        assert isinstance(binary, Binary)
        return toolchain.disassemble(binary)

    return {
        "cuda": lambda: source().text,
        "kernels": lambda: loop_ir_text(kernels),
        "lines": lambda: link_lines(source(), kernels),
        "ptx": ptx,
        REPORT: lambda: code().sources.get(REPORT, ""),
        "asm": assembly,
    }


CUDA = Backend(
    name=own_targets.CUDA.name,
    summary=own_targets.CUDA.meaning,
    options=own_targets.CUDA.options,
    limits=own_targets.CUDA.limits,
    limits_by_options=limits_of_archs,
    steps=CUDA_STEPS,
    compile=_compile,
    load=load_programs,
    texts=_texts,
    device=own_targets.CUDA.device,
    schedules=own_targets.CUDA.schedules,
    calls=frozenset({"nvidia"}),
    resources=resources_of_compiled,
)
