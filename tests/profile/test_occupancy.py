"""Waves that a SIMD holds of groups as they are launched, by hand."""

import pytest

from refcomp.emulator.observers.counting import KernelCounts
from refcomp.foundation.amd_metadata import KernelMetadata
from refcomp.profile.occupancy import waves_of_launch


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
