"""A content-addressed store on disk that several processes may use at the same time.

Layout:

- `entries/<two digits>/<key>`: one file for each entry: a checksum, a label for people, the data
- `locks/<key>`: a file that a process locks while it makes this entry

Ensures: `get` returns exactly the bytes that were put under the key. A damaged or truncated entry
counts as missing, and is made again. Entries appear by atomic rename. Locks only save work:
correctness does not depend on them. If the directory cannot be written to, refcomp works without a
cache. Refuses, with UserError, a directory that another user could write to
(`refcomp.foundation.cache_folder`).
"""

import fcntl
import json
import os
import reprlib
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from refcomp.foundation.cache_folder import find_safe_folder, make_private
from refcomp.foundation.errors import UserError
from refcomp.foundation.hashing import sha256
from refcomp.foundation.records import record

DEFAULT_LIMIT = 2 << 30  # bytes
# Digits of REFCOMP_CACHE_LIMIT. All disks are smaller, and Python refuses to parse thousands.
_MAX_DIGITS = 18

_MAGIC = b"refcomp-entry-2\n"
_LABEL_AT = len(_MAGIC) + 32 + 4  # behind a hash, and the size of the label
# Bytes of a label. A longer one lists fewer names.
_MAX_LABEL = 2048
_KEY_DIGITS = 64
_HEX_DIGITS = frozenset("0123456789abcdef")
# One put in this many measures the whole store.
_PUTS_PER_CHECK = 64
# An eviction leaves the store filled to this share of its limit.
_SHARE_KEPT = 0.75
# A temporary file older than this belongs to a process that died.
_STALE_S = 3600.0
# Longer than any step of a compilation may take.
_LOCK_WAIT_S = 600.0
# Entries and locks are regular files. So do not follow links, and do not wait at a pipe.
_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _Entry(NamedTuple):
    used: float  # time of the last use, in seconds since 1970
    size: int  # bytes
    path: str


