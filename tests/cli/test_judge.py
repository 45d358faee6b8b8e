"""`refcomp judge` on arrays from a file and from a command, and on those of the walkthrough."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

Cli = Callable[..., Result]
_BACKEND = """
import sys
import numpy as np
given = np.load(sys.argv[1])
assert set(given.files) == {"A", "B"}, given.files
np.savez(sys.argv[2], C=given["A"] + given["B"] + np.float32(sys.argv[3]))
"""
_WALKTHROUGH = Path(__file__).parents[2] / "scripts" / "walkthroughs" / "judge_backends.py"


@pytest.fixture
def backend(tmp_path: Path) -> Path:
    path = tmp_path / "backend.py"
    path.write_text(_BACKEND, encoding="utf-8")
    return path


def _saved(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, **arrays)
    return path


def _add(tmp_path: Path, wrong_by: float = 0) -> tuple[Path, Path]:
    a, b = np.float32([1, 2, 3]), np.float32([0.1, 0.2, 0.3])
    c = a + b
    c[1] += np.float32(wrong_by)
    return _saved(tmp_path / "in.npz", A=a, B=b), _saved(tmp_path / "out.npz", C=c)


def test_arrays_from_files(cli: Cli, script: Path, tmp_path: Path) -> None:
    given, results = _add(tmp_path)
    result = cli("judge", script, "-i", given, "-r", results)
    report = json.loads(result.stdout)
    assert (result.exit_code, report["verdict"], report["suspects"]) == (0, "exact", [])
    (entry,) = report["results"]
    assert (entry["name"], entry["elements"], entry["exact"], entry["wrong"]) == ("C", 3, 3, 0)
    assert entry["worst"] is None


def test_a_wrong_element_fails_and_is_told(cli: Cli, script: Path, tmp_path: Path) -> None:
    given, results = _add(tmp_path, wrong_by=1e-6)
    result = cli("judge", script, "-i", given, "-r", results)
    report = json.loads(result.stdout)
    assert (result.exit_code, report["verdict"]) == (1, "wrong")
    worst = report["results"][0]["worst"]
    assert (worst["index"], worst["verdict"]) == ([1], "wrong")
    assert 0 < worst["found"] - worst["expected"] < 2e-6
    assert worst["error_over_bound"] > 1 and worst["bound"] < 1e-6
    assert any(suspect.startswith("stage C, at ") for suspect in report["suspects"])


def test_a_command_is_run_on_filled_inputs(cli: Cli, script: Path, backend: Path) -> None:
    call = ("--", sys.executable, backend, "{inputs}", "{results}")
    good = cli("judge", script, "--symbol", "n=4", *call, "0")
    assert json.loads(good.stdout)["verdict"] == "exact"
    bad = cli("judge", script, "--symbol", "n=4", *call, "0.5")
    assert (bad.exit_code, json.loads(bad.stdout)["verdict"]) == (1, "wrong")


def test_loop_ir_text(cli: Cli, add_text: str, backend: Path, tmp_path: Path) -> None:
    path = tmp_path / "add.txt"
    path.write_text(add_text)
    call = ("--", sys.executable, backend, "{inputs}", "{results}")
    assert json.loads(cli("judge", path, *call, "0").stdout)["verdict"] == "exact"
    report = json.loads(cli("judge", path, *call, "1e-6").stdout)
    assert (report["verdict"], report["suspects"]) == ("wrong", ["function add"])


def test_what_cannot_be_judged(cli: Cli, script: Path, tmp_path: Path) -> None:
    given, results = _add(tmp_path)
    both = cli("judge", script, "-r", results, "--", sys.executable)
    neither = cli("judge", script)
    for result in (both, neither):
        assert result.exit_code == 4
        assert "from --results or from a command, one of both" in result.stderr
    other = _saved(tmp_path / "other.npz", D=np.float32([1]))
    assert "there is no result 'C'" in cli("judge", script, "-r", other).stderr
    absent = cli("judge", script, "--", "no-such-tool-here")
    assert "there is no command 'no-such-tool-here'" in absent.stderr
    short = _saved(tmp_path / "short.npz", C=np.float32([1]))
    result = cli("judge", script, "-i", given, "-r", short)
    assert "arrays of shapes (1,) and (3,) cannot be compared" in result.stderr


def test_a_command_that_fails_is_told(cli: Cli, script: Path) -> None:
    code = "import sys; sys.exit('out of luck')"
    result = cli("judge", script, "--", sys.executable, "-c", code, "{results}")
    assert result.exit_code == 3
    assert "ended with status 1" in result.stderr and "out of luck" in result.stderr


def test_a_command_that_writes_nothing_is_told(cli: Cli, script: Path) -> None:
    untold = cli("judge", script, "--", sys.executable, "-c", "pass")
    assert untold.exit_code == 4
    assert "is not told where to write its results" in untold.stderr
    idle = cli("judge", script, "--", sys.executable, "-c", "pass", "{results}")
    assert idle.exit_code == 4
    assert "ended well, but wrote no results" in idle.stderr


def test_results_of_another_dtype_are_refused(cli: Cli, script: Path, tmp_path: Path) -> None:
    given, _ = _add(tmp_path)
    wide = _saved(tmp_path / "wide.npz", C=np.zeros(3))
    result = cli("judge", script, "-i", given, "-r", wide)
    assert result.exit_code == 4
    assert "array C has dtype float64, expected float32" in result.stderr
    assert "array.astype('float32')" in result.stderr


_SUMS = """
import refcomp as rc
def computation():
    a, k = rc.placeholder((4, 64), name="A"), rc.reduce_axis((0, 64), "k")
    c = rc.compute((4,), lambda i: rc.sum(a[i, k], axis=k), name="C")
    return rc.create_schedule(c), [a, c]
