"""The newest complete version wins; what is missing or too old is refused with the remedy."""

import shutil
from pathlib import Path
from typing import Protocol

import pytest

from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.description import Description, load_description, read_description
from refcomp.toolchain.find import find_file, find_tool, find_tools

LLVM = load_description("llvm")


class Tools(Protocol):
    """What the fixture `fake_tools` gives."""

    bin: Path

    def add(self, name: str, version: str = ..., body: str = ...) -> Path: ...
    def add_all(self, suffix: str = ..., version: str = ...) -> None: ...
    def starts(self) -> list[str]: ...


def _variant(path: Path, old: str, text: str) -> Description:
    """The llvm toolchain with `old` of its file replaced by `text`."""
    content = LLVM.path.read_text()
    assert old in content
    path.write_text(content.replace(old, text))
    return read_description(path)


def _names(description: Description = LLVM) -> dict[str, str]:
    return {key: Path(path).name for key, path in find_tools(description).paths.items()}


def test_all_tools_have_one_version_and_absolute_paths(fake_tools: Tools) -> None:
    fake_tools.add_all()
    found = find_tools(LLVM)
    assert found.version == (19, 1, 7)
    assert found.paths == {
        "llc": str(fake_tools.bin / "llc"),
        "opt": str(fake_tools.bin / "opt"),
        "lld": str(fake_tools.bin / "ld.lld"),
    }


def test_the_newest_complete_version_is_taken(fake_tools: Tools) -> None:
    fake_tools.add_all("-16", "16.0.6")
    fake_tools.add_all("-19", "19.1.7")
    fake_tools.add("llc-20", "20.1.0")
    assert _names() == {"llc": "llc-19", "opt": "opt-19", "lld": "ld.lld-19"}
    assert not any("-16" in start for start in fake_tools.starts())


def test_an_old_tool_of_the_plain_name_is_passed_over(fake_tools: Tools) -> None:
    fake_tools.add_all("", "14.0.6")
    fake_tools.add_all("-16", "16.0.6")
    assert _names()["llc"] == "llc-16"


def test_a_plain_name_may_be_the_newest(fake_tools: Tools) -> None:
    fake_tools.add_all("-16", "16.0.6")
    fake_tools.add_all("", "20.1.0")
    assert _names()["llc"] == "llc"


def test_a_newer_tool_behind_a_plain_name_does_not_hide_named_ones(fake_tools: Tools) -> None:
    fake_tools.add_all("", "16.0.6")
    fake_tools.add_all("-19", "19.1.7")
    assert _names()["llc"] == "llc-19"


def test_a_name_that_lies_is_not_believed(fake_tools: Tools) -> None:
    fake_tools.add_all("-18", "14.0.6")
    fake_tools.add_all("-16", "16.0.6")
    assert _names()["opt"] == "opt-16"


def test_versions_are_never_mixed(fake_tools: Tools) -> None:
    fake_tools.add("llc", "19.1.7")
    fake_tools.add("opt", "19.1.6")
    fake_tools.add("ld.lld", "19.1.7")
    with pytest.raises(ToolchainError, match="no usable llc, opt, ld.lld of one version") as caught:
        find_tools(LLVM)
    assert "llc: found 19.1.7; opt: found 19.1.6; ld.lld: found 19.1.7" in str(caught.value)


def test_too_old_tools_are_refused_with_place_version_and_remedy(fake_tools: Tools) -> None:
    fake_tools.add_all("", "14.0.6")
    with pytest.raises(ToolchainError) as caught:
        find_tools(LLVM)
    message = str(caught.value)
    assert f"REFCOMP_LLVM={fake_tools.bin.parent}" in message
    assert (
        f"{fake_tools.bin}/llc is version 14.0.6, but the oldest that is accepted is 15" in message
    )
    assert "or set REFCOMP_LLVM or REFCOMP_LLC or REFCOMP_OPT or REFCOMP_LLD" in message
    assert "install" in message


def test_too_new_tools_are_refused(fake_tools: Tools, tmp_path: Path) -> None:
    limited = _variant(tmp_path / "limited.toml", 'least = "15"', 'least = "15"\ngreatest = "16"')
    fake_tools.add_all("", "19.1.7")
    with pytest.raises(ToolchainError, match="limited toolchain") as caught:
        find_tools(limited)
    assert "is version 19.1.7, but the newest that is accepted is 16" in str(caught.value)
    fake_tools.add_all("-16", "16.0.6")
    assert find_tools(limited).version == (16, 0, 6)


