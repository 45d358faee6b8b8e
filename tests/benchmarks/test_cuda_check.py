"""The check of NVIDIA GPUs without a GPU: its JSON, budget, exit codes, packing and a dry run."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from benchmarks.cuda import build_pycuda, check, pack, parts, prepare
from benchmarks.cuda.check import Budget, Part
from benchmarks.report import Bar, Row, row_beside, row_of

ROOT = Path(__file__).parents[2]
DEVICE = {"name": "NVIDIA H100 80GB HBM3", "arch": "sm_90"}
LOOKED = {"exists": True, "driver": {"driver": "13.0"}, "device": DEVICE}


def figures(ratio=1.0):
    row = row_beside("cuda product f32", "n", [ratio], "cuBLAS", [1.0], bar=Bar(1 / 0.85, "ratio"))
    return {"rows": [parts.asdict(row)], "sets": 2}


@pytest.fixture
def outcomes(monkeypatch, tmp_path):
    """What each part returns: all pass, unless a test changes it. Nothing is run."""
    found = {part.name: {"report": {}} for part in check.plan(True, 1)}
    found |= {"build": {"report": {}}, "look": {"report": LOOKED}, "product": {"report": figures()}}

    def call(function, *, environment, timeout_s, part, arguments):
        outcome = found[part]
        if isinstance(outcome, Exception):
            raise outcome
        return json.loads(json.dumps(outcome))

    monkeypatch.setattr(check, "call_fresh", call)
    monkeypatch.setattr(check, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(check, "card_arch", lambda: "sm_90")
    monkeypatch.setattr(build_pycuda, "start", lambda *_: None)
    monkeypatch.setattr(check, "describe_machine", lambda: {"cpu": "a processor"})
    monkeypatch.setattr(check, "commit", lambda: "0" * 40)
    return found


def run(tmp_path, *arguments):
    path = tmp_path / "out.json"
    code = check.main(["--folder", str(tmp_path), "--json", str(path), *arguments])
    return code, json.loads(path.read_text())


def test_all_parts_that_pass_give_0(outcomes, tmp_path, capsys):
    code, report = run(tmp_path)
    assert code == check.FINE
    assert {*report["seconds"]} == {*outcomes}
    assert report["device"] == DEVICE and report["driver"] == {"driver": "13.0"}
    assert report["date"].startswith("20") and len(report["commit"]) >= 7
    assert [row["ratio"]["median"] for row in report["rows"]] == [1.0]
    assert (report["failures"], report["skipped"], report["stand_in"]) == ({}, {}, "")
    assert "cuda product f32, n: 1.000 times cuBLAS" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ({"failure": "AssertionError: wrong: add"}, "AssertionError: wrong: add"),
        (RuntimeError("exit code -11"), "the process ended: exit code -11"),
        (subprocess.TimeoutExpired("python", 9), "when the budget was spent"),
    ],
)
def test_a_part_that_fails_does_not_stop_the_others(outcomes, tmp_path, outcome, message):
    outcomes["operators"] = outcome
    code, report = run(tmp_path)
    assert code == check.FAILED and message in report["failures"]["operators"]
    assert {*report["parts"]} == {*outcomes} - {"operators", "look"}


def test_a_missed_bar_gives_1(outcomes, tmp_path, capsys):
    outcomes["product"] = {"report": figures(1.3)}
    code, report = run(tmp_path)
    assert code == check.FAILED and not report["rows"][0]["is_met"]
    assert "1.300 times cuBLAS, which misses the bar" in capsys.readouterr().out


def test_without_a_library_there_is_no_ratio_and_no_verdict(outcomes, tmp_path):
    times = {"ours": [1.0]}
    row = parts._row("w", "c", times, "cuBLAS", "cuBLAS not found", parts.Work(1, "T"), Bar(1))
    outcomes["product"] = {"report": {"rows": [parts.asdict(row)]}}
    code, report = run(tmp_path)
    (found,) = report["rows"]
    assert code == check.FINE and found["note"] == "cuBLAS not found"
    assert found["ratio"] is None and found["bar"] is None and found["peer"] == ""


def test_without_a_gpu_only_the_build_runs(outcomes, tmp_path):
    outcomes["look"] = {"report": {"exists": False, "driver": {}, "why": "no", "remedy": "buy"}}
    code, report = run(tmp_path)
    assert code == check.NO_GPU and {*report["seconds"]} == {"build", "look"}


def test_one_part_can_be_run(outcomes, tmp_path):
    _, report = run(tmp_path, "--part", "addition")
    assert {*report["seconds"]} == {"look", "addition"}


def test_what_no_time_is_left_for_is_skipped_and_said(outcomes, tmp_path, capsys):
    code, report = run(tmp_path, "--budget", "35")
    assert code == check.FAILED
    assert {*report["skipped"]} == {"convolution", "properties"}
    assert report["skipped"]["properties"].endswith("were left, and it needs 70 s")
    assert {m["workload"] for m in report["missing"]} == {"cuda convolution", "cuda properties"}
    assert "properties: skipped: 35 s were left" in capsys.readouterr().out


def test_a_budget_never_is_negative():
    now = [0.0]
    budget = Budget(10.0, lambda: now[0])
    now[0] = 4.0
    assert budget.left() == 6.0
    now[0] = 11.0
    assert budget.left() == 0.0


def test_results_have_the_name_of_the_card(outcomes, tmp_path):
    check.main(["--folder", str(tmp_path)])
    (made,) = (tmp_path / "results").iterdir()
    assert made.name.startswith("nvidia-h100-80gb-hbm3-sm-90-20")


def test_the_plan_fits_the_budget():
    least = sum(part.least_s for part in check.plan(False, 1))
    assert least < check.BUDGET_S < 480
    assert all(isinstance(part, Part) for part in check.plan(True, 1))
    assert {part.name for part in check.plan(True, 1)} < {*parts.PARTS}


# A stand-in must never be taken for a GPU.


def test_a_dry_run_keeps_no_figure(outcomes, tmp_path, capsys):
    code, report = run(tmp_path, "--dry-run", "--part", "product")
    assert code == check.FINE
    assert report["rows"] == [] and report["seconds"] == {}
    assert report["stand_in"] == check.NO_FIGURES
    assert "nothing was measured" in capsys.readouterr().out


def test_a_dry_run_does_not_write_results(outcomes, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run(tmp_path, "--dry-run", "--json", str(check.RESULTS / "a" / "x.json"))
    assert "a dry run has no results" in capsys.readouterr().err
    check.main(["--dry-run", "--folder", str(tmp_path)])
    assert not check.RESULTS.exists() and (tmp_path / "gpu_check.json").exists()


def test_no_result_of_a_stand_in_is_kept():
    for path in (ROOT / "benchmarks" / "results").glob("*.json"):
        text = path.read_text()
        assert "stand-in" not in text and not json.loads(text).get("stand_in")


@pytest.mark.nvcc
def test_measured_parts_run_to_their_end_on_a_recording(monkeypatch):
    monkeypatch.setenv(parts.STAND_IN, "1")
    few = {"rounds": 1, "least_s": 0.0}
    assert parts.attempt("look", {})["report"]["device"]["name"] == "stand-in"
    asked = {
        "addition": {"count": 1 << 20, **few},
        "product": {"n": 128, **few},
        "product_f16": {"n": 128, **few},
        "convolution": {"layers": [3], "batch": 1, **few},
    }
    for name, arguments in asked.items():
        found = parts.attempt(name, arguments)
        assert "report" in found, found
        (row,) = found["report"]["rows"]
        assert row["ours"]["rounds"] == 1


def test_a_wrong_result_is_a_failure():
    assert parts.attempt("missing", {})["failure"] == "KeyError: 'missing'"
    assert parts._judged({"add": 0.5}) == {"worst": {"add": 0.5}}
    with pytest.raises(AssertionError, match="wrong: add, relu; "):
        parts._judged({"add": 1.5, "relu": "no nvcc", "tanh": 1.0})
    with pytest.raises(AssertionError, match="product: off by 1.0, at most 0.5 expected"):
        parts._compare("product", parts.np.ones(1), parts.np.zeros(1), 0.5)


def test_rows_survive_json():
    row = row_beside("w", "c", [2.0, 4.0], "p", [1.0, 1.0], bar=Bar(3.0, of="ratio"))
    for one in (row, Row("w", "c", row.ours)):
        assert row_of(json.loads(json.dumps(parts.asdict(one)))) == one


# Packing, unpacking, and building pycuda.


def test_wheels_for_another_python_do_not_fit():
    fitting = {
        name: prepare.fits(name, (3, 12))
        for name in (
            "click-8.1-py3-none-any.whl",
            "numpy-2.4.6-cp312-cp312-manylinux_2_28_x86_64.whl",
            "numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl",
            "numpy-2.4.6-cp312-cp312t-manylinux_2_28_x86_64.whl",
            "thing-1-1-cp38-abi3-manylinux2014_x86_64.whl",
            "notes.txt",
        )
    }
    assert [*fitting.values()] == [True, True, False, False, True, False]


def test_only_packages_that_are_not_installed_are_unpacked(tmp_path):
    for name in ("numpy", "surely_not_installed"):
        with zipfile.ZipFile(tmp_path / f"{name}-1-py3-none-any.whl", "w") as archive:
            archive.writestr(f"{name}/__init__.py", "")
            archive.writestr(f"{name}-1.dist-info/METADATA", "")
    site = tmp_path / "site"
    site.mkdir()
    assert prepare.unpack_wheels(tmp_path, site) == ["surely_not_installed-1-py3-none-any.whl"]
    assert (site / "surely_not_installed" / "__init__.py").exists()


@pytest.mark.tools
def test_a_packed_folder_has_everything(tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(pack, "download", lambda arguments: asked.append(arguments) or True)
    monkeypatch.setattr(pack, "compile_modules", lambda folder: ["PTX of tanh: no llc"])
    folder = tmp_path / "packed"
    assert pack.main(["--pack", str(folder), "--python", "3.12"]) == 1
    assert asked[0][:3] == ["--no-deps", "--no-binary", "pycuda"]
    assert {"--python-version", "3.12", "numpy", "pyelftools"} <= {*asked[1]}
    assert (folder / "scripts" / "gpu_check").stat().st_mode & 0o100
    assert len((folder / "carried" / "commit").read_text()) >= 40
    assert "missing: PTX of tanh: no llc" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        pack.main(["--pack", str(folder)])


@pytest.mark.tools
def test_pycuda_is_built_from_what_is_carried(tmp_path, monkeypatch):
    """A package of the same shape, whose set-up writes what pycuda's would compile."""
    monkeypatch.setattr(build_pycuda.importlib.util, "find_spec", lambda name: None)
    assert build_pycuda.start(tmp_path, tmp_path) is None
    source = tmp_path / "pycuda-9"
    source.mkdir()
    setup = "import siteconf, sys, pathlib\nassert siteconf.CUDA_ENABLE_CURAND is False\n"
    setup += "pathlib.Path(sys.argv[3]).mkdir(parents=True)\n"
    (source / "setup.py").write_text(setup)
    shutil.make_archive(str(source), "gztar", tmp_path, "pycuda-9")
    shutil.rmtree(source)
    assert build_pycuda.finish(build_pycuda.start(tmp_path, tmp_path), 60) == ""
    assert (tmp_path / "site").is_dir()


