"""Loading and launching of PTX for `emulated_pycuda`. A launch with findings fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from refcomp.emulator.code.failure import KernelFailure
from refcomp.emulator.limits import USUAL_LIMITS, Limits
from refcomp.emulator.machine.memory import Arena
from refcomp.emulator.ptx.cuda import EmulatedKernel, KernelRun, LoadedKernels, LoadPtx
from refcomp.emulator.ptx.execution.launch import (
    THREADS_LIMIT,
    LoadedPtx,
    PtxLaunch,
    launch,
    load_ptx,
)
from refcomp.emulator.ptx.machine.observation import PtxObserver
from refcomp.emulator.ptx.observers.races import ThreadRaces
from refcomp.emulator.ptx.translation.engine import translated
from refcomp.emulator.translation.compilation import HostTools


def kernel_loader(
    *,
    hazards: bool = False,
    limits: Limits = USUAL_LIMITS,
    tools: HostTools | None = None,
    observers: Sequence[PtxObserver] = (),
) -> LoadPtx:
    """Return a function that loads PTX, for `emulated_pycuda`.

    Args:
        hazards: True to check all launches for data races.
        limits: the limits after which a launch is stopped.
        tools: compile hot kernels to code of this host; None: all kernels are interpreted.
        observers: observe each launch. They may change between launches.
    """

    def load(arena: Arena, text: str) -> LoadedKernels:
        loaded = translated(load_ptx(arena, text), tools)
        kernels = {
            name: EmulatedKernel(
                _launcher(loaded, name, hazards, limits, observers),
                shared_bytes=loaded.program.shared_of(name).bytes,
                threads=prod(function.limits.get("maxntid", (THREADS_LIMIT,))),
            )
            for name, function in loaded.module.functions.items()
            if function.is_entry and not function.is_declaration
        }
        return LoadedKernels(kernels, loaded.release)

    return load


def _launcher(
    loaded: LoadedPtx,
    kernel: str,
    hazards: bool,
    limits: Limits,
    observers: Sequence[PtxObserver],
) -> Callable[[KernelRun], None]:
    def run(request: KernelRun) -> None:
        report = launch(
            loaded,
            PtxLaunch(
                kernel=kernel,
                grid=request.grid,
                block=request.block,
                parameters=request.arguments,
                dynamic_bytes=request.shared_bytes,
                limits=limits,
                observers=(*observers, *([ThreadRaces()] if hazards else [])),
                read_only=request.read_only,
            ),
        )
        if report.findings:
            raise KernelFailure(kernel, report.findings)

    return run
