"""ELF files: read as LLVM's tools read them; damaged ones are refused soon, and by ValueError."""

import re
import struct
import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refcomp
from refcomp.foundation import elf
from refcomp.foundation.elf import (
    ElfFile,
    Relocation,
    Segment,
    cubin_arch,
    needed_libraries,
)
from tests.emulator.kernels import compiled_code

_LLVM = "/usr/lib/llvm-19/bin/"
_LOAD, _DYNAMIC, _NOTE = 1, 2, 4
_STRINGS, _RELOCATIONS, _HASH, _DYNAMIC_SYMBOLS = 3, 4, 5, 11


def segment(kind, offset=0, size=0, memory=None, address=0):
    memory = size if memory is None else memory
    return struct.pack("<IIQQQQQQ", kind, 4, offset, address, 0, size, memory, 4)


def section(kind, offset=0, size=0, link=0, entry=0):
    return struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, offset, size, link, 0, 8, entry)


def elf_file(segments=(), sections=(), body=b"", kind=3, wide=2, order=1):
    """An ELF file for AMD GPUs: a header, the tables, and `body` at `body_at(segments, sections)`.
    The first section is the table of names, with no name in it."""
    sections = (section(_STRINGS, 16, 1), *sections) if sections else ()
    tables = 64 + 56 * len(segments)
    counts = (56, len(segments), 64, len(sections), 0)
    head = b"\x7fELF" + bytes([wide, order, 1, 64, 2]) + bytes(7)
    head += struct.pack("<HHIQQQI", kind, 224, 1, 0, 64, tables if sections else 0, 0)
    return head + struct.pack("<HHHHHH", 64, *counts) + b"".join((*segments, *sections)) + body


def body_at(segments=0, sections=0):
    """Where the body of `elf_file` begins."""
    return 64 + 56 * segments + (64 * (sections + 1) if sections else 0)


def note(name, kind, content):
    padded = content + bytes(-len(content) % 4)
    name_bytes = name + bytes(-len(name) % 4)
    return struct.pack("<III", len(name), len(content), kind) + name_bytes + padded


@pytest.fixture(scope="module")
def binary():
    """A shared object for this host that needs libm."""
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: refcomp.sin(a[i]), name="B")
    s = refcomp.create_schedule(b.op)
    return refcomp.build(s, [a, b], target="llvm").contents.binary.data


def _tool(tmp_path, data, name, *options):
    (tmp_path / "file").write_bytes(data)
    command = [f"{_LLVM}{name}", *options, tmp_path / "file"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.llvm
def test_needed_libraries_are_those_that_readelf_lists(binary, tmp_path):
    told = _tool(tmp_path, binary, "llvm-readelf", "--needed-libs")
    expected = re.findall(r"(?m)^  (\S+)$", told)
    assert "libm.so.6" in expected
    assert sorted(needed_libraries(binary)) == sorted(expected)


@pytest.mark.llvm
def test_no_truncation_raises(binary):
    for size in range(0, len(binary), 7):
        assert isinstance(needed_libraries(binary[:size]), tuple)


@given(st.binary(max_size=200))
def test_rubbish_needs_nothing_or_something_but_never_raises(rubbish):
    assert needed_libraries(rubbish) == ()
    assert isinstance(needed_libraries(b"\x7fELF\x02\x01" + rubbish), tuple)


@pytest.mark.rocm
def test_code_objects_are_read_as_llvm_reads_them(tmp_path):
    data = compiled_code("vector_add", "matmul")
    file = ElfFile(data)
    assert (file.machine, file.kind, file.abi_version) == ("EM_AMDGPU", "ET_DYN", 2)
    told = _tool(tmp_path, data, "llvm-nm", "--dynamic")
    expected = {name: int(value, 16) for value, name in re.findall(r"(?m)^(\w+) \w (\S+)$", told)}
    assert {"vector_add", "matmul.kd"} <= set(expected)
    assert {name: value for name, value in file.symbols().items() if name} == expected
    told = _tool(tmp_path, data, "llvm-readelf", "--program-headers")
    pattern = r"(?m)^  LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x(\w+)"
    rows = [[int(number, 16) for number in row] for row in re.findall(pattern, told)]
    segments = file.loaded_segments()
    assert segments == tuple(Segment(at, memory, start, size) for start, at, size, memory in rows)
    for one in segments:
        content = file.content(one)
        assert len(content) == one.memory_size
        end = one.file_offset + one.file_size
        assert content == data[one.file_offset : end] + bytes(one.memory_size - one.file_size)


@pytest.mark.rocm
@given(st.data())
def test_a_changed_byte_is_read_or_refused_by_value_error(data):
    code = bytearray(compiled_code("vector_add"))
    place = data.draw(st.integers(0, 400) | st.integers(0, len(code) - 1))
    code[place] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        ElfFile(bytes(code)).notes("AMDGPU", 32)
    with suppress(ValueError):
        ElfFile(bytes(code)).symbols()
    with suppress(ValueError):
        ElfFile(bytes(code)).relocations()
    assert isinstance(needed_libraries(bytes(code)), tuple)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "Magic number does not match"),
        (b"\x7fELF", "EI_CLASS"),
        (elf_file()[:40], "expected"),
        (elf_file(wide=1), "not a 64-bit little-endian ELF file"),
        (elf_file(order=2), "not a 64-bit little-endian ELF file"),
    ],
)
def test_what_has_no_such_header_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        ElfFile(data)


