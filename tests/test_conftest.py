"""The rules in conftest.py hold: shown by runs of pytest on small trees of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tools

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
    for name in ("conftest.py", "tiers.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
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


def test_end_tells_the_ten_slowest_tests(tree: Path) -> None:
    text = """
import time, pytest

@pytest.fixture
def slow_start():
    time.sleep(0.2)

@pytest.mark.parametrize("number", range(20))
def test_fast(number): ...

def test_slow_start(slow_start): ...

def test_slow():
    time.sleep(0.1)
"""
    code, lines = run(tree, text, "-n", "2")
    assert code == 0
    assert "22 passed" in lines[-1]
    first = next(n for n, line in enumerate(lines) if "slowest tests" in line) + 1
    slowest = [line.split() for line in lines[first : first + 11]]
    assert [row[2].partition("::")[2] for row in slowest[:2]] == ["test_slow_start", "test_slow"]
    assert [row[1:] for row in slowest[:10] if row[1] != "s"] == []
    assert slowest[10][0].startswith("=")


TIERS = """
import pytest

def test_plain(): ...

@pytest.mark.gpu
def test_of_a_tool(): ...

@pytest.mark.search
@pytest.mark.gpu
def test_that_draws(): ...

@pytest.mark.tools
class TestSetUp:
    def test_inside(self): ...
"""


def test_each_test_has_one_tier(tree: Path) -> None:
    (tree / "tests" / "properties").mkdir()
    (tree / "tests" / "properties" / "test_drawn.py").write_text("def test_drawn(): ...\n")
    found = {}
    for tier in ("quick", "tools", "search"):
        for line in run(tree, TIERS, "--collect-only", "-q", "-m", tier)[1]:
            if "::" in line:
                found.setdefault(line.rpartition("::")[2], []).append(tier)
    assert found == {
        "test_plain": ["quick"],
        "test_of_a_tool": ["tools"],
        "test_that_draws": ["search"],
        "test_inside": ["tools"],
        "test_drawn": ["search"],
    }


def test_two_tiers_are_refused(tree: Path) -> None:
    marks = "@pytest.mark.search\n@pytest.mark.tools\n"
    code, lines = run(tree, f"import pytest\n{marks}def test_it(): ...\n")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert any("test_it.py::test_it has two tiers: search, tools" in line for line in lines)


STARTS = """
import subprocess, sys, pytest

@pytest.fixture(scope="module")
def built():
    subprocess.run(["/usr/bin/true"], check=True)

def test_python(): subprocess.run([sys.executable, "-c", ""], check=True)

def test_own_script(tmp_path):
    (tmp_path / "tool").write_text("#!/bin/sh")
    (tmp_path / "tool").chmod(0o755)
    subprocess.run([tmp_path / "tool"], check=True)

def test_tool():
    with pytest.raises(OSError):
        subprocess.run("/usr/bin/true", check=True)

def test_tool_of_a_fixture(built): ...

@pytest.mark.tools
def test_marked(): subprocess.run(["/usr/bin/true"], check=True)
"""


def test_quick_test_may_not_start_a_tool(tree: Path) -> None:
    code, lines = run(tree, STARTS)
    assert code == 1
    assert "1 failed, 3 passed, 1 error" in lines[-1]
    refusals = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    assert len(refusals) == 2
    remedy = "a quick test starts /usr/bin/true: mark the test with the tool that it needs, or"
    assert sum(remedy in line for line in lines) >= 2


def test_quick_test_may_not_use_opencl(tree: Path) -> None:
    text = """
import pytest

def test_quick():
    import pyopencl
    pyopencl.enqueue_copy()

@pytest.mark.tools
def test_tools():
    import pyopencl
    pyopencl.enqueue_copy()
"""
    fake = "\nenqueue_nd_range_kernel = None\n"
    (tree / "pyopencl.py").write_text(f"def enqueue_copy(): return []{fake}")
    code, lines = run(tree, text)
    assert code == 1
    assert "1 failed, 1 passed" in lines[-1]
    assert any("a quick test calls enqueue_copy of OpenCL: mark the test" in x for x in lines)


def test_every_test_here_has_one_tier(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        assert len({"quick", "tools", "search"} & {mark.name for mark in item.iter_markers()}) == 1


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
