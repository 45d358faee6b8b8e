"""The numbers are those of the headers, where the headers are there."""

import re
from pathlib import Path

import pytest

from refcomp import hip_api

HEADER = Path("/usr/include/hip/hip_runtime_api.h")


def test_code_object_versions():
    versions = {major: hip_api.code_object_version(major) for major in (None, 4, 5, 6, 7, 10)}
    assert versions == {None: 4, 4: 4, 5: 4, 6: 5, 7: 5, 10: 5}


def test_the_newest_layout_of_the_properties_comes_first():
    assert [call.function for call in hip_api.PROPERTIES] == [
        "hipGetDevicePropertiesR0600",
        "hipGetDeviceProperties",
    ]
    assert all(call.arch_offset + call.arch_size <= call.size for call in hip_api.PROPERTIES)


@pytest.mark.parametrize("name", [*hip_api.FUNCTIONS, hip_api.ERROR_TEXT])
def test_functions_take_as_many_arguments_as_the_header_says(name):
    if not HEADER.exists():
        return  # the numbers were read off it once; without it there is nothing to compare
    text = HEADER.read_text(errors="replace")
    match = re.search(rf"(?:hipError_t|const char\*)\s+{name}\(([^)]*)\)\s*;", text)
    assert match is not None
    arguments = [part for part in match[1].split(",") if part.strip() not in ("", "void")]
    given = ("i32",) if name == hip_api.ERROR_TEXT else hip_api.FUNCTIONS[name]
    assert len(arguments) == len(given)


def test_numbers_of_attributes_and_errors():
    if not HEADER.exists():
        return
    text = HEADER.read_text(errors="replace")
    body = text.split("typedef enum hipDeviceAttribute_t {")[1].split("CompatibleEnd")[0]
    names = re.findall(r"^\s*hipDeviceAttribute(\w+)\b[^,\n]*,", body, re.MULTILINE)[1:]
    assert [names.index(f"MaxBlockDim{axis}") for axis in "XYZ"] == [*hip_api.MAX_BLOCK_DIMS]
    assert names.index("MaxThreadsPerBlock") == hip_api.MAX_THREADS_PER_BLOCK
    assert names.index("MaxSharedMemoryPerBlock") == hip_api.MAX_SHARED_MEMORY_PER_BLOCK
    for name, number in (
        ("hipErrorOutOfMemory", hip_api.OUT_OF_MEMORY),
        ("hipErrorNotInitialized", hip_api.NOT_INITIALIZED),
        ("hipErrorInsufficientDriver", hip_api.INSUFFICIENT_DRIVER),
        ("hipErrorNoDevice", hip_api.NO_DEVICE),
        ("hipErrorInvalidDevice", hip_api.INVALID_DEVICE),
        ("hipErrorInvalidImage", hip_api.INVALID_IMAGE),
        ("hipErrorNoBinaryForGpu", hip_api.NO_BINARY_FOR_GPU),
    ):
        assert re.search(rf"\b{name}\s*=\s*{number},", text), name
    for name, number in (
        ("BUFFER_POINTER", hip_api.LAUNCH_BUFFER_POINTER),
        ("BUFFER_SIZE", hip_api.LAUNCH_BUFFER_SIZE),
        ("END", hip_api.LAUNCH_END),
    ):
        assert re.search(rf"HIP_LAUNCH_PARAM_{name} \(\(void\*\)0x0{number}\)", text), name
