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
    result = cli("judge", "--json", script, "-i", given, "-r", results)
    report = json.loads(result.stdout)
    assert (result.exit_code, report["verdict"], report["suspects"]) == (0, "exact", [])
    (entry,) = report["results"]
    assert (entry["name"], entry["elements"], entry["exact"], entry["wrong"]) == ("C", 3, 3, 0)
    assert entry["worst"] is None


def test_a_wrong_element_fails_and_is_told(cli: Cli, script: Path, tmp_path: Path) -> None:
    given, results = _add(tmp_path, wrong_by=1e-6)
    result = cli("judge", "--json", script, "-i", given, "-r", results)
    report = json.loads(result.stdout)
    assert (result.exit_code, report["verdict"]) == (1, "wrong")
    worst = report["results"][0]["worst"]
    assert (worst["index"], worst["verdict"]) == ([1], "wrong")
    assert 0 < worst["found"] - worst["expected"] < 2e-6
    assert worst["error_over_bound"] > 1 and worst["bound"] < 1e-6
    assert any(suspect.startswith("stage C, at ") for suspect in report["suspects"])


@pytest.mark.tools
def test_a_command_is_run_on_filled_inputs(cli: Cli, script: Path, backend: Path) -> None:
    call = ("--", sys.executable, backend, "{inputs}", "{results}")
    good = cli("judge", "--json", script, "--symbol", "n=4", *call, "0")
    assert json.loads(good.stdout)["verdict"] == "exact"
    bad = cli("judge", "--json", script, "--symbol", "n=4", *call, "0.5")
    assert (bad.exit_code, json.loads(bad.stdout)["verdict"]) == (1, "wrong")


@pytest.mark.tools
def test_loop_ir_text(cli: Cli, add_text: str, backend: Path, tmp_path: Path) -> None:
    path = tmp_path / "add.txt"
    path.write_text(add_text)
    call = ("--", sys.executable, backend, "{inputs}", "{results}")
    assert json.loads(cli("judge", "--json", path, *call, "0").stdout)["verdict"] == "exact"
    report = json.loads(cli("judge", "--json", path, *call, "1e-6").stdout)
    assert (report["verdict"], report["suspects"]) == ("wrong", ["function add"])


def test_what_cannot_be_judged(cli: Cli, script: Path, tmp_path: Path) -> None:
    given, results = _add(tmp_path)
    both = cli("judge", "--json", script, "-r", results, "--", sys.executable)
    neither = cli("judge", "--json", script)
    for result in (both, neither):
        assert result.exit_code == 4
        assert "from --results or from a command, one of both" in result.stderr
    other = _saved(tmp_path / "other.npz", D=np.float32([1]))
    assert "the result 'C' is missing" in cli("judge", "--json", script, "-r", other).stderr
    absent = cli("judge", "--json", script, "--", "no-such-tool-here")
    assert "command 'no-such-tool-here' is not found" in absent.stderr
    short = _saved(tmp_path / "short.npz", C=np.float32([1]))
    result = cli("judge", "--json", script, "-i", given, "-r", short)
    assert "array C has shape (1,), expected (n,) = (3,)" in result.stderr


def test_a_command_that_fails_is_told(cli: Cli, script: Path) -> None:
    code = "import sys; sys.exit('out of luck')"
    result = cli("judge", "--json", script, "--", sys.executable, "-c", code, "{results}")
    assert result.exit_code == 3
    assert "ended with status 1" in result.stderr and "out of luck" in result.stderr


def test_a_command_that_writes_nothing_is_told(cli: Cli, script: Path) -> None:
    untold = cli("judge", "--json", script, "--", sys.executable, "-c", "pass")
    assert untold.exit_code == 4
    assert "gets no path for its results" in untold.stderr
    idle = cli("judge", "--json", script, "--", sys.executable, "-c", "pass", "{results}")
    assert idle.exit_code == 4
    assert "ended well, but wrote no results" in idle.stderr


