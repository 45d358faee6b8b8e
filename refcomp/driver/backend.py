"""A back end is one record with everything that the compiler needs to know of a kind of target.

After `register_backend`, `build`, the commands and the graph compiler accept the record's name as a
target. refcomp's own records are the files of `driver/backends/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Literal, Protocol

from refcomp.driver.kernel_resources import KernelResources
from refcomp.driver.steps import FuncOrProgram, PipelineStep, Scope
from refcomp.foundation.artifacts import Binary, Signature, Source
from refcomp.foundation.errors import UserError
from refcomp.foundation.options import BuildOptions
from refcomp.foundation.target import Target, as_target, register_kind, target_kinds
from refcomp.foundation.target_kind import DeviceLimits, Schedules, TargetKind
from refcomp.runtime.module import Module


@dataclass(frozen=True, slots=True)
class Code:
    """The code of one build."""

    code: Source | Binary
    sources: Mapping[str, str]  # language -> text from which the code was made
    disassemble: Callable[[], str] | None = None  # None for code that is a text


@dataclass(frozen=True, slots=True)
class CompiledFunctions:
    """Functions after all steps, and their code."""

    target: Target
    made: tuple[FuncOrProgram, ...]
    code: Code | None  # None if the functions themselves run


@dataclass(frozen=True, slots=True)
class Loading:
    """The input of a loader beside the code."""

    signatures: tuple[Signature, ...]  # how each function is called
    sources: Mapping[str, str]  # language -> text of an earlier step
    libraries: tuple[str, ...]  # the user's shared objects


Compile = Callable[[Sequence[FuncOrProgram], Target, DeviceLimits | None], Code]
Load = Callable[[CompiledFunctions, Loading], Module]


class PartsCompiler(Protocol):
    """Compiles functions in parts, while others are still lowered."""

    def add(self, made: FuncOrProgram) -> None:
        """Take the next function, after all steps. It may start to compile those before it."""

    def finish(self) -> Code:
        """Return the code of all functions. It computes what that of `Backend.compile` does."""


# The end of the context leaves no process behind. The last argument is called after each part, in
# any thread.
BeginParts = Callable[
    [Target, DeviceLimits | None, Callable[[], None]],
    AbstractContextManager[PartsCompiler],
]
Print = Callable[[Sequence[FuncOrProgram], Target], Source]


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of target: the record of how loop IR becomes a module.

    Attributes:
        name: the first word of a target, such as `llvm`.
        summary: one line for people.
        steps: the pipeline, from the nested level to that of `compile`.
        load: makes a Module of compiled functions.
        compile: makes code; None if `load` runs the functions themselves.
        begin_parts: begins to compile functions in parts, which are linked; None if all functions
            are compiled at once.
        print: prints functions at the host level; None if the text alone cannot be called.
        texts: the texts of `refcomp show` beside the steps: stage -> a function that makes the
            text. By default the sources of `compile` and the disassembly.
        options: name of an option, as in `-name=value` -> its description.
        device: the kind of device that runs the code.
        limits: limits of kernels for a device that this machine does not have; None without
            kernels.
        limits_by_options: returns these limits for the device that the options of a target name;
            None if no option names a device.
        schedules: the schedules of `refcomp.topi` that fit.
        calls: functions that loop IR may call beside C functions: LLVM's intrinsics and imported
            LLVM IR (`llvm`), instructions of AMD GPUs (`amdgpu`) or of NVIDIA GPUs
            (`nvidia`).
        resources: returns the registers and the memory that the kernels of compiled functions
            take.

    Example::

        >>> from refcomp.driver.backends import backend_of
        >>> llvm = backend_of("llvm")
        >>> llvm.name, llvm.device, llvm.has_kernels, backend_of("opencl").has_kernels
        ('llvm', 'cpu', False, True)
    """

    name: str
    summary: str
    steps: tuple[PipelineStep, ...]
    load: Load
    compile: Compile | None = None
    begin_parts: BeginParts | None = None
    print: Print | None = None
    texts: (
        Callable[[Sequence[FuncOrProgram], Target], Mapping[str, Callable[[], str]]]
        | None
    ) = None
    options: Mapping[str, str] = field(default_factory=dict)
    device: str = "cpu"
    limits: DeviceLimits | None = None
    limits_by_options: Callable[[Target], DeviceLimits] | None = None
    schedules: Schedules = "cpu"
    calls: frozenset[Literal["llvm", "amdgpu", "nvidia"]] = frozenset()
    resources: Callable[[CompiledFunctions], Iterable[KernelResources]] | None = None

    @property
    def has_kernels(self) -> bool:
        """True if functions are split into a host's part and kernels."""
        return self.limits is not None


