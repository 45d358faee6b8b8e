"""The back end `interp`: the loop IR, run by the plain interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from refcomp.driver.backend import Backend, CompiledFunctions, Loading
from refcomp.driver.steps import INTERPRETER_STEPS
from refcomp.foundation import own_targets
from refcomp.ir.func import PrimFunc
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.runtime.device import HostArray
from refcomp.runtime.module import Module


def _load(compiled: CompiledFunctions, loading: Loading) -> Module:
    callables = {}
    for signature, func in zip(loading.signatures, compiled.made, strict=True):
        # No step of the interpreter splits kernels off.
        assert isinstance(func, PrimFunc)
        callables[signature.name] = partial(_run, func, loading.libraries)
    return Module.from_callables(
        callables,
        loading.signatures,
        target=str(compiled.target),
        sources=loading.sources,
    )


def _run(
    func: PrimFunc, libraries: Sequence[str], arguments: list[np.generic | HostArray]
) -> None:
    interpret(func, arguments, libraries=libraries)


INTERP = Backend(
    name=own_targets.INTERP.name,
    summary=own_targets.INTERP.meaning,
    options=own_targets.INTERP.options,
    steps=INTERPRETER_STEPS,
    load=_load,
    calls=frozenset({"amdgpu", "nvidia"}),
)
