"""Code objects as a loader sees them, and files that are none."""

import random
import struct

import pytest

from refcomp.emulator.code_object import read_code_object
from refcomp.errors import ToolchainError
from tests.emulator.kernels import compiled_code

pytestmark = pytest.mark.rocm


def test_kernels_and_what_they_want():
    code = read_code_object(compiled_code("vector_add", "matmul"))
    assert code.mcpu == "gfx942" and set(code.kernels) == {"vector_add", "matmul"}
    kernel = code.kernels["matmul"]
    assert kernel.block == (16, 16, 1) and kernel.descriptor.shared_bytes == 2048
    assert kernel.descriptor.float_mode == 0xF0 and kernel.descriptor.vgpr_granules > 0
    assert [a.offset for a in kernel.arguments] == [0, 8, 16, 24]
    assert [a.kind for a in kernel.arguments] == ["global_buffer"] * 3 + ["by_value"]
    assert any(start <= kernel.entry < start + len(data) for start, data in code.segments)
    assert kernel.entry == kernel.descriptor_address + kernel.descriptor.entry_offset


def test_what_is_no_code_object_is_refused():
    data = compiled_code("vector_add")
    other_machine = data[:18] + struct.pack("<H", 62) + data[20:]
    for wrong in (b"", b"\x7fELF", data[:200], data[: len(data) // 2], other_machine):
        with pytest.raises(ToolchainError, match="no code object for AMD GPUs"):
            read_code_object(wrong)
    with pytest.raises(ToolchainError, match="no code object") as caught:
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
        except ToolchainError:
            refused += 1
    assert 100 < refused < 400


def test_a_segment_of_more_memory_than_there_can_be_is_refused():
    data = bytearray(compiled_code("vector_add"))
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    loaded = [n for n in range(count) if struct.unpack_from("<I", data, start + n * size) == (1,)]
    struct.pack_into("<Q", data, start + loaded[0] * size + 40, 1 << 40)
    with pytest.raises(ToolchainError) as caught:
        read_code_object(bytes(data))
    assert "a segment takes 1099511627776 bytes of memory" in str(caught.value)
