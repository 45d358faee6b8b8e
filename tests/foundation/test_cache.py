"""The cache gives back what was put or nothing, under damage, races and missing permissions."""

import multiprocessing
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from refcomp.foundation import cache as cache_module
from refcomp.foundation.cache import DEFAULT_LIMIT, Cache, Label, default_cache, label_from_bytes
from refcomp.foundation.errors import UserError

KEY = Cache.key("something")
DATA = bytes(range(256)) * 3
_MULTIPROCESSING = multiprocessing.get_context("spawn")


def _entry_file(cache: Cache, key: str = KEY) -> Path:
    (path,) = cache.root.glob(f"entries/*/{key}")
    return path


def _never() -> bytes:
    raise AssertionError("made although it was there")


def test_key_is_hex_and_stable() -> None:
    assert Cache.key("a", b"b") == Cache.key(b"a", "b")
    assert len(Cache.key()) == 64
    assert int(Cache.key("a"), 16) >= 0


def test_key_separates_parts() -> None:
    keys = {Cache.key(*parts) for parts in [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ()]}
    assert len(keys) == 5


@pytest.mark.parametrize("data", [b"", b"x", DATA, b"\0" * 100_000])
def test_get_returns_what_was_put(tmp_path: Path, data: bytes) -> None:
    cache = Cache(tmp_path / "store")
    assert cache.get(KEY) is None
    cache.put(KEY, data)
    assert cache.get(KEY) == data
    assert Cache(str(tmp_path / "store")).get(KEY) == data
    assert cache.get(Cache.key("other")) is None


def test_put_replaces(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, b"old")
    cache.put(KEY, b"new")
    assert cache.get(KEY) == b"new"


@pytest.mark.parametrize("key", ["", "short", "../" + "0" * 61, "G" * 64, "0" * 64 + "\n"])
def test_a_foreign_key_is_refused(tmp_path: Path, key: str) -> None:
    cache = Cache(tmp_path)
    for action in (cache.get, lambda key: cache.put(key, b"x")):
        with pytest.raises(ValueError, match="not a cache key"):
            action(key)


def test_folders_and_entries_are_private(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "parent" / "store")
    cache.get_or_make(KEY, lambda: DATA)
    paths = [cache.root, *cache.root.rglob("*")]
    assert len(paths) == 5  # root, entries, its sub-folder, the entry, locks
    paths.append(cache.root.parent)
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in paths)


def test_get_or_make_makes_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.get_or_make(KEY, lambda: DATA) == DATA
    assert cache.get_or_make(KEY, _never) == DATA
    assert list((tmp_path / "locks").iterdir()) == []


