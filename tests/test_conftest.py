"""The rules in conftest.py hold: shown by runs of pytest on small trees of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SKIPS = """
import pytest

@pytest.mark.skipif(True, reason="no oracle here")
def test_skipped(): ...

@pytest.mark.xfail(strict=True)
def test_expected(): assert False

@pytest.mark.gpu
def test_gpu(): pytest.skip("no GPU here")
"""
CACHE = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(4))
def test_cache(number, record_property):
    record_property("summary", "cache=" + os.environ["REFCOMP_CACHE_DIR"])
    record_property("summary", "threads=" + os.environ.get("OMP_NUM_THREADS", "any"))
    assert pathlib.Path(os.environ["REFCOMP_CACHE_DIR"]).is_dir()
"""
DRAWS = """
from hypothesis import given, settings, strategies

@settings(max_examples=5 * settings().max_examples)
@given(strategies.integers())
def test_draw(number):
    print("drew", number)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tests" / "ir").mkdir(parents=True)
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    return tmp_path


def run(tree: Path, text: str, *args: str, **variables: str) -> tuple[int, list[str]]:
    """The exit code and the lines of a run of pytest on one test file that holds `text`."""
    (tree / "tests" / "ir" / "test_it.py").write_text(text, encoding="utf-8")
    inherited = {"PATH": os.environ["PATH"], "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args],
        cwd=tree,
        env=inherited | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_skips_are_told_with_their_reason(tree: Path) -> None:
    code, lines = run(tree, SKIPS)
    assert code == 0
    assert "2 skipped, 1 xfailed" in lines[-1]
    assert any(line.endswith("no oracle here") for line in lines)


def test_ci_refuses_skips_that_need_no_gpu(tree: Path) -> None:
    code, lines = run(tree, SKIPS, "-n", "2", CI="true")
    assert code == 1
    assert "1 skipped, 1 xfailed, 1 error" in lines[-1]
    refusal = "test_skipped: CI may skip only what needs a real GPU. Skipped: no oracle here"
    assert any(refusal in line for line in lines)


def test_ci_refuses_a_skipped_file(tree: Path) -> None:
    text = "import pytest\npytest.importorskip('refcomp_absent')\n"
    assert run(tree, text + "def test(): ...\n")[0] == pytest.ExitCode.NO_TESTS_COLLECTED
    code, lines = run(tree, text, CI="true")
    assert code == pytest.ExitCode.INTERRUPTED
    assert any("CI may skip only what needs a real GPU." in line for line in lines)


NIGHTLY = """
import pytest

@pytest.mark.intel
def test_late(): ...

def test_early(): ...
"""


def test_intel_s_runtime_judges_at_night_only(tree: Path) -> None:
    library = tree / "libintelocl.so"
    library.touch()
    code, lines = run(tree, NIGHTLY, REFCOMP_TEST_INTEL_OPENCL=str(library), CI="true")
    assert code == 0
    assert "1 passed, 1 deselected" in lines[-1]
    variables = {"REFCOMP_TEST_INTEL_OPENCL": str(library), "CI": "true"}
    assert "2 passed" in run(tree, NIGHTLY, "--nightly", **variables)[1][-1]


def test_missing_runtime_of_intel_may_be_skipped_at_night(tree: Path) -> None:
    variables = {"REFCOMP_TEST_INTEL_OPENCL": "/nowhere/libintelocl.so", "CI": "true"}
    code, lines = run(tree, NIGHTLY, "--nightly", **variables)
    assert code == 0
    assert "1 passed, 1 skipped" in lines[-1]
    assert any("no /nowhere/libintelocl.so, which REFCOMP_TEST" in line for line in lines)


def test_missing_wheels_of_intel_are_named_with_their_remedy(tree: Path) -> None:
    conftest = tree / "tests" / "conftest.py"
    absent = conftest.read_text(encoding="utf-8").replace('"intel-opencl-rt"', '"intel-absent"')
    conftest.write_text(absent, encoding="utf-8")
    code, lines = run(tree, NIGHTLY, "--nightly", CI="true")
    assert code == 0
    assert any("no intel-opencl-rt: pip install 'refcomp[intel]', or let" in line for line in lines)


def test_missing_tool_is_named_with_its_remedy(tree: Path) -> None:
    text = "import pytest\n@pytest.mark.nvcc\ndef test(): ...\n"
    conftest = tree / "tests" / "conftest.py"
    absent = conftest.read_text(encoding="utf-8").replace("nvcc", "nvcc_absent")
    conftest.write_text(absent.replace('"nvcc_absent":', '"nvcc":'), encoding="utf-8")
    code, lines = run(tree, text)
    assert code == 0
    assert any("no nvcc_absent: pip install" in line for line in lines)


def test_workers_share_a_cache_that_is_removed(tree: Path) -> None:
    code, lines = run(tree, CACHE, "-n", "2", REFCOMP_CACHE_DIR="/nowhere")
    assert code == 0
    assert lines.count("threads=1") == 4
    caches = {line.removeprefix("cache=") for line in lines if line.startswith("cache=")}
    assert len(caches) == 1
    assert not any(Path(cache).exists() for cache in caches)


def test_end_tells_time_by_folder_and_steps_before_the_last_line(tree: Path) -> None:
    code, lines = run(tree, CACHE, "-n", "2", REFCOMP_STEPS="  1.0 s  lint  FAILED\n")
    assert code == 0
    assert "4 passed" in lines[-1]
    assert lines[-2] == "  1.0 s  lint  FAILED"
    assert any(line.split()[1:] == ["s", "4", "tests/ir"] for line in lines)


def test_draws_are_the_same_each_time_unless_nightly(tree: Path) -> None:
    first, second = (run(tree, DRAWS, "-s")[1] for _ in range(2))
    drawn = [line for line in first if "drew" in line]
    assert len(drawn) > 10
    assert drawn == [line for line in second if "drew" in line]
    nightly = [line for line in run(tree, DRAWS, "-s", "--nightly")[1] if "drew" in line]
    assert len(nightly) > 5 * len(drawn)


def test_golden_text_is_compared_and_updated(tree: Path) -> None:
    text = "def test(golden): golden('sum.txt', 'a\\n')\n"
    code, lines = run(tree, text)
    assert code == 1
    assert any("if that is right: pytest --update-golden" in line for line in lines)
    assert run(tree, text, "--update-golden")[0] == 0
    assert (tree / "tests" / "golden" / "sum.txt").read_text(encoding="utf-8") == "a\n"
    assert run(tree, text)[0] == 0


def test_draws_do_not_depend_on_what_is_imported(tree: Path) -> None:
    numbers = ", ".join(str(1000 * number + 123) for number in range(200))
    (tree / "numbers_of_mine.py").write_text(f"NUMBERS = ({numbers})\n", encoding="utf-8")
    plain, other = (
        run(tree, f"import {name}\n{DRAWS}", "-s")[1] for name in ("os", "numbers_of_mine")
    )
    drawn = [line for line in plain if "drew" in line]
    assert len(drawn) > 10
    assert drawn == [line for line in other if "drew" in line]


def test_what_never_ends_fails_and_the_others_pass(tree: Path) -> None:
    text = "def test_endless():\n    while True: pass\n\ndef test_next(): ...\n"
    code, lines = run(tree, text, "-n", "2", "-o", "timeout=2")
    assert code == 1
    assert "1 failed, 1 passed" in lines[-1]
    assert any("crashed while running" in line and "test_endless" in line for line in lines)
