"""Calls of functions that the loop IR does not define: found, or refused, before compiling."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.codegen.llvm.imports import functions_in
from refcomp.driver.backends import backend_of
from refcomp.foundation.c_functions import find_c_function, library_paths
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import Target
from refcomp.ir.expr import PureExtern
from refcomp.ir.func import PrimFunc
from refcomp.ir.gpu_intrinsics import vendor_of
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import CallExtern


def check_outside_calls(funcs: Sequence[PrimFunc], target: Target) -> tuple[str, ...]:
    """Return the user's shared objects. Raises UserError for calls that a target does not know."""
    libraries = library_paths(target.option("libs", ""))
    imported = _imported_functions(funcs, target)
    for func in funcs:
        for node in walk(func.body):
            if not isinstance(node, CallExtern | PureExtern) or node.name in imported:
                continue
            if vendor := vendor_of(node.name):
                _check_gpu(node.name, vendor, target)
            elif "llvm" not in backend_of(target).calls or not node.name.startswith(
                "llvm."
            ):
                find_c_function(node.name, libraries)
    return libraries


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


def _imported_functions(funcs: Sequence[PrimFunc], target: Target) -> set[str]:
    """Return the functions that LLVM IR of the user's own defines. Only hosts can include it."""
    names = {
        name for func in funcs for text in func.imports for name in functions_in(text)
    }
    if names and "llvm" not in backend_of(target).calls:
        raise UserError(
            f"the target {target} cannot take in LLVM IR",
            where=f"it defines {', '.join(sorted(names))}",
            why="import_llvm is for code that LLVM compiles for this host",
            remedy='build for the target "llvm"',
        )
    return names
