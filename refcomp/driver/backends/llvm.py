"""The back end `llvm`: machine code for this host, by way of LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING

from refcomp import toolchain
from refcomp.codegen.llvm.module import HostPrinter
from refcomp.driver.backend import Backend, Code, CompiledFunctions, Loading
from refcomp.driver.backends.division import Division, begin_build
from refcomp.driver.steps import HOST_STEPS, FuncOrProgram
from refcomp.foundation import own_targets
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.c_functions import library_paths
from refcomp.foundation.dump import dump_stage
from refcomp.foundation.target import Target, foreign_triple
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.func import PrimFunc
from refcomp.runtime.inspected_module import inspected_module
from refcomp.runtime.module import Module

if TYPE_CHECKING:
    from refcomp.toolchain.parts import PartsBuild


def print_host(made: Sequence[FuncOrProgram], target: Target) -> Source:
    """Print functions at the host level as LLVM IR for the machine of the target."""
    return _printer(target).print_part(_functions(made))


def _functions(made: Sequence[FuncOrProgram]) -> list[PrimFunc]:
    return [func for func in made if isinstance(func, PrimFunc)]


def _printer(target: Target) -> HostPrinter:
    facts = toolchain.target_facts(target)
    return HostPrinter(
        triple=facts.triple,
        layout=facts.layout,
        vector_bits=facts.vector_bits,
        word_bits=facts.word_bits,
    )


def compile_host(
    made: Sequence[FuncOrProgram], target: Target, _limits: DeviceLimits | None
) -> Code:
    """Compile functions at the host level to a shared object."""
    with begin_host_parts(target) as parts:
        for func in made:
            parts.add(func)
        return parts.finish()


@contextmanager
def begin_host_parts(
    target: Target,
    _limits: DeviceLimits | None = None,
    notice: Callable[[], None] = lambda: None,
) -> Iterator[HostParts]:
    """Begin to compile functions at the host level; see `BeginParts`."""
    with ExitStack() as at_exit:
        yield HostParts(target, notice, at_exit)


class HostParts:
    """Compiles functions at the host level to a shared object, large modules in parts.

    For another machine than this one, it compiles to an object.
    """

    def __init__(
        self, target: Target, notice: Callable[[], None], at_exit: ExitStack
    ) -> None:
        libraries = library_paths(target.option("libs", ""))
        self._options = toolchain.llvm_options(target) | {"libs": ",".join(libraries)}
        self._is_foreign = bool(foreign_triple(target))
        self._printer = cache(lambda: _printer(target))
        self._notice = notice
        self._at_exit = at_exit
        self._division = Division()
        self._build: PartsBuild | None = None  # once there are two parts

    def add(self, made: FuncOrProgram) -> None:
        """Take the next function. Start the part before it if that is complete."""
        if self._is_foreign:
            self._division.rest.append(made)  # nothing here can link parts
        elif part := self._division.add(made):
            if self._build is None:
                build = begin_build(self._options, "so", "llvm", self._notice)
                self._build = self._at_exit.enter_context(build)
            self._build.start(self._print(part, has_others=True))

    def finish(self) -> Code:
        """Return the shared object of all functions, or the object for another machine."""
        is_part = self._build is not None
        source = last = self._print(self._division.rest, has_others=is_part)
        if self._build is not None:
            source = self._printer().whole()
        dump_stage(source.language, source.text)  # before a tool can fail on it
        if self._build is None:
            output = "o" if self._is_foreign else "so"
            binary = toolchain.compile_source(source, self._options, output)
            self._notice()
            if self._is_foreign:
                # A disassembler of objects does not know which features the code uses.
                return Code(binary, {source.language: source.text}, self._assembly)
        else:
            self._build.start(last)
            binary = self._build.join(source.requires)
        sources = {source.language: source.text}
        return Code(binary, sources, lambda: toolchain.disassemble(binary))

    def _assembly(self) -> str:
        text = self._printer().whole()
        return toolchain.compile_source(text, self._options, "asm").data.decode()

    def _print(self, made: Sequence[FuncOrProgram], *, has_others: bool) -> Source:
        return self._printer().print_part(_functions(made), has_others=has_others)


def load_shared_object(compiled: CompiledFunctions, loading: Loading) -> Module:
    """Load a shared object of functions that are called as `runtime/host/machine_code.py` says.

    An object for another machine is not loaded, and becomes a module to read.
    """
    code = compiled.code
    assert code is not None and isinstance(code.code, Binary)
    if machine := foreign_triple(compiled.target):
        assert code.disassemble is not None
        return inspected_module(
            loading.signatures,
            machine,
            target=str(compiled.target),
            sources={**loading.sources, **code.sources},
            disassemble=code.disassemble,
        )
    return Module.from_binary(
        code.code,
        loading.signatures,
        target=str(compiled.target),
        sources={**loading.sources, **code.sources},
        disassemble=code.disassemble,
    )


def _texts(
    made: Sequence[FuncOrProgram], target: Target
) -> Mapping[str, Callable[[], str]]:
    def assembly() -> str:
        source = print_host(made, target)
        options = toolchain.llvm_options(target)
        return toolchain.compile_source(source, options, "asm").data.decode()

    return {"llvm": lambda: print_host(made, target).text, "asm": assembly}


LLVM = Backend(
    name=own_targets.LLVM.name,
    summary=own_targets.LLVM.meaning,
    options=own_targets.LLVM.options,
    steps=HOST_STEPS,
    print=print_host,
    compile=compile_host,
    begin_parts=begin_host_parts,
    load=load_shared_object,
    texts=_texts,
    calls=frozenset({"llvm"}),
)
