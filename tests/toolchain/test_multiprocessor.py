"""Occupancy on NVIDIA GPUs is that of NVIDIA's own header, which g++ compiles."""

import itertools
import subprocess
from pathlib import Path

import pytest

from refcomp.toolchain.description import load_description
from refcomp.toolchain.multiprocessor import (
    _MULTIPROCESSORS,
    WARP,
    block_occupancy,
    max_shared_bytes,
)
from refcomp.toolchain.places import file_path

_PROGRAM = """\
#include <climits>
#include <cstdio>
#include "cuda_occupancy.h"
int main() {
  int major, minor, warps, shared, reserved, threads, registers, used, barriers;
  while (scanf("%d %d %d %d %d %d %d %d %d", &major, &minor, &warps, &shared, &reserved, &threads,
               &registers, &used, &barriers) == 9) {
    cudaOccDeviceProp gpu;
    gpu.computeMajor = major; gpu.computeMinor = minor; gpu.maxThreadsPerBlock = 1024;
    gpu.maxThreadsPerMultiprocessor = warps * 32; gpu.warpSize = 32; gpu.numSms = 1;
    gpu.regsPerBlock = gpu.regsPerMultiprocessor = 65536; gpu.sharedMemPerBlock = 49152;
    gpu.sharedMemPerMultiprocessor = shared; gpu.reservedSharedMemPerBlock = reserved;
    gpu.sharedMemPerBlockOptin = shared - reserved;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024; kernel.numRegs = registers; kernel.sharedSizeBytes = 0;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN; kernel.maxDynamicSharedSizeBytes = used;
    kernel.numBlockBarriers = barriers;
    cudaOccDeviceState state;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    cudaOccResult result;
    int status = cudaOccMaxActiveBlocksPerMultiprocessor(
        &result, &gpu, &kernel, &state, threads, used);
    printf("%d\\n", status ? -1 : result.activeBlocksPerMultiprocessor);
  }
}
"""


def _cases():
    grid = itertools.product(
        _MULTIPROCESSORS.items(),
        (1, 32, 96, 128, 160, 256, 1000, 1024),
        (0, 1, 8, 24, 32, 33, 40, 64, 65, 128, 168, 255),
        (0, 1, 1024, 9000, 16384, 49152, 65536, 99 * 1024, 163 * 1024),
        (0, 1, 2, 16),
    )
    for (capability, unit), threads, registers, shared, barriers in grid:
        # More cannot be launched, and the header refuses it.
        if shared + unit.reserved_bytes <= unit.shared_kib * 1024:
            yield capability, unit, threads, registers, shared, barriers


@pytest.mark.gcc
@pytest.mark.nvcc
def test_the_numbers_are_those_of_nvidias_header(tmp_path: Path) -> None:
    header = file_path(load_description("nvrtc").files["headers"])
    assert header is not None
    (tmp_path / "main.cpp").write_text(_PROGRAM)
    program = tmp_path / "main"
    folder = Path(header).parent
    command = ["g++", f"-I{folder}", str(tmp_path / "main.cpp"), "-o", str(program)]
    subprocess.run(command, check=True, timeout=60)
    lines = [
        f"{major} {minor} {unit.warps} {unit.shared_kib * 1024} {unit.reserved_bytes} "
        f"{threads} {registers} {shared} {barriers}"
        for (major, minor), unit, threads, registers, shared, barriers in _cases()
    ]
    expected = subprocess.run(
        [str(program)], input="\n".join(lines), capture_output=True, text=True, timeout=60
    ).stdout.split()
    assert len(expected) == len(lines) > 20_000
    for (capability, _, threads, registers, shared, barriers), blocks in zip(
        _cases(), expected, strict=True
    ):
        arch = "sm_{}{}".format(*capability)
        found = block_occupancy(
            arch, threads=threads, registers=registers, shared_bytes=shared, barriers=barriers
        )
        case = (arch, threads, registers, shared, barriers)
        assert (case, found.blocks) == (case, int(blocks))
        assert found.warps == found.blocks * -(-threads // WARP) <= found.most_warps


@pytest.mark.parametrize(
    ("taken", "blocks", "limit"),
    [
        ({"threads": 256}, 8, "warps"),
        ({"threads": 32}, 32, "blocks"),
        ({"threads": 256, "registers": 128}, 2, "registers"),
        ({"threads": 1024, "registers": 65}, 0, "registers"),
        ({"threads": 128, "shared_bytes": 100_000}, 2, "shared memory"),
        ({"threads": 128, "shared_bytes": 300_000}, 0, "shared memory"),
        ({"threads": 128, "barriers": 16}, 4, "barriers"),
        ({"threads": 1025}, 0, "warps"),
    ],
)
def test_the_scarcest_resource_is_named(taken: dict[str, int], blocks: int, limit: str) -> None:
    usual = {"registers": 16, "shared_bytes": 0, "barriers": 1}
    found = block_occupancy("sm_90", **{**usual, **taken})
    assert (found.blocks, found.limit) == (blocks, limit)


def test_a_block_may_have_nearly_all_shared_memory() -> None:
    kib = {"sm_75": 64, "sm_80": 163, "sm_86": 99, "sm_90": 227, "sm_120": 99}
    assert {arch: max_shared_bytes(arch) for arch in kib} == {a: k << 10 for a, k in kib.items()}
    assert max_shared_bytes("sm_61") is None


def test_other_architectures_are_not_known() -> None:
    taken = {"threads": 32, "registers": 8, "shared_bytes": 0, "barriers": 0}
    assert block_occupancy("sm_990", **taken) is None
    assert block_occupancy("sm_90a", **taken) == block_occupancy("sm_90", **taken)