def test_missing_tools_are_refused_with_every_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = _variant(tmp_path / "nowhere.toml", '"/usr/lib/llvm-{major}/bin", ', "")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolchainError, match=r"no usable llc, opt, ld\.lld") as caught:
        find_tools(nowhere)
    assert "PATH=, /usr/lib/llvm/{major}/bin" in str(caught.value)
    assert "llc: none found; opt: none found; ld.lld: none found" in str(caught.value)


def test_a_single_tool_can_be_chosen(
    fake_tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_tools.add_all()
    mine = tmp_path / "my-llc"
    shutil.copy(fake_tools.bin / "llc", mine)
    monkeypatch.setenv("REFCOMP_LLC", str(mine))
    assert find_tools(LLVM).paths["llc"] == str(mine)
    assert find_tools(LLVM).paths["opt"] == str(fake_tools.bin / "opt")
    monkeypatch.setenv("REFCOMP_LLC", str(tmp_path / "gone"))
    with pytest.raises(ToolchainError, match="no usable") as caught:
        find_tools(LLVM)
    assert f"REFCOMP_LLC={tmp_path}/gone" in str(caught.value)


def test_the_result_is_remembered_and_keyed_on_the_environment(
    fake_tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_tools.add_all()
    first = find_tools(LLVM)
    starts = len(fake_tools.starts())
    assert find_tools(LLVM) is first
    assert len(fake_tools.starts()) == starts == 3
    monkeypatch.setenv("REFCOMP_LLVM", str(tmp_path / "elsewhere"))
    with pytest.raises(ToolchainError):
        find_tools(LLVM)


def test_a_tool_that_hangs_is_named(
    fake_tools: Tools, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_tools.add_all()
    fake_tools.add("opt").write_text("#!/bin/sh\nsleep 600\n")
    monkeypatch.setenv("REFCOMP_TOOL_TIMEOUT", "0.3")
    with pytest.raises(ToolchainError) as caught:
        find_tools(LLVM)
    assert f"{fake_tools.bin}/opt does not print its version" in str(caught.value)


def test_replacing_a_tool_changes_the_identity(fake_tools: Tools, as_another_process) -> None:
    fake_tools.add_all()
    before = find_tools(LLVM).identity
    as_another_process()
    assert find_tools(LLVM).identity == before
    fake_tools.add("opt", body="echo another program")
    as_another_process()
    assert find_tools(LLVM).identity != before


def test_a_tool_that_is_not_needed_comes_in_the_same_version(fake_tools: Tools) -> None:
    fake_tools.add_all("-19", "19.1.7")
    with pytest.raises(ToolchainError, match="no usable llvm-objdump for"):
        find_tool(LLVM, "objdump")
    fake_tools.add("llvm-objdump-20", "20.1.0")
    with pytest.raises(ToolchainError, match="no usable llvm-objdump for") as caught:
        find_tool(LLVM, "objdump")
    assert "llvm-objdump: found 20.1.0" in str(caught.value)
    right = fake_tools.add("llvm-objdump-19", "19.1.7")
    assert find_tool(LLVM, "objdump") == str(right)
    assert find_tool(LLVM, "llc") == str(fake_tools.bin / "llc-19")


def test_data_files(tmp_path: Path) -> None:
    folders = ("/usr/lib/{multiarch}", "/usr/lib64", "/usr/lib")
    places = ", ".join(f'"{folder}/libgomp.so.1"' for folder in folders)
    description = _variant(tmp_path / "files.toml", places, f'"{tmp_path}/lib"')
    with pytest.raises(ToolchainError, match="libgomp was not found") as caught:
        find_file(description, "libgomp")
    assert caught.value.where == f"{tmp_path}/lib"
    assert "libgomp" in str(caught.value.remedy)
    (tmp_path / "lib").touch()
    assert find_file(description, "libgomp") == f"{tmp_path}/lib"


@pytest.mark.llvm
def test_the_tools_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_tools(LLVM)
    assert found.version >= (15,)
    assert all(Path(path).is_absolute() for path in found.paths.values())
