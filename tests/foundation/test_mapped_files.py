"""Mapped files: which arrays show them, when they have changed, and what is given back."""

import os
from pathlib import Path

import numpy as np
import pytest

from refcomp.foundation.mapped_files import MappedFile, changed_file, file_of, give_back

SIZE = 1 << 20
CONTENT = np.random.default_rng(0).integers(0, 256, SIZE, np.uint8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "weights"
    made.write_bytes(CONTENT.tobytes())
    return made


def mapped(path: Path) -> MappedFile:
    with path.open("rb") as file:
        return MappedFile.open(file, path)


def touch_later(path: Path) -> None:
    """Give a file a time of change that differs, however coarse the system's clock is."""
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))


def resident_bytes(file: MappedFile) -> int:
    """Return the bytes of a mapping that are in this process's memory."""
    address = np.frombuffer(file, np.uint8).__array_interface__["data"][0]
    begin = f"{address:08x}-"
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    for line in lines:
        if line.startswith(begin):
            break
    rss = next(line for line in lines if line.startswith("Rss:"))
    return int(rss.split()[1]) * 1024


def test_views_of_all_kinds_know_their_file(path) -> None:
    file = mapped(path)
    array = np.frombuffer(memoryview(file)[4:4100], np.float32).reshape(32, 32)
    assert not array.flags.writeable
    for view in (array, array.T[1:], array.reshape(-1)[::2], np.asarray(array).view(np.int8)):
        assert file_of(view) is file
    for other in (array.copy(), np.zeros(3), np.frombuffer(b"12345678", np.float64)):
        assert file_of(other) is None
        give_back(other)


def test_memory_that_is_given_back_is_read_again(path) -> None:
    file = mapped(path)
    half = SIZE // 2
    first, second = (np.frombuffer(memoryview(file)[k : k + half], np.uint8) for k in (0, half))
    assert first.sum() + second.sum() == CONTENT.sum()
    assert resident_bytes(file) == SIZE
    give_back(second.reshape(2, -1).T)
    assert resident_bytes(file) == half
    np.testing.assert_array_equal(second, CONTENT[half:])
    file.give_back()
    assert resident_bytes(file) == 0
    np.testing.assert_array_equal(first, CONTENT[:half])


def test_bytes_that_begin_inside_a_page_are_given_back(path) -> None:
    file = mapped(path)
    array = np.frombuffer(memoryview(file)[100 : SIZE - 60], np.float32)
    total = array.view(np.uint8).sum()
    give_back(array)
    assert resident_bytes(file) == 0
    assert array.view(np.uint8).sum() == total


def test_only_the_mapped_file_counts_as_changed(path, tmp_path) -> None:
    file = mapped(path)
    array = np.frombuffer(file, np.uint8)
    assert not file.is_changed and changed_file([array, np.zeros(2), array[1:]]) is None
    # Another file takes its name, and is written.
    other = tmp_path / "other"
    other.write_bytes(b"other")
    other.replace(path)
    touch_later(path)
    assert not file.is_changed
    path.unlink()
    assert not file.is_changed
    np.testing.assert_array_equal(array, CONTENT)


@pytest.mark.parametrize("content", [CONTENT.tobytes() + b"x", CONTENT.tobytes()[::-1]])
def test_a_file_that_is_written_in_place_is_found(path, content) -> None:
    file = mapped(path)
    array = np.frombuffer(memoryview(file)[8:16], np.uint8)
    path.write_bytes(content)
    touch_later(path)
    assert file.is_changed
    assert changed_file([np.zeros(2), array]) == path.resolve()


def test_links_are_followed(path, tmp_path) -> None:
    link = tmp_path / "link"
    link.symlink_to(path)
    file = mapped(link)
    link.unlink()
    touch_later(path)
    assert file.is_changed and file.path == path.resolve()
