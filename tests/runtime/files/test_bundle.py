"""Members as one sequence of bytes: what was joined is split again, and nothing else is."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.runtime.files import bundle
from refcomp.runtime.files.bundle import (
    compress_members,
    decompress_members,
    join_members,
    split_members,
)


@given(st.dictionaries(st.text(max_size=8), st.binary(max_size=40), max_size=4))
def test_members_are_split_as_they_were_joined(members):
    assert split_members(join_members(members)) == members
    assert list(split_members(join_members(members))) == list(members)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"[]\nrest",
        b'[["a", 2]]\nx',
        b'[["a", 1]]\nxy',
        b'[["a", "1"]]\nx',
        b'[["a"]]\nx',
        b"7\n",
        b"null\n",
        b'{"a": 1}\nx',
        b'[[["a"], 1]]\nx',
        b"[" * 100_000 + b"\n",
        b"\xff\n",
        b'[["a", -1]]\n',
    ],
)
def test_malformed_data_are_refused(data):
    with pytest.raises(ValueError):
        split_members(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_split_or_refused(data):
    with suppress(ValueError):
        assert isinstance(split_members(data), dict)


MEMBERS = {"manifest.json": b"{}", "sources/llvm": b"; text\n" * 99}


def test_members_are_compressed_and_read_back():
    data = compress_members(MEMBERS)
    assert decompress_members(data) == MEMBERS
    assert len(data) < 100
    assert b"PK" not in data  # what begins each part of a zip archive


def test_any_damage_of_compressed_members_is_found():
    data = compress_members(MEMBERS)
    for place in range(len(data)):
        # The second byte has bits that only guide the compression.
        changed = data[:place] + bytes([data[place] ^ 0x11]) + data[place + 1 :]
        with pytest.raises(ValueError):
            decompress_members(changed)
        with pytest.raises(ValueError):
            decompress_members(data[:place])


def test_members_of_too_many_bytes_are_not_decompressed(monkeypatch):
    monkeypatch.setattr(bundle, "TOTAL_LIMIT", 100)
    with pytest.raises(ValueError, match="ends too early, or has more than 100 bytes"):
        decompress_members(compress_members(MEMBERS))