# Those that were registered, and refcomp's own as far as they are imported.
_BACKENDS: dict[str, Backend] = {}


def register_backend(backend: Backend) -> Backend:
    """Make a back end known, and return it. Its name is a target from then on.

    Args:
        backend: the record. `tests/driver/toy_backend.py` is a whole example.

    Raises:
        UserError: the name is taken or not a word of a-z, 0-9 and `_`; or the record cannot work,
            for example because it has no loader.

    Example::

        >>> import dataclasses
        >>> from refcomp.driver.backends import backend_of
        >>> llvm = backend_of("llvm")
        >>> rc.register_backend(dataclasses.replace(llvm, name="my target"))
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: the back end 'my target' cannot be registered...
    """
    _check(backend)
    register_kind(
        TargetKind(
            name=backend.name,
            meaning=backend.summary,
            options=backend.options,
            limits=backend.limits,
            device=backend.device,
            schedules=backend.schedules,
        )
    )
    _BACKENDS[backend.name] = backend
    return backend


def _check(backend: Backend) -> None:
    """Raise UserError for mistakes that would show only when something is built."""
    if not isinstance(backend, Backend):
        raise UserError(
            f"{backend!r} is not a back end", remedy="pass a refcomp.Backend(...)"
        )
    if why := next(_faults(backend), None):
        raise UserError(
            f"the back end {backend.name!r} cannot be registered",
            why=why,
            remedy="each field is explained in refcomp/driver/backend.py",
        )


def _faults(backend: Backend) -> Iterator[str]:
    """Yield mistakes, each as a clause. A record of wrong types is not examined further."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", str(backend.name)):
        yield "its name is not a word of a-z, 0-9 and _"
    if not isinstance(backend.options, Mapping):
        yield "its options are not a mapping"
    if not callable(backend.load):
        yield "it has no loader"
    if not all(isinstance(step, PipelineStep) for step in backend.steps):
        yield "a step is not a PipelineStep"
    licences = {field.name for field in fields(BuildOptions)}
    for step in backend.steps:
        if step.licence and step.licence not in licences:
            yield f"no build option is called {step.licence}"
    splits = any(step.scope == Scope.SPLIT for step in backend.steps)
    if backend.has_kernels and not splits:
        yield "it has limits, and no step that splits kernels off"
    if splits and not backend.has_kernels:
        yield "a step splits kernels off, and it has no limits"
    if splits and backend.device == "cpu":
        yield "it has kernels, and its device is the host"


def backends() -> tuple[Backend, ...]:
    """Return all back ends: refcomp's own, then the others in the order of registration."""
    return tuple(backend_of(kind.name) for kind in target_kinds())


def backend_of(target: Target | str) -> Backend:
    """Return the back end of a target. Raises UserError for an unknown one."""
    kind = as_target(target).kind
    if kind not in _BACKENDS:
        # One of refcomp's own. Each imports a printer, and a program needs one or two of them.
        home = import_module(f"refcomp.driver.backends.{kind}")
        _BACKENDS[kind] = getattr(home, kind.upper())
    return _BACKENDS[kind]


def usual_backend(has_kernels: bool) -> Backend:
    """Return the first back end for functions with kernels, or without."""
    return next(backend for backend in backends() if backend.has_kernels is has_kernels)
