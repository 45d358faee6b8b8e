"""Metadata of code objects: read whole, and refused where a value is missing or wrong."""

import struct

import pytest

from refcomp.foundation.amd_metadata import KernelArgument, metadata_map, read_metadata
from refcomp.foundation.elf import ElfFile
from tests.foundation.test_msgpack import pack


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


def code_object(
    *kernels, target="amdgcn-amd-amdhsa--gfx90a:xnack-", abi=2, machine=224, metadata=None
):
    """The smallest ELF file that has the metadata of these kernels, or other `metadata`.

    A tuple is the metadata of several objects that were linked.
    """
    if metadata is None:
        metadata = {"amdhsa.kernels": list(kernels), "amdhsa.target": target}
    note = struct.pack("<III", 4, 1, 3) + b"GNU\0x\0\0\0"
    for one in metadata if isinstance(metadata, tuple) else (metadata,):
        described = pack(one)
        note += bytes(-len(note) % 4)
        note += struct.pack("<III", 7, len(described), 32) + b"AMDGPU\0\0" + described
    header = b"\x7fELF\x02\x01\x01\x40" + bytes([abi]) + bytes(7)
    header += struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return header + struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, len(note), len(note), 4) + note


def _read(data):
    return read_metadata(ElfFile(data))


def test_everything_is_read():
    code = _read(
        code_object(
            kernel(
                "f",
                argument(0, 4),
                reqd_workgroup_size=[64, 2, 1],
                vgpr_spill_count=3,
                sgpr_spill_count=5,
            )
        )
    )
    assert (code.version, code.mcpu) == (4, "gfx90a")
    (found,) = code.kernels
    assert (found.name, found.symbol, found.block) == ("f", "f.kd", (64, 2, 1))
    assert (found.vgprs, found.sgprs, found.wavefront_size) == (8, 10, 64)
    assert (found.spilled_vgprs, found.spilled_sgprs) == (3, 5)
    assert found.arguments[0].size == 4 and found.arguments[0].space == ""


def test_a_linked_code_object_has_the_kernels_of_all_its_notes():
    objects = [
        {"amdhsa.version": [1, 1], "amdhsa.target": "amdgcn-amd-amdhsa--gfx90a"} | more
        for more in ({"amdhsa.kernels": [kernel("f")]}, {}, {"amdhsa.kernels": [kernel("g")]})
    ]
    found = code_object(metadata=tuple(objects))
    assert [kernel.name for kernel in _read(found).kernels] == ["f", "g"]
    assert len(metadata_map(ElfFile(found))["amdhsa.kernels"]) == 2
    objects[1]["amdhsa.target"] = "amdgcn-amd-amdhsa--gfx942"
    with pytest.raises(ValueError, match="its objects were compiled for different GPUs or vers"):
        _read(code_object(metadata=tuple(objects)))


def test_what_compilers_leave_out_has_a_default():
    (found,) = _read(code_object(kernel())).kernels
    assert (found.arguments, found.block, found.spilled_vgprs, found.agprs) == ((), (), 0, 0)
    assert not found.has_dynamic_stack
    (found,) = _read(code_object(kernel(uses_dynamic_stack=True))).kernels
    assert found.has_dynamic_stack


def test_arguments_have_names_types_and_access():
    told = argument(8, 8, "global_buffer") | {".name": "x", ".type_name": "float*"}
    told |= {".address_space": "global", ".actual_access": "read_only", ".pointee_align": 16}
    (found,) = _read(code_object(kernel("f", told))).kernels[0].arguments
    expected = KernelArgument("x", 8, 8, "global_buffer", True, 16, "float*", "global")
    assert found == expected
    for key, value, is_read_only in (
        (".access", "read_only", True),
        (".is_const", True, True),
        (".access", "read_write", False),
    ):
        (found,) = _read(code_object(kernel("f", argument(0, 8) | {key: value}))).kernels
        assert found.arguments[0].is_read_only == is_read_only


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (".offset", -8, ".offset is -8, not from 0 to 1048576"),
        (".size", True, ".size is True, not from 0 to"),
        (".size", 1 << 40, ".size is 1099511627776, not from 0 to"),
        (".name", 5, ".name is 5, not a text"),
        (".value_kind", None, ".value_kind is None, not a text"),
        (".pointee_align", 12, "an alignment of 12 is not a power of two"),
        (".pointee_align", 0, "an alignment of 0 is not a power of two"),
    ],
)
def test_metadata_of_arguments_are_checked(key, value, message):
    told = argument(0, 8, "global_buffer")
    assert _read(code_object(kernel("f", told))).kernels[0].arguments[0].size == 8
    with pytest.raises(ValueError, match=message):
        _read(code_object(kernel("f", {**told, key: value})))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reqd_workgroup_size": [8, 8]}, r"\[8, 8\] is not the size of a group"),
        ({"reqd_workgroup_size": [8, 8, 1.0]}, "is not the size of a group"),
        ({"reqd_workgroup_size": 8}, ".reqd_workgroup_size is 8, not a list"),
        ({"max_flat_workgroup_size": "64"}, "'64', not from 0 to 1048576"),
        ({"vgpr_count": True}, ".vgpr_count is True, not from 0 to 4294967295"),
        ({"kernarg_segment_size": -1}, "is -1, not from 0 to"),
        ({"symbol": [1]}, r".symbol is \[1\], not a text"),
        ({"args": {}}, ".args is {}, not a list"),
        ({"args": [5]}, "an argument is 5, not a map"),
    ],
)
def test_metadata_of_kernels_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        _read(code_object(kernel("f", **changes)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda: code_object(machine=62), "not an ELF file for AMD GPUs, but for EM_X86_64"),
        (lambda: code_object(abi=9), "version 9 of the ABI is not known"),
        (lambda: code_object({}), ".name is missing"),
        (lambda: code_object("f"), "a kernel is 'f', not a map"),
        (lambda: code_object(target=3), "amdhsa.target is 3, not a text"),
        (lambda: code_object().replace(b"AMDGPU\0", b"AMDXXX\0"), "it has no metadata"),
        (lambda: code_object().replace(b"amdhsa.kernels", b"amdhsa.kernelz"), "kernels is missing"),
        (lambda: code_object(kernel())[:-1], "the data end within a value"),
        (lambda: code_object(metadata=[1]), "the metadata is \\[1\\], not a map"),
    ],
)
def test_what_is_no_code_object_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        _read(data())


def test_all_metadata_are_given_as_they_are():
    metadata = metadata_map(ElfFile(code_object(kernel("f", argument(8, 4)))))
    assert metadata["amdhsa.kernels"][0][".args"] == [argument(8, 4)]
