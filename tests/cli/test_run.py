"""`refcomp run` runs a model on given or filled inputs, and reports results and times."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from refcomp.cli.run import top_of_rows
from refcomp.driver.devices import rocm_emulator
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.compile import compile_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.runtime.device import Device

onnx = pytest.importorskip("onnx")

Cli = Callable[..., Result]
DIGITS = Path(__file__).parents[2] / "scripts" / "data" / "digits"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = relu(x) over f32[N, 4]."""
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    values = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", 4])
        for name in ("x", "y")
    ]
    graph = onnx.helper.make_graph([node], "relu", values[:1], values[1:])
    opset = onnx.helper.make_opsetid("", 17)
    path = tmp_path / "relu.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset]), path)
    return path


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    path = tmp_path / "in.npz"
    np.savez(path, x=np.array([[3, -1, 2, 0.5], [-4, 1, 1, 0]], np.float32))
    return path


TARGETS = pytest.mark.parametrize(
    "target",
    [
        pytest.param("llvm", marks=pytest.mark.llvm),
        pytest.param("opencl", marks=pytest.mark.pocl),
        "interp",
    ],
)


@TARGETS
def test_given_inputs(cli: Cli, model: Path, inputs: Path, target: str) -> None:
    result = cli("run", model, "-i", inputs, "--target", target, "--print-top", "2")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "y: f32[2, 4]  min 0  max 3  first 3 0 2 0.5 0 1 ...",
        "  row 0: 0: 3, 2: 2",
        "  row 1: 1: 1, 2: 1",
    ]


def test_what_is_no_number_is_printed(cli: Cli, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.array([[np.nan, np.inf, 1, 2]], np.float32))
    options = ["--target", "interp", "--print-top", "4"]
    result = cli("run", model, "-i", tmp_path / "in.npz", *options)
    assert result.stdout.splitlines()[1] == "  row 0: 1: inf, 3: 2, 2: 1, 0: nan"


def test_outputs_are_written(cli: Cli, model: Path, inputs: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    cli("run", model, "-i", inputs, "-o", path, "--target", "interp")
    with np.load(path) as outputs:
        np.testing.assert_array_equal(outputs["y"][0], np.array([3, 0, 2, 0.5], np.float32))


def computed(images: Any, target: str, device: Device | None = None) -> Any:
    """What the library computes; tests/graph/test_executor.py holds that to its bounds."""
    module = compile_graph(from_onnx(DIGITS / "digits.onnx"), target)
    return GraphExecutor(module, device).run(image=images)[0].asnumpy()


@pytest.fixture
def images(tmp_path: Path) -> Any:
    """Three digits, also in in.npz."""
    with np.load(DIGITS / "digits_test.npz") as data:
        np.savez(tmp_path / "in.npz", image=data["image"][:3])
        return data["image"][:3]


@pytest.mark.llvm
def test_the_digits_come_out_as_they_are_computed(cli: Cli, images: Any, tmp_path: Path) -> None:
    given, path, network = tmp_path / "in.npz", tmp_path / "out.npz", DIGITS / "digits.onnx"
    assert cli("run", network, "-i", given, "-o", path).exit_code == 0
    with np.load(path) as outputs:
        np.testing.assert_array_equal(outputs["probability"], computed(images, "llvm"))
    judged = cli("judge", "--json", network, "-i", given, "-r", path)
    assert (judged.exit_code, json.loads(judged.stdout)["verdict"]) == (0, "within bound")


@pytest.mark.rocm
def test_the_digits_come_out_of_an_emulated_gpu(images: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    command = [sys.executable, "-m", "refcomp.cli", "run", str(DIGITS / "digits.onnx"), "-i"]
    command += [str(tmp_path / "in.npz"), "-o", str(path), "--target", "rocm"]
    chosen = os.environ | {"REFCOMP_ROCM": "emulator:gfx942"}
    done = subprocess.run(command, env=chosen, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    expected = computed(images, "rocm -mcpu=gfx942", rocm_emulator("gfx942"))
    with np.load(path) as outputs:
        np.testing.assert_array_equal(outputs["probability"], expected)


def test_symbols_and_fill_modes(cli: Cli, model: Path) -> None:
    options = ["--target", "interp", "--fill-mode", "ones"]
    assert cli("run", model, *options).stdout.startswith("y: f32[1, 4]  min 1  max 1")
    assert cli("run", model, *options, "--symbol", "N=3").stdout.startswith("y: f32[3, 4]")
    assert cli("run", model, *options, "--symbol", "N=0").stdout == "y: f32[0, 4]  empty\n"


def test_random_inputs_depend_on_the_seed(cli: Cli, model: Path) -> None:
    first, again, other = (
        cli("run", model, "--target", "interp", "--seed", seed).stdout for seed in ("1", "1", "2")
    )
    assert first == again != other


def test_json_has_results_and_times(cli: Cli, model: Path, inputs: Path) -> None:
    options = ["--target", "interp", "--print-top", "1", "--print-time", "--repeat", "3", "--json"]
    report = json.loads(cli("run", model, "-i", inputs, *options).stdout)
    (output,) = report["outputs"]
    assert (output["name"], output["shape"], output["max"]) == ("y", [2, 4], 3.0)
    assert output["top"] == [[{"index": 0, "value": 3.0}], [{"index": 1, "value": 1.0}]]
    times = report["time"]
    assert times["runs"] == 3
    assert set(times["run_ms"]) == {"min", "mean", "median", "max"}
    assert 0 < times["run_ms"]["min"] <= times["run_ms"]["median"] <= times["run_ms"]["max"]


def test_times_are_printed(cli: Cli, model: Path) -> None:
    options = ["--target", "interp", "--print-time", "--repeat", "2"]
    lines = cli("run", model, *options).stdout.splitlines()
    assert lines[1].startswith("compiled in ")
    assert lines[2].startswith("2 runs, milliseconds each: min ")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"z": np.zeros((1, 4), "f")}, "unknown input 'z'"),
        ({"x": np.zeros((1, 5), "f")}, "array x has shape (1, 5), expected (N, 4)"),
        ({"x": np.zeros((1, 4))}, "array x has dtype float64, expected float32"),
    ],
)
def test_wrong_inputs_are_refused(
    cli: Cli, model: Path, tmp_path: Path, arrays: dict[str, Any], message: str
) -> None:
    np.savez(tmp_path / "in.npz", **arrays)
    result = cli("run", model, "-i", tmp_path / "in.npz")
    assert result.exit_code == 4
    assert message in result.stderr