def test_a_failing_make_keeps_nothing_and_frees_the_lock(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    with pytest.raises(AssertionError, match="made although"):
        cache.get_or_make(KEY, _never)
    assert cache.get(KEY) is None
    assert cache.get_or_make(KEY, lambda: DATA) == DATA


def test_make_may_use_the_cache_itself(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    inner = Cache.key("inner")
    made = cache.get_or_make(KEY, lambda: cache.get_or_make(inner, lambda: b"in") + b"out")
    assert made == b"inout"
    assert cache.get(inner) == b"in"


# ---- damage ----------------------------------------------------------------------------------


def test_every_truncation_counts_as_missing(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, b"0123456789")
    path = _entry_file(cache)
    raw = path.read_bytes()
    for size in range(len(raw)):
        path.write_bytes(raw[:size])
        assert cache.get(KEY) is None, f"cut to {size} bytes"
    path.write_bytes(raw + b"!")
    assert cache.get(KEY) is None, "a byte too many"
    path.write_bytes(raw)
    assert cache.get(KEY) == b"0123456789"


@pytest.mark.search
def test_every_flipped_bit_counts_as_missing(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, b"0123456789")
    path = _entry_file(cache)
    raw = path.read_bytes()
    for bit in range(8 * len(raw)):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert cache.get(KEY) is None, f"bit {bit}"


def test_a_damaged_entry_is_made_again_and_others_stay(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    other = Cache.key("other")
    cache.put(KEY, DATA)
    cache.put(other, b"other")
    _entry_file(cache).write_bytes(b"rubbish")
    assert cache.get_or_make(KEY, lambda: DATA) == DATA
    assert cache.get_or_make(KEY, _never) == DATA
    assert cache.get(other) == b"other"


def test_an_entry_under_another_key_is_not_taken(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    other = Cache.key("other")
    cache.put(KEY, DATA)
    cache.put(other, b"x")
    _entry_file(cache, other).write_bytes(_entry_file(cache).read_bytes())
    assert cache.get(other) is None


# ---- no permission ---------------------------------------------------------------------------


@pytest.fixture
def unwritable(tmp_path: Path) -> Cache:
    """A cache whose root lies below a file: nobody, not even root, can write there."""
    (tmp_path / "file").write_text("in the way")
    return Cache(tmp_path / "file" / "store")


@pytest.mark.search
def test_without_a_writable_directory_everything_is_made(unwritable: Cache) -> None:
    unwritable.put(KEY, DATA)
    assert unwritable.get(KEY) is None
    assert unwritable.get_or_make(KEY, lambda: b"first") == b"first"
    assert unwritable.get_or_make(KEY, lambda: b"second") == b"second"
    unwritable.evict()


def test_a_file_system_without_locks_still_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(cache_module.fcntl, "flock", refuse)
    cache = Cache(tmp_path)
    assert cache.get_or_make(KEY, lambda: DATA) == DATA
    assert cache.get_or_make(KEY, _never) == DATA


def test_a_failed_write_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, destination: str) -> None:
        raise OSError("disk full")

    cache = Cache(tmp_path)
    monkeypatch.setattr(cache_module.os, "replace", refuse)
    cache.put(KEY, DATA)
    assert cache.get(KEY) is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


# ---- several processes -----------------------------------------------------------------------


def _make_slowly(root: Path, log: Path) -> bytes:
    def make() -> bytes:
        with log.open("a") as file:
            file.write("made\n")
        time.sleep(0.3)
        return DATA

    return Cache(root).get_or_make(KEY, make)


def _process(target: Callable[..., object], *args: object) -> multiprocessing.process.BaseProcess:
    process = _MULTIPROCESSING.Process(target=target, args=args)
    process.start()
    return process


def _expect_data(root: Path, log: Path) -> None:
    assert _make_slowly(root, log) == DATA


@pytest.mark.tools
def test_several_processes_make_an_entry_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    processes = [_process(_expect_data, tmp_path / "store", log) for _ in range(4)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert log.read_text() == "made\n"
    assert list((tmp_path / "store" / "locks").iterdir()) == []


def _hold_lock_until_killed(root: Path, ready: Path) -> None:
    def make() -> bytes:
        ready.write_text("")
        time.sleep(600)
        return b"never"

    Cache(root).get_or_make(KEY, make)


def _start_holder(root: Path, ready: Path) -> multiprocessing.process.BaseProcess:
    process = _process(_hold_lock_until_killed, root, ready)
    while not ready.exists():
        assert process.is_alive()
        time.sleep(0.01)
    return process


@pytest.mark.tools
def test_a_killed_holder_frees_its_lock(tmp_path: Path) -> None:
    process = _start_holder(tmp_path / "store", tmp_path / "ready")
    process.kill()
    process.join()
    assert Cache(tmp_path / "store").get_or_make(KEY, lambda: DATA) == DATA


@pytest.mark.tools
def test_a_holder_that_never_ends_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = _start_holder(tmp_path / "store", tmp_path / "ready")
    monkeypatch.setattr(cache_module, "_LOCK_WAIT_S", 0.05)
    try:
        assert Cache(tmp_path / "store").get_or_make(KEY, lambda: DATA) == DATA
    finally:
        process.kill()
        process.join()


def test_a_lock_file_that_its_holder_deleted_meanwhile_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    attempts = []
    lock = cache_module._try_lock

    def lock_after_the_holder_left(descriptor: int) -> bool:
        if not attempts:
            path.unlink()
        attempts.append(descriptor)
        return lock(descriptor)

    monkeypatch.setattr(cache_module, "_try_lock", lock_after_the_holder_left)
    descriptor = cache_module._acquire(str(path), time.monotonic() + 60)
    assert descriptor is not None
    assert os.path.samestat(os.fstat(descriptor), path.stat())
    assert len(attempts) == 2
    os.close(descriptor)


def _put_and_check(root: Path, number: int) -> None:
    cache = Cache(root, limit=20_000)
    for turn in range(150):
        key = Cache.key("shared", str(turn % 20))
        expected = str(turn % 20).encode() * 400
        assert cache.get_or_make(key, lambda expected=expected: expected) == expected
        if turn % 10 == number:
            cache.evict()


@pytest.mark.tools
def test_eviction_and_making_may_race(tmp_path: Path) -> None:
    processes = [_process(_put_and_check, tmp_path, number) for number in range(3)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 3


# ---- size ------------------------------------------------------------------------------------


def _fill(cache: Cache, count: int, size: int) -> list[str]:
    keys = [Cache.key("filler", str(number)) for number in range(count)]
    for age, key in enumerate(reversed(keys)):
        cache.put(key, b"x" * size)
        os.utime(_entry_file(cache, key), (1_000_000 - age, 1_000_000 - age))
    return keys


def test_eviction_deletes_the_least_recently_used(tmp_path: Path) -> None:
    keys = _fill(Cache(tmp_path), count=10, size=1000)
    cache = Cache(tmp_path, limit=8_000)
    assert cache.get(keys[0]) is not None  # the oldest, now used
    cache.evict()
    left = [number for number, key in enumerate(keys) if cache.get(key) is not None]
    assert left == [0, 6, 7, 8, 9]


def test_within_the_limit_nothing_is_deleted(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    keys = _fill(cache, count=5, size=1000)
    cache.evict()
    assert all(cache.get(key) for key in keys)


@pytest.mark.search
def test_many_puts_keep_the_store_near_its_limit(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=50_000)
    for number in range(600):
        cache.put(Cache.key(str(number)), b"x" * 700)
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    # One put in 64 checks, so it may overshoot by a few times 64 entries of 748 bytes.
    assert size < 50_000 + 6 * 64 * 748
    assert size < 600 * 748


def test_what_exceeds_the_limit_is_not_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=1000)
    cache.put(KEY, b"x" * 1000)
    assert cache.get(KEY) is None
    cache.put(KEY, b"x" * 900)
    assert cache.get(KEY) is not None


def test_files_of_dead_processes_are_removed(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, DATA)
    stale = _entry_file(cache).parent / "tmp-dead"
    fresh = _entry_file(cache).parent / "tmp-alive"
    for path in (stale, fresh):
        path.write_bytes(b"half")
    os.utime(stale, (1, 1))
    cache.evict()
    assert not stale.exists()
    assert fresh.exists()
    assert cache.get(KEY) == DATA


# ---- where -----------------------------------------------------------------------------------


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("REFCOMP_CACHE_DIR", "REFCOMP_CACHE_LIMIT", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_default_place(clean_environment: pytest.MonkeyPatch) -> None:
    clean_environment.setenv("HOME", "/home/someone")
    assert default_cache().root == Path("/home/someone/.cache/refcomp")
    assert default_cache().limit == DEFAULT_LIMIT
    clean_environment.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert default_cache().root == Path("/home/someone/.cache/refcomp")
    clean_environment.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_cache().root == Path("/xdg/refcomp")
    clean_environment.setenv("REFCOMP_CACHE_DIR", "/chosen")
    assert default_cache().root == Path("/chosen")


def test_no_home_means_no_cache(clean_environment: pytest.MonkeyPatch) -> None:
    clean_environment.setattr(cache_module.os.path, "expanduser", lambda path: path)
    cache = default_cache()
    cache.put(KEY, DATA)
    assert cache.get(KEY) is None


def test_limit_from_the_environment(clean_environment: pytest.MonkeyPatch) -> None:
    clean_environment.setenv("REFCOMP_CACHE_LIMIT", "12345")
    assert default_cache().limit == 12345


@pytest.mark.parametrize("text", ["2G", "-1", "1.5", "²", "9" * 19, "9" * 5000])
def test_a_limit_that_is_no_number_is_refused(
    clean_environment: pytest.MonkeyPatch, text: str
) -> None:
    clean_environment.setenv("REFCOMP_CACHE_LIMIT", text)
    with pytest.raises(UserError, match="not a number of bytes") as caught:
        default_cache()
    assert "unset it" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_entries_have_labels(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    label = Label("module", "llvm", ("add", "a\udc80"))
    cache.put(KEY, DATA, label)
    cache.put(Cache.key("other"), b"x")
    assert {entry.label for entry in cache.entries()} == {label, Label()}
    assert cache.get(KEY) == DATA


def test_a_long_label_names_fewer_functions(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    names = tuple(f"kernel{number}_conv2d_relu" for number in range(1000))
    cache.put(KEY, DATA, Label("module", "llvm", names))
    (entry,) = cache.entries()
    assert 30 < len(entry.label.names) < 100 and cache.get(KEY) == DATA
    cache.put(KEY, DATA, Label("x" * 10_000))
    assert cache.entries()[0].label == Label() and cache.get(KEY) == DATA


@pytest.mark.parametrize("raw", [b"", b"7", b"[]", b'["a"]', b'["a", 1]', b"\xff", b"[" * 9999])
def test_a_malformed_label_is_unknown(raw: bytes) -> None:
    assert label_from_bytes(raw) == Label()


def test_entries_of_an_earlier_version_are_listed_and_missing(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, DATA)
    path = _entry_file(cache)
    path.write_bytes(b"refcomp-entry-1\n" + bytes(40))
    assert cache.get(KEY) is None
    assert [entry.label.kind for entry in cache.entries()] == ["unknown"]
    assert cache.shrink(0) == (1, 56)


def test_shrink_deletes_the_least_recently_used(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for used in range(4):
        key = Cache.key(str(used))
        cache.put(key, bytes(1000))
        os.utime(_entry_file(cache, key), (used, used))
    size = cache.entries()[0].size
    assert cache.shrink(4 * size) == (0, 0)
    assert cache.shrink(2 * size + 1) == (2, 2 * size)
    assert [entry.used for entry in cache.entries()] == [3, 2]
