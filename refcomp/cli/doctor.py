"""`refcomp doctor`: lists the tools that are found and missing, and the targets that work.

A target works if a small computation was compiled for it, run, and gave the right result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby

import click
import numpy as np

from refcomp import __version__
from refcomp.building import build
from refcomp.cli.options import errors_and_examples, json_option
from refcomp.cli.outcomes import FINE, NO_TOOLCHAIN
from refcomp.cli.streams import progress, write_json
from refcomp.driver.backends import backend_of, backends
from refcomp.driver.devices import device_for
from refcomp.foundation.errors import RefcompError
from refcomp.foundation.machine import cpu_name
from refcomp.runtime.arrays.ndarray import array
from refcomp.runtime.hip.driver import HipDriver
from refcomp.runtime.module import Module
from refcomp.schedule.schedule import create_schedule
from refcomp.te.operation import compute, placeholder
from refcomp.te.tensor import thread_axis, var
from refcomp.toolchain import ToolReport, diagnose

_HOST = "llvm"
# Package -> the extra of refcomp that installs it; '' if refcomp always needs it.
_PACKAGES = {
    "numpy": "",
    "jinja2": "",
    "click": "",
    "rich": "",
    "ml_dtypes": "",
    "pyelftools": "",
    "onnx": "onnx",
    "pyopencl": "opencl",
}


class TargetState(StrEnum):
    """The state of a kind of target on this machine."""

    OK = "ok"
    MISSING = "missing"  # a tool or a library is missing or broken
    NO_DEVICE = "no device"  # all is installed, only the card is missing


@dataclass(frozen=True, slots=True)
class TargetReport:
    """The outcome of a trial of a kind of target."""

    target: str  # name of the kind
    meaning: str  # one line on the kind
    works: bool  # a computation was compiled, run, and right
    state: TargetState
    reason: str  # why it does not work; empty if it works
    # The library that runs its kernels: its place, and then its versions by name.
    library: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PackageReport:
    """The state of a Python package."""

    package: str
    version: str  # '' if it is missing
    install: str  # the command that installs it


@click.command(
    "doctor",
    epilog=errors_and_examples(
        {NO_TOOLCHAIN: "the target llvm does not work"},
        "refcomp doctor",
    ),
)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the tools that are found and the targets that work.

    Prints the tools of each toolchain, with their places and versions. If a tool is missing, prints
    why it is needed, and the command that installs it.

    A target is "ok" if a small computation was compiled for it, run, and right. It has "no device"
    if only the card is missing. Otherwise it is MISSING, and the reason follows.
    """
    with progress("looking for tools"):
        tools = diagnose()
        packages = _find_packages()
        targets = [_try_target(one.name, one.summary) for one in backends()]
    if as_json:
        report = {
            "refcomp": __version__,
            "processor": cpu_name(),
            "tools": [asdict(tool) for tool in tools],
            "packages": [asdict(package) for package in packages],
            "targets": [asdict(target) for target in targets],
        }
        write_json(report)
    else:
        _print(tools, packages, targets)
    host_works = any(report.works for report in targets if report.target == _HOST)
    ctx.exit(FINE if host_works else NO_TOOLCHAIN)


def _find_packages() -> list[PackageReport]:
    found = []
    for name, extra in _PACKAGES.items():
        install = f"pip install 'refcomp[{extra}]'" if extra else "pip install refcomp"
        try:
            installed = version(name)
        except PackageNotFoundError:
            installed = ""
        found.append(PackageReport(name, installed, install))
    return found


def _try_target(kind: str, meaning: str) -> TargetReport:
    state = TargetState.MISSING
    try:
        module = _build_trial(kind)
        # The tools are there. If the library is, too, only the device can be missing.
        if not device_for(kind).exist and _library_of(kind):
            state = TargetState.NO_DEVICE
        reason = _run_trial(module, kind)
    except RefcompError as error:
        reason = str(error)
    if not reason:
        state = TargetState.OK
    return TargetReport(kind, meaning, not reason, state, reason, _library_of(kind))


def _library_of(kind: str) -> Mapping[str, str]:
    """Return the place and the versions of the library that runs the kind's kernels, if known."""
    driver = device_for(kind).driver if backend_of(kind).has_kernels else None
    if not isinstance(driver, HipDriver):
        return {}
    with suppress(RefcompError):
        return driver.library_details()
    return {}


def _build_trial(kind: str) -> Module:
    """Compile a function that doubles numbers."""
    n = var("n")
    a = placeholder((n,), "float32", "A")
    b = compute((n,), lambda i: a[i] + a[i], "B")
    schedule = create_schedule(b)
    if backend_of(kind).has_kernels:
        schedule[b].bind(b.op.axis[0], thread_axis("blockIdx.x"))
    return build(schedule, [a, b], target=kind, name="doctor")


def _run_trial(module: Module, kind: str) -> str:
    """Double three numbers. Return the difference from the right result, '' if there is none."""
    given = np.array([1, 2, 3], np.float32)
    device = device_for(kind)
    arrays = [array(given, device), array(np.zeros_like(given), device)]
    module(*arrays)
    result = arrays[1].asnumpy()
    if np.array_equal(result, given + given):
        return ""
    return f"it computed {result} for [2, 4, 6]"


def _print(
    tools: Sequence[ToolReport],
    packages: Sequence[PackageReport],
    targets: Sequence[TargetReport],
) -> None:
    click.echo(f"refcomp {__version__} on {cpu_name()}\n")
    for name, rows in groupby(tools, key=lambda report: report.toolchain):
        group = list(rows)
        click.echo(f"toolchain {name}: {group[0].purpose}")
        for tool in group:
            found = f"{tool.version:8} {tool.path}".rstrip()
            _print_row("ok" if tool.is_ok else "MISSING", tool.name, found)
            if not tool.is_ok:
                need = "needed" if tool.is_needed else "optional"
                _print_detail(f"{need}: {tool.reason}\ninstall: {tool.install}")
    click.echo("\npackages")
    for package in packages:
        state = "ok" if package.version else "MISSING"
        _print_row(state, package.package, package.version or package.install)
    click.echo("\ntargets")
    for target in targets:
        state = "MISSING" if target.state == TargetState.MISSING else target.state
        _print_row(state, target.target, target.meaning)
        if target.library:
            path, *versions = target.library.items()
            listed = ", ".join(f"{name} {version}" for name, version in versions)
            _print_detail(f"by {path[1]}: {listed}")
        if target.reason:
            _print_detail(target.reason)


def _print_row(state: str, name: str, text: str) -> None:
    click.echo(f"  {state:9} {name:14} {text}".rstrip())


def _print_detail(text: str) -> None:
    for line in text.splitlines():
        click.echo(f"{'':27}{line}")
