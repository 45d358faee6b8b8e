"""Calls of functions that the loop IR does not define: found, or refused, before compiling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from refcomp.codegen.llvm.imports import all_imports, functions_in, undefined_in
from refcomp.codegen.llvm.separate_imports import separate
from refcomp.driver.backends import backend_of
from refcomp.foundation.c_functions import find_c_function, library_paths
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import Target, foreign_triple
from refcomp.ir.expr import C_FUNCTION, PureExtern
from refcomp.ir.func import PrimFunc
from refcomp.ir.gpu_intrinsics import vendor_of
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import CallExtern


def checked_calls(funcs: Iterable[PrimFunc], target: Target) -> Iterator[PrimFunc]:
    """Check the calls of each function, and yield the function.

    A function may call what the user's own LLVM IR defines. Each function of `funcs` may bring such
    a text. If `funcs` is a list, the texts of all functions count. Otherwise only those of the
    function itself and of the ones before it do.

    Raises:
        UserError: a call is not known on the target.
    """
    libraries = library_paths(target.option("libs", ""))
    known = list(funcs) if isinstance(funcs, Sequence) else []
    imported = _imported_functions(known, libraries, target)
    for func in funcs:
        if not isinstance(funcs, Sequence):
            known.append(func)
            imported = _imported_functions(known, libraries, target)
        for node in walk(func.body):
            if not isinstance(node, CallExtern | PureExtern):
                continue
            is_registered = isinstance(node, PureExtern) and node.callee != C_FUNCTION
            if not is_registered and node.name not in imported:
                _check_call(node.name, libraries, target)
        yield func


def _check_call(name: str, libraries: tuple[str, ...], target: Target) -> None:
    known = backend_of(target).calls
    if foreign_triple(target) and not vendor_of(name):
        return  # the linker of the other machine finds the function, or refuses it
    if vendor := vendor_of(name):
        _check_gpu(name, vendor, target)
    elif "llvm" not in known or not name.startswith("llvm."):
        find_c_function(name, libraries)


# vendor -> how messages call it, and a target with its instructions
_VENDORS = {"amdgpu": ("AMD", "rocm"), "nvidia": ("NVIDIA", "cuda")}


def _check_gpu(name: str, vendor: str, target: Target) -> None:
    if vendor not in backend_of(target).calls:
        company, fitting = _VENDORS[vendor]
        raise UserError(
            f"the target {target} does not know {name}",
            why=f"it is an instruction of {company} GPUs",
            remedy=f'build for the target "{fitting}"',
        )


def _imported_functions(
    funcs: Iterable[PrimFunc], libraries: tuple[str, ...], target: Target
) -> set[str]:
    """Return the functions that LLVM IR of the user's own defines. Only hosts can include it.

    Raises UserError if it uses a function or a variable that neither it nor a library defines.
    """
    texts = separate(all_imports(funcs))
    names = {name for text in texts for name in functions_in(text)}
    if names and "llvm" not in backend_of(target).calls:
        raise UserError(
            f"the target {target} cannot take in LLVM IR",
            where=f"it defines {', '.join(sorted(names))}",
            why="import_llvm and import_c are for code that LLVM compiles for this host",
            remedy='build for the target "llvm"',
        )
    for name in sorted(undefined_in(texts)):
        find_c_function(name, libraries)
    return names
