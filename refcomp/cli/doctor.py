"""`refcomp doctor`: the tools found and missing, and the targets that work on this machine.

A target works when a small computation was compiled for it, run, and gave the right result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby

import click
import numpy as np

from refcomp import __version__
from refcomp.cli.options import examples, json_option
from refcomp.cli.outcomes import FINE, NO_TOOLCHAIN
from refcomp.cli.streams import progress, write_json
from refcomp.compiler import build
from refcomp.driver.backends import backend_of, backends
from refcomp.driver.devices import device_for
from refcomp.foundation.errors import RefcompError
from refcomp.foundation.machine import cpu_name
from refcomp.runtime.arrays.ndarray import array
from refcomp.runtime.hip.driver import HipDriver
from refcomp.runtime.module import Module
from refcomp.schedule.schedule import create_schedule
from refcomp.te.maths import var
from refcomp.te.operation import compute, placeholder
from refcomp.te.tensor import thread_axis
from refcomp.toolchain import ToolReport, diagnose

_HOST = "llvm"
# States of a target.
_OK, _MISSING, _NO_DEVICE = "ok", "missing", "no device"
# By the extra that brings it; without one all have it.
_PACKAGES = {
    **dict.fromkeys(
        ("numpy", "jinja2", "click", "rich", "ml_dtypes", "pyelftools"), ""
    ),
    **{"onnx": "onnx", "pyopencl": "opencl"},
}


@dataclass(frozen=True, slots=True)
class TargetReport:
    """The state of a kind of target on this machine.

    Attributes:
        target: The kind.
        meaning: What the kind stands for.
        works: True if a computation was compiled, run, and right.
        state: `ok`, `missing`, or `no device`: all is installed, only the card is not there.
        reason: Why it does not work; empty where it does.
        library: The one that runs its kernels, where it is and its versions; empty if none.
    """

    target: str
    meaning: str
    works: bool
    state: str
    reason: str
    library: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PackageReport:
    """A Python package; `version` is '' where it is missing, `install` brings it."""

    package: str
    version: str
    install: str


@click.command("doctor", epilog=examples("refcomp doctor", "refcomp doctor --json"))
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Tell which tools were found and which targets work.

    Of every toolchain: its tools, where they are, their versions, what is missing and the command
    that installs it. A target for which only a card is missing has "no device". The exit code is 0
    when this host's own target (llvm) works, else 3.
    """
    with progress("looking for tools"):
        tools = diagnose()
        packages = [_look_at_package(name) for name in _PACKAGES]
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
    works = next(report.works for report in targets if report.target == _HOST)
    ctx.exit(FINE if works else NO_TOOLCHAIN)


def _look_at_package(name: str) -> PackageReport:
    extra = _PACKAGES[name]
    install = f"pip install 'refcomp[{extra}]'" if extra else "pip install refcomp"
    try:
        return PackageReport(name, version(name), install)
    except PackageNotFoundError:
        return PackageReport(name, "", install)


def _try_target(kind: str, meaning: str) -> TargetReport:
    state, reason = _MISSING, ""
    try:
        module = _build_trial(kind)
        # From here on only the device can be missing.
        state = (
            _NO_DEVICE if not device_for(kind).exist and _library_of(kind) else _MISSING
        )
        reason = _run_trial(module, kind)
    except RefcompError as error:
        reason = str(error)
    state = state if reason else _OK
    return TargetReport(kind, meaning, not reason, state, reason, _library_of(kind))


def _library_of(kind: str) -> Mapping[str, str]:
    """What the kind's driver tells of its library, if it does."""
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
    """Double three numbers; return what is wrong with the result, '' when nothing is."""
    given = np.array([1, 2, 3], np.float32)
    device = device_for(kind)
    arrays = [array(given, device), array(np.zeros_like(given), device)]
    module(*arrays)
    result = arrays[1].asnumpy()
    return (
        ""
        if np.array_equal(result, given + given)
        else f"it computed {result} for [2, 4, 6]"
    )


def _print(
    tools: Sequence[ToolReport],
    packages: Sequence[PackageReport],
    targets: Sequence[TargetReport],
) -> None:
    click.echo(f"refcomp {__version__} on {cpu_name()}\n")
    for name, rows in groupby(tools, key=lambda report: report.toolchain):
        group = list(rows)
        click.echo(f"toolchain {name}: {group[0].purpose}")
        for report in group:
            _print_tool(report)
    click.echo("\npackages")
    for package in packages:
        _print_row(
            package.version != "", package.package, package.version or package.install
        )
    click.echo("\ntargets")
    for target in targets:
        label = target.state if target.state == _NO_DEVICE else ""
        _print_row(target.works, target.target, f"{target.meaning}", label)
        if target.library:
            path, *versions = target.library.items()
            told = ", ".join(f"{name} {version}" for name, version in versions)
            _print_remedy(f"by {path[1]}: {told}")
        if target.reason:
            _print_remedy(target.reason)


def _print_tool(report: ToolReport) -> None:
    _print_row(report.is_ok, report.name, f"{report.version:8} {report.path}".rstrip())
    if report.is_ok:
        return
    need = "needed" if report.is_needed else "optional"
    _print_remedy(f"{need}: {report.reason}\ninstall: {report.install}")


def _print_row(is_ok: bool, name: str, text: str, label: str = "") -> None:
    """Print a row; `label` in place of MISSING."""
    state = "ok" if is_ok else label or "MISSING"
    click.echo(f"  {state:9} {name:14} {text}".rstrip())


def _print_remedy(text: str) -> None:
    for line in text.splitlines():
        click.echo(f"{'':27}{line}")