def test_missing_files_are_refused(cli: Cli, model: Path, tmp_path: Path) -> None:
    assert cli("run", model, "-i", tmp_path / "no.npz").exit_code == 4
    assert cli("run", tmp_path / "no.onnx").exit_code == 4


def test_a_foreign_model_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(b"\x00not a model")
    result = cli("run", "--json", path)
    assert result.exit_code == 4
    assert json.loads(result.stderr)["error"]["kind"] == "UserError"


def test_an_unsupported_model_has_its_own_exit_code(cli: Cli, model: Path) -> None:
    loaded = onnx.load(model)
    loaded.graph.node[0].op_type = "Nonsense"
    onnx.save(loaded, model)
    result = cli("run", model)
    assert result.exit_code == 5
    assert "Nonsense" in result.stderr


def test_a_model_can_be_lowered_and_shown(cli: Cli, model: Path) -> None:
    lowered = cli("lower", model)
    assert lowered.stdout.startswith("func kernel0_relu(")
    assert cli("show", model, "--stage", "loop-ir").stdout == lowered.stdout
    assert " = relu(x)" in cli("show", model, "--stage", "graph").stdout


@pytest.mark.pocl
def test_a_model_is_shown_as_a_device_runs_it(cli: Cli, model: Path) -> None:
    shown = cli("show", model, "--target", "opencl", "--stage", "loop-ir").stdout
    assert "blockIdx.x" in shown and "threadIdx.x" in shown
    assert "__kernel" in cli("show", model, "--target", "opencl", "--stage", "opencl").stdout


def test_top_of_rows_is_stable_and_puts_nan_last() -> None:
    rows = np.array([[1, np.nan, 2, 2]], np.float32)
    (top,) = top_of_rows(rows, 9)
    assert [entry["index"] for entry in top] == [2, 3, 0, 1]
    assert top[-1]["value"] == "nan"
    assert top_of_rows(np.array(7, np.int8), 1) == [[{"index": 0, "value": 7}]]
    assert top_of_rows(np.zeros((0, 3), np.float32), 1) == []