@record
class Label:
    """A description of an entry, for people who look at what is stored."""

    kind: str = "unknown"  # `module`, `code`, `disassembly`, ...
    origin: str = ""  # the target or the toolchain
    names: tuple[str, ...] = ()  # of functions

    def to_bytes(self) -> bytes:
        """Return at most `_MAX_LABEL` bytes, which `label_from_bytes` reads."""
        names = self.names
        while True:
            text = json.dumps([self.kind, self.origin, *names]).encode()
            if len(text) <= _MAX_LABEL or not names:
                return text[:_MAX_LABEL]
            names = names[: len(names) // 2]


def label_from_bytes(raw: bytes) -> Label:
    """Return the label that `Label.to_bytes` wrote; the default one if `raw` is malformed."""
    try:
        kind, origin, *names = json.loads(raw)
    except (ValueError, TypeError, RecursionError):
        return Label()
    texts = (kind, origin, *names)
    if not all(isinstance(text, str) for text in texts):
        return Label()
    return Label(kind, origin, tuple(names))


class StoredEntry(NamedTuple):
    """An entry as it lies on disk. Its label is not checked for damage."""

    used: float  # time of the last use, in seconds since 1970
    size: int  # bytes of the file
    label: Label


class Freed(NamedTuple):
    """The entries that were deleted."""

    entries: int
    size: int  # bytes


def _packed(key: str, label: bytes, data: bytes) -> bytes:
    body = b"".join([len(label).to_bytes(4, "little"), label, data])
    # The checksum covers the key too: an entry that was renamed is damaged.
    digest = sha256(b"".join([key.encode(), body])).digest()
    return b"".join([_MAGIC, digest, body])


_NO_LABEL = Label()


class Cache:
    """A store under the directory `root`, which holds at most about `limit` bytes."""

    def __init__(
        self, root: str | os.PathLike[str], limit: int = DEFAULT_LIMIT
    ) -> None:
        self.root = Path(root)
        self.limit = limit
        # The real path of `root`, as soon as it exists and is known to be safe.
        self._safe_root: str | None = None

    @staticmethod
    def key(*parts: bytes | str) -> str:
        """Return the key of `parts`: 64 hex digits.

        The keys of ("ab", "c") and ("a", "bc") differ.
        """
        pieces = []
        for part in parts:
            if isinstance(part, str):
                # Surrogates are legal in Python's texts, so names may contain them.
                part = part.encode("utf-8", "surrogatepass")
            pieces += [len(part).to_bytes(8, "little"), part]
        return sha256(b"".join(pieces)).hexdigest()

    def get(self, key: str) -> bytes | None:
        """Return the bytes under `key`; None if there are none, or they are damaged."""
        path = self._path(key)
        try:
            return None if path is None else _read_entry(key, path)
        except OSError:
            return None

    def put(self, key: str, data: bytes, label: Label = _NO_LABEL) -> None:
        """Keep `data` under `key`, unless the directory cannot be written to."""
        if len(data) + _LABEL_AT > self.limit:
            return
        with suppress(OSError):
            self._make_root()
            if path := self._path(key):
                make_private(os.path.dirname(path))
                _write_atomically(path, _packed(key, label.to_bytes(), data))
        # Keys are evenly spread, so a rule on keys needs no counter that processes share.
        is_chosen = int(key[:8], 16) % _PUTS_PER_CHECK == 0
        if is_chosen or len(data) * _PUTS_PER_CHECK > self.limit:
            self.evict()

    def get_or_make(
        self, key: str, make: Callable[[], bytes], label: Label = _NO_LABEL
    ) -> bytes:
        """Return the bytes under `key`; if they are missing, make and keep them.

        If several processes want the same key, one makes the bytes and the others wait. An
        exception of `make` reaches the caller, and the next waiting process tries again.
        """
        data = self.get(key)
        if data is not None:
            return data
        with self._lock(key):
            data = self.get(key)
            if data is None:
                data = make()
                self.put(key, data, label)
        return data

    def evict(self) -> None:
        """Delete the least recently used entries if the store exceeds its limit."""
        entries = self._oldest_first()
        if sum(entry.size for entry in entries) > self.limit:
            _delete_oldest(entries, int(_SHARE_KEPT * self.limit))

    def shrink(self, size: int) -> Freed:
        """Delete the least recently used entries until at most `size` bytes are stored."""
        return _delete_oldest(self._oldest_first(), size)

    def entries(self) -> list[StoredEntry]:
        """Return all entries, the most recently used first."""
        return [
            StoredEntry(entry.used, entry.size, _read_label(entry.path))
            for entry in reversed(self._oldest_first())
        ]

    def _oldest_first(self) -> list[_Entry]:
        root = self._find_root()
        return [] if root is None else sorted(_scan(os.path.join(root, "entries")))

    def _find_root(self) -> str | None:
        """Return the real path of `root`, None if it is missing. UserError if unsafe."""
        if self._safe_root is None:
            self._safe_root = find_safe_folder(str(self.root))
        return self._safe_root

    def _make_root(self) -> str | None:
        """Make `root` if it is missing, and return its real path. UserError, OSError."""
        if self._find_root() is None:
            make_private(str(self.root.absolute()))
        return self._find_root()

    def _path(self, key: str) -> str | None:
        if not _is_key(key):
            raise ValueError(f"not a cache key: {key!r}")
        root = self._find_root()
        return None if root is None else os.path.join(root, "entries", key[:2], key)

    @contextmanager
    def _lock(self, key: str) -> Iterator[None]:
        path = ""
        descriptor = None
        with suppress(OSError):
            if root := self._make_root():
                make_private(os.path.join(root, "locks"))
                path = os.path.join(root, "locks", key)
                descriptor = _acquire(path, time.monotonic() + _LOCK_WAIT_S)
        try:
            yield
        finally:
            if descriptor is not None:
                with suppress(OSError):
                    os.unlink(path)
                os.close(descriptor)


def _is_key(text: str) -> bool:
    return len(text) == _KEY_DIGITS and _HEX_DIGITS.issuperset(text)


def _read_entry(key: str, path: str) -> bytes | None:
    with open(os.open(path, os.O_RDONLY | _OPEN), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        raw = file.read()
        begin = _LABEL_AT + _label_size(raw)
        label = raw[_LABEL_AT:begin]
        data = raw[begin:]
        if raw != _packed(key, label, data):
            return None
        # The time of the last use, by which `evict` chooses.
        with suppress(OSError):
            os.utime(file.fileno())
        return data


def _label_size(raw: bytes) -> int:
    return int.from_bytes(raw[_LABEL_AT - 4 : _LABEL_AT], "little")


def _read_label(path: str) -> Label:
    try:
        with open(os.open(path, os.O_RDONLY | _OPEN), "rb") as file:
            raw = file.read(_LABEL_AT + _MAX_LABEL)
    except OSError:
        return Label()
    if not raw.startswith(_MAGIC):
        return Label()  # of an earlier version
    return label_from_bytes(raw[_LABEL_AT : _LABEL_AT + _label_size(raw)])


def _delete_oldest(entries: Iterable[_Entry], size: int) -> Freed:
    """Delete entries, the first ones first, until those that are left have `size` bytes."""
    rest = list(entries)
    to_free = sum(entry.size for entry in rest) - size
    freed = Freed(0, 0)
    for entry in rest:
        if to_free <= 0:
            break
        with suppress(OSError):
            os.unlink(entry.path)
            freed = Freed(freed.entries + 1, freed.size + entry.size)
        # Also if another process has deleted it.
        to_free -= entry.size
    return freed


def _write_atomically(path: str, raw: bytes) -> None:
    import tempfile  # noqa: PLC0415  (not needed by programs that only read)

    descriptor, temporary = tempfile.mkstemp(prefix="tmp-", dir=os.path.dirname(path))
    try:
        with open(descriptor, "wb") as file:
            file.write(raw)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _acquire(path: str, deadline: float) -> int | None:
    """Return a descriptor that holds the lock file at `path`; None after `deadline`.

    Polls, because a process that was stopped must not block all others for ever.
    """
    pause = 0.001  # seconds
    while time.monotonic() < deadline:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _OPEN, 0o600)
        if _try_lock(descriptor) and _is_same_file(descriptor, path):
            return descriptor
        os.close(descriptor)
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    return None


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        os.close(descriptor)
        raise
    return True


def _is_same_file(descriptor: int, path: str) -> bool:
    """Return True if `path` still names the open file.

    The previous holder may have deleted the file between our open and our lock.
    """
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _scan(entries: str) -> Iterator[_Entry]:
    """Yield all entries, and delete temporary files that dead processes left behind."""
    files: list[os.DirEntry[str]] = []
    with suppress(OSError), os.scandir(entries) as folders:
        for folder in folders:
            if folder.is_dir(follow_symlinks=False):
                with suppress(OSError), os.scandir(folder.path) as found:
                    files += found
    for file in files:
        with suppress(OSError):
            status = file.stat(follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                continue
            if _is_key(file.name):
                yield _Entry(status.st_mtime, status.st_size, file.path)
            elif time.time() - status.st_mtime > _STALE_S:
                os.unlink(file.path)


def default_cache() -> Cache:
    """Return the user's cache: $REFCOMP_CACHE_DIR, or refcomp in the XDG cache directory.

    Its limit is $REFCOMP_CACHE_LIMIT bytes (default 2 GiB; 0 keeps nothing). Raises UserError
    if the limit is not a number.
    """
    return Cache(_default_root(), _default_limit())


def _default_root() -> str:
    if chosen := os.environ.get("REFCOMP_CACHE_DIR"):
        return os.path.abspath(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    # Without a home directory, name a place that nobody can write to: this turns off the cache.
    return os.path.join(base if os.path.isabs(base) else os.devnull, "refcomp")


def _default_limit() -> int:
    text = os.environ.get("REFCOMP_CACHE_LIMIT", "")
    if not text:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise UserError(
            f"REFCOMP_CACHE_LIMIT is {reprlib.repr(text)}, which is not a number of bytes",
            where="environment variable REFCOMP_CACHE_LIMIT",
            remedy=f"unset it, or set it to a whole number of at most {_MAX_DIGITS} digits "
            f"(default {DEFAULT_LIMIT})",
        )
    return int(text)
