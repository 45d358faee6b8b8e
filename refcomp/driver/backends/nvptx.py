"""The back end `nvptx`: machine code for NVIDIA GPUs, by way of LLVM IR and PTX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache

from refcomp import toolchain
from refcomp.codegen.debug_locations import add_debug_locations, link_lines
from refcomp.codegen.nvptx.module import print_nvptx
from refcomp.codegen.nvptx.names import check_arch
from refcomp.driver.backend import Backend, Code
from refcomp.driver.backends.loading import load_programs
from refcomp.driver.backends.nvidia import (
    REPORT,
    arch_of,
    assemble,
    code_format,
    limits_of_archs,
    report_text,
    resources_of_compiled,
)
from refcomp.driver.steps import NVPTX_STEPS, FuncOrProgram, kernels_of
from refcomp.foundation import own_targets
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.compute_capability import capability_of
from refcomp.foundation.dump import dump_stage
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.target import Target
from refcomp.foundation.target_kind import DeviceLimits

_CODES = ("cubin", "ptx")


def _print(made: Sequence[FuncOrProgram], target: Target) -> Source:
    """Print kernels as LLVM IR for the target's architecture."""
    arch = _ptx_arch(target)
    layout = toolchain.device_layout("nvptx")
    return print_nvptx(kernels_of(made), layout=layout, arch=arch)


def _ptx_arch(target: Target) -> str:
    """Return the architecture for which LLVM makes PTX: that of the target, if LLVM knows it.

    For a GPU that is newer than LLVM it is the newest architecture that LLVM knows. What compiles
    the PTX then knows the GPU. Raise UserError for a name that no tool knows.
    """
    arch = arch_of(target)
    check_arch(str(target.option("arch", arch)))  # LLVM compiles for one at a time
    known = toolchain.known_values("nvptx", "arch")
    if arch in known:
        return arch
    is_of_device = not target.option("arch", "")
    # PTX for a name with a letter, such as sm_90a, runs on no newer GPU.
    newest = max((name for name in known if name[-1].isdigit()), key=capability_of)
    is_newer = capability_of(arch) > capability_of(newest)
    if is_newer and (is_of_device or _has_ptxas_for(arch)):
        return newest
    toolchain.check_option("nvptx", "arch", arch)
    return arch


def _has_ptxas() -> bool:
    with suppress(ToolchainError):
        toolchain.find_tools(toolchain.load_description("ptxas"))
        return True
    return False


def _has_ptxas_for(arch: str) -> bool:
    return _has_ptxas() and arch in toolchain.known_values("ptxas", "arch")


def _compile_ptx(source: Source, target: Target) -> Binary:
    options = {"arch": _ptx_arch(target)}
    if passes := target.option("passes", ""):
        options["passes"] = passes
    return toolchain.compile_source(source, options, "ptx", description="nvptx")


def _compile(
    made: Sequence[FuncOrProgram], target: Target, _limits: DeviceLimits | None
) -> Code:
    wish = _wished_code(target)
    kernels = kernels_of(made)
    source = _print(made, target)
    dump_stage(source.language, source.text)  # before a tool can fail on it
    # The debug locations are lines of the loop IR, which profilers show.
    located, loop_ir = add_debug_locations(source, kernels, "nvptx")
    ptx = _compile_ptx(located, target)
    sources = {
        source.language: source.text,
        "kernels": loop_ir,
        "lines": link_lines(source, kernels),
        "ptx": ptx.data.decode(),
    }
    for language in ("kernels", "lines", "ptx"):
        dump_stage(language, sources[language])
    if wish == "ptx" or not (wish or _has_ptxas()):
        return Code(ptx, sources)
    built = assemble(lambda: _assemble(ptx, target), kernels, target)
    sources[REPORT] = report_text(built.report)
    return Code(built.binary, sources, lambda: toolchain.disassemble(built.binary))


def _wished_code(target: Target) -> str:
    """Return the format of the code that the target names, or ''."""
    return code_format(target, _CODES, "") if target.option("code", "") else ""


def _assemble(ptx: Binary, target: Target) -> toolchain.ReportedBinary:
    text = Source(ptx.data.decode(), "ptx")
    options = {"arch": arch_of(target)}
    try:
        return toolchain.compile_with_report(
            text, options, "cubin", description="ptxas"
        )
    except UserError as error:
        # An older GPU than ptxas knows; the driver of such a GPU knows it.
        error.remedy = f"{error.remedy or ''}; or let the driver compile: -code=ptx"
        raise


def _texts(
    made: Sequence[FuncOrProgram], target: Target
) -> Mapping[str, Callable[[], str]]:
    """Return the texts that only printing makes, and those that tools make, by stage."""
    # Each text is made at most once, and only if it is requested.
    kernels = kernels_of(made)
    source = cache(lambda: _print(made, target))
    located = cache(lambda: add_debug_locations(source(), kernels, "nvptx"))

    ptx = cache(lambda: _compile_ptx(located()[0], target))
    built = cache(lambda: _assemble(ptx(), target))
    return {
        "llvm": lambda: source().text,
        "kernels": lambda: located()[1],
        "lines": lambda: link_lines(source(), kernels),
        "ptx": lambda: ptx().data.decode(),
        REPORT: lambda: report_text(built().report),
        "asm": lambda: toolchain.disassemble(built().binary),
    }


NVPTX = Backend(
    name=own_targets.NVPTX.name,
    summary=own_targets.NVPTX.meaning,
    options=own_targets.NVPTX.options,
    limits=own_targets.NVPTX.limits,
    limits_by_options=limits_of_archs,
    steps=NVPTX_STEPS,
    compile=_compile,
    load=load_programs,
    texts=_texts,
    device=own_targets.NVPTX.device,
    schedules=own_targets.NVPTX.schedules,
    calls=frozenset({"nvidia"}),
    resources=resources_of_compiled,
)
