"""Code objects as a loader sees them, and files that are none."""

import random
import struct

import numpy as np
import pytest

from refcomp.emulator import EmulatedGpu
from refcomp.emulator.code.code_object import (
    DamagedCode,
    LoadedBytes,
    RelocatedPointer,
    _kernel,
    _pointers,
    read_code_object,
)
from refcomp.foundation.amd_metadata import KernelArgument, KernelMetadata
from refcomp.foundation.elf import Relocation
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.msgpack import read_msgpack
from tests.emulator.kernels import compiled_code, disassembled

pytestmark = pytest.mark.rocm


def test_kernels_and_what_they_want():
    code = read_code_object(compiled_code("vector_add", "matmul"))
    assert code.mcpu == "gfx942" and set(code.kernels) == {"vector_add", "matmul"}
    kernel = code.kernels["matmul"]
    assert kernel.block == (16, 16, 1) and kernel.descriptor.shared_bytes == 2048
    assert kernel.descriptor.float_mode == 0x3F0 and kernel.descriptor.vgpr_granules > 0
    assert [a.offset for a in kernel.arguments] == [0, 8, 16, 24]
    assert [a.kind for a in kernel.arguments] == ["global_buffer"] * 3 + ["by_value"]
    assert any(0 <= kernel.entry - s.address < len(s.content) for s in code.segments)
    assert kernel.entry == kernel.descriptor_address + kernel.descriptor.entry_offset


def test_what_is_no_code_object_is_refused():
    data = compiled_code("vector_add")
    other_machine = data[:18] + struct.pack("<H", 62) + data[20:]
    for wrong in (b"", b"\x7fELF", data[:200], data[: len(data) // 2], other_machine):
        with pytest.raises(DamagedCode, match="not a code object for AMD GPUs"):
            read_code_object(wrong)
    with pytest.raises(DamagedCode, match="not a code object") as caught:
        read_code_object(data.replace(b"AMDGPU\0", b"AMDXXX\0"))
    assert "it has no metadata" in str(caught.value)


def test_damaged_files_are_read_or_refused():
    data = compiled_code("matmul")
    rng = random.Random(5)
    refused = 0
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 8, 64))):
            # The header and the tables behind it more often than the rest.
            place = rng.randrange(min(len(data), rng.choice((64, 400, len(data)))))
            damaged[place] = rng.randrange(256)
        try:
            read_code_object(bytes(damaged))
        except DamagedCode:
            refused += 1
    assert 100 < refused < 400


_WRONG = (None, True, -1, 0, 3, 1 << 40, 1 << 63, 1.5, "", "hidden_grid_dims", b"x", [], [1], {})


def _damage(metadata, rng):
    """Another value somewhere in the metadata of a kernel or of its arguments."""
    (kernel,) = metadata["amdhsa.kernels"]
    place = rng.choice((kernel, rng.choice(kernel[".args"])))
    place[rng.choice(sorted(place))] = rng.choice(_WRONG)


def test_damaged_metadata_are_refused_or_launched(monkeypatch):
    """What is loaded can be launched, or is refused: no error comes from within."""
    data = compiled_code("vector_add")
    text, rng, refused = disassembled(data), random.Random(7), 0

    def read_damaged(content):
        metadata = read_msgpack(content)
        _damage(metadata, rng)
        return metadata

    monkeypatch.setattr("refcomp.foundation.amd_metadata.read_msgpack", read_damaged)
    for _ in range(300):
        gpu = EmulatedGpu(lambda _: text, size=1 << 20)
        try:
            loaded = gpu.load(data)
            # The sizes that it is launched with say that it has nothing to do.
            values = [*(np.ones(1, np.float32),) * 3, np.int64(0), np.int64(1)]
            gpu.run(loaded, "vector_add", (1, 1, 1), (64, 1, 1), values)
        except (ToolchainError, UserError):
            refused += 1
    assert 100 < refused < 300


