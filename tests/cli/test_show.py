"""`refcomp show` shows every stage, or one that can be piped on."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from refcomp.cli import streams
from refcomp.driver import backend
from refcomp.driver.backends import register_backend
from refcomp.driver.backends.opencl import OPENCL
from refcomp.driver.pipeline import passes_for
from refcomp.foundation import target
from refcomp.foundation.artifacts import Source
from refcomp.ir.parser import parse_func
from tests.strategies.graphs import DIGITS

Cli = Callable[..., Result]
STAGES = ["loop-ir", *(f"after:{step.name}" for step in passes_for("llvm")), "llvm", "asm"]


@pytest.mark.llvm
def test_all_stages_are_shown_in_order(cli: Cli, script: Path) -> None:
    result = cli("show", script)
    assert result.exit_code == 0
    headings = [line for line in result.stdout.splitlines() if line.startswith("== ")]
    assert headings == [f"== {stage} ==" for stage in ("schedule", *STAGES)]
    assert "(changes nothing)" in result.stdout


_KERNEL = """
func rows(A: f32[n, 8], B: f32[n, 8] out) {
  for b in range(n) blockIdx.x { for t in range(8) threadIdx.x {
    alloc S: f32[8] shared { S[t] = A[b, t] B[b, t] = S[7 - t] }
  } }
}
"""


def test_the_stages_of_a_device(cli: Cli) -> None:
    stages = json.loads(cli("show", "-", "--target", "opencl", "--json", input=_KERNEL).stdout)
    texts = {stage["stage"]: stage["text"] for stage in stages}
    assert [*texts][-2:] == ["programs", "opencl"]
    assert "barrier" in texts["after:insert_barriers"]
    assert "launch rows_kernel0 (A, B, n) grid (n, 1, 1)" in texts["programs"]
    assert "__kernel" in texts["opencl"]


@pytest.mark.parametrize("target", ["opencl", "rocm"])
def test_a_device_is_shown_text_from_its_beginning(cli: Cli, target: str) -> None:
    flat = cli("pass", "--all", "--target", target, input=_KERNEL).stdout
    result = cli("show", "-", "--target", target, input=flat)
    assert result.exit_code == 4
    assert (
        "levels of its functions: flat, launch\n  what to do: give the text as `refcomp lo"
        in result.stderr
    )


def test_programs_have_no_machine_code_of_the_host(cli: Cli) -> None:
    programs = cli("show", "-", "--target", "opencl", "--stage", "programs", input=_KERNEL).stdout
    for command in (("show", "-"), ("print", "--all-passes"), ("pass", "--all")):
        result = cli(*command, input=programs)
        assert result.exit_code == 4
        assert "rows launches kernels: no pass takes it any further" in result.stderr


@pytest.mark.rocm
def test_the_assembly_of_a_gpu(cli: Cli) -> None:
    options = ["--target", "rocm -mcpu=gfx90a", "--stage", "asm"]
    lines = cli("show", "-", *options, input=_KERNEL).stdout.splitlines()
    assert lines[-1].startswith("\ts_endpgm ")  # and no padding behind it


@pytest.mark.llvm
def test_json_has_the_text_of_every_stage(cli: Cli, add_text: str) -> None:
    stages = json.loads(cli("show", "-", "--json", input=add_text).stdout)
    assert [stage["stage"] for stage in stages] == STAGES
    assert all(stage["text"] for stage in stages)


def test_the_schedule_tells_primitives_with_lines_and_loops(cli: Cli, script: Path) -> None:
    lines = cli("show", script, "--stage", "schedule").stdout.splitlines()
    assert lines == [
        "# schedule of add",
        f"s[C].split(i, factor=8)  # {script}:9",
        f"s[C].vectorize(i.inner)  # {script}:10",
        "# stage C: i.outer, i.inner vectorized",
    ]


def test_a_single_stage_can_be_piped_on(cli: Cli, script: Path) -> None:
    text = cli("show", script, "--stage", "loop-ir").stdout
    assert parse_func(text).name == "add"
    flat = cli("show", script, "--stage", "after:flatten_storage").stdout
    assert "C@[" in flat
    assert cli("show", "-", "--stage", "loop-ir", input=flat).stdout == flat


def test_all_passes_shows_what_each_pass_makes(cli: Cli, script: Path) -> None:
    text = cli("show", script, "--stage", "all-passes").stdout
    headings = [line[3:-3] for line in text.splitlines() if line.startswith("== ")]
    assert headings == STAGES[1:-2]


@pytest.mark.llvm
def test_llvm_and_assembly(cli: Cli, script: Path) -> None:
    assert "define i32 @add(" in cli("show", script, "--stage", "llvm").stdout
    assert "add:" in cli("show", script, "--stage", "asm").stdout


def test_several_functions_stand_below_each_other(cli: Cli, script: Path) -> None:
    text = cli("show", f"{script}:both", "--stage", "after:flatten_storage").stdout
    assert text.count("func ") == 2


def test_the_interpreter_has_fewer_stages(cli: Cli, script: Path) -> None:
    result = cli("show", script, "--target", "interp", "--stage", "asm")
    assert result.exit_code == 4
    assert "has no stage 'asm'" in result.stderr
    assert "stages: schedule, loop-ir, all-passes" in result.stderr


@pytest.mark.parametrize(
    ("stage", "near"),
    [
        ("loopir", "did you mean loop-ir? "),
        ("after:flaten_storage", "did you mean after:flatten_storage"),
        ("flatten_storage", "did you mean after:flatten_storage"),
        ("banana", "what to do: stages: "),
    ],
)
def test_an_unknown_stage_is_told_with_what_is_near(
    cli: Cli, script: Path, stage: str, near: str
) -> None:
    result = cli("show", script, "--stage", stage)
    assert result.exit_code == 4 and near in result.stderr
    assert "schedule, loop-ir, llvm, asm, all-passes, after:PASS, such as after:" in result.stderr
    assert len(result.stderr) < 600


def test_a_terminal_gets_colour(cli: Cli, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in cli("show", script, "--stage", "loop-ir").stdout
    monkeypatch.setattr(streams, "is_terminal", lambda stream: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" in cli("show", script, "--stage", "loop-ir").stdout


@pytest.mark.parametrize("stage", ["loop-ir", "after:insert_barriers", "all-passes", "programs"])
def test_stages_before_the_code_are_shown_without_a_tool(cli: Cli, stage: str) -> None:
    result = cli("show", "-", "--target", "rocm", "--stage", stage, input=_KERNEL)
    assert result.exit_code == 0 and "rows" in result.stdout


@pytest.mark.parametrize(
    ("target", "texts"),
    [("opencl", "opencl"), ("rocm", "llvm, kernels, metadata, lines, asm")],
)
def test_an_unknown_stage_of_a_device_is_refused_without_a_tool(
    cli: Cli, target: str, texts: str
) -> None:
    result = cli("show", "-", "--target", target, "--stage", "banana", input=_KERNEL)
    assert result.exit_code == 4 and "has no stage 'banana'" in result.stderr
    assert f"stages: loop-ir, programs, {texts}, all-passes, after:PASS, such" in result.stderr


def test_no_pass_is_run_for_a_stage_before_the_passes(cli: Cli) -> None:
    unbound = "func f(A: f32[n] out) { for i in range(n) { A[i] = 3.0f32 } }"
    options = ["--target", "opencl", "--stage"]
    assert "A[i] = 3.0" in cli("show", "-", *options, "loop-ir", input=unbound).stdout
    result = cli("show", "-", *options, "programs", input=unbound)
    assert result.exit_code == 4 and "outside of a kernel" in result.stderr


def test_back_ends_from_outside_compile_only_for_stages_of_the_code(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "_BACKENDS", dict(backend._BACKENDS))
    monkeypatch.setattr(target, "_KINDS", dict(target._KINDS))
    compiled = []

    def compile_kernels(made: Any, target: Any, limits: Any) -> backend.Code:
        compiled.append(target)
        return backend.Code(Source("text", "its text"), {"text": "its text"})

    register_backend(replace(OPENCL, name="mine", texts=None, compile=compile_kernels))
    for stage in ("loop-ir", "all-passes", "programs"):
        assert cli("show", "-", "--target", "mine", "--stage", stage, input=_KERNEL).stdout
    assert not compiled
    shown = cli("show", "-", "--target", "mine", "--stage", "text", input=_KERNEL).stdout
    assert shown == "its text" and len(compiled) == 1


@pytest.mark.rocm
def test_links_of_lines_are_shown_only_to_who_asks(cli: Cli) -> None:
    options = ["--target", "rocm -mcpu=gfx90a", "--json"]
    shown = json.loads(cli("show", "-", *options, input=_KERNEL).stdout)
    assert "lines" not in [stage["stage"] for stage in shown]
    (lines,) = json.loads(cli("show", "-", *options, "--stage", "lines", input=_KERNEL).stdout)
    assert {*json.loads(lines["text"])} == {"kernels", "text", "origins"}


def test_a_model_is_shown_after_each_graph_pass(cli: Cli) -> None:
    model = DIGITS / "digits.onnx"
    text = cli("show", model, "--stage", "graph-pass:fold_batch_norm").stdout
    assert "batch_norm(" not in text
    assert "conv2d(image, Conv_0.folded_weight, Conv_0.folded_bias)" in text
    assert "conv2d_nchwc" in cli("show", model, "--stage", "graph-pass:fold_constants").stdout
    result = cli("show", model, "--stage", "graph-pass:fold_batchnorm", "--target", "interp")
    assert result.exit_code != 0
    assert "did you mean graph-pass:fold_batch_norm" in result.stderr
    assert "graph-pass:PASS, such as graph-pass:fold_batch_norm" in result.stderr


def test_the_memory_of_a_model_is_drawn(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("matplotlib")
    digits = Path(__file__).parents[2] / "scripts" / "data" / "digits" / "digits.onnx"
    png = tmp_path / "memory.png"
    result = cli("show", digits, "--stage", "memory", "--symbol", "N=4", "--png", png)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("peak ")
    assert "probability" in result.stdout
    assert png.read_bytes().startswith(b"\x89PNG")
    one = cli("show", digits, "--stage", "memory").stdout
    assert one.partition(" bytes")[0] != result.stdout.partition(" bytes")[0]
    wrong = cli("show", digits, "--stage", "memory", "--symbol", "M=4")
    assert wrong.exit_code == 4
    assert "unknown symbolic dimension 'M'" in wrong.stderr


def test_only_memory_is_drawn(cli: Cli, script: Path) -> None:
    result = cli("show", script, "--stage", "loop-ir", "--png", "x.png")
    assert result.exit_code == 4
    assert "only the memory of a model is drawn" in result.stderr
    assert "--stage memory --png x.png" in result.stderr
