"""Waves that a SIMD holds of groups as they are launched, by hand."""

import pytest

from refcomp.driver.nvidia_resources import launched_resources
from refcomp.emulator.observers.counting import KernelCounts
from refcomp.foundation.amd_metadata import KernelMetadata
from refcomp.foundation.errors import ToolchainError
from refcomp.profile.occupancy import ptxas_resources, waves_of_launch, waves_of_simd
from refcomp.toolchain import PtxasRecord
from tests.emulator.ptx.texts import kernel


def _held(gpu, threads, lanes=64, shared=0, more=0, vgprs=32, most=1024, launches=1):
    told = {"kernarg_bytes": 0, "kernarg_alignment": 8, "private_bytes": 0, "sgprs": 16}
    kernel = KernelMetadata(
        *("k", "k.kd", ()),
        **told,
        shared_bytes=shared,
        max_threads=most,
        block=(),
        wavefront_size=lanes,
        vgprs=vgprs,
        spilled_vgprs=0,
        spilled_sgprs=0,
    )
    block = (threads, 1, 1)
    counts = KernelCounts("k", gpu, lanes, 128, block=block, launches=launches, shared_bytes=more)
    found = waves_of_launch(kernel, counts)
    return (found.waves, found.limit) if found else None


def test_groups_are_those_of_the_launch_not_the_largest_ones():
    """Four groups fit into 64 KiB: of one wave each one a SIMD, of sixteen more than it holds."""
    assert _held("gfx942", 64, shared=16384) == (1, "shared memory")
    assert _held("gfx942", 256, shared=16384) == (4, "shared memory")
    assert _held("gfx942", 1024, shared=16384) == (8, "the GPU")
    assert _held("gfx942", 64, shared=16384, launches=0) == (8, "the GPU")


def test_memory_that_a_launch_asks_for_counts():
    assert _held("gfx942", 256, more=32768) == (2, "shared memory")
    assert _held("gfx942", 256, shared=16384, more=16384) == (2, "shared memory")


@pytest.mark.parametrize(
    ("threads", "held"),
    [
        # 96 registers let five waves a SIMD live, twenty on four: of sixteen waves one group.
        (1024, (4, "whole groups")),
        (512, (4, "whole groups")),
        (320, (5, "vector registers")),
        (256, (5, "vector registers")),
        (64, (5, "vector registers")),
    ],
)
def test_groups_come_whole(threads, held):
    assert _held("gfx942", threads, vgprs=96) == held


def test_a_group_larger_than_what_there_is_stands_as_it_is():
    assert _held("gfx942", 1024, vgprs=512) == (1, "vector registers")


def test_registers_of_rdna_come_by_24_of_1536():
    assert _held("gfx1100", 128, 32, vgprs=97) == (12, "vector registers")
    assert _held("gfx1100", 128, 32, vgprs=96) == (16, "the GPU")


def test_of_an_unknown_gpu_nothing_is_told():
    assert _held("gfx000", 64) is None


def _launched(registers, threads, shared=0, more=0):
    """The resources of a kernel of which ptxas says so much."""
    record = PtxasRecord("k", "sm_90", registers, 1, 0, 0, 0, shared, 0)
    return launched_resources(record, threads, more)


def test_blocks_of_a_multiprocessor_are_limited_by_registers_and_shared_memory():
    """65536 registers and 228 KiB, of which each block takes 1 KiB more than it asks for."""
    few, many = _launched(32, 256), _launched(128, 256)
    assert (few.blocks, few.warps, few.limit) == (8, 64, "warps")
    assert (many.blocks, many.warps, many.limit) == (2, 16, "registers")
    tiles = _launched(32, 256, shared=40 << 10, more=10 << 10)
    assert (tiles.blocks, tiles.limit, tiles.dynamic_bytes) == (4, "shared memory", 10 << 10)
    assert [waves_of_simd(one) for one in (few, many, tiles)] == [16, 4, 8]


def _asked(text, gpu="sm_90"):
    """What ptxas tells of the kernel `k` with blocks of 64 threads."""
    return ptxas_resources(text.encode(), KernelCounts("k", gpu, 32, 32, block=(64, 1, 1)))


_TEXT = kernel("ld.global.u32 %r2, [%rd1]; st.global.u32 [%rd1], %r2; ret;")


@pytest.mark.nvcc
def test_ptxas_counts_registers():
    found, lack = _asked(_TEXT)
    assert (found.arch, found.threads, found.limit, lack) == ("sm_90", 64, "warps", "")
    assert 0 < found.registers < 32 and found.blocks == 32
    others = _asked(_TEXT.replace(" k(", " other("))
    assert others == (None, "not known: ptxas does not report this kernel")


@pytest.mark.nvcc
def test_ptx_with_features_of_one_gpu_is_compiled_for_it():
    found, lack = _asked(_TEXT.replace("sm_80", "sm_90a"))
    assert (found.arch, found.limit, lack) == ("sm_90a", "warps", "")


@pytest.mark.nvcc
@pytest.mark.parametrize(("text", "gpu"), [("no PTX", "sm_90"), (_TEXT, "sm_20")])
def test_what_ptxas_refuses_is_told(text, gpu):
    assert _asked(text, gpu) == (None, f"not known: ptxas does not compile this PTX for {gpu}")


def test_a_ptxas_that_lacks_is_told(monkeypatch):
    def refuse(*_given, **_options):
        raise ToolchainError("ptxas was not found")

    monkeypatch.setattr("refcomp.toolchain.compile_with_report", refuse)
    monkeypatch.setattr("refcomp.toolchain.find_tools", refuse)
    text = _TEXT.replace("ret;", "ret; ret;")  # no other test has it
    assert _asked(text) == (None, "not known without ptxas")