def test_segments_have_their_content():
    data = elf_file([segment(_LOAD, 120, 4, 8, 64), segment(_NOTE)], body=b"code")
    data = data.replace(struct.pack("<Q", 120), struct.pack("<Q", body_at(2)))
    (one,) = ElfFile(data).loaded_segments()
    assert one == Segment(64, 8, body_at(2), 4)
    assert ElfFile(data).content(one) == b"code\0\0\0\0"
    for wrong, message in (
        (Segment(0, 8, body_at(2), 5), "the file ends within a segment"),
        (Segment(0, 3, body_at(2), 4), "larger in the file than in memory"),
    ):
        with pytest.raises(ValueError, match=message):
            ElfFile(data).content(wrong)


def _with_notes(content, **more):
    return elf_file([segment(_NOTE, body_at(1), len(content))], body=content, **more)


def test_the_notes_of_a_name_and_kind_are_found_in_order():
    notes = note(b"GNU\0", 32, b"a") + note(b"AMDGPU\0", 1, b"b")
    notes += note(b"AMDGPU\0", 32, b"content") + note(b"AMDGPU\0", 32, b"later")
    assert ElfFile(_with_notes(notes)).notes("AMDGPU", 32) == [b"content", b"later"]
    assert ElfFile(_with_notes(notes)).notes("AMDGPU", 33) == []
    assert ElfFile(elf_file()).notes("AMDGPU", 32) == []


def test_a_name_of_a_note_that_does_not_end_is_refused():
    """pyelftools raises an error of its own parser then, not one of ELF."""
    with pytest.raises(ValueError, match="missing terminator"):
        ElfFile(_with_notes(note(b"AMDG", 32, b"content"))).notes("AMDGPU", 32)


def test_notes_are_bounded():
    data = elf_file([segment(_NOTE)] * 17)
    with pytest.raises(ValueError, match="more than 16 segments of notes"):
        ElfFile(data).notes("AMDGPU", 32)
    with pytest.raises(ValueError, match="more than 16384 notes"):
        ElfFile(_with_notes(note(b"GNU\0", 9, b"") * 16386)).notes("AMDGPU", 32)
    with pytest.raises(ValueError, match="it is a core dump"):
        ElfFile(_with_notes(note(b"GNU\0", 9, b""), kind=4)).notes("AMDGPU", 32)


def test_tables_are_bounded():
    with pytest.raises(ValueError, match="a table of 16385 entries"):
        ElfFile(elf_file([segment(_LOAD)] * 16385)).loaded_segments()
    for at, message in ((54, "phentsize is 0, not 56"), (58, "shentsize is 0, not 64")):
        data = bytearray(elf_file([segment(_LOAD)], [section(_HASH)]))
        struct.pack_into("<H", data, at, 0)
        with pytest.raises(ValueError, match=message):
            ElfFile(bytes(data)).loaded_segments()
            ElfFile(bytes(data)).relocations()


def test_sections_end_within_the_file():
    data = elf_file(sections=[section(_RELOCATIONS, 0, 1 << 40, entry=24)])
    with pytest.raises(ValueError, match="a section of 1099511627776 bytes ends behind the file"):
        ElfFile(data).relocations()


