"""The functions are those of AMD's header, argument by argument."""

import re
from pathlib import Path

import pytest

from refcomp.hip import api as hip_api
from refcomp.hip.interface import function_names, parameters
from refcomp.hip.numbers import NUMBERS, VERSIONS

HEADER = Path("/usr/include/hip/hip_runtime_api.h")
# What the header calls the type of an argument of each kind.
C_TYPES = {
    "i32": "int|hipDevice_t|hipMemcpyKind|hipDeviceAttribute_t|hipError_t",
    "u32": "unsigned int",
    "size": "size_t",
    "address": r"(const )?void\*",
    "handle": "hipStream_t|hipEvent_t|hipModule_t|hipFunction_t",
    "text": r"const char\*",
    "extra": r"void\*\*",
    "out_i32": r"int\*",
    "out_f32": r"float\*",
    "out_size": r"size_t\*",
    "out_address": r"void\*\*",
    "out_handle": r"(hipStream_t|hipEvent_t|hipModule_t|hipFunction_t)\*",
    "out_text": r"char\*|hipDeviceProp_t\*",
}


def header() -> str:
    if not HEADER.exists():
        pytest.skip(f"no {HEADER}: apt-get install libamdhip64-dev")
    return HEADER.read_text(errors="replace")


def declared(text: str, name: str) -> tuple[str, list[str]]:
    """The type of the result and of the arguments of `name`."""
    match = re.search(rf"(hipError_t|const char\*)\s+{name}\(([^;]*?)\)\s*;", text, re.DOTALL)
    assert match is not None, name
    plain = re.sub(r"\s*=\s*\w+|__dparm\(\w*\)", "", " ".join(match[2].split()))
    arguments = [part.strip() for part in plain.split(",") if part.strip() not in ("", "void")]
    # Without the argument's name, with the star at the type.
    types = [re.sub(r"\s*\b\w+$", "", a) if " " in a else a for a in arguments]
    return match[1], [re.sub(r"\s*\*", "*", kind) for kind in types]


@pytest.mark.parametrize("name", function_names())
def test_functions_are_declared_like_this_in_the_header(name):
    if name.endswith("R0600"):
        name = "hipGetDeviceProperties"  # of which newer headers make the other
    result, types = declared(header(), name)
    assert result == ("const char*" if name in hip_api.TEXTS else "hipError_t")
    kinds = [kind for kind, _ in parameters(name)]
    assert len(types) == len(kinds)
    for kind, c_type in zip(kinds, types, strict=True):
        assert re.fullmatch(C_TYPES[kind], c_type), (name, kind, c_type)


@pytest.mark.parametrize("name", ["BUFFER_POINTER", "BUFFER_SIZE", "END"])
def test_numbers_of_launch_parameters(name):
    number = getattr(hip_api, f"LAUNCH_{name}")
    assert re.search(rf"HIP_LAUNCH_PARAM_{name} \(\(void\*\)0x0{number}\)", header())


def test_code_object_versions():
    versions = {major: hip_api.code_object_version(major) for major in (None, 4, 5, 6, 7, 10)}
    assert versions == {None: 4, 4: 4, 5: 4, 6: 5, 7: 5, 10: 5}


def test_the_newest_layout_of_the_properties_comes_first():
    assert [(call.function, call.arch_offset) for call in hip_api.PROPERTIES] == [
        ("hipGetDevicePropertiesR0600", 1160),
        ("hipGetDeviceProperties", 396),
    ]
    assert all(call.arch_offset + call.arch_bytes <= call.size for call in hip_api.PROPERTIES)


def test_numbers_by_version():
    name = "hipDeviceProp_t.gcnArchName"
    found = {major: hip_api.number(name, major) for major in (5, 6, 7, 9, None)}
    assert found == {5: 396, 6: 1160, 7: 1160, 9: 1160, None: 1160}
    with pytest.raises(KeyError, match="hipErrorTbd in HIP 5"):
        hip_api.number("hipErrorTbd", 5)
    assert [version // hip_api.MAJOR_UNIT for version in VERSIONS] == [5, 6, 7]
    assert all(len(values) == len(VERSIONS) for values in NUMBERS.values())
