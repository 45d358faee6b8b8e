"""The back end `llvm`: machine code for this host, by way of LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from refcomp import toolchain
from refcomp.codegen.llvm.module import print_llvm
from refcomp.driver.backend import Backend, Code, CompiledFunctions, Loading
from refcomp.driver.steps import HOST_STEPS, FuncOrProgram
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.c_functions import library_paths
from refcomp.foundation.dump import dump_stage
from refcomp.foundation.target import DeviceLimits, Target
from refcomp.ir.func import PrimFunc
from refcomp.runtime.module import Module

LIBRARIES = "shared objects with C functions that are called, as a.so,b.so"


def print_host(made: Sequence[FuncOrProgram], target: Target) -> Source:
    """Print functions at the host level as LLVM IR for this host."""
    funcs = [func for func in made if isinstance(func, PrimFunc)]
    triple, layout = toolchain.host_triple_and_layout()
    bits = toolchain.vector_bits(target.option("mcpu", "native"))
    return print_llvm(funcs, triple=triple, layout=layout, vector_bits=bits)


def compile_host(
    made: Sequence[FuncOrProgram], target: Target, _limits: DeviceLimits | None
) -> Code:
    """Compile functions at the host level to a shared object."""
    source = print_host(made, target)
    dump_stage(source.language, source.text)  # before a tool can fail on it
    libraries = library_paths(target.option("libs", ""))
    options = dict(target.options) | {"libs": ",".join(libraries)}
    binary = toolchain.compile_source(source, options, "so")
    sources = {source.language: source.text}
    return Code(binary, sources, lambda: toolchain.disassemble(binary))


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
    name="llvm",
    summary="machine code for this host, by way of LLVM IR",
    options={
        "mcpu": "the processor, as `llc -mcpu=help` lists them (default: native)",
        "passes": "the value of `opt -passes=` (default: default<O2>)",
        "libs": LIBRARIES,
    },
    steps=HOST_STEPS,
    print=print_host,
    compile=compile_host,
    load=load_shared_object,
    texts=_texts,
    calls=frozenset({"llvm"}),
)
