"""scripts/demo sets up and classifies; where nothing can be installed it takes what there is."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Says who it is and where refcomp would come from; a file beside it says that it has the packages.
PYTHON = """#!/bin/sh
case "$1" in
    -c) [ -e "$0.has-packages" ] ;;
    *) echo "$(basename "$0") $* PYTHONPATH=$PYTHONPATH"; exit 7 ;;
esac
"""


def command(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a pretended Python in .venv and one on PATH."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "demo", tmp_path / "scripts")
    command(tmp_path / ".venv" / "bin" / "python", PYTHON)
    command(tmp_path / "bin" / "python3", PYTHON)
    for name in ("bash", "env", "sh", "dirname", "basename"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "")
    return tmp_path


def demo(checkout: Path, setup_status: int, *args: str) -> subprocess.CompletedProcess[str]:
    text = f'#!/bin/sh\necho "setup: $*"\nexit {setup_status}\n'
    command(checkout / "scripts" / "setup", text)
    return subprocess.run(
        [checkout / "scripts" / "demo", *args],
        env={"PATH": str(checkout / "bin"), "PYTHONPATH": "/elsewhere"},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_after_set_up_the_environment_of_the_checkout_runs_it(checkout: Path) -> None:
    done = demo(checkout, 0, "--no-install")
    assert done.stdout.splitlines() == [
        "setup: --demo --no-install",
        "python scripts/classify_digits.py PYTHONPATH=",
    ]
    assert done.returncode == 7


def test_wrong_arguments_end_it(checkout: Path) -> None:
    done = demo(checkout, 2, "--instal")
    assert (done.returncode, done.stdout) == (2, "setup: --demo --instal\n")


def test_without_installation_any_python_with_the_packages_runs_it(checkout: Path) -> None:
    (checkout / "bin" / "python3.has-packages").touch()
    done = demo(checkout, 3)
    assert done.stdout.splitlines()[1:] == [
        "demo: set-up could not install refcomp; running it from this folder with python3",
        f"python3 scripts/classify_digits.py PYTHONPATH={checkout}{os.pathsep}/elsewhere",
    ]
    assert done.returncode == 7


def test_without_any_python_that_can_it_says_what_is_missing(checkout: Path) -> None:
    done = demo(checkout, 3)
    assert done.returncode == 3
    assert "no Python here has numpy, jinja2, click, rich and ml_dtypes" in done.stderr
