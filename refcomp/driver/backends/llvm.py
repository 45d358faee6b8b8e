"""The back end `llvm`: machine code for this host, by way of LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING

from refcomp import toolchain
from refcomp.codegen.llvm.module import HostPrinter
from refcomp.driver.backend import Backend, Code, CompiledFunctions, Loading
from refcomp.driver.steps import HOST_STEPS, FuncOrProgram
from refcomp.foundation import own_targets
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.c_functions import library_paths
from refcomp.foundation.dump import dump_stage
from refcomp.foundation.target import Target
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.expr import PureExtern
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import CallExtern, CallPacked
from refcomp.runtime.host.threads import usable_cores
from refcomp.runtime.module import Module

if TYPE_CHECKING:
    from refcomp.toolchain.parts import PartsBuild


# Parts have at least so many nodes: the tools take about 70 ms for them, and 40 ms to start.
_PART_NODES = 2000


def print_host(made: Sequence[FuncOrProgram], target: Target) -> Source:
    """Print functions at the host level as LLVM IR for this host."""
    funcs = [func for func in made if isinstance(func, PrimFunc)]
    return _printer(target).print_part(funcs)


def _printer(target: Target) -> HostPrinter:
    triple, layout = toolchain.host_triple_and_layout()
    bits = toolchain.vector_bits(target.option("mcpu", "native"))
    return HostPrinter(triple=triple, layout=layout, vector_bits=bits)


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

    The bounds of parts depend only on the functions. A small module is one part.
    """

    def __init__(
        self, target: Target, notice: Callable[[], None], at_exit: ExitStack
    ) -> None:
        libraries = library_paths(target.option("libs", ""))
        self._options = dict(target.options) | {"libs": ",".join(libraries)}
        self._printer = cache(lambda: _printer(target))
        self._notice = notice
        self._at_exit = at_exit
        self._funcs: list[PrimFunc] = []  # of the next part
        self._nodes = 0  # of these functions
        self._is_last = False
        self._build: PartsBuild | None = None  # once there are two parts

    def add(self, made: FuncOrProgram) -> None:
        """Take the next function. Start the part before it if that is large enough."""
        assert isinstance(made, PrimFunc)
        if self._nodes >= _PART_NODES and not self._is_last:
            self._start_part()
        self._funcs.append(made)
        nodes = list(walk(made.body))
        self._nodes += len(nodes)
        self._is_last |= bool(made.imports) or any(map(_calls_out, nodes))

    def finish(self) -> Code:
        """Return the shared object of all functions."""
        source = last = self._printer().print_part(self._funcs)
        if self._build is not None:
            source = self._printer().whole()
        dump_stage(source.language, source.text)  # before a tool can fail on it
        if self._build is None:
            binary = toolchain.compile_source(source, self._options, "so")
            self._notice()
        else:
            self._build.start(last)
            binary = self._build.join(source.requires)
        sources = {source.language: source.text}
        return Code(binary, sources, lambda: toolchain.disassemble(binary))

    def _start_part(self) -> None:
        if self._build is None:
            from refcomp.toolchain.parts import PartsBuild  # noqa: PLC0415  (for large modules)

            self._build = self._at_exit.enter_context(
                PartsBuild(
                    self._options,
                    "so",
                    processes=usable_cores(),
                    notice=self._notice,
                )
            )
        self._build.start(self._printer().print_part(self._funcs))
        self._funcs = []
        self._nodes = 0


def _calls_out(node: Node) -> bool:
    """Return True for a call that leaves the loop IR.

    What it calls may be imported LLVM IR of another function, or the one callback of the module. So
    all functions from the first such call on are one part.
    """
    is_call = isinstance(node, CallPacked | CallExtern | PureExtern)
    return is_call and not (isinstance(node, PureExtern) and node.is_llvm_intrinsic)


def load_shared_object(compiled: CompiledFunctions, loading: Loading) -> Module:
    """Load a shared object of functions that are called as `runtime/host/machine_code.py` says."""
    code = compiled.code
    assert code is not None and isinstance(code.code, Binary)
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
        options = dict(target.options)
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
