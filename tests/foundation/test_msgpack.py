"""Values of every form, and bytes that nobody vouches for."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.msgpack import read_msgpack


def pack(value):
    """A writer of its own, which takes the widest form of each value."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return (
            b"\xd3" + struct.pack(">q", value) if value < 0 else b"\xcf" + struct.pack(">Q", value)
        )
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, str):
        return b"\xdb" + struct.pack(">I", len(value.encode())) + value.encode()
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
    pairs = b"".join(pack(part) for pair in value.items() for part in pair)
    return b"\xdf" + struct.pack(">I", len(value)) + pairs


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@pytest.mark.search
@given(VALUES)
def test_what_was_written_is_read(value):
    assert read_msgpack(pack(value)) == value


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\x00", 0),
        (b"\x7f", 127),
        (b"\xe0", -32),
        (b"\xff", -1),
        (b"\xa2ab", "ab"),
        (b"\x92\x01\xc0", [1, None]),
        (b"\x81\xa1k\xc3", {"k": True}),
        (b"\xcc\xff", 255),
        (b"\xcd\x01\x00", 256),
        (b"\xce\x00\x01\x00\x00", 65536),
        (b"\xd0\x80", -128),
        (b"\xd1\x80\x00", -32768),
        (b"\xd2\x80\x00\x00\x00", -(2**31)),
        (b"\xca\x3f\x80\x00\x00", 1.0),
        (b"\xc4\x01x", b"x"),
        (b"\xc5\x00\x01x", b"x"),
        (b"\xd9\x01x", "x"),
        (b"\xda\x00\x01x", "x"),
        (b"\xdc\x00\x01\x05", [5]),
        (b"\xde\x00\x01\xa1k\x05", {"k": 5}),
        (b"\x80", {}),
        (b"\x90", []),
    ],
)
def test_short_forms(data, value):
    assert read_msgpack(data) == value


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the data end within a value"),
        (b"\xa5ab", "the data end within a value"),
        (b"\xcf\x00", "the data end within a value"),
        (b"\x01\x02", "1 bytes are left over"),
        (b"\xdd\xff\xff\xff\xff", "4294967295 items are announced"),
        (b"\xdf\x7f\xff\xff\xff", "items are announced"),
        (b"\x81\x01\x02", "1 cannot be a key"),
        (b"\x82\xa1k\x01\xa1k\x02", "'k' cannot be a key"),
        (b"\x91" * 40 + b"\x01", "nested deeper than 32"),
        (b"\xc1", "no value begins with the byte 0xc1"),
        (b"\xd4\x01\x02", "no value begins with the byte 0xd4"),
        (b"\xa1\xff", "invalid start byte"),
    ],
)
def test_what_is_malformed_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        read_msgpack(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_refused(data):
    with suppress(ValueError):
        read_msgpack(data)
