"""Runs programs on an OpenCL device in a process of its own, which may crash or never end.

Many programs go through one process, since starting it takes longer than running them. Each is
written to a folder as loop IR beside its arguments. This file, run as a script, builds and runs
those that have no result yet, in the order of their names; so the first without a result is the
one that ended the process, or does not end. The next process takes up what follows.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from refcomp.codegen.opencl.module import print_opencl
from refcomp.codegen.signature import machine_symbol, signature_of
from refcomp.driver.devices import opencl
from refcomp.foundation.errors import RefcompError
from refcomp.ir.func import Program
from refcomp.ir.parser import parse_program
from refcomp.ir.printer import print_program
from refcomp.runtime.arrays.ndarray import array
from refcomp.runtime.device import Device
from refcomp.runtime.launch import kernel_signature
from refcomp.runtime.programs.program import DeviceCode, ProgramFunction

Programs = Mapping[str, tuple[Program, Sequence[np.ndarray]]]

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = [sys.executable, __file__]
# A program takes a tenth of a second. One that takes this many seconds does not end.
_LIMIT_S = 120.0
_LAST_CHARACTERS = 2000


@dataclass(frozen=True)
class Ended:
    """How a program ended: `arrays` holds its arguments then; `trouble` says why there are none."""

    arrays: list[np.ndarray]
    trouble: str = ""


def write_programs(programs: Programs, folder: Path) -> None:
    """Write each program (name -> program and arguments) to `folder`."""
    for name, (program, args) in programs.items():
        (folder / f"{name}.ir").write_text(print_program(program))
        np.savez(folder / f"{name}.in.npz", *map(_as_stored, args))


def read_arrays(path: Path) -> list[np.ndarray]:
    """The arrays of a file, in order; bfloat16 comes back as 16-bit integers."""
    with np.load(path, allow_pickle=False) as stored:
        return [stored[key] for key in stored.files]


def child_environment(variables: Mapping[str, str] = {}) -> dict[str, str]:
    """The variables that the script runs with."""
    own = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **own, **variables}


def run_apart(
    programs: Programs,
    folder: Path,
    variables: Mapping[str, str] = {},
    limit_s: float = _LIMIT_S,
) -> dict[str, Ended]:
    """Run each program where `variables` are set, in an empty folder. A crash, an endless loop and
    an error are the trouble of the program alone that met it."""
    write_programs(programs, folder)
    while _left(folder):
        trouble = _run_process(folder, child_environment(variables), limit_s)
        for culprit in _left(folder)[:1]:
            assert trouble, f"the process ended well, but left {culprit} out"
            (folder / f"{culprit}.trouble").write_text(trouble)
    return {name: _ended(folder, name) for name in programs}


def _left(folder: Path) -> list[str]:
    """The names of the programs that have neither a result nor a trouble."""
    names = sorted(path.stem for path in folder.glob("*.ir"))
    done = ("out.npz", "trouble")
    return [n for n in names if not any((folder / f"{n}.{end}").exists() for end in done)]


def _run_process(folder: Path, environment: dict[str, str], limit_s: float) -> str:
    """Run the script until it ends, or makes no progress; why it ended too early, "" if not."""
    with open(folder / "stderr.log", "w") as log:
        process = subprocess.Popen([*SCRIPT, str(folder)], env=environment, stdout=log, stderr=log)
        try:
            left, since = len(_left(folder)), time.monotonic()
            while process.poll() is None:
                time.sleep(0.02)
                now_left = len(_left(folder))
                if now_left < left:
                    left, since = now_left, time.monotonic()
                elif time.monotonic() - since > limit_s:
                    return "it did not end"
        finally:
            process.kill()
            process.wait()
    if process.returncode == 0:
        return ""
    told = (folder / "stderr.log").read_text()[-_LAST_CHARACTERS:]
    return f"the process ended with status {process.returncode}\n{told}"


def _ended(folder: Path, name: str) -> Ended:
    trouble = folder / f"{name}.trouble"
    if trouble.exists():
        return Ended([], trouble.read_text())
    return Ended(read_arrays(folder / f"{name}.out.npz"))


def _as_stored(array: np.ndarray) -> np.ndarray:
    """An array of bfloat16 as the 16-bit integers that it is after the passes."""
    return array.view(np.uint16) if array.dtype.kind == "V" else array


# In the child.


def _run_all(folder: Path) -> None:
    device = opencl(0)
    _never_reuse_memory(device)
    for name in _left(folder):
        try:
            args = _run(folder, name, device)
        except RefcompError as error:
            (folder / f"{name}.trouble").write_text(str(error))
            continue
        # A result has its name when it is complete.
        half = folder / "half.npz"
        np.savez(half, *args)
        half.rename(folder / f"{name}.out.npz")


def _run(folder: Path, name: str, device: Device) -> list[np.ndarray]:
    path = folder / f"{name}.ir"
    program = parse_program(path.read_text(), str(path))
    args = [array(arg, device) for arg in read_arrays(folder / f"{name}.in.npz")]
    _load(program, device)(*args)
    return [arg.asnumpy() for arg in args]


def _never_reuse_memory(device: Device) -> None:
    """Oclgrind takes what lay at an address before for uninitialised, or for initialised."""
    kept: list[Any] = []
    allocate = device.driver.allocate

    def keep(index: int, size: int) -> Any:
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
