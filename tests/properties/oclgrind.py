"""Runs programs on Oclgrind, a device that watches every access, and tells what it found.

Many programs go through one process (`opencl_child`), below `oclgrind`. Findings are told apart by
the kernels' names, so a program's kernels must be named after it.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from refcomp.codegen.signature import machine_symbol
from tests.properties.opencl_child import (
    SCRIPT,
    Programs,
    child_environment,
    read_arrays,
    write_programs,
)

_SEE_ALL = ("--max-errors", "100000")
# Writes of the same value by several threads are races, too: who reads them may see none of it.
_RACES = ("--data-races", "--uniform-writes")
# An optimizer drops stores that nobody reads, and loads what a thread may not come to need.
_AS_WRITTEN = ("--build-options", "-cl-opt-disable")
WATCH = ("--uninitialized", *_RACES, *_SEE_ALL, *_AS_WRITTEN)
# Each finding is a paragraph; its first line says what, a later one in which kernel.
_PARAGRAPH = re.compile(r"\n\s*\n(?=\S)")
_KERNEL = re.compile(r"^\s*Kernel: +(\S+)", re.MULTILINE)


def drawn(strategy: SearchStrategy[Any], count: int) -> list[Any]:
    """Examples, all drawn before one is used: as they are, since no failure can shrink them."""
    found: list[Any] = []

    @settings(phases=[Phase.generate], max_examples=count, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def draw(example: Any) -> None:
        found.append(example)

    draw()
    return found


@dataclass(frozen=True)
class Watched:
    """What a program's arguments held afterwards, and what was found while it ran."""

    arrays: list[np.ndarray]
    findings: list[str]


def run_watched(programs: Programs, folder: Path) -> dict[str, Watched]:
    """Runs each program (name -> program and arguments) on Oclgrind. `folder` is empty. Arrays of
    bfloat16 come back as 16-bit integers."""
    write_programs(programs, folder)
    log = folder / "findings.log"
    command = ["oclgrind", *WATCH, "--log", str(log), *SCRIPT, str(folder)]
    done = subprocess.run(
        command, env=child_environment(), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    found = _by_kernel(log.read_text() if log.exists() else "")
    owners = {machine_symbol(k.name): name for name, (p, _) in programs.items() for k in p.kernels}
    assert set(found) <= set(owners), f"findings that belong to no kernel: {found}"
    return {
        name: Watched(
            read_arrays(folder / f"{name}.out.npz"),
            [what for kernel, told in found.items() if owners[kernel] == name for what in told],
        )
        for name in programs
    }


def _by_kernel(log: str) -> dict[str, list[str]]:
    """The first lines of the findings, by kernel ("" where none is told)."""
    found: dict[str, list[str]] = {}
    for paragraph in _PARAGRAPH.split(log.strip()):
        if paragraph.strip():
            kernel = _KERNEL.search(paragraph)
            name = kernel[1] if kernel else ""
            found.setdefault(name, []).append(paragraph.strip().splitlines()[0])
    return found
