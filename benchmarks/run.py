#!/usr/bin/env python3
"""Runs the benchmarks, prints one table and writes JSON.

    benchmarks/run.py                          everything
    benchmarks/run.py matmul digits --quick    two workloads, few rounds
    benchmarks/run.py --check                  exit code 1 when a bar is missed

The JSON goes to --json FILE, by default benchmarks/results/last.json. Exit codes: 0 done, 1 a bar
was missed or a workload could not run (with --check only), 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console

from benchmarks.machine import describe_machine
from benchmarks.report import Missing, Row, as_json, is_kept, table_of, write_json
from refcomp.foundation.near_misses import advise

Workload = Callable[[bool], list[Row]]
_LAST = Path(__file__).resolve().parent / "results" / "last.json"
_NAMES = (
    "import_time",
    "vector_add",
    "lowering",
    "elementwise",
    "matmul",
    "convolution",
    "host_operators",
    "devices",
    "emulator",
    "gpu_schedules",
    "digits",
    "networks",
    "inference",
    "narrow",
)


def _loaded(name: str) -> Workload:
    """Return the workload of that name, whose module is imported when it runs."""
    return lambda is_quick: import_module(f"benchmarks.{name}.workload").measure(is_quick)


WORKLOADS: dict[str, Workload] = {name: _loaded(name) for name in _NAMES}


def main(
    argv: Sequence[str],
    workloads: Mapping[str, Workload] = WORKLOADS,
    console: Console | None = None,
    machine: Callable[[], dict[str, Any]] = describe_machine,
) -> int:
    """Run what `argv` requests, and return the exit code."""
    asked = _parse(argv, workloads)
    screen = console or Console(width=_least_width())
    found_on = machine()
    rows: list[Row | Missing] = []
    for name in asked.workloads or workloads:
        with screen.status(f"measuring {name}"):
            rows += _run(name, workloads[name], asked.quick)
    screen.print(table_of(rows))
    _print_notes(rows, screen)
    write_json(asked.json, as_json(rows, found_on, asked.quick))
    screen.print(f"{found_on['cpu']}, {found_on['cores']} cores; written to {asked.json}")
    return int(asked.check and not is_kept(rows))


def _print_notes(rows: Sequence[Row | Missing], screen: Console) -> None:
    for row in rows:
        if isinstance(row, Missing) and row.details:
            screen.print(f"{row.workload}: {row.details}", markup=False, highlight=False)
        elif isinstance(row, Row) and row.note:
            screen.print(f"{row.workload} {row.case}: {row.note}", markup=False, highlight=False)


def _least_width() -> int | None:
    """Wide enough for the table where the output is a file; a terminal's own width otherwise."""
    return None if sys.stdout.isatty() else 160


def _parse(argv: Sequence[str], workloads: Mapping[str, Workload]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description="Times refcomp.")
    parser.add_argument("workloads", nargs="*", help=f"of {', '.join(workloads)}; default all")
    parser.add_argument("--quick", action="store_true", help="few rounds: a smoke test, no figure")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a bar is missed")
    parser.add_argument(
        "--json", type=Path, default=_LAST, metavar="FILE", help="default: %(default)s"
    )
    asked = parser.parse_args(argv)
    for name in asked.workloads:
        if name not in workloads:
            advice = advise(name, workloads, f"there are {', '.join(workloads)}")
            parser.error(f"no workload {name}; {advice}")
    return asked


def _run(name: str, workload: Workload, is_quick: bool) -> Sequence[Row | Missing]:
    """Return the workload's rows. A workload that fails does not end the others."""
    try:
        return workload(is_quick)
    except Exception as error:
        first, *rest = str(error).splitlines() or [""]
        return [Missing(name, f"{type(error).__name__}: {first}", "\n".join(rest))]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
