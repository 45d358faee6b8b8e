"""A command called in this process, and small programs to call it with."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from refcomp.cli import main

Cli = Callable[..., Result]

SCRIPT = """\
import refcomp as rc

def computation():
    n = rc.var("n")
    A = rc.placeholder((n,), "float32", "A")
    B = rc.placeholder((n,), "float32", "B")
    C = rc.compute((n,), lambda i: A[i] + B[i], "C")
    s = rc.create_schedule(C)
    outer, inner = s[C].split(s[C].leaf_iter_vars[0], factor=8)
    s[C].vectorize(inner)
    return s, [A, B, C], "add"

def both():
    print("this goes to stderr")
    schedule, args, _ = computation()
    return [(schedule, args, "first"), (schedule, args)]

def broken():
    return 1 // 0

def wrong():
    return 42

number = 3
"""
ADD = """\
func add(A: f32[n], B: f32[n], C: f32[n] out) {
  for i in range(n) {
    C[i] = A[i] + B[i]
  }
}
"""
SCALE = """\
func scale(A: bf16[n], B: bf16[n] out, alpha: f32) {
  for i in range(n) parallel {
    B[i] = bf16(f32(A[i]) * alpha)
  }
}
"""


@pytest.fixture
def cli() -> Cli:
    """`cli(*ARGS, input=None)` runs `refcomp ARGS`."""

    def call(*args: str | Path, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(main, [str(arg) for arg in args], input=input)

    return call


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A Python program that defines computations."""
    path = tmp_path / "program.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def add_text() -> str:
    """A function at the nested level with a symbol."""
    return ADD


@pytest.fixture
def scale_text() -> str:
    """A parallel function with bfloat16 arrays and a scalar."""
    return SCALE