@pytest.mark.parametrize("kind", [2, _DYNAMIC_SYMBOLS])
def test_tables_of_symbols_are_whole(kind):
    """Also those that are not read here: disassemblers warn of some without end."""
    for size, entry, message in (
        (0, 0, "an entry size of 0, not 24"),
        (36, 24, "symbols take 36 bytes, not a multiple of entry size 24"),
    ):
        with pytest.raises(ValueError, match=message):
            ElfFile(elf_file(sections=[section(kind, 0, size, entry=entry)])).relocations()


def test_relocations():
    entries = struct.pack("<QQq", 8, 7 << 32 | 13, -16)
    data = elf_file(sections=[section(_RELOCATIONS, body_at(0, 1), 24, entry=24)], body=entries)
    assert ElfFile(data).relocations() == (Relocation(13, 8, -16),)
    data = elf_file(sections=[section(_RELOCATIONS, body_at(0, 1), 24, entry=12)], body=entries)
    with pytest.raises(ValueError, match="relocations of 12 bytes"):
        ElfFile(data).relocations()


def _with_symbols(count, names):
    """A file of `count` symbols, all of which have the name that begins where `names` does."""
    start, size = body_at(0, 2), 24 * count
    table = section(_DYNAMIC_SYMBOLS, start, size, link=2, entry=24)
    body = struct.pack("<IBBHQQ", 0, 0, 0, 0, 5, 0) * count + names
    return elf_file(sections=[table, section(_STRINGS, start + size, len(names))], body=body)


def test_symbols_are_bounded(monkeypatch):
    assert ElfFile(_with_symbols(3, b"name\0")).symbols() == {"name": 5}
    with pytest.raises(ValueError, match="it has no dynamic symbols"):
        ElfFile(elf_file()).symbols()
    monkeypatch.setattr(elf, "_MAX_NAME_CHARACTERS", 11)
    with pytest.raises(ValueError, match="names of more than 11 characters"):
        ElfFile(_with_symbols(3, b"name\0")).symbols()
    monkeypatch.setattr(elf, "_MAX_SYMBOLS", 2)
    with pytest.raises(ValueError, match="more than 2 symbols"):
        ElfFile(_with_symbols(3, b"n\0")).symbols()


def _cubin(version: int, flags: int) -> bytes:
    """A cubin without sections; `version` is that of the format."""
    data = bytearray(elf_file())
    data[8] = version
    data[18:20] = struct.pack("<H", 190)
    data[48:52] = struct.pack("<I", flags)
    return bytes(data)


def test_the_architecture_of_a_cubin():
    """The flags are those that nvcc 13.0 and, with version 7, nvcc 12 write for sm_90."""
    assert cubin_arch(_cubin(8, 0x06005A04)) == 90
    assert cubin_arch(_cubin(7, 0x005A055A)) == 90
    with pytest.raises(ValueError, match="it is not machine code for NVIDIA GPUs"):
        cubin_arch(elf_file())
    with pytest.raises(ValueError, match="ends behind the file"):
        cubin_arch(_truncated())


def _truncated() -> bytes:
    data = bytearray(elf_file(sections=[section(_STRINGS, 10_000, 10)]))
    data[18:20] = struct.pack("<H", 190)
    return bytes(data)


def test_what_is_not_asked_for_takes_no_time():
    """pyelftools would read the table of each section of hashes for each segment: for days."""
    count, numbers = 4000, b"\xff\xff\0\0" * 2 * 0x10000
    start = body_at(count, count + 2)
    tables = [section(_DYNAMIC_SYMBOLS, start, 0, link=2, entry=24), section(_STRINGS, start, 1)]
    hashes = [section(_HASH, start, 8, link=1)] * count
    data = elf_file([segment(_DYNAMIC)] * count, [*tables, *hashes], numbers)
    assert ElfFile(data).loaded_segments() == ElfFile(data).relocations() == ()
    assert ElfFile(data).notes("AMDGPU", 32) == []
    assert needed_libraries(data) == ()


@pytest.mark.llvm
def test_no_file_is_read_to_build_for_hosts():
    """The import of pyelftools would take longer than to find what was built before."""
    program = (
        "import sys, refcomp as rc\n"
        "a = rc.placeholder((8,), name='A')\n"
        "b = rc.compute((8,), lambda i: a[i] + 1, name='B')\n"
        "module = rc.build(rc.create_schedule(b.op), [a, b], target='llvm')\n"
        "assert 'elftools' not in sys.modules\n"
        "from refcomp.runtime.files.suffixes import machine_code\n"
        "machine_code('llvm', module.contents)\n"
        "assert 'elftools' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
