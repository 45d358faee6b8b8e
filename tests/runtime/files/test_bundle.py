"""Members as one sequence of bytes: what was joined is split again, and nothing else is."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.runtime.files.bundle import join_members, split_members


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
