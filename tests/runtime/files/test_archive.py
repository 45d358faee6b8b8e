"""Archives: written whole or not at all, and every way in which a foreign one can be wrong."""

import os
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.runtime.files import archive
from refcomp.runtime.files.archive import read_archive, write_archive, write_file

MEMBERS = {
    "manifest.json": b"{}",
    "binary": bytes(range(256)) * 40,
    "sources/llvm": b"; text\n" * 99,
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "file")


def _refusal(path: str) -> UserError:
    with pytest.raises(UserError) as caught:
        read_archive(path)
    assert caught.value.remedy
    return caught.value


def _zip(
    path: str, members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED
) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", compression) as file:
        warnings.simplefilter("ignore", UserWarning)
        for name, data in members:
            file.writestr(name, data)


def test_there_and_back(path: str) -> None:
    write_archive(path, MEMBERS)
    assert read_archive(path) == MEMBERS
    assert list(read_archive(path)) == list(MEMBERS)
    assert zipfile.ZipFile(path).testzip() is None


def test_equal_members_make_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_archive(str(tmp_path / name), MEMBERS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    "write", [lambda p: write_archive(p, MEMBERS), lambda p: write_file(p, b"x")]
)
def test_a_file_is_replaced_whole_or_stays(tmp_path: Path, write, monkeypatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def refuse(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(archive.os, "replace", refuse)
        with pytest.raises(UserError, match=r"file cannot be written\n  why: No space left on dev"):
            write(str(path))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]
    write(str(path))
    assert path.read_bytes() != b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_files_follow_the_users_mask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_archive(str(tmp_path / "a"), MEMBERS)
        write_file(str(tmp_path / "b"), b"")
    finally:
        os.umask(old)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    for write in (lambda p: write_archive(p, MEMBERS), lambda p: write_file(p, b"")):
        with pytest.raises(
            UserError, match=r"cannot be written\n.*No such file(.|\n)*existing folder"
        ):
            write(str(tmp_path / "nowhere" / "file"))


def test_a_file_that_is_not_there(path: str, tmp_path: Path) -> None:
    assert str(_refusal(path)) == (
        f"{path} cannot be read\n  why: No such file or directory\n  what to do: check the path"
    )
    assert "cannot be read" in _refusal(str(tmp_path)).what


@pytest.mark.parametrize(
    ("data", "what", "why"),
    [
        (b"", "is not a module file", "it is empty"),
        (b"hello", "is not a module file", "it starts with b'hell', not as a zip archive"),
        (
            b"\x7fELF\x02",
            "is a bare shared object, not a module file",
            "it does not describe the argum",
        ),
        (b"PK\x03\x04" + b"\0" * 50, "is damaged", "File is not a zip file"),
    ],
)
def test_foreign_files(path: str, data: bytes, what: str, why: str) -> None:
    Path(path).write_bytes(data)
    error = _refusal(path)
    assert error.what == f"{path} {what}"
    assert error.why is not None
    assert error.why.startswith(why)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([("readme.txt", b"")], "it has a foreign or repeated member 'readme.txt'"),
        ([("manifest.json", b"{}"), ("../evil", b"")], "foreign or repeated member '../evil'"),
        ([("manifest.json", b"{}")] * 2, "foreign or repeated member 'manifest.json'"),
        ([("binary", b"")], "it has no member manifest.json"),
        ([], "it has no member manifest.json"),
        (
            [("manifest.json", b"{}"), *((f"sources/s{k}", b"") for k in range(70))],
            "it has 71 members, but module files have at most 64",
        ),
    ],
)
def test_foreign_archives(path: str, members: list[tuple[str, bytes]], why: str) -> None:
    if not members:
        Path(path).write_bytes(b"PK\x05\x06" + b"\0" * 18)
    else:
        _zip(path, members)
    error = _refusal(path)
    assert error.what == f"{path} is a zip archive, but not a module file"
    assert why in str(error.why)


@pytest.mark.search
def test_many_equal_names_are_refused_by_their_number(path: str) -> None:
    _zip(path, [("manifest.json", b"{}")] * 20_000)
    assert str(_refusal(path).why) == "it has 20000 members, but module files have at most 64"


def test_names_are_compared_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str(self) == str(other)

    monkeypatch.setattr(archive, "COUNT_LIMIT", 10**9)
    entries = [zipfile.ZipInfo("manifest.json") for _ in range(2000)]
    for entry in entries:
        entry.filename = Name("manifest.json")
    with pytest.raises(UserError, match="not a module file"):
        archive._check_entries("file", entries)
    assert compared <= 4 * len(entries)


def test_archives_that_unpack_to_too_much(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MEMBER_LIMIT", 1000)
    monkeypatch.setattr(archive, "TOTAL_LIMIT", 1500)
    _zip(path, [("manifest.json", b"{}"), ("binary", b"\0" * 1001)], zipfile.ZIP_DEFLATED)
    assert _refusal(path).what == f"{path} would unpack to 1003 bytes, the largest member to 1001"
    _zip(path, [("manifest.json", b"{}" * 400), ("binary", b"\0" * 900)])
    assert str(_refusal(path).why) == "module files have at most 1500 bytes, 1000 in one member"


@pytest.mark.search
def test_a_member_that_holds_more_than_it_declares(path: str) -> None:
    """The size is declared in the file; what unpacks to more must not be unpacked whole."""
    size = 64 << 20
    _zip(path, [("manifest.json", b"{}"), ("binary", bytes(size))], zipfile.ZIP_DEFLATED)
    raw = Path(path).read_bytes().replace(size.to_bytes(4, "little"), (5).to_bytes(4, "little"))
    Path(path).write_bytes(raw)
    tracemalloc.start()
    try:
        error = _refusal(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.what == f"{path} is damaged"
    assert "CRC" in str(error.why)
    assert peak < size // 8


def test_other_compressions_are_refused(path: str) -> None:
    _zip(path, [("manifest.json", b"{}")], zipfile.ZIP_LZMA)
    assert "packed in a way that module files never are" in str(_refusal(path).why)


def test_no_truncation_passes(path: str) -> None:
    write_archive(path, MEMBERS)
    raw = Path(path).read_bytes()
    for size in range(0, len(raw), 5):
        Path(path).write_bytes(raw[:size])
        _refusal(path)


@given(st.data())
def test_damage_is_found_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = str(tmp_path_factory.mktemp("damage") / "file")
    write_archive(path, MEMBERS)
    raw = bytearray(Path(path).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    Path(path).write_bytes(raw)
    try:
        found = read_archive(path)
    except UserError as error:
        assert error.remedy
        return
    # Names are not covered by zip's own check: the manifest lists them.
    assert sorted(found.values()) == sorted(MEMBERS.values())
