"""The wheel carries every module, template and toolchain, and works away from the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.tools

ROOT = Path(__file__).parents[1]
DIGITS = ROOT / "scripts" / "data" / "digits"
CARRIED = ("refcomp", "templates", "toolchains")
OFFLINE = ("--no-deps", "--no-index")


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
    pip("wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", folder, checkout)
    (path,) = folder.glob("refcomp-*.whl")
    return path


def pip(*args: str | Path) -> None:
    command = [sys.executable, "-m", "pip", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_wheel_carries_all_that_the_checkout_holds(checkout: Path, wheel: Path) -> None:
    held = {
        str(path.relative_to(checkout))
        for folder in CARRIED
        for path in (checkout / folder).rglob("*")
        if path.is_file() and path.name != "ruff.toml"  # how a checkout is formatted
    }
    carried = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert carried == {name if name.startswith("refcomp/") else f"refcomp/{name}" for name in held}


def test_wheel_carries_the_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("LICENSE") and ".dist-info/" in name for name in names)


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another environment: refcomp from the wheel, what it depends on from this one's packages.

    A folder named in a .pth file has its own .pth files ignored, so an editable refcomp stays out.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True, with_pip=False)
    pip("--python", folder / "bin" / "python", "install", *OFFLINE, wheel)
    (site,) = folder.glob("lib/python*/site-packages")
    paths = sysconfig.get_paths()
    dependencies = dict.fromkeys((paths["purelib"], paths["platlib"]))
    (site / "dependencies.pth").write_text("\n".join(dependencies), encoding="utf-8")
    return folder


def run(environment: Path, tmp_path: Path, *command: str | Path) -> str:
    """What a command of the environment prints, run from an empty folder with an empty cache."""
    empty, home = tmp_path / "empty", tmp_path / "home"
    empty.mkdir()
    home.mkdir()
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [environment / "bin" / command[0], *command[1:]],
        cwd=empty,
        env=variables | {"REFCOMP_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(empty.iterdir()) == []
    return done.stdout


def test_installed_wheel_finds_its_data_from_an_empty_folder(
    environment: Path, tmp_path: Path
) -> None:
    code = (
        "from refcomp.foundation import resources as r\n"
        "print(r.templates_dir(), r.toolchains_dir())"
    )
    (site,) = environment.glob("lib/python*/site-packages")
    found = run(environment, tmp_path, "python", "-c", code).split()
    assert found == [str(site / "refcomp" / name) for name in CARRIED[1:]]


@pytest.mark.llvm
def test_installed_wheel_classifies_the_digits(environment: Path, tmp_path: Path) -> None:
    model, given, found = (tmp_path / n for n in ("digits.onnx", "images.npz", "found.npz"))
    shutil.copy(DIGITS / "digits.onnx", model)
    with np.load(DIGITS / "digits_test.npz") as split:
        np.savez(given, image=split["image"])
        labels = split["label"]
    run(environment, tmp_path, "refcomp", "run", model, "-i", given, "-o", found)
    with np.load(found) as outputs:
        (name,) = outputs.files
        classes = outputs[name].argmax(axis=1)
    assert len(classes) == len(labels) > 200
    assert (classes == labels).mean() >= 0.97
