"""A zip archive of a few small files, which is written atomically and not trusted when read.

Refuses with UserError, before unpacking anything: files that are not zip archives, truncated or
damaged archives, foreign or repeated members, and sizes above the limits.
"""

import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO

from refcomp.foundation.errors import UserError
from refcomp.runtime.files.bundle import TOTAL_LIMIT
from refcomp.runtime.files.damage import damaged

MEMBER_LIMIT = 256 << 20  # bytes of a member
COUNT_LIMIT = 64  # members

_MEMBER = re.compile(
    r"manifest\.json|binary|launch|(sources|device)/[a-z][a-z0-9_]{0,40}"
)
# The earliest date of the format. With one date for all, equal contents make equal files.
_DATE = (1980, 1, 1, 0, 0, 0)
_ELF = b"\x7fELF"  # the first bytes of a shared object
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The errors that zipfile raises for damaged archives.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
)


@contextmanager
def _complete_or_absent(path: str) -> Iterator[str]:
    """Yield a temporary path. It is renamed to `path` if the body succeeds. UserError."""
    # In the same folder, so that it can be renamed. The name is random, so that no other process
    # uses it.
    temporary = f"{path}.{os.urandom(6).hex()}.tmp"
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def write_archive(path: str, members: Mapping[str, bytes]) -> None:
    """Write `members` to `path`, completely or not at all. UserError on failure."""
    write_described(path, b"", members)


def write_described(path: str, code: bytes, members: Mapping[str, bytes]) -> None:
    """Write a shared object, and behind it an archive, which loaders of libraries ignore.

    It is written completely or not at all. UserError on failure.
    """
    with _complete_or_absent(path) as temporary:
        with open(temporary, "xb") as file:
            file.write(code)
        with zipfile.ZipFile(temporary, "a", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                entry = zipfile.ZipInfo(name, _DATE)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, data)


def write_file(path: str, data: bytes) -> None:
    """Write `data` to `path`, completely or not at all. UserError on failure."""
    with _complete_or_absent(path) as temporary, open(temporary, "xb") as file:
        file.write(data)


def write_error(path: str, error: OSError) -> UserError:
    """Return the error for a `path` that cannot be written."""
    return UserError(
        f"{path} cannot be written",
        why=error.strerror or str(error),
        remedy="choose a path in an existing folder that you may write to",
    )


def read_archive(path: str) -> dict[str, bytes]:
    """Return the members of the archive at `path`. UserError if anything is wrong."""
    try:
        with open(path, "rb") as file:
            start = file.read(4)
            is_shared_object = start == _ELF and zipfile.is_zipfile(file)
            if not is_shared_object:
                _refuse_foreign(path, start)
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                _check_entries(path, entries)
                members = {}
                if is_shared_object:
                    members["binary"] = _code_before(path, file, entries)
                for entry in entries:
                    with archive.open(entry) as member:
                        # Pass the size: a member may have more bytes than it declares.
                        members[entry.filename] = member.read(entry.file_size)
                return members
    except OSError as error:
        raise UserError(
            f"{path} cannot be read",
            why=error.strerror or str(error),
            remedy="check the path",
        ) from error
    except _DAMAGE as error:
        raise damaged(path, str(error)) from error


def _code_before(path: str, file: IO[bytes], entries: list[zipfile.ZipInfo]) -> bytes:
    """Return the shared object before an archive, whose manifest has its SHA-256."""
    size = min(entry.header_offset for entry in entries)
    if any(entry.filename == "binary" for entry in entries):
        raise damaged(path, "its code is there twice")
    if not 0 < size <= MEMBER_LIMIT:
        raise damaged(path, f"its code would have {size} bytes")
    file.seek(0)
    return file.read(size)


def _refuse_foreign(path: str, start: bytes) -> None:
    if path.endswith((".o", ".bc", ".ll", ".s")):
        raise UserError(
            f"{path} is an object or a text for compilers, not a module file",
            why="it does not describe the arguments of its functions",
            remedy='save the module once more, as a file to load: module.save("x.so")',
        )
    if start == _ELF:
        raise UserError(
            f"{path} is a bare shared object, not a module file",
            why="it does not describe the arguments of its functions",
            remedy="save the module by module.save(path), which adds the description. If it is "
            "code for AMD GPUs, use refcomp.load_code_object or `refcomp emulate`",
        )
    if not start.startswith(b"PK"):
        raise UserError(
            f"{path} is not a module file",
            why=f"it starts with {start!r}, not as a zip archive"
            if start
            else "it is empty",
            remedy="load what module.save(path) wrote",
        )


def _foreign(entries: list[zipfile.ZipInfo]) -> str:
    """Return why a module file cannot have these entries, '' if it can."""
    if len(entries) > COUNT_LIMIT:
        return f"it has {len(entries)} members, but module files have at most {COUNT_LIMIT}"
    counts = Counter(entry.filename for entry in entries)
    for name, count in counts.items():
        if count > 1 or not _MEMBER.fullmatch(name):
            return f"it has a foreign or repeated member {name!r}"
    return "" if counts["manifest.json"] else "it has no member manifest.json"


def _check_entries(path: str, entries: list[zipfile.ZipInfo]) -> None:
    if why := _foreign(entries):
        raise UserError(
            f"{path} is a zip archive, but not a module file",
            why=why,
            remedy="load what module.save(path) wrote",
        )
    largest = max(entry.file_size for entry in entries)
    total = sum(entry.file_size for entry in entries)
    if largest > MEMBER_LIMIT or total > TOTAL_LIMIT:
        raise UserError(
            f"{path} would unpack to {total} bytes, the largest member to {largest}",
            why=f"module files have at most {TOTAL_LIMIT} bytes, {MEMBER_LIMIT} in one member",
            remedy="delete it if you do not know its origin; otherwise split the module",
        )
    if any(entry.compress_type not in _COMPRESSIONS for entry in entries):
        raise damaged(path, "a member is packed in a way that module files never are")
