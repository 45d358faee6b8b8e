"""Kernels in text are interpreted with their barriers, as the target interp runs them."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from refcomp.cli.interpretation import in_order, interpret_program_text, interpret_text
from refcomp.driver.pipeline import passes_for
from refcomp.ir.func import Program
from refcomp.ir.parser import parse_func
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.passes.split_host_device import split_host_device

Cli = Callable[..., Result]
SHARED = """\
func reverse(A: f32[8], B: f32[8] out) {
  for b in range(1) blockIdx.x {
    for t in range(8) threadIdx.x {
      alloc T: f32[8] shared {
        T[t] = A[t]
        B[t] = T[7 - t]
      }
    }
  }
}
"""
VIRTUAL = """\
func reverse(A: f32[8], B: f32[8] out) {
  for t in range(4) threadIdx.x {
    alloc T: f32[8] shared {
      for v in range(2) vthread {
        T[v * 4 + t] = A[v * 4 + t]
        B[v * 4 + t] = T[7 - v * 4 - t]
      }
    }
  }
}
"""
ADVICE = (
    "the text has kernels, and no barriers: start from what `refcomp lower` prints, and run "
    "`refcomp pass inject_virtual_threads insert_barriers` before flatten_storage"
)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    path = tmp_path / "in.npz"
    np.savez(path, A=np.arange(8, dtype=np.float32))
    return path


REVERSED = "B: f32[8]  min 0  max 7  first 7 6 5 4 3 2 ...\n"


@pytest.mark.parametrize(
    ("text", "passes"),
    [(SHARED, "insert_barriers"), (VIRTUAL, "inject_virtual_threads, insert_barriers")],
)
def test_a_kernel_without_barriers_is_executed_as_by_interp(
    cli: Cli, inputs: Path, text: str, passes: str
) -> None:
    result = cli("execute", "-i", inputs, input=text)
    assert (result.exit_code, result.stdout) == (0, REVERSED)
    assert result.stderr == (
        f"reverse: ran {passes} first, as the target interp does; --as-is leaves them out\n"
    )
    assert cli("execute", "--target", "interp", "-i", inputs, input=text).stdout == REVERSED


@pytest.mark.parametrize("text", [SHARED, VIRTUAL])
def test_a_kernel_is_executed_as_it_is_when_asked(cli: Cli, inputs: Path, text: str) -> None:
    result = cli("execute", "--as-is", "-i", inputs, input=text)
    assert result.exit_code == 1
    assert "of T is read, never written" in result.stderr
    assert f"what to do: {ADVICE}\n" in result.stderr


@pytest.mark.search
@pytest.mark.parametrize("text", [SHARED, VIRTUAL])
@pytest.mark.parametrize("count", range(1, len(passes_for("opencl")) + 1))
def test_text_in_the_middle_of_a_device_pipeline_is_executed(
    cli: Cli, inputs: Path, text: str, count: int
) -> None:
    names = [step.name for step in passes_for("opencl")][:count]
    passed = cli("pass", *names, input=text).stdout
    result = cli("execute", "-i", inputs, input=passed)
    assert (result.exit_code, result.stdout) == (0, REVERSED), result.stderr
    assert bool(result.stderr) == ("insert_barriers" not in names)


def test_flat_text_without_barriers_names_the_pass(cli: Cli, inputs: Path) -> None:
    flat = cli("pass", "flatten_storage", input=SHARED).stdout
    result = cli("execute", "-i", inputs, input=flat)
    assert result.exit_code == 1
    assert f"what to do: {ADVICE}\n" in result.stderr


def test_a_kernel_is_judged_with_its_barriers(cli: Cli, inputs: Path, tmp_path: Path) -> None:
    text, results = tmp_path / "kernel.txt", tmp_path / "out.npz"
    text.write_text(SHARED)
    np.savez(results, B=np.arange(8, dtype=np.float32)[::-1])
    result = cli("judge", "--json", text, "-i", inputs, "-r", results)
    assert json.loads(result.stdout)["verdict"] == "exact"
    assert result.stderr == "reverse: ran insert_barriers first, as the target interp does\n"


def test_what_needs_no_order_is_left_alone(
    add_text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flat = "func f(A: f32[4], B: f32[4] out) { for t in range(4) threadIdx.x { B@[t] = A@[t] } }"
    apart = "func f(A: f32[4], B: f32[4] out) { for t in range(4) threadIdx.x { B[t] = A[t] } }"
    barriers = SHARED.replace("        B[t]", "        barrier\n        B[t]")
    for text in (add_text, flat, apart, barriers):
        func = parse_func(text)
        assert in_order(func) is func
    assert capsys.readouterr().err == ""


def test_other_failures_are_given_no_advice() -> None:
    beyond = parse_func("func f(A: f32[2] out) { for i in range(3) { A[i] = 1.0f32 } }")
    with pytest.raises(InterpretError, match="out of range") as caught:
        interpret_text(beyond, [np.zeros(2, np.float32)])
    assert caught.value.remedy is None


def test_a_program_without_barriers_names_the_pass() -> None:
    func = parse_func(SHARED)
    for step in passes_for("opencl"):
        func = func if step.name == "insert_barriers" else step.function(func)
    program = split_host_device(func)
    assert isinstance(program, Program)
    arrays = [np.arange(8, dtype=np.float32), np.zeros(8, np.float32)]
    with pytest.raises(InterpretError, match="is read, never written") as caught:
        interpret_program_text(program, arrays)
    assert caught.value.remedy == ADVICE