def test_the_report_is_a_table_for_a_reader(cli: Cli, script: Path, tmp_path: Path) -> None:
    given, results = _add(tmp_path, wrong_by=0.5)
    result = cli("judge", script, "-i", given, "-r", results)
    lines = result.stdout.splitlines()
    assert (result.exit_code, lines[0]) == (1, "verdict: wrong")
    assert lines[1].split("  ")[0] == "array"
    assert lines[2].split()[:3] == ["C", "3", "1"]
    assert lines[2].split()[5:8] == ["[1]", "2.7", "2.2"]
    assert "sizes: n = 3" in lines
    assert lines[-1].startswith("suspect: stage C, at ")


def test_the_first_wrong_element_is_in_the_report(cli: Cli, script: Path, tmp_path: Path) -> None:
    a = np.zeros(5, np.float32)
    given = _saved(tmp_path / "in.npz", A=a, B=a)
    results = _saved(tmp_path / "out.npz", C=np.float32([0, 1, 0, 5, 0]))
    report = json.loads(cli("judge", "--json", script, "-i", given, "-r", results).stdout)
    (entry,) = report["results"]
    assert (report["sizes"], entry["wrong"]) == ({"n": 5}, 2)
    first = entry["first_wrong"]
    assert (first["index"], first["found"], first["expected"]) == ([1], 1.0, 0.0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_results_that_are_no_numbers_are_wrong(
    cli: Cli, script: Path, tmp_path: Path, value: float
) -> None:
    given, _ = _add(tmp_path)
    results = _saved(tmp_path / "out.npz", C=np.full(3, value, np.float32))
    result = cli("judge", "--json", script, "-i", given, "-r", results)
    (entry,) = json.loads(result.stdout)["results"]
    assert (result.exit_code, entry["wrong"], entry["elements"]) == (1, 3, 3)
    assert (entry["first_wrong"]["found"], entry["worst"]["error_over_bound"]) == (
        str(value),
        "inf",
    )


def test_results_that_are_no_numbers_where_these_are_right(
    cli: Cli, script: Path, tmp_path: Path
) -> None:
    a = np.float32([np.nan, np.inf, -np.inf])
    given = _saved(tmp_path / "in.npz", A=a, B=np.float32([1, 1, 1]))
    results = _saved(tmp_path / "out.npz", C=a)
    assert cli("judge", script, "-i", given, "-r", results).exit_code == 0


def test_missing_and_extra_results_are_refused(cli: Cli, script: Path, tmp_path: Path) -> None:
    given, results = _add(tmp_path)
    with np.load(results) as loaded:
        c = loaded["C"]
    _saved(results, D=c)
    missing = cli("judge", script, "-i", given, "-r", results)
    assert (missing.exit_code, missing.stderr) == (
        4,
        f"error: the result 'C' is missing\n  where: {results} has D\n  what to do: give C\n",
    )
    _saved(results)
    assert f"where: {results} has no arrays" in cli("judge", script, "-r", results).stderr
    _saved(results, C=c, D=c)
    extra = cli("judge", script, "-i", given, "-r", results)
    assert (extra.exit_code, extra.stderr) == (
        4,
        "error: 'D' is not a result of the computation\n"
        f"  where: {results}\n"
        "  what to do: give only results: C: f32[n]\n",
    )
    _saved(results, C=c, A=c)
    copied = cli("judge", script, "-i", given, "-r", results)
    assert "'A' is not a result of the computation" in copied.stderr
    assert "why: A is an input" in copied.stderr


def test_a_result_of_another_shape_is_named_with_its_file(
    cli: Cli, script: Path, tmp_path: Path
) -> None:
    given, _ = _add(tmp_path)
    short = _saved(tmp_path / "short.npz", C=np.float32([1]))
    result = cli("judge", script, "-i", given, "-r", short)
    assert (result.exit_code, result.stderr) == (
        4,
        "error: array C has shape (1,), expected (n,) = (3,)\n"
        f"  where: C: f32[n], in {short}\n"
        "  why: n is 3 by A\n"
        "  what to do: give arrays whose shapes agree\n",
    )


def test_hostile_results_are_refused(cli: Cli, script: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    np.savez(path, C=np.array([{}], object))
    pickled = cli("judge", script, "-r", path)
    assert pickled.exit_code == 4
    assert "'C' holds Python objects, and reading these could run code" in pickled.stderr
    path.write_text("C = 1")
    text = cli("judge", script, "-r", path)
    assert (text.exit_code, "does not begin as an .npz file does" in text.stderr) == (4, True)


def test_results_of_another_dtype_are_refused(cli: Cli, script: Path, tmp_path: Path) -> None:
    given, _ = _add(tmp_path)
    wide = _saved(tmp_path / "wide.npz", C=np.zeros(3))
    result = cli("judge", "--json", script, "-i", given, "-r", wide)
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
    call = ("judge", "--json", tmp_path / "sums.py", "-i", given, "-r", results)
    assert json.loads(cli(*call).stdout)["verdict"] == "wrong"
    assert json.loads(cli(*call, "--accumulate", "float16").stdout)["verdict"] != "wrong"
    refused = cli(*call, "--accumulate", "int32")
    assert "floats are not added up in int32" in refused.stderr


_NEAR_EDGES = """
import refcomp as rc
def roots():
    a = rc.placeholder((2,), "float64", name="A")
    c = rc.compute((2,), lambda i: rc.sqrt(a[i] * a[i]), name="C")
    return rc.create_schedule(c), [a, c]
def sums():
    a, b = (rc.placeholder((2,), name=name) for name in "AB")
    c = rc.compute((2,), lambda i: a[i] * b[i] + a[i], name="C")
    return rc.create_schedule(c), [a, b, c]
"""


def test_legal_results_near_underflow_and_overflow_are_not_wrong(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "edges.py"
    script.write_text(_NEAR_EDGES)
    tiny = np.array([1e-200, 2.0])
    great = np.float32([3e38, 2.0]), np.float32([-1.5, 3.0])
    given = {
        "roots": _saved(tmp_path / "roots.npz", A=tiny),
        "sums": _saved(tmp_path / "sums.npz", A=great[0], B=great[1]),
    }
    for name, result, verdict in (
        ("roots", np.array([0.0, 2.0]), "within bound"),
        ("roots", np.array([1e-100, 2.0]), "wrong"),
        ("sums", np.float32([-np.inf, 8]), "undecidable"),
        ("sums", np.float32([-1.5e38, 8]), "exact"),
        ("sums", np.float32([-3e38, 8]), "wrong"),
    ):
        results = _saved(tmp_path / "found.npz", C=result)
        ran = cli("judge", f"{script}:{name}", "-i", given[name], "-r", results, "--json")
        assert json.loads(ran.stdout)["verdict"] == verdict, ran.stdout
        assert "NaN" not in ran.stdout


@pytest.mark.tools
def test_the_order_of_sums_may_be_fixed(cli: Cli, tmp_path: Path) -> None:
    call = (sys.executable, _WALKTHROUGH, "numpy", "", "{inputs}", "{results}")
    free = json.loads(cli("judge", "--json", _WALKTHROUGH, "--", *call).stdout)
    fixed = json.loads(cli("judge", "--json", _WALKTHROUGH, "--in-order", "--", *call).stdout)
    bounds = [report["results"][0]["worst"]["bound"] for report in (free, fixed)]
    assert bounds[1] < bounds[0]


@pytest.mark.tools
def test_numpy_is_within_the_bound(cli: Cli) -> None:
    call = (sys.executable, _WALKTHROUGH, "numpy", "", "{inputs}", "{results}")
    report = json.loads(cli("judge", "--json", _WALKTHROUGH, "--", *call).stdout)
    assert report["verdict"] == "within bound"
    assert {entry["name"] for entry in report["results"]} == {"y", "z"}


@pytest.mark.tools
@pytest.mark.skipif(shutil.which("cc") is None, reason="no cc: apt-get install gcc")
def test_a_broken_c_function_is_found_in_its_stage(cli: Cli, tmp_path: Path) -> None:
    source, library = tmp_path / "product.c", tmp_path / "product.so"
    text = _WALKTHROUGH.read_text(encoding="utf-8")
    source.write_text(text.split('r"""')[1].split('"""')[0])
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    call = (sys.executable, _WALKTHROUGH, "c", library, "{inputs}", "{results}")
    report = json.loads(cli("judge", "--json", _WALKTHROUGH, "--", *call).stdout)
    assert report["verdict"] == "wrong"
    (suspect,) = report["suspects"]
    assert suspect.startswith("stage z, at ")
