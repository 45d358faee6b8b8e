"""The wheel carries every module, template and toolchain, and works away from the checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CARRIED = ("refcomp", "templates", "toolchains")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to build from, so that nothing is written beside the sources."""
    root = tmp_path_factory.mktemp("checkout")
    for name in CARRIED:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, root)
    return root


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-build-isolation", "--wheel-dir", folder, checkout)
    (path,) = folder.glob("refcomp-*.whl")
    return path


def pip(*args: str | Path) -> None:
    command = [sys.executable, "-m", "pip", args[0], "--no-deps", "--no-index", *args[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_wheel_carries_all_that_the_checkout_holds(checkout: Path, wheel: Path) -> None:
    held = {
        str(path.relative_to(checkout))
        for folder in CARRIED
        for path in (checkout / folder).rglob("*")
        if path.is_file()
    }
    carried = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert carried == {name if name.startswith("refcomp/") else f"refcomp/{name}" for name in held}


def test_wheel_carries_the_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("LICENSE") and ".dist-info/" in name for name in names)


def test_installed_wheel_finds_its_data_from_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    pip("install", "--target", site, wheel)
    code = "from refcomp import resources as r; print(r.templates_dir(), r.toolchains_dir())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=empty,
        env=os.environ | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout.split() == [str(site / "refcomp" / name) for name in CARRIED[1:]]
