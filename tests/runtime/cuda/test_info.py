"""The properties of a GPU, read by attributes."""

from refcomp.runtime.cuda.context import CudaContext
from refcomp.runtime.cuda.info import (
    arch_of,
    attributes_of,
    axes,
    describe_gpu,
    library_versions,
)
from tests.runtime.cuda.recording_pycuda import RecordingPycuda


def opened():
    recording = RecordingPycuda(capability=(10, 3))
    recording.driver.init()
    return CudaContext(recording.driver, 0)


def test_all_properties_are_read():
    context = opened()
    with context.use("reading") as cuda:
        info = describe_gpu(cuda, context.device)
    assert (info.name, info.arch, info.pci) == ("NVIDIA H100 80GB HBM3", "sm_103", "0000:c1:00.0")
    assert (info.warp_lanes, info.threads, info.multiprocessors) == (32, 1024, 132)
    assert (info.threads_per_axis, info.groups_per_axis[0]) == ((1024, 1024, 64), 2**31 - 1)
    assert (info.static_shared_bytes, info.shared_bytes) == (49152, 232448)
    assert (info.registers, info.registers_per_multiprocessor) == (65536, 65536)
    assert (info.clock, info.memory_clock) == (1_980_000_000, 2_619_000_000)
    assert info.memory_bytes == info.free_bytes == 80 << 30
    assert info.peak_bandwidth == 2.0 * 2_619_000_000 * 640


def test_single_properties():
    context = opened()
    read = attributes_of(context.cuda, context.device)
    assert axes(read, "MAX_BLOCK_DIM") == (1024, 1024, 64)
    assert arch_of(context.device) == "sm_103"
    assert library_versions(context.cuda) == {"pycuda": "13.0", "driver": "12.8"}
