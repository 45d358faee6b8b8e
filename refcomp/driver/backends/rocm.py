"""The back end `rocm`: machine code for AMD GPUs, by way of LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, cast

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
from refcomp.driver.backends.division import Division, begin_build
from refcomp.driver.backends.loading import device_of, load_programs
from refcomp.driver.steps import ROCM_STEPS, FuncOrProgram, kernels_of
from refcomp.foundation import own_targets
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.dump import dump_stage
from refcomp.foundation.target import Target, number_option
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.runtime.hip.driver import HipDriver

if TYPE_CHECKING:
    from refcomp.toolchain.parts import PartsBuild


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
    with _begin_parts(target) as parts:
        for program in made:
            parts.add(program)
        return parts.finish()


@contextmanager
def _begin_parts(
    target: Target,
    _limits: DeviceLimits | None = None,
    notice: Callable[[], None] = lambda: None,
) -> Iterator[KernelParts]:
    with ExitStack() as at_exit:
        yield KernelParts(target, notice, at_exit)


class KernelParts:
    """Compiles kernels to a code object, large modules in parts.

    Each part is a text of its own. The text of the module has all kernels, as if they were one
    part.
    """

    def __init__(
        self, target: Target, notice: Callable[[], None], at_exit: ExitStack
    ) -> None:
        self._target = target
        self._notice = notice
        self._at_exit = at_exit
        self._made: list[FuncOrProgram] = []
        self._loop_ir: list[str] = []  # text of each part
        self._division = Division()
        self._build: PartsBuild | None = None  # once there are two parts

    def add(self, made: FuncOrProgram) -> None:
        """Take the next program. Start the part before it if that is complete."""
        if part := self._division.add(made):
            if self._build is None:
                build = begin_build(self._options(part), "hsaco", "rocm", self._notice)
                self._build = self._at_exit.enter_context(build)
            self._start(self._build, part, print_rocm(part, self._target))
        self._made.append(made)

    def finish(self) -> Code:
        """Return the code object of all kernels."""
        source = print_rocm(self._made, self._target)
        dump_stage(source.language, source.text)  # before a tool can fail on it
        rest = self._division.rest
        if self._build is None:
            options = self._options(rest)
            binary = toolchain.compile_source(
                self._located(source, rest), options, "hsaco", description="rocm"
            )
            self._notice()
        else:
            self._start(self._build, rest, print_rocm(rest, self._target))
            binary = self._build.join(source.requires)
        return self._code(source, binary)

    def _start(
        self, build: PartsBuild, part: Sequence[FuncOrProgram], source: Source
    ) -> None:
        build.start(self._located(source, part), self._options(part))

    def _located(self, source: Source, part: Sequence[FuncOrProgram]) -> Source:
        """Return the text of a part with debug locations.

        They are lines of the loop IR of all parts, which a debugger and the emulator show.
        """
        before = "\n".join([*self._loop_ir, ""]).count("\n")
        located, loop_ir = add_debug_locations(
            source, kernels_of(part), lines_before=before
        )
        self._loop_ir.append(loop_ir)
        return located

    def _options(self, part: Sequence[FuncOrProgram]) -> dict[str, str]:
        mcpu = _gpu_of(self._target)
        options = {
            "mcpu": mcpu,
            "code_object": str(toolchain.found_code_object_version()),
            "features": gpu_features(
                kernels_of(part),
                mcpu,
                number_option(self._target, "wavefront", 0),
                toolchain.llvm_major("rocm"),
            ),
        }
        if passes := self._target.option("passes", ""):
            options["passes"] = passes
        return options

    def _code(self, source: Source, binary: Binary) -> Code:
        kernels = kernels_of(self._made)
        expected = [expected_kernel(kernel) for kernel in kernels]
        version = toolchain.found_code_object_version()
        mcpu = _gpu_of(self._target)
        metadata = toolchain.check_code_object(binary, expected, mcpu, version)
        warn_of_slow_kernels(kernels, metadata)
        sources = {
            source.language: source.text,
            "kernels": "\n".join(self._loop_ir),
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
    begin_parts=_begin_parts,
    load=load_programs,
    texts=_texts,
    device=own_targets.ROCM.device,
    schedules=own_targets.ROCM.schedules,
    calls=frozenset({"amdgpu"}),
    resources=_resources,
)
