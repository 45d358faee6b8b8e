"""What `refcomp emulate` does with a program or a model, and how it tells a profile.

A program is compiled for the emulated GPU and called once, on arrays that are filled in; its
schedule, its loop IR and its LLVM IR stand in the page beside the machine code. So is a model, all
of whose kernels then stand side by side, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click
import numpy as np

from refcomp.build import build_functions
from refcomp.cli.arrays import Filling, complete
from refcomp.cli.execute import make_arguments
from refcomp.cli.programs import load_program
from refcomp.cli.run import params_of
from refcomp.cli.streams import note, progress, write_json
from refcomp.devices import rocm_emulator
from refcomp.emulator.counting import KernelCounts, Profile
from refcomp.errors import UserError
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.compile import compile_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.options import build_options
from refcomp.profile.cards import card_for
from refcomp.profile.page import write_page
from refcomp.profile.report import Report, report_of
from refcomp.profile.text import reports_to_text
from refcomp.runtime.module import Module
from refcomp.runtime.ndarray import array

IN_THE_TERMINAL = "-"
_PAGES = (".html", ".htm")
_MODEL = ".onnx"
_WIDTHS = 100, 160  # at least and at most


def page_path(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """What --profile is given: a page, or nothing for a table."""
    if value in (None, IN_THE_TERMINAL) or str(value).endswith(_PAGES):
        return value
    told = "is no page: its name ends in .html; for tables give --profile last, or as --profile=-"
    raise click.BadParameter(f"{value!r} {told}", ctx, param)


def is_program(file: str) -> bool:
    """Whether `file` is SCRIPT.py, SCRIPT.py:NAME or a model, no code object."""
    path = file.rpartition(":")[0] if ".py:" in file else file
    return Path(path).suffix in (".py", _MODEL)


def profile_program(
    file: str, gpu: str, filling: Filling, *, contract: bool, card: str | None
) -> list[Report]:
    """Compiles each function of a program for `gpu`, calls it, and tells of its kernels."""
    card_for(gpu, card)  # refuses a wrong one at once
    if file.endswith(_MODEL):
        return _profile_model(file, gpu, filling, contract, card)
    reports: list[Report] = []
    for piece in load_program(file).pieces:
        with build_options(contract=contract), progress(f"emulating {piece.func.name}"):
            module = build_functions([piece.func], f"rocm -mcpu={gpu}")
            kernels = _run(module, gpu, filling)
        for counts in kernels:
            reports.append(report_of(counts, module, piece.schedule, card))
    return reports


def _profile_model(
    file: str, gpu: str, filling: Filling, contract: bool, card: str | None
) -> list[Report]:
    """Runs a whole model, each kernel on what the ones before it made."""
    profile = Profile()
    with build_options(contract=contract), progress(f"emulating {file}"):
        graph = from_onnx(file)
        module = compile_graph(graph, f"rocm -mcpu={gpu}")
        feeds, _ = complete(params_of(graph), {}, filling)
        GraphExecutor(module, rocm_emulator(gpu, profile=profile)).run(feeds)
    return [report_of(counts, module.module, card=card) for counts in profile.kernels]


def _run(module: Module, gpu: str, filling: Filling) -> tuple[KernelCounts, ...]:
    profile = Profile()
    device = rocm_emulator(gpu, profile=profile)
    arguments = make_arguments(module.entry.signature, {}, filling)
    placed = [array(a, device) if isinstance(a, np.ndarray) else a for a in arguments.values()]
    module(*placed)
    return profile.kernels


def tell_profile(reports: Sequence[Report], page: str, *, as_json: bool) -> None:
    """A table for each kernel, or JSON, and the page where one is asked for."""
    if as_json:
        write_json({"profile": reports_to_json(reports)})
    elif reports:
        click.echo(profile_to_text(reports), nl=False)
    write_profile(reports, page)


def write_profile(reports: Sequence[Report], page: str) -> None:
    """The page, where one is asked for. UserError when there is nothing to tell."""
    if not reports:
        raise UserError("no kernel was launched", why="there is nothing to profile")
    if page != IN_THE_TERMINAL:
        write_page(page, reports)
        note(f"wrote {page}")


def profile_to_text(reports: Sequence[Report]) -> str:
    """Tables as wide as the terminal."""
    columns = get_terminal_size((_WIDTHS[0], 40)).columns
    return reports_to_text(reports, min(max(columns, _WIDTHS[0]), _WIDTHS[1]))


def reports_to_json(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """All numbers, for scripts."""
    return [report.to_json() for report in reports]
