"""The whole compiler on one screen: lower, passes, print, compile, load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from refcomp import toolchain
from refcomp.certificates import certify_build
from refcomp.codegen.llvm.imports import functions_in
from refcomp.codegen.llvm.module import print_llvm
from refcomp.codegen.signature import signature_of
from refcomp.driver.compile_kernels import compile_programs, is_device_target
from refcomp.driver.devices import device_for
from refcomp.driver.pipeline import CHECK_ACCESSES, run_pass, run_passes
from refcomp.foundation.artifacts import Source
from refcomp.foundation.c_functions import find_c_function, library_paths
from refcomp.foundation.dump import dump_stage
from refcomp.foundation.errors import UserError
from refcomp.foundation.options import current_options
from refcomp.foundation.python_limits import paused_collector
from refcomp.foundation.target import Target, as_target
from refcomp.ir.expr import PureExtern, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.gpu_intrinsics import is_gpu_intrinsic
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import CallExtern
from refcomp.ir.verify import find_fault
from refcomp.lowering.entry_conditions import with_entry_conditions
from refcomp.lowering.lower import lower
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.runtime.function import ArrayCallable
from refcomp.runtime.module import Module
from refcomp.schedule.schedule import Schedule
from refcomp.te.tensor import Tensor

__all__ = ["build", "build_functions", "compile_to_source", "lower"]


def build(
    inputs: Schedule | PrimFunc,
    args: Sequence[Tensor | Var] | None = None,
    target: Target | str = "llvm",
    target_host: Target | str | None = None,
    name: str = "main",
) -> Module:
    """A callable module from a schedule and its arguments, or from one function of the loop IR.

    `args` are the tensors and scalar variables in calling order. `target_host` says what the host's
    part is compiled for: the target itself, and beside a device Python, which walks it. With the
    build option `certify`, a build whose result would be wrong on small sizes is refused.
    """
    if target_host is not None and as_target(target_host).kind != "llvm":
        raise UserError(f"a host function cannot be compiled for {target_host}", remedy='"llvm"')
    chosen = as_target(target)
    if not isinstance(inputs, Schedule):
        return build_functions([inputs], chosen)
    if args is None:
        raise UserError("a schedule is built without arguments", remedy="pass args=[A, B, C]")
    if current_options().certify:
        certify_build(inputs, args, name, chosen.kind)
    return _build_lowered([with_entry_conditions(lower(inputs, args, name))], chosen)


def build_functions(funcs: Sequence[PrimFunc], target: Target | str = "llvm") -> Module:
    """One module of several functions, which are compiled together; the first is its entry."""
    if not isinstance(funcs, list | tuple):
        raise UserError(
            f"{funcs!r} is not a list of functions of the loop IR",
            remedy="pass a list such as [refcomp.lower(schedule, [A, B, C])]",
        )
    if not funcs:
        raise UserError("there is no function to build", remedy="pass at least one")
    chosen = as_target(target)
    for func in funcs:
        _check_given(func)
    ready = [with_entry_conditions(func) for func in funcs]
    for func in ready if current_options().certify else ():
        certify_build(func, (), func.name, chosen.kind)
    return _build_lowered(ready, chosen)


def _build_lowered(funcs: Sequence[PrimFunc], chosen: Target) -> Module:
    """One module of functions of the nested level."""
    libraries = _c_libraries(funcs, chosen)
    sources = {"loop_ir": "\n".join(print_func(func) for func in funcs)}
    dump_stage("lowered", sources["loop_ir"])
    if current_options().check_bounds:  # now, as the signatures list what is checked
        funcs = [run_pass(CHECK_ACCESSES, func) for func in funcs]
    signatures = [signature_of(func) for func in funcs]
    if chosen.kind == "interp":
        ready = [run_passes(func, chosen.kind) for func in funcs]
        callables = {
            s.name: _interpreted(f, libraries) for s, f in zip(signatures, ready, strict=True)
        }
        return Module.from_callables(callables, signatures, target=str(chosen), sources=sources)
    if is_device_target(chosen):
        compiled = compile_programs(funcs, chosen)
        return Module.from_programs(
            list(zip(signatures, compiled.programs, strict=True)),
            compiled.code.code,
            target=str(chosen),
            device=device_for(chosen),
            sources=sources,
            device_sources=compiled.code.sources,
            symbols=compiled.symbols,
            disassemble=compiled.code.disassemble,
        )
    source = compile_to_source(funcs, chosen)
    options = dict(chosen.options) | {"libs": ",".join(libraries)}
    binary = toolchain.compile_source(source, options, "so")
    return Module.from_binary(
        binary,
        signatures,
        target=str(chosen),
        sources=sources | {source.language: source.text},
        disassemble=lambda: toolchain.disassemble(binary),
    )


@paused_collector()
def compile_to_source(funcs: Sequence[PrimFunc], target: Target | str) -> Source:
    """The text that goes to the toolchain, after all passes for the target's kind."""
    chosen = as_target(target)
    lowered = [run_passes(func, chosen.kind) for func in funcs]
    triple, layout = toolchain.host_triple_and_layout()
    bits = toolchain.vector_bits(chosen.option("mcpu", "native"))
    source = print_llvm(lowered, triple=triple, layout=layout, vector_bits=bits)
    dump_stage("llvm", source.text)
    return source


def _check_given(func: Any) -> None:
    """Refuse what is not a function, and a function of the user's own that breaks a rule."""
    if not isinstance(func, PrimFunc):
        raise UserError(
            f"{func!r} cannot be built",
            remedy="pass a schedule, create_schedule(C), or a function of the loop IR",
        )
    fault = find_fault(func, "nested")
    if fault is not None:
        raise UserError(
            f"the function {func.name} cannot be built: {fault.what}",
            where=None if fault.stmt is None else repr(fault.stmt),
            remedy="`refcomp check` tells more about loop-IR text",
        )


def _c_libraries(funcs: Sequence[PrimFunc], target: Target) -> tuple[str, ...]:
    """The user's shared objects, when all C functions that `funcs` call are found."""
    libraries = library_paths(target.option("libs", ""))
    imported = _imported_functions(funcs, target)
    for func in funcs:
        for node in walk(func.body):
            if not isinstance(node, CallExtern | PureExtern) or node.name in imported:
                continue
            if is_gpu_intrinsic(node.name):
                _check_gpu(node.name, target)
            elif target.kind != "llvm" or not node.name.startswith("llvm."):
                find_c_function(node.name, libraries)
    return libraries


def _check_gpu(name: str, target: Target) -> None:
    if target.kind not in ("rocm", "interp"):
        raise UserError(
            f"the target {target} does not know {name}",
            why="it is an instruction of AMD GPUs",
            remedy='build for the target "rocm"',
        )


def _imported_functions(funcs: Sequence[PrimFunc], target: Target) -> set[str]:
    """The functions that LLVM IR of the user's own defines, which only hosts can take in."""
    names = {name for func in funcs for text in func.imports for name in functions_in(text)}
    if names and target.kind != "llvm":
        raise UserError(
            f"the target {target} cannot take in LLVM IR",
            where=f"it defines {', '.join(sorted(names))}",
            why="import_llvm is for code that LLVM compiles for this host",
            remedy='build for the target "llvm"',
        )
    return names


def _interpreted(func: PrimFunc, libraries: Sequence[str]) -> ArrayCallable:
    def call(arguments: list[Any]) -> None:
        interpret(func, arguments, libraries=libraries)

    return call
