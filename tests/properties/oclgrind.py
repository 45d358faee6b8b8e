"""Runs programs on Oclgrind, a device that watches every access, and tells what it found.

Many programs go through one process, since starting it takes longer than running them: each is
written to a folder as loop IR beside its arguments, and this file, run as a script below
`oclgrind`, builds and runs all that a folder holds. Findings are told apart by the kernels' names,
so a program's kernels must be named after it.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from refcomp.codegen.opencl import print_opencl
from refcomp.codegen.signature import machine_symbol, signature_of
from refcomp.devices import opencl
from refcomp.ir.func import Program
from refcomp.ir.parser import parse_program
from refcomp.ir.printer import print_program
from refcomp.runtime.device import Device
from refcomp.runtime.launch import kernel_signature
from refcomp.runtime.ndarray import array
from refcomp.runtime.program import DeviceCode, ProgramFunction

ROOT = Path(__file__).resolve().parents[2]
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


def run_watched(
    programs: Mapping[str, tuple[Program, Sequence[np.ndarray]]], folder: Path
) -> dict[str, Watched]:
    """Runs each program (name -> program and arguments) on Oclgrind. `folder` is empty. Arrays of
    bfloat16 come back as 16-bit integers."""
    for name, (program, args) in programs.items():
        (folder / f"{name}.ir").write_text(print_program(program))
        np.savez(folder / f"{name}.in.npz", *map(_as_stored, args))
    log = folder / "findings.log"
    command = ["oclgrind", *WATCH, "--log", str(log), sys.executable, __file__, str(folder)]
    path = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, env={**os.environ, **path}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    found = _by_kernel(log.read_text() if log.exists() else "")
    owners = {machine_symbol(k.name): name for name, (p, _) in programs.items() for k in p.kernels}
    assert set(found) <= set(owners), f"findings that belong to no kernel: {found}"
    return {
        name: Watched(
            _arrays(folder / f"{name}.out.npz"),
            [what for kernel, told in found.items() if owners[kernel] == name for what in told],
        )
        for name in programs
    }


def _as_stored(array: np.ndarray) -> np.ndarray:
    """An array of bfloat16 as the 16-bit integers that it is after the passes."""
    return array.view(np.uint16) if array.dtype.kind == "V" else array


def _by_kernel(log: str) -> dict[str, list[str]]:
    """The first lines of the findings, by kernel ("" where none is told)."""
    found: dict[str, list[str]] = {}
    for paragraph in _PARAGRAPH.split(log.strip()):
        if paragraph.strip():
            kernel = _KERNEL.search(paragraph)
            name = kernel[1] if kernel else ""
            found.setdefault(name, []).append(paragraph.strip().splitlines()[0])
    return found


def _arrays(path: Path) -> list[np.ndarray]:
    with np.load(path, allow_pickle=False) as stored:
        return [stored[key] for key in stored.files]


def _run_all(folder: Path) -> None:
    device = opencl(0)
    _never_reuse_memory(device)
    for path in sorted(folder.glob("*.ir")):
        program = parse_program(path.read_text(), str(path))
        args = [array(arg, device) for arg in _arrays(path.with_suffix(".in.npz"))]
        _load(program, device)(*args)
        np.savez(path.with_suffix(".out.npz"), *[arg.asnumpy() for arg in args])


def _never_reuse_memory(device: Device) -> None:
    """Oclgrind takes what lay at an address before for uninitialised, or for initialised."""
    kept, allocate = [], device.driver.allocate

    def keep(index: int, size: int):
        kept.append(allocate(index, size))
        return kept[-1]

    device.driver.allocate = keep


def _load(program: Program, device: Device) -> ProgramFunction:
    features = device.driver.limits(device.index).features
    signatures = [kernel_signature(k, machine_symbol(k.name)) for k in program.kernels]
    code = print_opencl(program.kernels, extensions=features)
    return ProgramFunction(
        signature_of(program.host), program.host, DeviceCode(code, signatures, device)
    )


if __name__ == "__main__":
    _run_all(Path(sys.argv[1]))
