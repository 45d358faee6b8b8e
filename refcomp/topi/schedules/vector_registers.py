"""The vector registers and the multiply-add of a host's processor, on which its schedules depend.

Explicit levels of x86-64 and this host are known without tools. LLVM knows the facts for any other
processor that a target names.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.foundation.machine import cpu_features, machine
from refcomp.foundation.target import Target, as_target, foreign_triple
from refcomp.foundation.triples import architecture_of


@dataclass(frozen=True, slots=True)
class VectorRegisters:
    """The vector registers of an instruction set.

    Attributes:
        bytes: the bytes of a register.
        count: the number of registers.
        load_time: the time to load a vector, or to repeat an element of memory in one, in quarters
            of a multiply-add. Measured for AVX2 and AVX-512, assumed for the others.
        shared_time: the time to load a vector that many tiles share, from the second cache.
            Measured for AVX2, assumed to be `load_time` for the others.
        border_time: the least time of a tile at a border, which has fewer rows or columns, in times
            of a whole tile. With 0, it is the time of its own sums. Measured for AVX-512.
    """

    bytes: int
    count: int
    load_time: int
    shared_time: int
    border_time: int = 0

    def lanes(self, element_bytes: int) -> int:
        """Return the number of elements of a register, at least 1."""
        return max(1, self.bytes // element_bytes)

    @property
    def channel_block(self) -> int:
        """Return the channels of f32 in a block of a feature map: two registers, at most 16."""
        return min(16, 2 * self.lanes(4))


SSE = VectorRegisters(bytes=16, count=16, load_time=2, shared_time=2)
AVX2 = VectorRegisters(bytes=32, count=16, load_time=2, shared_time=6)
AVX512 = VectorRegisters(bytes=64, count=32, load_time=1, shared_time=1, border_time=4)
NEON = VectorRegisters(bytes=16, count=32, load_time=1, shared_time=1)
# Processors whose vectors are not known or short: registers of 32-bit Arm, and a guess for others.
SHORT = VectorRegisters(bytes=16, count=16, load_time=1, shared_time=1)

# The levels of x86-64, and the registers of their instruction sets.
# Source: System V ABI, AMD64 supplement, "Micro-Architecture Levels".
_LEVELS = {
    "x86-64": SSE,
    "x86-64-v2": SSE,
    "x86-64-v3": AVX2,
    "x86-64-v4": AVX512,
}


def vector_registers(target: Target | str = "llvm") -> VectorRegisters:
    """Return the vector registers of the processor that `target` names, or of this host.

    Raises:
        UserError: the target is unknown, or LLVM does not know the processor.

    Example::

        >>> from refcomp.topi.schedules.vector_registers import vector_registers
        >>> registers = vector_registers("llvm -mcpu=x86-64-v3")
        >>> registers.count, registers.bytes, registers.lanes(4)
        (16, 32, 8)
        >>> vector_registers("llvm -mtriple=aarch64-linux-gnu").count
        32
    """
    chosen = as_target(target)
    triple = foreign_triple(chosen)
    architecture = architecture_of(triple).name if triple else ""
    if triple and architecture != "x86_64":
        return NEON if architecture == "aarch64" else SHORT
    mcpu = chosen.option("mcpu", "generic" if triple else "native")
    if mcpu == "native":
        return _of_this_host()
    if mcpu in _LEVELS:
        return _LEVELS[mcpu]
    # Here, since it imports the compiler, which a module from the cache does not need.
    from refcomp.toolchain import target_facts  # noqa: PLC0415

    narrowest = SSE if architecture else _narrowest()
    return {512: AVX512, 256: AVX2}.get(target_facts(chosen).vector_bits, narrowest)


def has_fma(target: Target | str = "llvm") -> bool:
    """Return True if an instruction of `target` multiplies and adds floats, and rounds once.

    Without the instruction, LLVM calls `fmaf` of the C library, which is hundreds of times slower.
    All devices but hosts have it.

    Raises:
        UserError: the target is unknown, or LLVM does not know the processor.

    Example::

        >>> from refcomp.topi.schedules.vector_registers import has_fma
        >>> has_fma("llvm -mcpu=x86-64-v2"), has_fma("llvm -mcpu=x86-64-v3"), has_fma("cuda")
        (False, True, True)
    """
    chosen = as_target(target)
    if chosen.kind != "llvm":
        return True
    triple = foreign_triple(chosen)
    mcpu = chosen.option("mcpu", "generic" if triple else "native")
    if mcpu in _LEVELS:
        return _LEVELS[mcpu] is not SSE
    if mcpu == "native" and ("fma" in cpu_features() or _is_arm()):
        return True
    # Here, for the same reason as above.
    from refcomp.toolchain import target_facts  # noqa: PLC0415

    return target_facts(chosen).has_fma


def _of_this_host() -> VectorRegisters:
    features = cpu_features()
    if "avx512f" in features:
        return AVX512
    return AVX2 if "avx2" in features else _narrowest()


def _narrowest() -> VectorRegisters:
    """Return the registers that each processor of this host's kind has."""
    return NEON if _is_arm() else SSE


def _is_arm() -> bool:
    return machine() in ("aarch64", "arm64")
