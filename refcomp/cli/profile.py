"""Runs a program or a model on an emulated GPU, and prints its profile: `refcomp emulate`.

A program is compiled for the emulated GPU and called once, on arrays that are filled in; its
schedule, its loop IR and its LLVM IR stand in the page beside the machine code. So is a model, all
of whose kernels then stand side by side, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click
import numpy as np

from refcomp.cli.arrays import Filling, complete
from refcomp.cli.execute import make_arguments
from refcomp.cli.outcomes import printable
from refcomp.cli.programs import load_program
from refcomp.cli.run import params_of
from refcomp.cli.streams import note, progress, write_json
from refcomp.compiler import build_functions
from refcomp.driver.devices import rocm_emulator
from refcomp.emulator.hip import KernelFailure
from refcomp.emulator.observers.counting import KernelCounts, Profile
from refcomp.foundation.errors import UserError
from refcomp.foundation.options import build_options
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.compile import compile_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.profile.cards import card_for
from refcomp.profile.page import write_page
from refcomp.profile.report import ProfileReport, report_of
from refcomp.profile.text import reports_to_text
from refcomp.runtime.arrays.ndarray import array
from refcomp.runtime.device import Device
from refcomp.runtime.module import Module
from refcomp.schedule.schedule import Schedule

IN_THE_TERMINAL = "-"
_PAGES = (".html", ".htm")
_MODEL = ".onnx"
_WIDTHS = 100, 160  # at least and at most


def page_path(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> str | None:
    """What --profile is given: a page, or nothing for a table."""
    if value in (None, IN_THE_TERMINAL) or str(value).endswith(_PAGES):
        return value
    told = "is no page: its name ends in .html; for tables give --profile last, or as --profile=-"
    raise click.BadParameter(f"{value!r} {told}", ctx, param)


def is_program(file: str) -> bool:
    """Return True if `file` is SCRIPT.py, SCRIPT.py:NAME or a model, False for a code object."""
    path = file.rpartition(":")[0] if ".py:" in file else file
    return Path(path).suffix in (".py", _MODEL)


@dataclass(frozen=True, slots=True)
class EmulatedDevice:
    """The emulated GPU that a program runs on; see `refcomp.rocm_emulator`."""

    gpu: str
    hazards: bool | tuple[str, ...] = False
    is_watched: bool = True
    max_steps: int | None = None
    max_seconds: float | None = None

    def observed_by(self, profile: Profile) -> Device:
        """Return the device, whose launches `profile` counts."""
        return rocm_emulator(
            self.gpu,
            hazards=self.hazards,
            is_watched=self.is_watched,
            max_steps=self.max_steps,
            max_seconds=self.max_seconds,
            profile=profile,
        )


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """The outcome of a program's launches.

    Attributes:
        reports: The profile of each kernel of the functions that ran to their ends.
        failures: What was found wrong, one entry for each function that a finding stopped.
        launches: Launches of kernels that ran to their ends.
    """

    reports: tuple[ProfileReport, ...]
    failures: tuple[KernelFailure, ...]
    launches: int


def emulate_program(
    file: str,
    device: EmulatedDevice,
    filling: Filling,
    *,
    contract: bool,
    card: str | None,
) -> ProgramRun:
    """Compile each function of a program, or a model, for the device, and call it once."""
    card_for(device.gpu, card)  # refuses a wrong one at once
    if file.endswith(_MODEL):
        return _run_model(file, device, filling, contract, card)
    runs = []
    for piece in load_program(file).pieces:
        profile = Profile()
        with build_options(contract=contract), progress(f"emulating {piece.func.name}"):
            module = build_functions([piece.func], f"rocm -mcpu={device.gpu}")
            failure = _failure(partial(_call, module, device, filling, profile))
        runs.append(
            _ran(profile, failure, partial(_report, module, piece.schedule, card))
        )
    return ProgramRun(
        reports=tuple(report for run in runs for report in run.reports),
        failures=tuple(failure for run in runs for failure in run.failures),
        launches=sum(run.launches for run in runs),
    )


def _run_model(
    file: str,
    device: EmulatedDevice,
    filling: Filling,
    contract: bool,
    card: str | None,
) -> ProgramRun:
    """Run a whole model, each kernel on what the ones before it made."""
    profile = Profile()
    with build_options(contract=contract), progress(f"emulating {file}"):
        graph = from_onnx(file)
        module = compile_graph(graph, f"rocm -mcpu={device.gpu}")
        feeds, _ = complete(params_of(graph), {}, filling)
        executor = GraphExecutor(module, device.observed_by(profile))
        failure = _failure(lambda: executor.run(feeds))
    return _ran(profile, failure, partial(_report, module.module, None, card))


def _call(
    module: Module, device: EmulatedDevice, filling: Filling, profile: Profile
) -> None:
    there = device.observed_by(profile)
    arguments = make_arguments(module.entry.signature, {}, filling)
    placed = [
        array(a, there) if isinstance(a, np.ndarray) else a for a in arguments.values()
    ]
    module(*placed)


def _report(
    module: Module | None,
    schedule: Schedule | None,
    card: str | None,
    counts: KernelCounts,
) -> ProfileReport:
    return report_of(counts, module, schedule, card)


def _failure(work: Callable[[], object]) -> KernelFailure | None:
    """Return what stopped `work`, if something found in a kernel did."""
    try:
        work()
    except KernelFailure as error:
        return error
    return None


def _ran(
    profile: Profile,
    failure: KernelFailure | None,
    report: Callable[[KernelCounts], ProfileReport],
) -> ProgramRun:
    """Return a run of one function; counts of a kernel that was stopped are no profile."""
    if failure is not None:
        return ProgramRun((), (failure,), 0)
    launches = sum(counts.launches for counts in profile.kernels)
    return ProgramRun(tuple(map(report, profile.kernels)), (), launches)


def tell_program(
    run: ProgramRun, page: str, *, is_profiled: bool, as_json: bool
) -> None:
    """Print a table for each kernel if they are profiled, and what was found, or both as JSON;
    write the page where one is asked for. UserError when no kernel was launched."""
    if not run.launches and not run.failures:
        raise UserError("no kernel was launched", why="there is nothing to look at")
    findings = [str(failure.why) for failure in run.failures]
    reports = run.reports if is_profiled else ()
    if as_json:
        told: dict[str, Any] = (
            {"profile": reports_to_json(reports)} if is_profiled else {}
        )
        write_json(told | {"launches": run.launches, "findings": findings})
    else:
        if reports:
            click.echo(profile_to_text(reports), nl=False)
        if findings:
            click.echo(printable("\n".join(findings)))
        elif not is_profiled:
            note(f"nothing was found in {_counted(run.launches)}")
    if reports:
        write_profile(reports, page)


def _counted(launches: int) -> str:
    return (
        "1 launch of a kernel" if launches == 1 else f"{launches} launches of kernels"
    )


def write_profile(reports: Sequence[ProfileReport], page: str) -> None:
    """The page, where one is asked for. UserError when there is nothing to tell."""
    if not reports:
        raise UserError("no kernel was launched", why="there is nothing to profile")
    if page != IN_THE_TERMINAL:
        write_page(page, reports)
        note(f"wrote {page}")


def profile_to_text(reports: Sequence[ProfileReport]) -> str:
    """Tables as wide as the terminal."""
    columns = get_terminal_size((_WIDTHS[0], 40)).columns
    return reports_to_text(reports, min(max(columns, _WIDTHS[0]), _WIDTHS[1]))


def reports_to_json(reports: Sequence[ProfileReport]) -> list[dict[str, Any]]:
    """All numbers, for scripts."""
    return [report.to_json() for report in reports]
