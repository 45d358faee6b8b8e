"""The digits are classified within the bounds, and what is missing is told with its remedy."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import refcomp as rc
from refcomp.graph.builder import GraphBuilder

SCRIPT = Path(__file__).parents[2] / "scripts" / "classify_digits.py"


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("classify_digits", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def no_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without compiler tools on which nothing was compiled before."""
    monkeypatch.setenv("REFCOMP_LLVM", str(tmp_path / "nowhere"))
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))


def guessing(_path: Any) -> Any:
    """A network that takes the brightest of the first ten pixels for the digit."""
    builder = GraphBuilder("guess")
    image = builder.input("image", "f32", ("N", 1, 8, 8))
    weights = builder.constant("weights", np.eye(64, 10, dtype=np.float32))
    flat = builder.node("flatten", [image])
    return builder.finish([builder.node("softmax", [builder.node("matmul", [flat, weights])])])


def test_digits_are_drawn_side_by_side(script: ModuleType) -> None:
    images = np.zeros((2, 1, 8, 8), np.float32)
    images[0, 0, 0, :3] = [0.25, 0.5, 1]
    lines = script.draw(images, ["left", "right"]).splitlines()
    assert lines[0].split() == ["left", "right"]
    assert lines[1].startswith("░░▒▒██  ")
    assert [len(line) for line in lines] == [34] * 9


@pytest.mark.llvm
def test_digits_are_classified_within_the_bounds(
    script: ModuleType,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REFCOMP_CACHE_DIR", str(tmp_path / "cache"))
    assert script.main(40) == 0
    printed = capsys.readouterr().out
    assert "(cold; it is in the cache now)" in printed
    assert "2, truth 2" in printed
    assert "100.00% of 40 (at least 97%)" in printed
    assert "ms in a batch of 40" in printed
    assert script.main(3) == 0
    assert "(from the cache)" in capsys.readouterr().out


@pytest.mark.llvm
def test_a_difference_out_of_bounds_fails(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "LARGEST_DIFFERENCE", -1.0)
    assert script.main(3) == 1


@pytest.mark.usefixtures("no_tools")
def test_without_tools_a_few_are_interpreted_and_too_many_errors_fail(
    script: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rc, "from_onnx", guessing)
    assert script.main() == 1
    printed = capsys.readouterr().out
    assert "no usable llc, opt, ld.lld" in printed
    assert "what to do: " in printed
    assert "So only 2 images, interpreted" in printed
    assert "of 2 (at least 97%)" in printed


def test_without_onnx_an_expression_is_computed(
    script: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "find_spec", lambda name: None)
    assert script.main() == 0
    printed = capsys.readouterr().out
    assert "pip install onnx" in printed
    assert "[0. 1. 2. 3.] + [1. 1. 1. 1.] = [1. 2. 3. 4.]" in printed