"""


def test_sums_in_another_dtype_are_licensed(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(_SUMS)
    a = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    given = _saved(tmp_path / "given.npz", A=a)
    rough = a.astype(np.float16).sum(1, dtype=np.float16).astype(np.float32)
    results = _saved(tmp_path / "results.npz", C=rough)
    call = ("judge", tmp_path / "sums.py", "-i", given, "-r", results)
    assert json.loads(cli(*call).stdout)["verdict"] == "wrong"
    assert json.loads(cli(*call, "--accumulate", "float16").stdout)["verdict"] != "wrong"
    refused = cli(*call, "--accumulate", "int32")
    assert "floats are not added up in int32" in refused.stderr


def test_the_order_of_sums_may_be_fixed(cli: Cli, tmp_path: Path) -> None:
    call = (sys.executable, _WALKTHROUGH, "numpy", "", "{inputs}", "{results}")
    free = json.loads(cli("judge", _WALKTHROUGH, "--", *call).stdout)
    fixed = json.loads(cli("judge", _WALKTHROUGH, "--in-order", "--", *call).stdout)
    bounds = [report["results"][0]["worst"]["bound"] for report in (free, fixed)]
    assert bounds[1] < bounds[0]


def test_numpy_is_within_the_bound(cli: Cli) -> None:
    call = (sys.executable, _WALKTHROUGH, "numpy", "", "{inputs}", "{results}")
    report = json.loads(cli("judge", _WALKTHROUGH, "--", *call).stdout)
    assert report["verdict"] == "within bound"
    assert {entry["name"] for entry in report["results"]} == {"y", "z"}


@pytest.mark.skipif(shutil.which("cc") is None, reason="no cc: apt-get install gcc")
def test_a_broken_c_function_is_found_in_its_stage(cli: Cli, tmp_path: Path) -> None:
    source, library = tmp_path / "product.c", tmp_path / "product.so"
    text = _WALKTHROUGH.read_text(encoding="utf-8")
    source.write_text(text.split('r"""')[1].split('"""')[0])
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    call = (sys.executable, _WALKTHROUGH, "c", library, "{inputs}", "{results}")
    report = json.loads(cli("judge", _WALKTHROUGH, "--", *call).stdout)
    assert report["verdict"] == "wrong"
    (suspect,) = report["suspects"]
    assert suspect.startswith("stage z, at ")
