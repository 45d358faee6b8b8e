"""Occupancy: the number of blocks of a kernel that a multiprocessor (SM) of an NVIDIA GPU holds.

It follows from the registers and the memory of the kernel. Ensures: the numbers equal those of
NVIDIA's `cuda_occupancy.h`, for a shared memory of the greatest size that can be configured.

Sources: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", for limits;
`cuda_occupancy.h` for the granularity of allocation, the reserved memory and the barriers.
"""

from dataclasses import dataclass

from refcomp.foundation.compute_capability import capability_of

WARP = 32  # threads
_REGISTERS = 65536  # of 32 bits, of a multiprocessor, and also the maximum of a block
_REGISTERS_GRANULE = 256  # registers of a warp that are allocated together
_MAX_REGISTERS = 255  # of a thread
_PARTS = 4  # a multiprocessor's warps and registers are divided into so many parts
_MAX_THREADS = 1024  # of a block
_KIB = 1024


@dataclass(frozen=True, slots=True)
class _Multiprocessor:
    """The limits of a multiprocessor."""

    warps: int
    blocks: int
    shared_kib: int  # for all blocks together
    barriers: int  # for all blocks together; 0 if each block has its own
    reserved_bytes: int = 1024  # shared memory of each block that the system uses
    shared_granule: int = 128  # bytes that are allocated together


# By compute capability. Others are not known.
_MULTIPROCESSORS = {
    (7, 5): _Multiprocessor(32, 16, 64, 0, reserved_bytes=0, shared_granule=256),
    (8, 0): _Multiprocessor(64, 32, 164, 0),
    (8, 6): _Multiprocessor(48, 16, 100, 0),
    (8, 7): _Multiprocessor(48, 16, 164, 0),
    (8, 9): _Multiprocessor(48, 24, 100, 0),
    (9, 0): _Multiprocessor(64, 32, 228, 64),
    (10, 0): _Multiprocessor(64, 32, 228, 64),
    (10, 3): _Multiprocessor(64, 32, 228, 32),
    (11, 0): _Multiprocessor(48, 24, 228, 24),
    (12, 0): _Multiprocessor(48, 24, 100, 24),
    (12, 1): _Multiprocessor(48, 24, 100, 24),
}


@dataclass(frozen=True, slots=True)
class BlockOccupancy:
    """The blocks of a kernel on a multiprocessor."""

    blocks: int  # at a time; 0 if the kernel cannot be launched
    warps: int  # of these blocks
    most_warps: int  # the maximum for any kernel
    limit: str  # the resource that limits `blocks`


def max_shared_bytes(arch: str) -> int | None:
    """Return the shared memory that a block may have; None for an architecture that is not known.

    Args:
        arch: such as `sm_90`.
    """
    unit = _MULTIPROCESSORS.get(capability_of(arch))
    return None if unit is None else unit.shared_kib * _KIB - unit.reserved_bytes


def block_occupancy(
    arch: str, *, threads: int, registers: int, shared_bytes: int, barriers: int
) -> BlockOccupancy | None:
    """Return the occupancy of a kernel; None for an architecture that is not known.

    Args:
        arch: such as `sm_90`.
        threads: of a block.
        registers: of a thread.
        shared_bytes: of a block, static and dynamic.
        barriers: of a block.
    """
    unit = _MULTIPROCESSORS.get(capability_of(arch))
    if unit is None:
        return None
    warps = -(-threads // WARP)
    limits = {
        "warps": unit.warps // warps if threads <= _MAX_THREADS else 0,
        "blocks": unit.blocks,
        "registers": _by_registers(warps, registers),
        "shared memory": _by_shared(unit, shared_bytes),
        "barriers": _by_barriers(unit, barriers),
    }
    limit = min(limits, key=lambda name: limits[name])
    blocks = limits[limit]
    return BlockOccupancy(blocks, blocks * warps, unit.warps, limit)


def _by_registers(warps: int, registers: int) -> int:
    granule = _REGISTERS_GRANULE
    of_warp = -(-max(1, registers) * WARP // granule) * granule
    # The hardware checks a block as if its warps filled all parts alike.
    if (
        registers > _MAX_REGISTERS
        or of_warp * -(-warps // _PARTS) * _PARTS > _REGISTERS
    ):
        return 0
    return _REGISTERS // _PARTS // of_warp * _PARTS // warps


def _by_shared(unit: _Multiprocessor, shared_bytes: int) -> int:
    taken = shared_bytes + unit.reserved_bytes
    allocated = -(-taken // unit.shared_granule) * unit.shared_granule
    if not allocated:
        return unit.blocks
    return unit.shared_kib * _KIB // allocated


def _by_barriers(unit: _Multiprocessor, barriers: int) -> int:
    is_limited = unit.barriers and barriers
    return unit.barriers // barriers if is_limited else unit.blocks
