"""Runs a program or a model on an emulated GPU, and prints its profile: `refcomp emulate`.

A program is compiled for the emulated GPU and called once, on arrays that are filled. The page of a
profile shows its schedule, loop IR and LLVM IR beside the machine code of AMD GPUs, or the PTX. A
model runs whole, and its page has all its kernels side by side, and the estimate of each layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import get_terminal_size

import click
import numpy as np

from refcomp.cli.arrays import Filling
from refcomp.cli.execute import Arguments, make_arguments
from refcomp.cli.model_inputs import feeds_of, inputs_of
from refcomp.cli.outcomes import printable
from refcomp.cli.programs import load_program
from refcomp.cli.ptx_kernels import has_races
from refcomp.cli.streams import name_of, note, progress, write_json
from refcomp.compiler import build_functions
from refcomp.driver.cuda_emulator import cuda_emulator
from refcomp.driver.devices import rocm_emulator
from refcomp.emulator.code.failure import KernelFailure
from refcomp.emulator.observers.counting import KernelCounts, Profile
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import UserError
from refcomp.foundation.options import build_options
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.compile import compile_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.tracing import trace_graph
from refcomp.profile.cards import card_for
from refcomp.profile.layers import LayerCall, LayerReport, layers_of
from refcomp.profile.page import write_page
from refcomp.profile.report import ProfileReport, report_of
from refcomp.profile.text import kernels_to_text, layers_to_text, reports_to_text
from refcomp.runtime.arrays.ndarray import array
from refcomp.runtime.device import Device, HostArray
from refcomp.runtime.module import Module

IN_THE_TERMINAL = "-"
_PAGES = (".html", ".htm")
_MODEL = ".onnx"
_MIN_WIDTH = 100  # columns of a table
_MAX_WIDTH = 160


def page_path(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> str | None:
    """Return the value of --profile: a page, IN_THE_TERMINAL, or None.

    Raise BadParameter for another value, and for a page in a folder that does not exist: a run may
    take minutes before its page is written.
    """
    if value is None or value == IN_THE_TERMINAL:
        return value
    if value.endswith(_PAGES):
        folder = Path(value).parent
        if not folder.is_dir():
            raise click.BadParameter(
                f"the folder {str(folder)!r} does not exist", ctx, param
            )
        return value
    # `--profile FILE` takes the file that was meant as the argument of the command.
    raise click.BadParameter(
        f"{value!r} is not a page: the name of a page ends in .html; for tables give --profile "
        "last, or as --profile=-",
        ctx,
        param,
    )


def is_program(file: str) -> bool:
    """Return True if `file` is SCRIPT.py, SCRIPT.py:NAME or a model; False if it has kernels."""
    path = file.rpartition(":")[0] if ".py:" in file else file
    return Path(path).suffix in (".py", _MODEL)


@dataclass(frozen=True, slots=True)
class EmulatedDevice:
    """The emulated GPU that a program runs on; see `refcomp.rocm_emulator`
    and `refcomp.cuda_emulator`.
    """

    gpu: str  # such as gfx942 or sm_90
    hazards: bool | tuple[str, ...] = False  # True for all, or the names of some
    is_watched: bool = True  # look for undefined bits
    max_steps: int | None = None
    max_seconds: float | None = None

    @property
    def target(self) -> str:
        """The target that a program is compiled for."""
        if self._is_nvidia:
            return f"nvptx -code=ptx -arch={self.gpu}"
        return f"rocm -mcpu={self.gpu}"

    @property
    def _is_nvidia(self) -> bool:
        return self.gpu.startswith("sm_")

    def observed_by(self, profile: Profile) -> Device:
        """Return a device whose launches `profile` counts."""
        if self._is_nvidia:
            return cuda_emulator(
                self.gpu,
                hazards=has_races(self.hazards),
                is_watched=self.is_watched,
                max_steps=self.max_steps,
                max_seconds=self.max_seconds,
                profile=profile,
            )
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
    """The outcome of one or more functions."""

    reports: tuple[ProfileReport, ...]  # of each kernel, if its function ran to the end
    failures: tuple[KernelFailure, ...]  # one for each function that a finding stopped
    launches: int  # of kernels, in functions that ran to the end
    layers: tuple[LayerReport, ...] = ()  # of a model
    file: str = ""  # the program or the model


def emulate_program(
    file: str,
    device: EmulatedDevice,
    filling: Filling,
    *,
    given: Mapping[str, HostArray],
    contract: bool,
    card: str | None,
) -> ProgramRun:
    """Compile each function of a program, or a model, for the device, and call it once.

    Args:
        file: SCRIPT.py[:NAME] or MODEL.onnx.
        device: the GPU.
        filling: how arguments are filled that are not given.
        given: arguments by name. Each function of a program gets those that it has. A name that
            no function has is refused.
        contract: `a * b + c` may be rounded once.
        card: the card that estimates are for, None for the GPU's usual one.

    Raises:
        UserError: the program, the GPU, the card or an argument is illegal.
    """
    # These raise for a wrong GPU or card before anything is compiled.
    device.observed_by(Profile())
    card_for(device.gpu, card)
    if file.endswith(_MODEL):
        return _run_model(file, device, filling, given, contract=contract, card=card)
    runs = []
    pieces = load_program(file).pieces
    names = [{param.name for param in piece.func.params} for piece in pieces]
    known = set().union(*names)
    for piece, own in zip(pieces, names, strict=True):
        # An unknown name is left for `make_arguments`, which refuses it.
        taken = {
            name: a for name, a in given.items() if name in own or name not in known
        }
        profile = Profile()
        with build_options(contract=contract), progress(f"emulating {piece.func.name}"):
            module = build_functions([piece.func], device.target)
            arguments = make_arguments(module.entry.signature, taken, filling)
            call = partial(_call, module, device.observed_by(profile), arguments)
            failure = _failure(call)
        report = partial(report_of, code=module, schedule=piece.schedule, card=card)
        runs.append(_ran(profile, failure, report))
    return ProgramRun(
        reports=tuple(report for run in runs for report in run.reports),
        failures=tuple(failure for run in runs for failure in run.failures),
        launches=sum(run.launches for run in runs),
        file=file,
    )


def _run_model(
    file: str,
    device: EmulatedDevice,
    filling: Filling,
    given: Mapping[str, HostArray],
    *,
    contract: bool,
    card: str | None,
) -> ProgramRun:
    """Run a whole model: each kernel gets the results of the kernels before it."""
    profile = Profile()
    with build_options(contract=contract), progress(f"emulating {file}"):
        graph = from_onnx(file)
        feeds = feeds_of(graph, given, filling)
        trace = trace_graph(graph, feeds)
        module = compile_graph(trace, device.target)
        executor = GraphExecutor(module, device.observed_by(profile))
        failure = _failure(lambda: executor.run(inputs_of(trace, feeds)))
    report = partial(report_of, code=module.module, card=card)
    run = _ran(profile, failure, report)
    nodes = zip(module.graph.nodes, module.kernels, strict=True)
    calls = [LayerCall(node.name, kernel.name) for node, kernel in nodes]
    return replace(run, layers=layers_of(calls, run.reports), file=file)


def _call(module: Module, gpu: Device, arguments: Arguments) -> None:
    placed = [
        array(a, gpu) if isinstance(a, np.ndarray) else a for a in arguments.values()
    ]
    module(*placed)


def _failure(work: Callable[[], object]) -> KernelFailure | None:
    """Do `work`. Return the finding that stopped it, None if there is none."""
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
    """Return the outcome of one function."""
    if failure is not None:
        # The counts of a stopped kernel are not complete.
        return ProgramRun((), (failure,), 0)
    launches = sum(counts.launches for counts in profile.kernels)
    return ProgramRun(tuple(map(report, profile.kernels)), (), launches)


def print_run(run: ProgramRun, page: str, *, is_profiled: bool, as_json: bool) -> None:
    """Print the findings and, if `is_profiled`, a table for each kernel; both as JSON if `as_json`.

    Write the page, unless `page` is IN_THE_TERMINAL. A model that has a page prints no tables of
    single kernels, since it may have a hundred. Raise UserError if no kernel was launched.
    """
    if not run.launches and not run.failures:
        raise UserError(
            "no kernel was launched",
            why="arrays are empty, or only passed on, or all work is the host's",
            remedy="give sizes above 0 by --symbol, or a program that computes on the GPU",
        )
    findings = [str(failure.why) for failure in run.failures]
    reports = run.reports if is_profiled else ()
    if as_json:
        report: dict[str, object] = {"launches": run.launches, "findings": findings}
        if is_profiled:
            report = {"profile": reports_to_json(reports), **report}
        if reports and run.layers:
            report["layers"] = [layer.to_json() for layer in run.layers]
        write_json(report)
    else:
        if reports:
            is_brief = page != IN_THE_TERMINAL
            text = profile_to_text(reports, run.layers, is_brief=is_brief)
            click.echo(text, nl=False)
        if findings:
            click.echo(printable("\n".join(findings)))
        elif not is_profiled:
            launches = counted(run.launches, "launch")
            note(f"nothing was found in {launches} of kernels")
    if reports:
        write_profile(reports, page, run.file, run.layers)


def write_profile(
    reports: Sequence[ProfileReport],
    page: str,
    file: str,
    layers: Sequence[LayerReport] = (),
) -> None:
    """Write the page, unless it is IN_THE_TERMINAL. Raise UserError without reports.

    Args:
        reports: the reports, one for each kernel.
        page: the path of the page.
        file: what was profiled, for the heading.
        layers: of a model.
    """
    if not reports:
        raise UserError("no kernel was launched", why="there is nothing to profile")
    if page != IN_THE_TERMINAL:
        title = f"profile of {name_of(file)} on {reports[0].counts.mcpu}"
        write_page(page, reports, layers, title=title)
        note(f"wrote {page}")


def profile_to_text(
    reports: Sequence[ProfileReport],
    layers: Sequence[LayerReport] = (),
    *,
    is_brief: bool = False,
) -> str:
    """Return tables as wide as the terminal, within limits. Those of layers come last.

    If `is_brief`, kernels that belong to layers have only the table of all kernels.
    """
    columns = get_terminal_size((_MIN_WIDTH, 40)).columns
    width = min(max(columns, _MIN_WIDTH), _MAX_WIDTH)
    text = reports_to_text(reports, width)
    if layers and is_brief:
        text = kernels_to_text(reports, width)
    return f"{text}\n{layers_to_text(layers, reports, width)}" if layers else text


def reports_to_json(reports: Sequence[ProfileReport]) -> list[dict[str, object]]:
    """Return all numbers, for programs."""
    return [report.to_json() for report in reports]
