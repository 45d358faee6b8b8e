"""The cache follows no link, waits for no pipe, and refuses what other users may write to."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from refcomp.foundation.cache import Cache
from refcomp.foundation.cache_folder import make_private
from refcomp.foundation.errors import UserError

KEY = Cache.key("something")
DATA = bytes(range(256)) * 3


def _entry_file(cache: Cache) -> Path:
    (path,) = cache.root.glob(f"entries/*/{KEY}")
    return path


# ---- entries that are something else ----------------------------------------------------------


def _put_link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def _put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _put_socket(path: Path) -> None:
    path.unlink()
    os.mknod(path, stat.S_IFSOCK | 0o600)


def _put_device(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a device")
    path.unlink()
    # /dev/zero, which could be read for ever.
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))


_PUTS = [_put_link, _put_pipe, _put_folder, _put_socket, _put_device]


@pytest.mark.parametrize("put", _PUTS)
def test_entry_that_is_no_regular_file_counts_as_missing(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    cache = Cache(tmp_path / "store")
    cache.put(KEY, DATA)
    put(_entry_file(cache))
    assert cache.get(KEY) is None
    assert cache.get_or_make(KEY, lambda: b"anew") == b"anew"
    assert cache.get(KEY) == (None if put is _put_folder else b"anew")
    cache.evict()


@pytest.mark.parametrize("put", _PUTS)
def test_lock_that_is_no_regular_file_hangs_nobody(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    cache = Cache(tmp_path / "store")
    cache.get_or_make(Cache.key("other"), lambda: DATA)
    lock = cache.root / "locks" / KEY
    lock.write_text("kept")
    put(lock)
    assert cache.get_or_make(KEY, lambda: DATA) == DATA
    assert cache.get(KEY) == DATA
    if put is _put_link:
        assert (cache.root / "elsewhere").read_text() == "kept"


def test_eviction_does_not_follow_links(tmp_path: Path) -> None:
    valuable = tmp_path / "valuable"
    valuable.mkdir()
    (valuable / "file").touch()
    os.utime(valuable / "file", (1, 1))
    cache = Cache(tmp_path / "store", limit=0)
    make_private(str(cache.root / "entries"))
    (cache.root / "entries" / "aa").symlink_to(valuable)
    cache.evict()
    assert (valuable / "file").exists()


# ---- other users -----------------------------------------------------------------------------


def test_every_use_of_an_unsafe_folder_is_refused(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, DATA)
    tmp_path.chmod(0o777)
    cache = Cache(tmp_path)
    for use in (
        lambda: cache.get(KEY),
        lambda: cache.put(KEY, DATA),
        lambda: cache.get_or_make(KEY, lambda: DATA),
        cache.evict,
    ):
        with pytest.raises(UserError, match="is not a safe folder for the cache"):
            use()


def test_folder_that_a_stranger_makes_first_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder such as /tmp another user may be faster, after we found nothing there."""
    cache = Cache(tmp_path / "store")
    assert cache.get(KEY) is None
    (tmp_path / "store").mkdir()
    (tmp_path / "store").chmod(0o777)
    with pytest.raises(UserError, match="other users may write to"):
        cache.put(KEY, DATA)
    assert list((tmp_path / "store").iterdir()) == []


def test_nothing_is_made_below_an_unsafe_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(UserError, match="may rename the entries of"):
        Cache(tmp_path / "parent" / "store").put(KEY, DATA)
    assert list(tmp_path.iterdir()) == []


def test_link_that_is_turned_later_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("first")
    cache = Cache(tmp_path / "link")
    cache.put(KEY, DATA)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("second")
    assert cache.get(KEY) == DATA
