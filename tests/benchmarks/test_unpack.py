"""Archives are unpacked, but nothing outside of the folder."""

import io
import tarfile

import pytest

from benchmarks.unpack import unpack


def _archive(path, *members):
    with tarfile.open(path, "w:gz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def _file(name):
    member = tarfile.TarInfo(name)
    member.size = 3
    return member


def _link(name, kind):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    return member


def test_files_and_folders_are_unpacked(tmp_path):
    folder = tarfile.TarInfo("a")
    folder.type, folder.mode = tarfile.DIRTYPE, 0o755
    unpack(_archive(tmp_path / "it.tar.gz", folder, _file("a/b")), tmp_path / "out")
    assert (tmp_path / "out" / "a" / "b").read_bytes() == b"xxx"


@pytest.mark.parametrize(
    "member",
    [_file("../a"), _file("/a"), _file("a/../../b"), _link("a", tarfile.SYMTYPE),
     _link("a", tarfile.LNKTYPE), _link("a", tarfile.FIFOTYPE)],
    ids=lambda member: f"{member.name} {member.type}",
)  # fmt: skip
def test_nothing_else_is(tmp_path, member):
    package = _archive(tmp_path / "it.tar.gz", _file("first"), member)
    with pytest.raises(ValueError, match="which is not unpacked"):
        unpack(package, tmp_path / "out")
    assert not (tmp_path / "out").exists()
