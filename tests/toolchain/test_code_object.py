"""Code objects: read back as they were compiled, refused where they differ or are none."""

import json
import random
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.driver.amd_resources import expected_kernel
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import CompilerBug, ToolchainError
from refcomp.toolchain import disassemble
from refcomp.toolchain.code_object import (
    ExpectedKernel,
    argument_places,
    check_code_object,
    found_code_object_version,
    metadata_text,
    read_code_object,
)
from tests.codegen.amdgpu.kernels import TOOLS_AND_GPUS, compile_kernels, use_llvm
from tests.codegen.device_kernels import TEXTS, device_kernel
from tests.foundation.test_amd_metadata import argument, code_object, kernel

GOOD = code_object(kernel("f", argument(0, 8, "global_buffer"), argument(8, 4)))
F = ExpectedKernel("f", (None, as_dtype("f32")))


def test_what_was_asked_for_passes():
    assert check_code_object(Binary(GOOD, "hsaco"), [F], "gfx90a", 4).kernels[0].name == "f"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"version": 5}, "its version is 4, not 5"),
        ({"mcpu": "gfx942"}, "it is for gfx90a, not gfx942"),
        ({"kernels": [F, ExpectedKernel("g", ())]}, "it has the kernels f, not f, g"),
        ({"kernels": []}, "it has the kernels f, not "),
        (
            {"kernels": [ExpectedKernel("f", (None, as_dtype("f64")))]},
            r"f takes \(offset, bytes, kind\) \[\(0, 8, 'global_buffer'\), \(8, 4, 'by_value'\)\], "
            r"not \[\(0, 8, 'global_buffer'\), \(8, 8, 'by_value'\)\]",
        ),
        ({"kernels": [ExpectedKernel("f", (None, None, *F.params))]}, "f takes"),
        ({"kernels": [ExpectedKernel("f", (None,) * 9)]}, "f takes 64 bytes of arguments, not 72"),
        (
            {"kernels": [replace(F, block=(64, 2, 1))]},
            "f has groups of any size, not 64 x 2 x 1",
        ),
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


def test_more_shared_memory_and_another_group_are_told():
    data = code_object(
        kernel("f", reqd_workgroup_size=[8, 8, 1], group_segment_fixed_size=1024),
    )
    right = ExpectedKernel("f", (), (8, 8, 1), 1024)
    assert check_code_object(Binary(data, "hsaco"), [right], "gfx90a", 4)
    for wrong, message in (
        (replace(right, shared_bytes=1008), "has 1024 bytes of shared memory, at most 1008 asked"),
        (replace(right, block=(64, 1, 1)), "has groups of 8 x 8 x 1, not 64 x 1 x 1"),
        (replace(right, block=()), "has groups of 8 x 8 x 1, not any size"),
    ):
        with pytest.raises(CompilerBug, match=message):
            check_code_object(Binary(data, "hsaco"), [wrong], "gfx90a", 4)


def test_the_metadata_is_json():
    (told,) = json.loads(metadata_text(GOOD))["amdhsa.kernels"]
    assert told[".args"][1] == {".offset": 8, ".size": 4, ".value_kind": "by_value"}
    with pytest.raises(ToolchainError, match="the metadata of a code object cannot be read"):
        metadata_text(GOOD[:100])


@pytest.mark.rocm
@pytest.mark.parametrize(("llvm", "gpu"), TOOLS_AND_GPUS)
def test_what_llvm_writes_is_read(llvm, gpu, monkeypatch):
    use_llvm(llvm, monkeypatch)
    kernels = [device_kernel(name) for name in TEXTS]
    binary, expected = compile_kernels(kernels, gpu), [expected_kernel(k) for k in kernels]
    code = check_code_object(binary, expected, gpu, 4)
    found = {kernel.name: kernel for kernel in code.kernels}
    assert found["matmul"].shared_bytes == 2 * 16 * 16 * 4
    assert (found["matmul"].block, found["matmul"].max_threads) == ((16, 16, 1), 256)
    assert (found["group_sum"].block, found["group_sum"].max_threads) == ((), 1024)
    assert {kernel.wavefront_size for kernel in code.kernels} == {
        32 if gpu.startswith("gfx1") else 64
    }
    assert all(kernel.vgprs > 0 and kernel.spilled_vgprs == 0 for kernel in code.kernels)
    for wrong, message in _wrong(expected):
        with pytest.raises(CompilerBug, match=message):
            check_code_object(binary, wrong, gpu, 4)
    for asked, message in (((gpu, 5), "its version is 4, not 5"), (("gfx906", 4), "not gfx906")):
        with pytest.raises(CompilerBug, match=message):
            check_code_object(binary, expected, *asked)


@pytest.mark.rocm
def test_damaged_machine_code_is_read_or_refused():
    data = compile_kernels([device_kernel("matmul")]).data
    rng = random.Random(5)
    refused = 0
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 8, 64))):
            damaged[rng.randrange(len(data))] = rng.randrange(256)
        try:
            read_code_object(bytes(damaged[: rng.choice((len(data), rng.randrange(len(data))))]))
        except ToolchainError:
            refused += 1
    assert refused > 100


@pytest.mark.rocm
def test_damaged_machine_code_is_not_disassembled():
    data = compile_kernels([device_kernel("matmul")]).data
    for damaged in (b"", b"\x7fELF", data[:200], b"\0" * 64 + data[64:]):
        with pytest.raises(ToolchainError, match="llvm-objdump"):
            disassemble(Binary(damaged, "hsaco"))


def _wrong(expected):
    """Every kernel with its first number and buffer swapped, with other groups, and with less
    memory, where that makes a difference."""
    for place, one in enumerate(expected):
        changes = []
        if set(one.params) != {None} and one.params[0] != one.params[-1]:
            swapped = (one.params[-1], *one.params[1:-1], one.params[0])
            changes.append((replace(one, params=swapped), f"{one.symbol} takes "))
        changes.append((replace(one, block=(7, 3, 1)), f"{one.symbol} has groups of"))
        if one.symbol in ("matmul", "transpose", "blocked"):
            changes.append((replace(one, shared_bytes=0), "bytes of shared memory"))
        for wrong, message in changes:
            yield [*expected[:place], wrong, *expected[place + 1 :]], message
