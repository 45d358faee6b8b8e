"""Checks refcomp on an AMD GPU and writes one JSON for its makers; see `scripts/rocm_check`.

First it builds for several GPUs, which needs none. Then it asks the driver. With a card it moves
memory, runs the operators and random schedules, compares the emulator with it and measures. It
changes none of the card's settings.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from benchmarks.fresh import call_fresh
from benchmarks.machine import describe_machine
from benchmarks.rocm import parts
from refcomp import __version__
from refcomp.runtime.hip.library import CHOICE
from refcomp.toolchain.diagnose import diagnose

GPUS = ["gfx90a", "gfx942", "gfx1100"]
FINE, FAILED, NO_CARD = 0, 1, 3


def main(argv: Sequence[str]) -> int:
    """Run what `argv` requests, and return the exit code."""
    asked = _parse(argv)
    report: dict[str, Any] = {}
    for report in _run(asked.quick, asked.gpus.split(","), asked.seed):
        # After each part, because a GPU that fails may halt the whole machine.
        asked.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for part, why in report["failures"].items():
        print(f"FAILED {part}: {why.splitlines()[0]}")
    looked = report["parts"].get("look", {})
    print(f"written to {asked.json}; {_outcome(report, looked)}")
    if report["failures"]:
        return FAILED
    return FINE if looked["exists"] else NO_CARD


def _outcome(report: dict[str, Any], looked: dict[str, Any]) -> str:
    if report["failures"]:
        count = len(report["failures"])
        return f"{count} part{'s' * (count > 1)} failed: please send it"
    if not looked["exists"]:
        return f"all was built, but no AMD GPU was found: {looked['why']}"
    name = looked["device"]["name"]
    if report["emulated"]:
        return f"all is well on the {name}, which is not a card: nothing to send"
    return f"all is well on {name}: please send it, too"


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/rocm_check", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a minute instead of many")
    parser.add_argument("--seed", type=int, default=1, help="of the random schedules")
    parser.add_argument("--gpus", default=",".join(GPUS), help="built for; default: %(default)s")
    parser.add_argument(
        "--json", type=Path, default=Path("rocm_check.json"), help="default: %(default)s"
    )
    return parser.parse_args(argv)


def _run(is_quick: bool, gpus: list[str], seed: int) -> Iterator[dict[str, Any]]:
    """Yield the report after each part, with its results or failures and what it ran on."""
    report: dict[str, Any] = {
        "refcomp": __version__,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "tools": {t.name: t.version or t.reason for t in diagnose() if t.toolchain == "rocm"},
        "emulated": os.environ.get(CHOICE, ""),
        **{"parts": {}, "seconds": {}, "failures": {}},
    }
    for part in ("build", "look"):
        yield _with_part(report, part, {"gpus": gpus})
    looked = report["parts"].get("look", {})
    if looked.get("exists"):
        for part, arguments in parts.plan(is_quick, [looked["device"]["arch"]], seed):
            if not (report["emulated"] and part in ("figures", "emulated")):
                yield _with_part(report, part, arguments)


def _with_part(report: dict[str, Any], part: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return `report` with the result of a part, which runs in a process that the GPU may end."""
    print(f"{part} ...", flush=True)
    start = time.perf_counter()
    try:
        outcome = call_fresh(parts.attempt, part=part, arguments=arguments)
    except (RuntimeError, ValueError, TimeoutExpired) as error:  # the process was ended
        outcome = {"failure": f"the process ended: {error}"}
    place, key = ("parts", "report") if "report" in outcome else ("failures", "failure")
    report[place][part] = outcome[key]
    report["seconds"][part] = round(time.perf_counter() - start, 2)
    return report


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