def test_the_toolkit_is_where_its_header_is(tmp_path, monkeypatch):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda.h").touch()
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    assert build_pycuda.cuda_root() == str(tmp_path)


@pytest.mark.tools
def test_a_build_of_pycuda_that_fails_is_told_in_the_compilers_words(tmp_path):
    (tmp_path / "pycuda.log").write_text("cuda.h: No such file")
    command = [sys.executable, "-c", "import sys; sys.exit(4)", str(tmp_path)]
    failed = subprocess.Popen(command)
    words = build_pycuda.finish(failed, 60)
    assert words == "pycuda could not be built (exit code 4):\ncuda.h: No such file"
    slow = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", str(tmp_path)])
    assert build_pycuda.finish(slow, 0.1) == "pycuda was not built within 0 s"


@pytest.mark.tools
def test_the_commit_is_that_of_the_checkout_or_of_what_is_carried(tmp_path, monkeypatch):
    assert len(check.commit()) == 40
    (tmp_path / "commit").write_text("abc and changes\n")
    monkeypatch.setattr(check, "CARRIED", tmp_path)
    assert check.commit() == "abc and changes"


@pytest.mark.tools
def test_the_script_explains_itself():
    script = ROOT / "scripts" / "gpu_check"
    done = subprocess.run([script, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "--dry-run" in done.stdout
