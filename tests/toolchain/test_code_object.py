"""Code objects: read back as they were compiled, refused where they differ or are none."""

import struct
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.artifacts import Binary
from refcomp.dtype import as_dtype
from refcomp.errors import CompilerBug, ToolchainError
from refcomp.toolchain.code_object import (
    argument_places,
    check_code_object,
    found_code_object_version,
    read_code_object,
)
from tests.codegen.amdgpu_kernels import TOOLS_AND_GPUS, compile_kernels, signatures, use_llvm
from tests.codegen.device_kernels import TEXTS, device_kernel
from tests.test_msgpack import pack


@dataclass(frozen=True)
class Expected:
    symbol: str
    params: tuple


def argument(offset, size, kind="by_value"):
    return {".offset": offset, ".size": size, ".value_kind": kind}


def kernel(name="f", *arguments, **more):
    return {
        ".name": name,
        ".symbol": f"{name}.kd",
        ".args": list(arguments),
        ".kernarg_segment_size": 64,
        ".kernarg_segment_align": 8,
        ".group_segment_fixed_size": 0,
        ".private_segment_fixed_size": 0,
        ".max_flat_workgroup_size": 256,
        ".wavefront_size": 64,
        ".vgpr_count": 8,
        ".sgpr_count": 10,
    } | {f".{key}": value for key, value in more.items()}


def code_object(*kernels, target="amdgcn-amd-amdhsa--gfx90a:xnack-", abi=2, machine=224):
    """The smallest ELF file that has the metadata of these kernels."""
    described = pack({"amdhsa.kernels": list(kernels), "amdhsa.target": target})
    note = struct.pack("<III", 7, len(described), 32) + b"AMDGPU\0\0" + described
    note = struct.pack("<III", 4, 1, 3) + b"GNU\0x\0\0\0" + note
    header = b"\x7fELF\x02\x01\x01\x40" + bytes([abi]) + bytes(7)
    header += struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return header + struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, len(note), len(note), 4) + note


GOOD = code_object(kernel("f", argument(0, 8, "global_buffer"), argument(8, 4)))
F = Expected("f", (None, as_dtype("f32")))


def test_everything_is_read():
    code = read_code_object(
        code_object(kernel("f", argument(0, 4), reqd_workgroup_size=[64, 2, 1], vgpr_spill_count=3))
    )
    assert (code.version, code.mcpu) == (4, "gfx90a")
    (found,) = code.kernels
    assert (found.name, found.symbol, found.block) == ("f", "f.kd", (64, 2, 1))
    assert (found.vgprs, found.sgprs, found.spilled, found.wavefront_size) == (8, 10, 3, 64)
    assert found.arguments[0].size == 4 and found.arguments[0].space == ""


def test_what_was_asked_for_passes():
    assert check_code_object(Binary(GOOD, "hsaco"), [F], "gfx90a", 4).kernels[0].name == "f"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"version": 5}, "its version is 4, not 5"),
        ({"mcpu": "gfx942"}, "it is for gfx90a, not gfx942"),
        ({"kernels": [F, Expected("g", ())]}, "it has the kernels f, not f, g"),
        ({"kernels": []}, "it has the kernels f, not "),
        (
            {"kernels": [Expected("f", (None, as_dtype("f64")))]},
            r"f takes \(offset, bytes, kind\) \[\(0, 8, 'global_buffer'\), \(8, 4, 'by_value'\)\], "
            r"not \[\(0, 8, 'global_buffer'\), \(8, 8, 'by_value'\)\]",
        ),
        ({"kernels": [Expected("f", (None, None, *F.params))]}, "f takes"),
        ({"kernels": [Expected("f", (None,) * 9)]}, "f takes 64 bytes of arguments, not 72"),
    ],
)
def test_what_differs_is_told(asked, message):
    given = {"kernels": [F], "mcpu": "gfx90a", "version": 4} | asked
    with pytest.raises(CompilerBug, match="the code object is not what was asked for") as caught:
        check_code_object(Binary(GOOD, "hsaco"), **given)
    assert caught.match(message)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x7fELF",
        GOOD[:100],
        GOOD[:-1],
        code_object(machine=62),
        code_object(abi=9),
        code_object({}),
        code_object(kernel("f", {})),
        code_object(kernel("f", vgpr_count="8")),
        code_object(kernel("f", vgpr_count=True)),
        code_object("f"),
        code_object(target=3),
    ],
)
def test_what_is_no_code_object_is_refused(data):
    with pytest.raises(ToolchainError, match="the metadata of a code object cannot be read"):
        read_code_object(data)


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused(position, value):
    data = bytearray(GOOD)
    data[position] = value
    with suppress(ToolchainError):
        read_code_object(bytes(data))


def test_places_of_arguments():
    params = [as_dtype(name) if name else None for name in ("i8", "", "f16", "f32", "bool", "i64")]
    assert argument_places(params) == ((0, 1), (8, 8), (16, 2), (20, 4), (24, 1), (32, 8))


def test_the_version_is_the_newest_that_the_library_loads(tmp_path, monkeypatch):
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    assert found_code_object_version() == 4
    (tmp_path / "lib").mkdir()
    for name, version in (("libamdhip64.so.5.2.21153", 4), ("libamdhip64.so.7.1", 5)):
        (tmp_path / "lib" / name).touch()
        link = tmp_path / "lib" / "libamdhip64.so"
        link.unlink(missing_ok=True)
        link.symlink_to(name)
        assert found_code_object_version() == version


@pytest.mark.rocm
@pytest.mark.parametrize(("llvm", "gpu"), TOOLS_AND_GPUS)
def test_what_llvm_writes_is_read(llvm, gpu, monkeypatch):
    use_llvm(llvm, monkeypatch)
    kernels = [device_kernel(name) for name in TEXTS]
    binary = compile_kernels(kernels, gpu)
    code = check_code_object(binary, signatures(kernels), gpu, 4)
    found = {kernel.name: kernel for kernel in code.kernels}
    assert found["matmul"].shared_bytes == 2 * 16 * 16 * 4
    assert (found["matmul"].block, found["matmul"].most_threads) == ((16, 16, 1), 256)
    assert (found["group_sum"].block, found["group_sum"].most_threads) == ((), 1024)
    assert {kernel.wavefront_size for kernel in code.kernels} == {32 if gpu == "gfx1100" else 64}
    assert all(kernel.vgprs > 0 and kernel.spilled == 0 for kernel in code.kernels)
    wrong = [replace(s, params=s.params[1:]) for s in signatures(kernels)]
    with pytest.raises(CompilerBug, match=r"vector_add takes \(offset, bytes, kind\)"):
        check_code_object(binary, wrong, gpu, 4)
