"""PTX behind the names of pycuda: files that are loaded, and launches that fail with findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from refcomp.emulator.limits import USUAL_LIMITS, Limits
from refcomp.emulator.machine.memory import Arena
from refcomp.emulator.ptx.cuda import EmulatedKernel, KernelRun, LoadPtx
from refcomp.emulator.ptx.execution.launch import (
    THREADS_LIMIT,
    LoadedPtx,
    PtxLaunch,
    launch,
    load_ptx,
)
from refcomp.emulator.ptx.machine.findings import PtxFinding
from refcomp.emulator.ptx.machine.observation import PtxObserver
from refcomp.emulator.ptx.observers.races import ThreadRaces
from refcomp.emulator.ptx.translation.engine import translated
from refcomp.emulator.translation.compilation import HostTools
from refcomp.foundation.errors import UserError


class PtxFailure(UserError):
    """A launch in which the emulator found errors of the kernel. `findings` has them all."""

    def __init__(self, kernel: str, findings: tuple[PtxFinding, ...]) -> None:
        count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
        super().__init__(
            f"the emulator found errors in the kernel {kernel} ({count})",
            why="\n    ".join(str(finding) for finding in findings),
            remedy="fix the kernel; a real GPU may run it without a complaint",
        )
        self.findings = findings


def kernel_loader(
    *,
    hazards: bool = False,
    limits: Limits = USUAL_LIMITS,
    tools: HostTools | None = None,
    observers: tuple[PtxObserver, ...] = (),
) -> LoadPtx:
    """Return a function that loads PTX, for `emulated_pycuda`.

    Args:
        hazards: True to check all launches for data races.
        limits: when a launch is given up.
        tools: compile hot kernels to code of this host; None: all are interpreted.
        observers: observe all launches.
    """

    def load(arena: Arena, text: str) -> Mapping[str, EmulatedKernel]:
        loaded = translated(load_ptx(arena, text), tools)
        return {
            name: EmulatedKernel(
                _launcher(loaded, name, hazards, limits, observers),
                shared_bytes=loaded.program.shared_of(name).bytes,
                threads=prod(function.limits.get("maxntid", (THREADS_LIMIT,))),
            )
            for name, function in loaded.module.functions.items()
            if function.is_entry and not function.is_declaration
        }

    return load


def _launcher(
    loaded: LoadedPtx,
    kernel: str,
    hazards: bool,
    limits: Limits,
    observers: tuple[PtxObserver, ...],
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
                observers=(*observers, ThreadRaces()) if hazards else observers,
            ),
        )
        if report.findings:
            raise PtxFailure(kernel, report.findings)

    return run
