"""Occupancy: the number of waves of a kernel that an AMD GPU holds at a time.

It follows from the registers and the memory of the kernel. Ensures: the numbers equal LLVM's own
estimate for this GPU ("Occupancy" in its assembly). On hardware fewer waves may run, never more.
GPUs before gfx900 are not known.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.foundation.amd_metadata import KernelMetadata

# SIMDs that share one memory for groups: those of a compute unit; since gfx10, of two units.
SIMDS = 4
_KIB = 1024


@dataclass(frozen=True, slots=True)
class _Hardware:
    """A SIMD, and the shared memory of its compute unit."""

    registers: int  # vector registers, for all waves together
    granule: int  # registers that are allocated together
    max_waves: int
    shared_bytes: int  # memory for groups that SIMDS share
    has_few_scalars: bool = False  # if True, waves share the scalar registers


# Prefix of a GPU's name -> its hardware. The longest prefix that matches decides.
_HARDWARE = {
    "gfx9": _Hardware(256, 4, 10, 64 * _KIB, has_few_scalars=True),
    "gfx90a": _Hardware(512, 8, 8, 64 * _KIB, has_few_scalars=True),
    "gfx94": _Hardware(512, 8, 8, 64 * _KIB, has_few_scalars=True),
    "gfx95": _Hardware(512, 8, 8, 160 * _KIB, has_few_scalars=True),
    "gfx101": _Hardware(1024, 8, 20, 128 * _KIB),
    "gfx103": _Hardware(1024, 16, 16, 128 * _KIB),
    "gfx11": _Hardware(1024, 16, 16, 128 * _KIB),
    "gfx12": _Hardware(1536, 24, 16, 128 * _KIB),
    # These GPUs of gfx11 have as many registers as gfx12.
    "gfx1100": _Hardware(1536, 24, 16, 128 * _KIB),
    "gfx1101": _Hardware(1536, 24, 16, 128 * _KIB),
    "gfx1151": _Hardware(1536, 24, 16, 128 * _KIB),
}
_SHARED_GRANULE = 512  # bytes that are allocated together
_GROUPS = 16  # groups of a compute unit that can use barriers at a time
# (maximum of scalar registers in a wave, waves that then fit). With more registers, 7 fit.
_WAVES_BY_SCALARS = ((80, 10), (88, 9), (100, 8))


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The waves of a kernel on a SIMD."""

    waves: int  # at a time
    most: int  # the maximum for any kernel
    limit: str  # the resource that limits `waves`


def occupancy_of(kernel: KernelMetadata, mcpu: str) -> Occupancy | None:
    """Return the waves of `kernel` that a SIMD of the GPU `mcpu` holds; None for an unknown GPU."""
    names = [name for name in _HARDWARE if mcpu.startswith(name)]
    if not names:
        return None
    hardware = _HARDWARE[max(names, key=len)]
    limits = {
        "the GPU": hardware.max_waves,
        "vector registers": _by_vectors(kernel, hardware),
        "scalar registers": _by_scalars(kernel, hardware),
        "barriers": _by_barriers(kernel, hardware),
        "shared memory": _by_shared(kernel, hardware),
    }
    limit = min(limits, key=lambda name: limits[name])
    return Occupancy(limits[limit], hardware.max_waves, limit)


def _by_vectors(kernel: KernelMetadata, hardware: _Hardware) -> int:
    registers = hardware.registers
    granule = hardware.granule
    # Since gfx10 a register has 32 lanes, so that a wave of 64 takes twice as many.
    if not hardware.has_few_scalars and kernel.wavefront_size == 64:
        registers //= 2
        granule //= 2
    taken = -(-max(1, kernel.vgprs) // granule) * granule
    return max(1, min(hardware.max_waves, registers // taken))


def _by_scalars(kernel: KernelMetadata, hardware: _Hardware) -> int:
    if not hardware.has_few_scalars:
        return hardware.max_waves
    fitting = (waves for most, waves in _WAVES_BY_SCALARS if kernel.sgprs <= most)
    return min(hardware.max_waves, next(fitting, 7))


def _by_barriers(kernel: KernelMetadata, hardware: _Hardware) -> int:
    groups = _GROUPS if hardware.has_few_scalars else 2 * _GROUPS
    # A group of one wave needs no barrier.
    is_alone = kernel.max_threads <= kernel.wavefront_size
    return hardware.max_waves if is_alone else _by_groups(kernel, hardware, groups)


def _by_shared(kernel: KernelMetadata, hardware: _Hardware) -> int:
    if not kernel.shared_bytes:
        return hardware.max_waves
    taken = -(-kernel.shared_bytes // _SHARED_GRANULE) * _SHARED_GRANULE
    return _by_groups(kernel, hardware, hardware.shared_bytes // taken)


def _by_groups(kernel: KernelMetadata, hardware: _Hardware, groups: int) -> int:
    # A compute unit distributes the waves of its groups over its SIMDs.
    waves = groups * -(-kernel.max_threads // kernel.wavefront_size)
    return max(1, min(hardware.max_waves, -(-waves // SIMDS)))
