"""Writes to memory that is only to be read."""

from types import SimpleNamespace

import pytest

from refcomp.emulator.code.findings import READ_ONLY
from tests.emulator.observers.hazards.hazardous import watch


def _told(line, *kept):
    arguments = [
        SimpleNamespace(kind="global_buffer", offset=0, size=8, is_read_only=is_read_only)
        for is_read_only in kept
    ]
    return watch(line, waves=1, hazards=["read-only"], arguments=tuple(arguments))


@pytest.mark.parametrize(
    "line", ["global_store_dword v0, v1, s[0:1]", "global_atomic_add v0, v1, s[0:1]"]
)
def test_writes_to_read_only_arguments(line):
    (found,) = _told(line, True)
    assert (found.kind, found.times) == (READ_ONLY, 64)
    assert found.what == "writes the memory, which is read-only"
    assert not _told(line, False)


def test_memory_of_two_arguments_may_be_written_if_one_may():
    assert not _told("global_store_dword v0, v1, s[0:1]", True, False)


def test_reading_is_right():
    assert not _told("global_load_dword v2, v0, s[0:1]", True)
    assert not _told("ds_write_b32 v0, v1", True)
