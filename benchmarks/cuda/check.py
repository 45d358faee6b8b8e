"""Checks refcomp on an NVIDIA GPU within a budget, and writes one JSON; see `scripts/gpu_check`.

Each part runs in a process of its own. A part that fails does not stop the others. A part for which
too little time is left is skipped, and the JSON says so. No setting of the card is changed.

A dry run (`--dry-run`) runs all parts on a recording in place of a GPU. It keeps no time: its JSON
has no figures, says so at its top, and cannot be written below benchmarks/results/.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.cuda import build_pycuda, parts
from benchmarks.fresh import ROOT, call_fresh
from benchmarks.machine import describe_machine
from benchmarks.report import Missing, Row, as_json, row_of, write_json

FINE, FAILED, NO_GPU = 0, 1, 3
RESULTS = ROOT / "benchmarks" / "results"
CARRIED = ROOT / "carried"
BUDGET_S = 450.0  # of eight minutes; the rest is for starting and writing
NO_FIGURES = "a stand-in took the place of a GPU: nothing was measured, and no figure exists"
_DEFAULT_ARCHS = ("sm_80", "sm_90")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the check: its arguments, and the seconds without which it is not begun."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    least_s: float = 10.0


@dataclass
class Budget:
    """The seconds that are left until a deadline."""

    seconds: float
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._deadline = self.clock() + self.seconds

    def left(self) -> float:
        """Return the seconds that are left, at least 0."""
        return max(0.0, self._deadline - self.clock())


def plan(is_quick: bool, seed: int, carried: Path = CARRIED) -> list[Part]:
    """Return the parts that need a GPU, in order."""
    measured = {"rounds": 2, "least_s": 0.0} if is_quick else {"rounds": 15, "least_s": 0.02}
    count, n, batch = (1 << 16, 256, 2) if is_quick else (1 << 28, 4096, 32)
    layers = [0] if is_quick else [0, 1, 2, 3]
    return [
        Part("operators", {}, 30),
        Part("addition", {"count": count, **measured}, 15),
        Part("product", {"n": n, **measured}, 20),
        Part("product_f16", {"n": n, **measured}, 20),
        Part("convolution", {"layers": layers, "batch": batch, **measured}, 40),
        Part("carried", {"folder": str(carried / "modules")}, 10),
        Part("properties", {"seed": seed, "seconds": 5 if is_quick else 60}, 70),
    ]


def main(argv: Sequence[str]) -> int:
    """Run what `argv` requests, and return the exit code."""
    asked = _parse(argv)
    budget = Budget(asked.budget)
    check = _Check(asked, budget)
    for part in check.run():
        check.write()  # after each part, because a GPU that fails may halt the whole machine
        print(f"  {part}: {check.state(part)}", flush=True)
    for row in check.rows:
        verdict = "" if row.is_met else ", which misses the bar"
        ratio = "no ratio" if row.ratio is None else f"{row.ratio.median:.3f} times {row.peer}"
        print(f"{row.workload}, {row.case}: {ratio}{verdict}{row.note and '; '}{row.note}")
    for name, why in check.failures.items():
        print(f"FAILED {name}: {why.splitlines()[0]}")
    print(f"written to {check.path}; {check.outcome()}")
    return check.exit_code()


class _Check:
    """One run: what its parts returned, and the file for them."""

    def __init__(self, asked: argparse.Namespace, budget: Budget) -> None:
        self.asked, self.budget = asked, budget
        self.rows: list[Row] = []
        self.parts: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        self.failures: dict[str, str] = {}
        self.skipped: dict[str, str] = {}
        self.path: Path = asked.json or asked.folder / "gpu_check.json"
        self._machine = describe_machine()
        self._started = datetime.now(UTC)

    def run(self) -> Any:
        """Yield the name of each part that has ended."""
        making = None if self.asked.dry_run else build_pycuda.start(CARRIED, self.asked.folder)
        wanted = self.asked.part
        if not wanted or "build" in wanted:
            archs = [card_arch()] if card_arch() else list(_DEFAULT_ARCHS)
            if not self.asked.dry_run:
                yield self._attempt(Part("build", {"archs": archs}))
        if making is not None:
            start = time.perf_counter()
            failure = build_pycuda.finish(making, self.budget.left())
            self.seconds["pycuda"] = round(time.perf_counter() - start, 2)
            if failure:
                self.failures["pycuda"] = failure
            yield "pycuda"
        yield self._attempt(Part("look"))
        if not self.parts.get("look", {}).get("exists"):
            return
        if self.asked.json is None and not self.asked.dry_run:
            self.path = RESULTS / file_name(self.parts["look"]["device"], self._started)
        for part in plan(self.asked.quick, self.asked.seed):
            if not wanted or part.name in wanted:
                yield self._attempt(part)

    def _attempt(self, part: Part) -> str:
        left = self.budget.left()
        if left < part.least_s:
            self.skipped[part.name] = f"{left:.0f} s were left, and it needs {part.least_s:.0f} s"
            return part.name
        start = time.perf_counter()
        try:
            outcome = call_fresh(
                parts.attempt,
                environment=self._environment(),
                timeout_s=left,
                part=part.name,
                arguments=part.arguments,
            )
        except subprocess.TimeoutExpired:
            outcome = {"failure": f"ended after {left:.0f} s, when the budget was spent"}
        except (RuntimeError, ValueError) as error:  # the process was ended
            outcome = {"failure": f"the process ended: {error}"}
        self.seconds[part.name] = round(time.perf_counter() - start, 2)
        if "failure" in outcome:
            self.failures[part.name] = outcome["failure"]
        else:
            self._keep(part.name, outcome["report"])
        return part.name

    def _keep(self, name: str, report: dict[str, Any]) -> None:
        rows = [row_of(fields) for fields in report.pop("rows", [])]
        if not self.asked.dry_run:  # a stand-in has no times
            self.rows += rows
        self.parts[name] = report

    def _environment(self) -> dict[str, str]:
        site = str(self.asked.folder / "site")
        places = [site, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH", "")])]
        # No TF32, whatever the libraries' defaults are.
        found = {"PYTHONPATH": os.pathsep.join(places), "NVIDIA_TF32_OVERRIDE": "0"}
        return found | {parts.STAND_IN: "1" if self.asked.dry_run else "0"}

    def write(self) -> None:
        """Write the JSON as far as it is known."""
        looked = self.parts.get("look", {})
        details = {
            "stand_in": NO_FIGURES if self.asked.dry_run else "",
            "device": looked.get("device"),
            "driver": looked.get("driver"),
            "date": self._started.isoformat(timespec="seconds"),
            "commit": commit(),
            "parts": {name: report for name, report in self.parts.items() if name != "look"},
            "seconds": {} if self.asked.dry_run else self.seconds,  # of whole parts
            "failures": self.failures,
            "skipped": self.skipped,
        }
        missing = [Missing(f"cuda {name}", why) for name, why in self.skipped.items()]
        text = as_json([*self.rows, *missing], self._machine, self.asked.quick, details)
        write_json(self.path, text)

    def state(self, part: str) -> str:
        """Return in a few words how a part ended."""
        if part in self.skipped:
            return f"skipped: {self.skipped[part]}"
        ended = "FAILED" if part in self.failures else "done"
        return f"{ended} after {self.seconds.get(part, 0.0):.1f} s"

    def exit_code(self) -> int:
        """Return 0 only if every part passed, and every ratio that is known meets its bar."""
        if self.failures or self.skipped or not all(row.is_met for row in self.rows):
            return FAILED
        return FINE if self.parts.get("look", {}).get("exists") else NO_GPU

    def outcome(self) -> str:
        """Return one sentence on the whole run."""
        looked = self.parts.get("look", {})
        if self.asked.dry_run:
            return f"dry run: {NO_FIGURES}"
        if self.failures or self.skipped:
            return f"{len(self.failures)} parts failed, {len(self.skipped)} were skipped"
        if not looked.get("exists"):
            return f"no GPU was used: {looked.get('why')}"
        missed = sum(not row.is_met for row in self.rows)
        return f"all parts passed on {looked['device']['name']}; {missed} bars were missed"


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/gpu_check", description=__doc__)
    names = ["build", *(part.name for part in plan(True, 1))]
    parser.add_argument("--part", action="append", choices=names, help="only this; repeatable")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that all runs")
    parser.add_argument("--seed", type=int, default=1, help="of the random schedules")
    parser.add_argument(
        "--budget", type=float, default=BUDGET_S, help="seconds; default %(default)s"
    )
    parser.add_argument("--folder", type=Path, required=True, help="private, for all that is made")
    parser.add_argument("--json", type=Path, help="default: below benchmarks/results/")
    parser.add_argument("--dry-run", action="store_true", help="on a recording, without figures")
    asked = parser.parse_args(argv)
    if asked.dry_run and asked.json and RESULTS in asked.json.resolve().parents:
        parser.error(f"a dry run has no results: give --json a path outside of {RESULTS}")
    return asked


def file_name(device: dict[str, Any], started: datetime) -> str:
    """Return the name of the file for results of a device."""
    title = re.sub(r"[^a-z0-9]+", "-", f"{device['name']} {device['arch']}".lower()).strip("-")
    return f"{title}-{started:%Y%m%d-%H%M}.json"


def commit() -> str:
    """Return the commit of the checkout, which a carried folder has in a file."""
    carried = CARRIED / "commit"
    if carried.exists():
        return carried.read_text(encoding="utf-8").strip()
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def card_arch() -> str:
    """Return the architecture of the first card, which nvidia-smi reports; empty without it."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    command = [tool, "--query-gpu=compute_cap", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    found = re.match(r"(\d+)\.(\d+)", done.stdout)
    return f"sm_{found[1]}{found[2]}" if found else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
