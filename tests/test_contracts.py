"""The import contracts of setup.cfg hold rooms apart: shown on a tree of rooms without content."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINT = [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    layers = config["importlinter:contract:rooms"]["layers"]
    rooms = layers.replace("(", " ").replace(")", " ").replace("|", " ").split()
    (tmp_path / "refcomp").mkdir()
    for room in ["__init__", "oracle", *rooms]:
        (tmp_path / "refcomp" / f"{room}.py").touch()
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    return tmp_path


def lint(tree: Path) -> str:
    """What is said of the broken contracts; empty where all are kept."""
    done = subprocess.run(LINT, cwd=tree, capture_output=True, text=True, timeout=60)
    assert (done.returncode == 0) == ("0 broken" in done.stdout), done.stdout + done.stderr
    return "" if done.returncode == 0 else done.stdout


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("passes", "ir"),
        ("te", "arith"),
        ("schedule", "te"),
        ("build", "oracle"),
        ("topi", "oracle"),
        ("oracle", "te"),
        ("cli", "frontend"),
    ],
)
def test_import_of_a_room_below_is_allowed(tree: Path, importer: str, imported: str) -> None:
    (tree / "refcomp" / f"{importer}.py").write_text(f"import refcomp.{imported}\n")
    assert lint(tree) == ""


@pytest.mark.parametrize(
    ("importer", "imported", "contract"),
    [
        ("ir", "arith", "A room imports only the rooms below it"),
        ("errors", "dtype", "A room imports only the rooms below it"),
        ("passes", "lower", "A room imports only the rooms below it"),
        ("toolchain", "runtime", "A room imports only the rooms below it"),
        ("pipeline", "build", "A room imports only the rooms below it"),
        ("oracle", "passes", "The oracle imports errors, dtype, ir and te"),
        ("oracle", "arith", "The oracle imports errors, dtype, ir and te"),
        ("passes", "oracle", "What the oracle judges does not import the oracle"),
        ("frontend", "oracle", "What the oracle judges does not import the oracle"),
    ],
)
def test_import_of_another_room_is_refused(
    tree: Path, importer: str, imported: str, contract: str
) -> None:
    (tree / "refcomp" / f"{importer}.py").write_text(f"import refcomp.{imported}\n")
    said = lint(tree)
    assert f"refcomp.{importer} -> refcomp.{imported}" in said
    assert any(contract in line and "BROKEN" in line for line in said.splitlines())


def test_room_without_a_place_is_refused(tree: Path) -> None:
    (tree / "refcomp" / "attic.py").touch()
    assert "attic" in lint(tree)
