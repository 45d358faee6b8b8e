"""The back end `interp`: the loop IR, run by the plain interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from refcomp.driver.backend import Backend, CompiledFunctions, Loading
from refcomp.driver.backends.llvm import LIBRARIES
from refcomp.driver.steps import INTERPRETER_STEPS
from refcomp.ir.func import PrimFunc
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.runtime.function import ArrayCallable
from refcomp.runtime.module import Module


def _load(compiled: CompiledFunctions, loading: Loading) -> Module:
    callables = {
        signature.name: _interpreted(func, loading.libraries)
        for signature, func in zip(loading.signatures, compiled.made, strict=True)
        if isinstance(func, PrimFunc)
    }
    return Module.from_callables(
        callables,
        loading.signatures,
        target=str(compiled.target),
        sources=loading.sources,
    )


def _interpreted(func: PrimFunc, libraries: Sequence[str]) -> ArrayCallable:
    def call(arguments: list[Any]) -> None:
        interpret(func, arguments, libraries=libraries)

    return call


INTERP = Backend(
    name="interp",
    summary="the loop IR, run by the plain Python interpreter: slow, no tools",
    options={"libs": LIBRARIES},
    steps=INTERPRETER_STEPS,
    load=_load,
    calls=frozenset({"amdgpu"}),
)
