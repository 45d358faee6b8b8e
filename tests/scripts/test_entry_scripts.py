"""scripts/setup refuses with its exit codes; scripts/test runs every step and tells the outcome."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUICK_STEPS = ["setup", "format", "lint", "imports"]
STEPS = [*QUICK_STEPS, "types", "house"]


def test_whatever_says_how_it_is_run_can_be_run() -> None:
    """As the documents have it: `scripts/walkthroughs/judge_backends.py`."""
    for folder in ("scripts", "benchmarks", ".ci"):
        for path in (path for path in (ROOT / folder).rglob("*") if path.is_file()):
            says_how = path.read_bytes().startswith(b"#!")
            assert says_how == os.access(path, os.X_OK), path


def command(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run(script: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [script, *args],
        env={"PATH": os.defpath} | variables,
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which set-up and every tool is pretended, and passes."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / "scripts" / "test", tmp_path / "scripts")
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    command(tmp_path / "scripts" / "setup", 'echo setup "$@"')
    for tool in ("ruff", "mypy", "lint-imports", "python"):
        command(tmp_path / ".venv" / "bin" / tool, "true")
    command(tmp_path / ".venv" / "bin" / "pytest", 'echo "$REFCOMP_STEPS"; echo CI=$CI "$@"')
    return tmp_path


def outcomes(output: str) -> dict[str, str]:
    rows = (line.split() for line in output.splitlines())
    return {row[2]: row[3] for row in rows if len(row) == 4 and row[1] == "s"}


def test_all_steps_pass_and_pytest_has_the_last_word(checkout: Path) -> None:
    done = run(checkout / "scripts" / "test", "-k", "lower")
    assert (done.returncode, done.stderr) == (0, "")
    assert outcomes(done.stdout) == dict.fromkeys(STEPS, "passed")
    assert done.stdout.splitlines()[-1] == "CI= -n 2 --dist worksteal -k lower"


@pytest.mark.parametrize(
    ("tier", "steps", "setup"),
    [
        ("quick", QUICK_STEPS, "setup --no-install"),
        ("tools", ["setup"], "setup"),
        ("search", ["setup"], "setup"),
    ],
)
def test_one_tier_runs_its_tests_and_few_steps(
    checkout: Path, tier: str, steps: list[str], setup: str
) -> None:
    done = run(checkout / "scripts" / "test", tier, "-k", "lower")
    assert (done.returncode, done.stderr) == (0, "")
    assert setup in done.stdout.splitlines()
    assert outcomes(done.stdout) == dict.fromkeys(steps, "passed")
    assert done.stdout.splitlines()[-1] == f"CI= -n 2 --dist worksteal -m {tier} -k lower"


@pytest.mark.parametrize("tier", ["quick", "tools"])
def test_failing_tests_of_a_tier_fail_the_run(checkout: Path, tier: str) -> None:
    command(checkout / ".venv" / "bin" / "pytest", "exit 5")
    assert run(checkout / "scripts" / "test", tier).returncode == 5


@pytest.mark.parametrize(
    ("tool", "failing"),
    [
        ("ruff", {"format", "lint"}),
        ("mypy", {"types"}),
        ("lint-imports", {"imports"}),
        ("python", {"house"}),
    ],
)
def test_a_failing_step_fails_the_run_and_stops_no_other(
    checkout: Path, tool: str, failing: set[str]
) -> None:
    command(checkout / ".venv" / "bin" / tool, "false")
    done = run(checkout / "scripts" / "test")
    assert done.returncode == 1
    assert {
        step for step, outcome in outcomes(done.stdout).items() if outcome == "FAILED"
    } == failing
    assert done.stdout.splitlines()[-1] == "CI= -n 2 --dist worksteal"


def test_failing_tests_fail_the_run(checkout: Path) -> None:
    command(checkout / ".venv" / "bin" / "pytest", "exit 5")
    assert run(checkout / "scripts" / "test").returncode == 5


def test_without_pytest_the_run_says_why(checkout: Path) -> None:
    (checkout / ".venv" / "bin" / "pytest").unlink()
    done = run(checkout / "scripts" / "test")
    assert done.returncode == 3
    assert "no .venv/bin/pytest: set-up did not finish" in done.stderr


def test_ci_runs_the_same_as_ci(checkout: Path) -> None:
    done = run(checkout / ".ci" / "run")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "CI=true -n 2 --dist worksteal"


def test_setup_refuses_unknown_arguments() -> None:
    done = run(ROOT / "scripts" / "setup", "--instal")
    assert done.returncode == 2
    assert "unknown argument: --instal (only --demo and --no-install are known)" in done.stderr


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A checkout on a machine that has the basic commands and a pretended Python 3.11."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup", tmp_path / "scripts")
    for name in ("setup.cfg", "pyproject.toml"):
        (tmp_path / name).write_text("")
    for name in ("bash", "cat", "dirname", "env", "grep", "mkdir", "sha256sum", "sh", "cp"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "")
    python = """
        case "$*" in
            "-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
            *"pip --version"*) [ -d .venv ] ;;
            *"pip install"*) echo "$@" >>pip-asked; [ ! -e offline ] ;;
            *"import refcomp"*) [ -e "${0%/*}/../../usable" ] ;;
            *--version) echo Python 3.11 ;;
        esac"""
    command(tmp_path / "bin" / "python3", python)
    return tmp_path


def setup(bare: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return run(bare / "scripts" / "setup", *args, PATH=str(bare / "bin"))


def test_setup_installs_once(bare: Path) -> None:
    first, second = setup(bare), setup(bare)
    assert (first.returncode, second.returncode) == (0, 0)
    assert "installing Python packages, which takes a minute: pip install -e" in first.stdout
    assert second.stdout.splitlines()[-1] == "setup: Python packages: all there"
    (bare / "setup.cfg").write_text("[metadata]\n")
    assert "installing Python packages" in setup(bare).stdout


def test_setup_for_the_demo_installs_less_and_what_is_there_will_do(bare: Path) -> None:
    asked = bare / "pip-asked"
    setup(bare, "--demo")
    assert asked.read_text().splitlines()[-1].endswith("[onnx]")
    setup(bare)
    assert "test]" in asked.read_text().splitlines()[-1]
    assert setup(bare, "--demo").stdout.splitlines()[-1] == "setup: Python packages: all there"


def test_setup_without_python_says_so(bare: Path) -> None:
    (bare / "bin" / "python3").unlink()
    done = setup(bare)
    assert done.returncode == 3
    assert "no Python >= 3.11 found on PATH: install python3.11 or newer" in done.stderr


def test_setup_takes_the_first_python_that_is_built_with_optimizations(bare: Path) -> None:
    slow, quick = bare / "slow", bare / "bin" / "python3"
    text = quick.read_text().removeprefix("#!/bin/sh\n")
    command(slow / "python3", f'case "$*" in *CONFIG_ARGS*) exit 1 ;; esac\n{text}')
    both = run(bare / "scripts" / "setup", PATH=f"{slow}:{bare / 'bin'}")
    assert f"making .venv with {quick}\n" in both.stdout
    shutil.rmtree(bare / ".venv")
    quick.unlink()
    one = run(bare / "scripts" / "setup", PATH=f"{slow}:{bare / 'bin'}")
    assert f"making .venv with {slow / 'python3'}\n" in one.stdout


def test_setup_without_a_package_index_says_what_must_be_there(bare: Path) -> None:
    (bare / "offline").touch()
    done = setup(bare)
    assert done.returncode == 3
    assert "What must be there: numpy jinja2 click rich ml_dtypes pyelftools onnx" in done.stderr


def test_setup_goes_on_with_what_was_installed_before(bare: Path) -> None:
    (bare / "offline").touch()
    (bare / "usable").touch()
    done = setup(bare)
    assert done.returncode == 0
    assert "pip failed; going on with what .venv held before" in done.stdout
