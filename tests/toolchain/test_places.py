"""Candidates come in the right order, from the right places, without anything being run."""

import platform
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from refcomp.toolchain import places
from refcomp.toolchain.description import DataFile, Description, read_description
from refcomp.toolchain.places import (
    describe_places,
    environment_of,
    file_path,
    install_command,
    tool_candidates,
)


@pytest.fixture
def description(tmp_path: Path) -> Description:
    """A tool `x` of major versions 5 to 7, sought in PATH and in vendor folders."""
    path = tmp_path / "small.toml"
    path.write_text(f"""
purpose = "testing"
look.folders = ["{tmp_path}/vendor/llvm-{{major}}/bin", "{tmp_path}/glob-*/bin"]
look.variables.X_HOME = ["bin", "."]
version = {{ arguments = [], pattern = '(x)', least = "5", greatest = "7" }}
tools.x = {{ names = ["x-{{major}}", "x"], variable = "X_TOOL" }}
install.default = "get x"
""")
    return read_description(path)


def _tool(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    path.chmod(0o755)
    return path


def _found(description: Description) -> list[tuple[str, int | None]]:
    candidates = tool_candidates(description, [description.tools["x"]])["x"]
    return [(candidate.path, candidate.major) for candidate in candidates]


def test_path_comes_before_vendor_folders_and_newer_names_first(
    description: Description, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/a:{tmp_path}/b")
    plain, old, newer = (_tool(tmp_path / "b" / name) for name in ("x", "x-5", "x-7"))
    first = _tool(tmp_path / "a" / "x-6")
    vendor = _tool(tmp_path / "vendor/llvm-6/bin/x")
    other = _tool(tmp_path / "glob-z/bin/x")
    expected = [(first, 6), (newer, 7), (old, 5), (plain, None), (vendor, 6), (other, None)]
    assert _found(description) == [(str(path), major) for path, major in expected]


def test_a_file_is_taken_once_however_many_links_lead_to_it(
    description: Description, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/a:{tmp_path}/link:{tmp_path}/a")
    real = _tool(tmp_path / "vendor/llvm-7/bin/x")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").symlink_to(real)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    # The major version is seen through the link.
    assert _found(description) == [(str(tmp_path / "a" / "x"), 7)]


def test_what_is_no_executable_file_is_passed_over(
    description: Description, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/a")
    (tmp_path / "a" / "x-7").mkdir(parents=True)
    _tool(tmp_path / "a" / "x-6").chmod(0o644)
    (tmp_path / "a" / "x").symlink_to(tmp_path / "nowhere")
    assert _found(description) == []


def test_relative_and_empty_entries_of_path_are_passed_over(
    description: Description, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _tool(tmp_path / "a" / "x")
    _tool(tmp_path / "x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "a::.")
    assert _found(description) == []
    monkeypatch.delenv("PATH")
    assert _found(description) == []


def test_a_folder_variable_shuts_out_all_other_places(
    description: Description, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/a")
    _tool(tmp_path / "a" / "x-7")
    _tool(tmp_path / "vendor/llvm-7/bin/x")
    chosen = _tool(tmp_path / "chosen" / "bin" / "x-5")
    before = environment_of(description)
    monkeypatch.setenv("X_HOME", str(tmp_path / "chosen"))
    assert _found(description) == [(str(chosen), 5)]
    assert environment_of(description) != before
    assert describe_places(description, description.tools["x"]) == f"X_HOME={tmp_path}/chosen"


def test_a_tool_variable_shuts_out_all_other_places(
    description: Description, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/a")
    _tool(tmp_path / "a" / "x-7")
    chosen = _tool(tmp_path / "somewhere" / "mine")
    monkeypatch.setenv("X_TOOL", str(chosen))
    assert _found(description) == [(str(chosen), None)]
    chosen.unlink()
    assert _found(description) == []
    assert describe_places(description, description.tools["x"]) == f"X_TOOL={chosen}"


def test_a_variable_may_add_a_place_before_path(
    description: Description, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/a")
    other = _tool(tmp_path / "a" / "x-7")
    preferred = _tool(tmp_path / "toolkit" / "bin" / "x-6")
    look = replace(description.look, variables={}, first={"KIT": ("bin",)})
    widened = replace(description, look=look)
    assert _found(widened) == [(str(other), 7)]
    monkeypatch.setenv("KIT", f"{tmp_path}/toolkit")
    assert _found(widened) == [(str(preferred), 6), (str(other), 7)]
    told = describe_places(widened, widened.tools["x"])
    assert told.startswith(f"KIT={tmp_path}/toolkit, PATH=")
    assert environment_of(widened).count(f"{tmp_path}/toolkit") == 1


def test_the_own_python_is_a_tool(description: Description) -> None:
    own = replace(description.tools["x"], variable="", is_own_python=True)
    with_python = replace(description, tools={"x": own})
    assert _found(with_python) == [(sys.executable, None)]
    assert describe_places(with_python, own) == f"the Python that runs refcomp, {sys.executable}"


def test_packages_are_sought_where_python_imports_them(
    description: Description, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lib[1]" / "site-packages"
    tool = _tool(folder / "vendor" / "bin" / "x")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(folder)])
    monkeypatch.setenv("PATH", "")
    look = replace(description.look, folders=("{packages}/*/bin",))
    assert _found(replace(description, look=look)) == [(str(tool), None)]


def test_places_are_told(description: Description, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/one:/two")
    told = describe_places(description, description.tools["x"])
    assert told.startswith("PATH=/one:/two, ")
    assert "llvm-{major}/bin" in told


def _data_file(*patterns: str) -> DataFile:
    variables = {"LIB_HOME": ("lib.so", "lib-*/lib.so"), "OTHER_HOME": ("other",)}
    return DataFile("lib", patterns, variables, True, False, {"default": "get lib"})


def test_files_are_found_by_the_first_pattern_that_matches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LIB_HOME", "OTHER_HOME"):
        monkeypatch.delenv(variable, raising=False)
    file = _data_file(f"{tmp_path}/none", f"{tmp_path}/lib-*/lib.so", f"{tmp_path}/lib.so")
    assert file_path(file) is None
    last = _tool(tmp_path / "lib.so")
    assert file_path(file) == str(last)
    newest = _tool(tmp_path / "lib-2" / "lib.so")
    _tool(tmp_path / "lib-1" / "lib.so")
    assert file_path(file) == str(newest)
    monkeypatch.setenv("OTHER_HOME", str(tmp_path / "lib-2"))
    assert file_path(file) is None
    monkeypatch.setenv("LIB_HOME", str(tmp_path))
    assert file_path(file) == str(last)
    last.unlink()
    assert file_path(file) == str(newest)
    monkeypatch.setenv("LIB_HOME", str(tmp_path / "gone"))
    assert file_path(file) is None
    told = f"LIB_HOME={tmp_path}/gone: lib.so, lib-*/lib.so"
    assert places.describe_file_places(file) == told


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ({"ID": "ubuntu", "VERSION_ID": "22.04"}, "exact"),
        ({"ID": "ubuntu", "VERSION_ID": "24.04"}, "any ubuntu"),
        ({"ID": "mint", "ID_LIKE": "ubuntu debian"}, "any ubuntu"),
        ({"ID": "debian", "VERSION_ID": "12"}, "debian"),
        ({"ID": "fedora"}, "anything"),
        ({}, "anything"),
    ],
)
def test_the_install_command_fits_the_distribution(
    monkeypatch: pytest.MonkeyPatch, release: dict[str, str], expected: str
) -> None:
    install = {
        "ubuntu-22.04": "exact",
        "ubuntu": "any ubuntu",
        "debian": "debian",
        "default": "anything",
    }
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    assert install_command(install) == expected


def test_without_a_release_file_the_default_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> dict[str, str]:
        raise OSError("no such file")

    monkeypatch.setattr(platform, "freedesktop_os_release", none)
    assert install_command({"debian": "a", "default": "b"}) == "b"
