"""A back end is one record: all that the compiler asks about a kind of target.

`register_backend` makes a record known; from then on `build`, the commands and the graph compiler
take its name as a target. The records of refcomp itself are the files of `driver/backends/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

from refcomp.driver.kernel_resources import KernelResources
from refcomp.driver.steps import Made, PipelineStep, Scope
from refcomp.foundation.artifacts import Binary, Signature, Source
from refcomp.foundation.errors import UserError
from refcomp.foundation.options import BuildOptions
from refcomp.foundation.target import (
    DeviceLimits,
    Target,
    TargetKind,
    as_target,
    register_kind,
)
from refcomp.runtime.module import Module


@dataclass(frozen=True, slots=True)
class Code:
    """The code of one build, as a loader takes it."""

    code: Source | Binary
    sources: Mapping[str, str]  # the texts that the code was made from, by language
    disassemble: Callable[[], str] | None = None


@dataclass(frozen=True, slots=True)
class CompiledFunctions:
    """Functions after all steps, and their code; None where the functions run as they are."""

    target: Target
    made: tuple[Made, ...]
    code: Code | None


@dataclass(frozen=True, slots=True)
class Loading:
    """The input of a loader beside the code."""

    signatures: tuple[Signature, ...]  # how each function is called
    sources: Mapping[str, str]  # texts from before the code, by language
    libraries: tuple[str, ...]  # the user's shared objects


Compile = Callable[[Sequence[Made], Target, DeviceLimits | None], Code]
Load = Callable[[CompiledFunctions, Loading], Module]
Print = Callable[[Sequence[Made], Target], Source]


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of target: how loop IR becomes something to call.

    Attributes:
        name: the first word of a target, such as `llvm`.
        summary: one line for people.
        steps: the pipeline, from the nested level to what `compile` takes.
        load: makes a Module of what was compiled.
        compile: makes code; None if `load` runs the functions as they are.
        print: the text of functions at the host level; None if no text alone can be called.
        texts: what `refcomp show` prints beside the steps, by stage, each made when it is called;
            default: `compile`'s sources and their disassembly.
        options: what `-name=value` may set, and what each option means.
        device: the kind of device that code runs on.
        limits: what kernels may ask of a device that is not there; None if there are no kernels.
        schedules: which schedules of `refcomp.topi` suit the target.
        calls: the functions that loop IR may call by name: C functions, LLVM's intrinsics and
            imported LLVM IR, instructions of AMD GPUs.
        resources: the registers and memory that kernels take, read off the code.
    """

    name: str
    summary: str
    steps: tuple[PipelineStep, ...]
    load: Load
    compile: Compile | None = None
    print: Print | None = None
    texts: (
        Callable[[Sequence[Made], Target], Mapping[str, Callable[[], str]]] | None
    ) = None
    options: Mapping[str, str] = field(default_factory=dict)
    device: str = "cpu"
    limits: DeviceLimits | None = None
    schedules: Literal["cpu", "gpu"] = "cpu"
    calls: frozenset[Literal["llvm", "amdgpu"]] = frozenset()
    resources: Callable[[Source | Binary], Iterable[KernelResources]] | None = None

    @property
    def has_kernels(self) -> bool:
        """Return True if functions are split into a host's part and kernels."""
        return self.limits is not None


_BACKENDS: dict[str, Backend] = {}


def register_backend(backend: Backend) -> Backend:
    """Make `backend` known. Raises UserError for a record that cannot work, or a taken name."""
    _check(backend)
    register_kind(
        TargetKind(backend.name, backend.summary, backend.options, backend.limits)
    )
    _BACKENDS[backend.name] = backend
    return backend


def _check(backend: Backend) -> None:
    """Raise UserError for mistakes that would show only when something is built."""
    if not isinstance(backend, Backend):
        raise UserError(
            f"{backend!r} is not a back end", remedy="pass a refcomp.Backend(...)"
        )
    licences = {field.name for field in fields(BuildOptions)}
    name, steps = backend.name, backend.steps
    faults = {
        "its name is not a word of a-z, 0-9 and _": not re.fullmatch(
            r"[a-z][a-z0-9_]*", str(name)
        ),
        "its options are not a mapping": not isinstance(backend.options, Mapping),
        "it has no loader": not callable(backend.load),
        "a step is not a PipelineStep": not all(
            isinstance(s, PipelineStep) for s in steps
        ),
    }
    if not any(faults.values()):
        unknown = [s.licence for s in steps if s.licence and s.licence not in licences]
        splits = any(step.scope == Scope.SPLIT for step in steps)
        faults = {
            f"no build option is called {', '.join(unknown)}": bool(unknown),
            "it has limits, and no step that splits kernels off": backend.has_kernels
            > splits,
            "a step splits kernels off, and it has no limits": splits
            > backend.has_kernels,
            "it has kernels, and its device is the host": splits
            and backend.device == "cpu",
        }
    for why, is_so in faults.items():
        if is_so:
            raise UserError(
                f"the back end {name!r} cannot be registered",
                why=why,
                remedy="each field is explained in refcomp/driver/backend.py",
            )


def backends() -> tuple[Backend, ...]:
    """Return all back ends, in the order of registration."""
    return tuple(_BACKENDS.values())


def backend_of(target: Target | str) -> Backend:
    """Return the back end of a target. Raises UserError for an unknown one."""
    return _BACKENDS[as_target(target).kind]


def usual_backend(has_kernels: bool) -> Backend:
    """Return the first back end for functions with kernels, or without."""
    return next(backend for backend in backends() if backend.has_kernels is has_kernels)
