"""What a GPU tells of itself is read by the numbers of the library's version."""

from dataclasses import replace

import pytest

from refcomp.foundation.errors import ToolchainError
from refcomp.hip import api as hip_api
from refcomp.runtime.hip.info import HipInfo, arch_features, describe_gpu, gpu_name
from tests.runtime.hip.recording_hip import ATTRIBUTES, RecordingHip, library_of


def test_all_that_it_tells():
    info = describe_gpu(library_of(RecordingHip()), 0)
    assert info == HipInfo(
        name="AMD Instinct",
        arch="gfx90a",
        arch_features="gfx90a:sramecc+:xnack-",
        threads_per_axis=(1024, 512, 64),
        groups_per_axis=(2**31 - 1, 65536, 65535),
        wave_lanes=64,
        threads=1024,
        threads_per_multiprocessor=2048,
        shared_bytes=65536,
        shared_bytes_per_multiprocessor=65536,
        registers=65536,
        multiprocessors=110,
        l2_bytes=8 << 20,
        clock=1_700_000_000,
        memory_clock=1_600_000_000,
        memory_bus_bits=4096,
        memory_bytes=64 << 30,
        free_bytes=3 << 30,
        pci="0000:c1:02",
    )
    assert info.peak_bandwidth == 1_638_400_000_000


def test_attributes_go_by_the_numbers_of_the_header():
    assert {hip_api.number(f"hipDeviceAttribute{name}") for name in ATTRIBUTES} >= {26, 56, 74, 87}
    recording = RecordingHip()
    recording.errors["hipDeviceGetAttribute"] = 1
    with pytest.raises(ToolchainError, match=r"hipDeviceGetAttribute\(attribute=26, device=0\)"):
        describe_gpu(library_of(recording), 0)


class OldHip(RecordingHip):
    """HIP 5, whose properties have another function and layout."""

    hipGetDevicePropertiesR0600 = None

    def hipGetDeviceProperties(self, answer: int, index: int) -> None:
        RecordingHip.hipGetDevicePropertiesR0600(self, answer + 396 - 1160, index)


def test_the_place_of_the_name_goes_by_version():
    for hip in (RecordingHip(), OldHip()):
        assert arch_features(library_of(hip), 0) == "gfx90a:sramecc+:xnack-"


def test_a_name_that_is_not_there():
    recording = RecordingHip(arch=b"MI210")
    with pytest.raises(ToolchainError, match="does not return the GPU's name where it") as caught:
        arch_features(library_of(recording), 0)
    assert "recording" in str(caught.value) and "rocm -mcpu=gfx" in str(caught.value)
    recording.hipDeviceGetName = lambda *args: 0
    assert gpu_name(library_of(recording), 0) == "AMD GPU"


@pytest.mark.parametrize(
    ("arch", "version"), [("gfx942", "9.4"), ("gfx90a", "9.0"), ("gfx1100", "11.0")]
)
def test_version_of_the_instruction_set(arch, version):
    info = describe_gpu(library_of(RecordingHip()), 0)
    assert replace(info, arch=arch).compute_version == version
