"""Calls a function in a fresh Python process: with an empty cache, or with so many threads.

Needs a function of a module that both processes can import, and arguments and a result that JSON
can carry. A child that fails raises here: its last line first, then all that it said.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_TIMEOUT_S = 1200


def call_fresh(
    function: Callable[..., Any],
    *,
    threads: int | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = _TIMEOUT_S,
    **arguments: Any,
) -> Any:
    """Return `function(**arguments)`, called in a process of its own.

    Each library uses at most `threads` threads there. Raises RuntimeError if the process fails, and
    subprocess.TimeoutExpired if it takes longer than `timeout_s`.
    """
    limits = {} if threads is None else thread_limits(threads)
    name = [function.__module__, function.__name__, json.dumps(arguments)]
    variables = limits | dict(environment or {})
    text = run_python(["-m", "benchmarks.fresh", *name], variables, timeout_s)
    return json.loads(text.splitlines()[-1])


def run_python(
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    timeout_s: float = _TIMEOUT_S,
) -> str:
    """Return the output of a Python with these arguments. Raises RuntimeError if it fails."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=_own_environment() | dict(environment or {}),
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError("\n".join([said[-1], *said]))
    return done.stdout


def _own_environment() -> dict[str, str]:
    """Return this process's environment, but let Python keep compiled modules, as users' does."""
    dropped = "PYTHONDONTWRITEBYTECODE"
    return {name: value for name, value in os.environ.items() if name != dropped}


def thread_limits(threads: int) -> dict[str, str]:
    """Return the environment in which OpenMP, OpenBLAS and refcomp use `threads` threads."""
    return dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads)
    )


def main() -> None:
    """Run the child, which reads module, function and arguments from the command line."""
    module, name, arguments = sys.argv[1:]
    print(json.dumps(getattr(import_module(module), name)(**json.loads(arguments))))


if __name__ == "__main__":
    main()
