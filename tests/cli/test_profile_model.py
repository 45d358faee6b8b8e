"""`refcomp profile`: tables, JSON, files, and devices without times."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from refcomp.cli import profile_model
from refcomp.driver import devices
from refcomp.graph.debug.peaks import Peaks

pytest.importorskip("onnx")

Cli = Callable[..., Result]
DIGITS = Path(__file__).parents[2] / "scripts" / "data" / "digits" / "digits.onnx"


@pytest.fixture(autouse=True)
def peaks(monkeypatch) -> None:
    """Nothing measures the machine in a test."""
    found = Peaks(gflops=100.0, gbytes=10.0, threads=2)
    monkeypatch.setattr(profile_model, "measure_peaks", lambda target: found)


@pytest.mark.llvm
def test_the_tables_have_nodes_and_totals(cli: Cli) -> None:
    result = cli("profile", DIGITS, "--repeat", "1")
    assert result.exit_code == 0, result.output
    nodes, totals, facts = result.stdout.split("\n\n")
    assert nodes.splitlines()[0].split()[:2] == ["node", "operator"]
    assert len(nodes.splitlines()) == 1 + 7
    assert "2 nodes" in totals
    assert "451,904 multiply-adds" in facts
    assert "100.0 GFLOP/s of f32, 10.0 GB/s" in facts


@pytest.mark.llvm
def test_the_report_is_json(cli: Cli) -> None:
    result = cli("profile", DIGITS, "--repeat", "2", "--symbol", "N=2", "--unfused", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["repeat"] == 2
    assert report["peaks"] == {"gflops": 100.0, "gbytes": 10.0, "threads": 2}
    operators = [node["operator"] for node in report["nodes"]]
    assert "conv2d_nchwc" in operators and not any("+" in one for one in operators)
    assert sum(node["multiply_adds"] for node in report["nodes"]) == 2 * 451_904
    assert sum(node["share"] for node in report["nodes"]) == pytest.approx(1)
    assert {node["bound_by"] for node in report["nodes"]} <= {"memory", "compute"}


@pytest.mark.llvm
def test_files_are_written(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    png, page = tmp_path / "x.png", tmp_path / "x.html"
    result = cli("profile", DIGITS, "--repeat", "1", "--png", png, "--html", page)
    assert result.exit_code == 0, result.output
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "digits.onnx" in page.read_text(encoding="utf-8")
    assert f"wrote {png}" in result.stderr
    assert f"wrote {page}" in result.stderr


@pytest.mark.llvm
def test_a_missing_package_is_named(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    result = cli("profile", DIGITS, "--repeat", "1", "--png", tmp_path / "x.png")
    assert result.exit_code == 4
    assert 'pip install "refcomp[pictures]"' in result.stderr


def test_an_interpreter_is_refused(cli: Cli) -> None:
    result = cli("profile", DIGITS, "--target", "interp")
    assert result.exit_code == 4
    assert "the target interp has no times to profile" in result.stderr


@pytest.mark.rocm
def test_an_emulated_device_is_refused(cli: Cli, monkeypatch) -> None:
    gpu = devices.rocm_emulator("gfx942")
    monkeypatch.setattr(devices, "device_for", lambda target: gpu)
    result = cli("profile", DIGITS, "--target", "rocm -mcpu=gfx942")
    assert result.exit_code == 4
    assert "it is emulated: it counts instructions, and counts are not times" in result.stderr
