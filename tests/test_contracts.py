"""The import contracts of setup.cfg hold rooms apart: shown on a tree of rooms without content."""

import configparser
import re
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

pytestmark = pytest.mark.tools

ROOT = Path(__file__).parents[1]
LINT = [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"]


def named_modules() -> set[str]:
    """Every module that a contract names, by itself or in a container."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    found = set[str]()
    for section in (config[name] for name in config if name.startswith("importlinter:contract:")):
        for key, value in section.items():
            found.update(re.findall(r"(?m)^(refcomp[\w.]+)$", value) if key != "name" else ())
        layers = re.findall(r"\w+", section.get("layers", ""))
        found.update(f"{section.get('containers')}.{name}" for name in layers)
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    modules = named_modules() | {"refcomp"}
    rooms = {module.rpartition(".")[0] for module in modules}
    for module in modules:
        path = tmp_path.joinpath(*module.split("."))
        path = path / "__init__.py" if module in rooms else path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    return tmp_path


def put(tree: Path, importer: str, imported: str) -> None:
    """Have one module import the other."""
    path = tree.joinpath("refcomp", *importer.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    path.write_text(f"import refcomp.{imported}\n")


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
        ("certificates", "oracle"),
        ("topi", "oracle"),
        ("oracle", "te"),
        ("cli", "frontend"),
        ("emulator.observers", "emulator.machine"),
        ("oracle.lockstep", "oracle.interpreter"),
    ],
)
def test_import_of_a_room_below_is_allowed(tree: Path, importer: str, imported: str) -> None:
    put(tree, importer, imported)
    assert lint(tree) == ""


@pytest.mark.parametrize(
    ("importer", "imported", "contract"),
    [
        ("ir", "arith", "A room imports only the rooms below it"),
        ("foundation.errors", "foundation.dtype", "Files of foundation import only"),
        ("passes", "lowering", "A room imports only the rooms below it"),
        ("toolchain", "runtime", "A room imports only the rooms below it"),
        ("driver", "compiler", "A room imports only the rooms below it"),
        ("oracle", "passes", "The oracle imports foundation, ir and te"),
        ("oracle", "arith", "The oracle imports foundation, ir and te"),
        ("passes", "oracle", "What the oracle judges does not import the oracle"),
        ("emulator.machine", "emulator.observers", "Wings of the emulator"),
        ("oracle.interpreter", "oracle.lockstep", "Wings of the oracle"),
        ("codegen.llvm", "codegen.amdgpu", "Wings of codegen"),
        ("frontend", "oracle", "What the oracle judges does not import the oracle"),
    ],
)
def test_import_of_another_room_is_refused(
    tree: Path, importer: str, imported: str, contract: str
) -> None:
    put(tree, importer, imported)
    said = lint(tree)
    assert f"refcomp.{importer} -> refcomp.{imported}" in said
    assert any(contract in line and "BROKEN" in line for line in said.splitlines())


@pytest.mark.parametrize("room", ["", "emulator", "oracle", "runtime", "foundation"])
def test_room_without_a_place_is_refused(tree: Path, room: str) -> None:
    (tree / "refcomp" / room / "attic.py").touch()
    assert "attic" in lint(tree)


def test_no_file_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph("refcomp", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    order = list(TopologicalSorter(imports).static_order())  # CycleError names the cycle
    assert order.index("refcomp.foundation.errors") < order.index("refcomp.compiler")