def _kernel_with(*arguments, kernarg_bytes=64, symbol="k.kd"):
    """A kernel of nothing but a descriptor."""
    metadata = KernelMetadata("k", symbol, arguments, 0, 8, 0, 0, 64, (8, 8, 1), 64, 8, 8, 0, 0)
    descriptor = struct.pack("<III52x", 0, 0, kernarg_bytes)
    return _kernel(metadata, {"k.kd": 0}, (LoadedBytes(0, descriptor),))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("dynamic_shared_pointer", "shared_pointer has 4 bytes, not 8"),
        ("hidden_grid_dims", "the argument hidden_grid_dims has 2 bytes, not 8"),
    ],
)
def test_what_is_filled_in_has_its_size(kind, message):
    with pytest.raises(ValueError, match=message):
        _kernel_with(KernelArgument("", 0, 8, kind))


def test_kernels_are_checked():
    hidden = KernelArgument("", 8, 8, "hidden_none")
    kernel = _kernel_with(hidden, kernarg_bytes=16)
    assert (kernel.name, kernel.arguments, kernel.block) == ("k", (hidden,), (8, 8, 1))
    with pytest.raises(ValueError, match="hidden arguments end behind the 15 bytes of all"):
        _kernel_with(hidden, kernarg_bytes=15)
    with pytest.raises(ValueError, match="a kernel takes 2097152 bytes of arguments"):
        _kernel_with(kernarg_bytes=1 << 21)
    with pytest.raises(ValueError, match="it has no symbol g.kd"):
        _kernel_with(symbol="g.kd")


def _with_segments(**fields):
    """A code object in whose headers a field is another: the first segment's size, or the last
    segment's address."""
    data = bytearray(compiled_code("vector_add"))
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    headers = [start + n * size for n in range(count)]
    loaded = [at for at in headers if struct.unpack_from("<I", data, at) == (1,)]
    for name, value in fields.items():
        at = loaded[-1] if name == "p_vaddr" else loaded[0]
        struct.pack_into("<Q", data, at + {"p_vaddr": 16, "p_memsz": 40}[name], value)
    return bytes(data)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"p_memsz": 1 << 40}, "a segment takes 1099511627776 bytes of memory"),
        # Each of them is small enough.
        ({"p_memsz": 1 << 30}, "the segments take more than 1073741824 bytes of memory"),
        ({"p_vaddr": 1 << 40}, "the segments take more than 1073741824 bytes of memory"),
    ],
)
def test_more_memory_than_there_can_be_is_refused(fields, message):
    with pytest.raises(DamagedCode) as caught:
        read_code_object(_with_segments(**fields))
    assert message in str(caught.value)


def test_pointers_lie_and_point_within_the_object():
    assert list(_pointers([Relocation(13, 92, 100)], 100)) == [RelocatedPointer(92, 100)]
    for place, target in ((93, 0), (1 << 63, 0), (0, 101), (0, -1)):
        with pytest.raises(ValueError, match=f"a pointer at {place:#x} lies or points outside"):
            list(_pointers([Relocation(13, place, target)], 100))
    with pytest.raises(ValueError, match="a relocation of type 1 is not known"):
        list(_pointers([Relocation(1, 0, 0)], 100))


@pytest.mark.parametrize(
    ("at", "form", "value", "message"),
    [
        (54, "<H", 0, "phentsize is 0, not 56"),
        (58, "<H", 0, "shentsize is 0, not 64"),
        (58, "<H", 63, "shentsize is 63, not 64"),
        (60, "<H", 0xFFF0, "a table of 65520 entries"),
    ],
)
def test_tables_without_end_are_refused(at, form, value, message):
    data = bytearray(compiled_code("vector_add"))
    struct.pack_into(form, data, at, value)
    with pytest.raises(DamagedCode, match="not a code object for AMD GPUs") as caught:
        read_code_object(bytes(data))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (32, 24 << 30, "a section of 25769803776 bytes ends behind the file"),
        (24, 1 << 40, "ends behind the file"),
        (32, 100, "multiple of entry size"),
        (56, 0, "entry size"),
    ],
)
def test_symbols_without_end_are_refused(field, value, message):
    """llvm-objdump would warn of them for ever."""
    data = bytearray(compiled_code("vector_add"))
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    headers = [table + n * size for n in range(count)]
    (symbols,) = (at for at in headers if struct.unpack_from("<I", data, at + 4) == (2,))
    struct.pack_into("<Q", data, symbols + field, value)
    with pytest.raises(DamagedCode) as caught:
        read_code_object(bytes(data))
    assert message in str(caught.value)
