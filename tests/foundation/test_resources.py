"""The data folders are found in both layouts, and their absence is told."""

from pathlib import Path

import pytest

from refcomp.foundation import resources
from refcomp.foundation.errors import UserError


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty installation: a package folder without data folders around it."""
    package = tmp_path / "site" / "refcomp"
    package.mkdir(parents=True)
    monkeypatch.setattr(resources, "_PACKAGE", package)
    return package


def test_toolchains_of_this_installation_hold_the_llvm_description() -> None:
    assert (resources.toolchains_dir() / "llvm.toml").is_file()


@pytest.mark.parametrize("name", ["templates", "toolchains"])
def test_wheel_layout_inside_the_package(package: Path, name: str) -> None:
    (package / name).mkdir()
    assert getattr(resources, f"{name}_dir")() == package / name


@pytest.mark.parametrize("name", ["templates", "toolchains"])
def test_checkout_layout_beside_the_package(package: Path, name: str) -> None:
    (package.parent / name).mkdir()
    assert getattr(resources, f"{name}_dir")() == package.parent / name


def test_inside_wins_over_beside(package: Path) -> None:
    (package / "templates").mkdir()
    (package.parent / "templates").mkdir()
    assert resources.templates_dir() == package / "templates"


def test_a_file_of_that_name_is_not_taken(package: Path) -> None:
    (package / "toolchains").write_text("not a folder")
    (package.parent / "toolchains").mkdir()
    assert resources.toolchains_dir() == package.parent / "toolchains"


def test_neither_is_refused_with_both_places(package: Path) -> None:
    with pytest.raises(UserError, match="has no templates folder") as caught:
        resources.templates_dir()
    assert str(package / "templates") in str(caught.value)
    assert str(package.parent / "templates") in str(caught.value)
    assert "install refcomp again" in str(caught.value)
