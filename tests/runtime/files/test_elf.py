"""The libraries a shared object needs, against another reader of the format."""

import io

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.artifacts import Binary
from refcomp.runtime.files.elf import needed_libraries


@pytest.mark.llvm
def test_agrees_with_elftools(binary: Binary) -> None:
    section = ELFFile(io.BytesIO(binary.data)).get_section_by_name(".dynamic")
    expected = tuple(tag.needed for tag in section.iter_tags() if tag.entry.d_tag == "DT_NEEDED")
    assert "libgomp.so.1" in expected
    assert needed_libraries(binary.data) == expected


@pytest.mark.llvm
def test_no_truncation_raises(binary: Binary) -> None:
    for size in range(0, len(binary.data), 7):
        assert isinstance(needed_libraries(binary.data[:size]), tuple)


@given(st.binary(max_size=200))
def test_rubbish_needs_nothing_or_something_but_never_raises(rubbish: bytes) -> None:
    assert needed_libraries(rubbish) == ()
    assert isinstance(needed_libraries(b"\x7fELF\x02\x01" + rubbish), tuple)
